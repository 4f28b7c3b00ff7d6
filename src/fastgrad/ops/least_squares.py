"""Floor 3: pseudo-inverse, least squares and rank."""
from __future__ import annotations

import math
from collections import namedtuple
from functools import partial
from typing import Any

import numpy as np

from ._declare import KEEP, composite, operator
from ._matrices import NO_SAMPLES, Array, attempt, mH, not_converged, require_matrix, require_square
from .products import adjoint_product, product_adjoint
from .spectral import svdvals_only, with_nan


def tolerance(A: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """PyTorch's defaults: eps times the larger size, unless an absolute tolerance is given."""
    if rtol is None:
        absolute = atol is not None and np.any(np.asarray(atol) > 0)
        rtol = 0.0 if absolute else max(A.shape[-2:]) * np.finfo(np.dtype(A.dtype)).eps
    return (0.0 if atol is None else atol), rtol


def above(S: Array, atol: Any, rtol: Any) -> Array:
    """Which singular values count."""
    largest = S.max(-1, keepdims=True) if S.shape[-1] else S
    atol, rtol = (np.asarray(t.detach() if hasattr(t, "detach") else t)[..., None] for t in (atol, rtol))
    return S > np.maximum(atol, rtol * largest)


def pinv_forward(A: Array, rtol: Any, hermitian: bool, atol: Any) -> Array:
    require_matrix("linalg.pinv", A)
    atol, rtol = tolerance(A, atol, rtol)
    if hermitian:
        require_square("linalg.pinv", A)
        values, V = with_nan(lambda M: tuple(np.linalg.eigh(M)), A, "linalg.pinv")
        keep = above(np.abs(values), atol, rtol)
        weights = np.where(keep, 1 / np.where(keep, values, 1), 0).astype(values.dtype)
        return (V * weights[..., None, :]) @ V.conj().swapaxes(-2, -1)
    U, S, Vh = attempt("linalg.pinv", lambda M: np.linalg.svd(M, False), A, not_converged(A, "the SVD"))
    keep = above(S, atol, rtol)
    weights = np.where(keep, 1 / np.where(keep, S, 1), 0).astype(S.dtype)
    return Vh.conj().swapaxes(-2, -1) @ (weights[..., None] * U.conj().swapaxes(-2, -1))


def linalg_pinv_vjp_A(g: Any, A: Any, result: Any) -> Any:
    P, Ph, gh = result, mH(result), mH(g)
    if A.shape[-2] <= A.shape[-1]:
        K = gh @ P
        KPh = K @ Ph
        return -mH(P @ K) + KPh - (A @ P) @ KPh + (Ph @ P) @ (gh - K @ A)
    K = P @ gh
    PhK = Ph @ K
    return -mH(K @ P) + (gh - A @ K) @ P @ Ph + PhK - (PhK @ P) @ A


linalg_pinv = operator(
    "linalg_pinv(A, rtol=None, hermitian=False, *, atol=None)",
    forward=pinv_forward,
    vjp=dict(A=linalg_pinv_vjp_A),
    dtypes=KEEP, tensors="A", public=False, method=False,
    samples=lambda make: [((make(3, 2),), {}), ((make(2, 3),), {}), ((make(2, 2, 2),), {})],
    source="Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems (1973), "
           "eq. 4.12",
    doc="""The Moore-Penrose pseudo-inverse; singular values up to ``max(atol, rtol * largest)`` count as 0.

    The derivative is that at constant rank; it saves A and the result.
    """,
)


@composite("pinverse(input, rcond=1e-15)", samples=lambda make: [((make(3, 2),), {})])
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """The pseudo-inverse: see ``linalg.pinv``."""
    return linalg_pinv(input, rcond)


def minimizer(A: Array, B: Array, rcond: float) -> Array:
    return np.asarray(np.linalg.lstsq(A, B, rcond)[0])


def lstsq_forward(A: Array, B: Array, rcond: float) -> Array:
    shape = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    n = math.prod(shape)
    a = np.broadcast_to(A, shape + A.shape[-2:]).reshape(n, *A.shape[-2:])
    b = np.broadcast_to(B, shape + B.shape[-2:]).reshape(n, *B.shape[-2:])
    X = np.zeros((n, A.shape[-1], B.shape[-1]), A.dtype)
    for i in range(n):
        X[i] = attempt("linalg.lstsq", partial(minimizer, B=b[i], rcond=rcond), a[i], not_converged(a[i], "the SVD"))
    return X.reshape(shape + X.shape[1:])


def lstsq_vjp_A(g: Any, A: Any, B: Any, rcond: float) -> Any:
    # The solution is pinv(A) @ B.
    return linalg_pinv_vjp_A(product_adjoint(g, B), A, linalg_pinv(A, rcond))


lstsq_solution = operator(
    "_lstsq(A, B, rcond)",
    forward=lstsq_forward,
    vjp=dict(A=lstsq_vjp_A, B=lambda g, A, rcond: adjoint_product(linalg_pinv(A, rcond), g)),
    dtypes=KEEP, tensors="A B", node="LinalgLstsq", public=False, method=False,
    samples=lambda make: [((make(3, 2), make(3, 2), 1e-15), {}), ((make(2, 3), make(2, 1), 1e-15), {})],
    source="as linalg.pinv",
)

LstsqResult = namedtuple("linalg_lstsq", "solution residuals rank singular_values")
DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@composite("linalg_lstsq(A, B, rcond=None, *, driver=None)", public=False, method=False,
           samples=NO_SAMPLES)
def linalg_lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """The X of least norm among those that minimize ``norm(A @ X - B)``.

    Parameters
    ----------
    A : Tensor
        ``(..., m, n)``.
    B : Tensor
        ``(..., m, k)``, or ``(..., m)``.
    rcond : float, optional
        Singular values up to ``rcond`` times the largest count as 0. Defaults to eps times the larger size.
    driver : str, optional
        As in PyTorch; what is computed is the same, but "gelsy" (the default) returns no residuals, and only "gelsd"
        and "gelss" return singular values.

    Returns
    -------
    solution, residuals, rank, singular_values
        The residuals are the squared norms of the columns of ``A @ X - B`` where ``m > n`` and A has full rank.
    """
    name = "linalg.lstsq"
    require_matrix(name, A)
    driver = "gelsy" if driver is None else driver
    if driver not in DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of {DRIVERS}, got {driver!r}")
    if A.dtype != B.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got input's dtype {A.dtype} "
                           f"and other's dtype {B.dtype}")
    vector = B.ndim == A.ndim - 1
    b = B.unsqueeze(-1) if vector else B
    if b.ndim < 2 or b.shape[-2] != A.shape[-2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size(-2), got shapes {tuple(A.shape)} and "
                           f"{tuple(B.shape)}")
    m, n = A.shape[-2:]
    rcond = max(m, n) * float(np.finfo(A.dtype.numpy).eps) if rcond is None else rcond
    X = lstsq_solution(A, b, rcond)
    S = svdvals_only(A.detach())
    rank = linalg_matrix_rank(A, rtol=rcond)
    empty = S.reshape(-1).narrow(0, 0, 0)
    residuals = empty
    if driver != "gelsy" and m > n and bool((rank == n).all()):
        difference = A @ X - b
        residuals = (difference * difference.conj()).real.sum(-2) if A.dtype.is_complex else difference.square().sum(-2)
    values = S if driver in ("gelsd", "gelss") else empty
    return LstsqResult(X.squeeze(-1) if vector else X, residuals, rank, values)


def rank_forward(A: Array, atol: Any, rtol: Any, hermitian: bool) -> Array:
    require_matrix("linalg.matrix_rank", A, "input")
    atol, rtol = tolerance(A, atol, rtol)
    S = np.abs(np.linalg.eigvalsh(A)) if hermitian else np.linalg.svd(A, compute_uv=False)
    return above(S, atol, rtol).sum(-1)


matrix_rank = operator(
    "_matrix_rank(A, atol, rtol, hermitian)",
    forward=rank_forward, differentiable=False, dtypes=KEEP, tensors="A", public=False, method=False,
    samples=lambda make: [((make(3, 2), None, None, False), {})],
)


@composite("linalg_matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None)", public=False, method=False,
           differentiable=False, samples=lambda make: [((make(3, 2),), {})])
def linalg_matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """How many singular values are above ``max(atol, rtol * largest)``; ``tol`` is absolute."""
    if tol is not None:
        atol, rtol = tol, 0.0
    return matrix_rank(A, atol, rtol, hermitian)
