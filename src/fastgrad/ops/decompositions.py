"""Floor 3: linear systems and the factorizations that solve them: det, inv, solve, cholesky, triangular, LU, QR.

In the formulas ``X^H`` is the conjugate transpose; `product_adjoint` is ``a @ b^H`` and `adjoint_product` ``a^H @ b``.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import _record
from .._tensor import from_ndarray
from ._declare import KEEP, composite, operator
from ._helpers import conj
from ._matrices import (
    NO_SAMPLES,
    Array,
    LinAlgError,
    as_columns,
    attempt,
    batch_element,
    mH,
    part,
    raises,
    require_matrix,
    require_same,
    require_square,
    scipy_lapack,
    substitute,
)
from .products import adjoint_product, product_adjoint

GILES = "Giles, An extended collection of matrix derivative results (2008)"
KEEP_FACTORS = 64        # rows from which solving once more costs more than calling SciPy's LAPACK
INVERTIBLE = 1e-3        # of 1 / eps: up to this condition the cofactors come from the inverse, beyond from the SVD


def square_samples(make: Any) -> list[Any]:
    return [((make(3, 3),), {}), ((make(2, 2, 2),), {}), ((make(1, 1),), {}), ((make(0, 0),), {})]


def leaf(make: Any, shape: tuple[int, ...], change: Any) -> Any:
    """For the tests: a leaf whose values are `change` of random ones."""
    t = make(*shape)
    return from_ndarray(change(t.detach().numpy()), copy=True, requires_grad=t.requires_grad)


def dominant(make: Any, *shape: int) -> Any:
    """For the tests: a matrix whose diagonal is large, so that its triangles are far from singular."""
    return leaf(make, shape, lambda a: a + 7 * np.eye(shape[-1], dtype=a.dtype))


# --- Determinants ----------------------------------------------------------------------------------------------------


def leave_one_out(s: Array) -> Array:
    """The product of all other elements along the last axis, for each element; no division, so zeros are fine."""
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], -1), -1)[..., ::-1]
    return before * after


def leave_two_out(s: Array) -> Array:
    """The matrix of products of all elements but the i-th and the j-th; 0 on the diagonal."""
    n = s.shape[-1]
    eye = np.eye(n, dtype=bool)
    without_i = np.where(eye, 1.0, s[..., None, :])
    return np.where(eye, 0.0, leave_one_out(without_i))


def cofactor_forward(A: Array) -> Array:
    """The matrix of cofactors, d det(A) / dA, of any matrix: cof(U S V^H) = cof(U) cof(S) cof(V^H)."""
    finite = np.isfinite(A).all((-2, -1))[..., None, None]
    U, s, Vh = np.linalg.svd(np.where(finite, A, 0))      # which raises on NaN: those get NaN below
    phase = np.where(finite, (np.linalg.det(U) * np.linalg.det(Vh))[..., None, None], np.nan)
    return (phase * (U.conj() * leave_one_out(s)[..., None, :]) @ Vh.conj()).astype(A.dtype)


def cofactor_change(g: Array, A: Array) -> Array:
    """The adjoint of the cofactors' derivative, applied to g.

    In the basis of the singular vectors it is ``T(W)``: on the diagonal sums of W's other diagonal elements, off it
    W's transpose with the opposite sign, both times the product of all singular values but two.
    """
    finite = np.isfinite(A).all((-2, -1))[..., None, None]
    U, s, Vh = np.linalg.svd(np.where(finite, A, 0))
    phase = np.where(finite, (np.linalg.det(U) * np.linalg.det(Vh)).conj()[..., None, None], np.nan)
    W = phase * (U.swapaxes(-2, -1) @ g @ Vh.swapaxes(-2, -1))
    two = leave_two_out(s)
    diagonal = (two @ np.diagonal(W, axis1=-2, axis2=-1)[..., None])[..., 0]
    T = -two * W.swapaxes(-2, -1) + diagonal[..., None] * np.eye(A.shape[-1])
    return (U @ T @ Vh).astype(A.dtype)


def third_derivative(g: Any) -> Any:
    raise NotImplementedError(
        "linalg.det: third and higher derivatives at a singular (or nearly singular) matrix are not available; first "
        "and second ones are"
    )


cofactor_vjp = operator(
    "_cofactor_vjp(g, A)",
    forward=cofactor_change,
    vjp=dict(g=lambda g, A: conj(cofactor_vjp(conj(g), A)), A=third_derivative),
    dtypes=KEEP, tensors="g A", public=False, method=False, complex=False,
    samples=NO_SAMPLES,
)

cofactor = operator(
    "_cofactor(A)",
    forward=cofactor_forward,
    vjp=dict(A=lambda g, A: cofactor_vjp(g, A)),
    dtypes=KEEP, tensors="A", public=False, method=False, samples=NO_SAMPLES,
    doc="The matrix of cofactors of a square matrix, singular or not: the derivative of its determinant.",
)


def inverse_if_sound(A: Any) -> Any:
    """The inverse, or None where A (or one of the batch) is too near to singular for it to mean anything."""
    try:
        inverse = linalg_inv(A)
    except LinAlgError:
        return None
    if A.numel():
        a, b = A.detach().numpy(), inverse.detach().numpy()
        condition = np.abs(a).sum(-2).max(-1) * np.abs(b).sum(-2).max(-1)
        if not (condition <= INVERTIBLE / np.finfo(a.dtype).eps).all():
            return None
    return inverse


def linalg_det_vjp_A(g: Any, A: Any, result: Any) -> Any:
    inverse = inverse_if_sound(A)
    if inverse is None:
        return as_columns(g) * conj(cofactor(A))
    return as_columns(g * conj(result)) * mH(inverse)


def det_forward(A: Array) -> Array:
    require_square("linalg.det", A)
    return np.linalg.det(A)


linalg_det = operator(
    "linalg_det(A)",
    forward=det_forward,
    vjp=dict(A=linalg_det_vjp_A),
    dtypes=KEEP, tensors="A", public=False, method=False, numpy=np.linalg.det, samples=square_samples,
    source=f"{GILES}, 2.2.4, with the cofactors themselves in place of det(A) A^-H where A is singular",
    doc="""The determinant of a square matrix, or of each in a batch.

    Parameters
    ----------
    A : Tensor
        ``(..., n, n)``, floating point or complex.

    Returns
    -------
    Tensor
        ``(...)``.

    Notes
    -----
    The gradient is the matrix of cofactors, for singular matrices too (where
    PyTorch gives zeros). At those the derivative can be taken twice.

    Examples
    --------
    >>> import fastgrad as fg
    >>> a = fg.tensor([[1.0, 0.0], [0.0, 0.0]], requires_grad=True)
    >>> fg.linalg.det(a).backward()
    >>> a.grad
    tensor([[0., 0.],
            [0., 1.]])
    """,
)


def slogdet_forward(A: Array) -> tuple[Array, Array]:
    require_square("linalg.slogdet", A)
    sign, logabsdet = np.linalg.slogdet(A)
    return sign, logabsdet


def linalg_slogdet_vjp_A(g: Any, A: Any, result: Any) -> Any:
    g_sign, g_log = g
    if A.dtype.is_complex:
        # d logabsdet = Re t and d sign = i sign Im t, with t = trace(A^-1 dA)
        g_log = g_log + 1j * (g_sign * conj(result[0])).imag
    try:
        return as_columns(g_log) * mH(linalg_inv(A))
    except LinAlgError:
        return as_columns(g_log) * conj(cofactor(A)) / as_columns(conj(linalg_det(A)))      # infinite


linalg_slogdet = operator(
    "linalg_slogdet(A)",
    forward=slogdet_forward,
    vjp=dict(A=linalg_slogdet_vjp_A),
    dtypes=KEEP, tensors="A", outputs=("sign", "logabsdet"), public=False, method=False, numpy=np.linalg.slogdet,
    samples=square_samples, source=f"{GILES}, 2.2.4",
    doc="""Sign and logarithm of the absolute value of the determinant, ``(sign, logabsdet)``.

    A singular matrix has sign 0 and logarithm ``-inf``. The derivative saves ``A``.
    """,
)


@composite("det(input)", samples=square_samples)
def det(input: Any) -> Any:
    """The determinant: see ``linalg.det``."""
    return linalg_det(input)


@composite("slogdet(input)", samples=square_samples)
def slogdet(input: Any) -> Any:
    """Sign and logarithm of the absolute value of the determinant: see ``linalg.slogdet``."""
    return linalg_slogdet(input)


@composite("logdet(input)", samples=lambda make: [((dominant(make, 3, 3),), {})])
def logdet(input: Any) -> Any:
    """The logarithm of the determinant: NaN where that is negative, ``-inf`` where it is 0."""
    sign, logabsdet = linalg_slogdet(input)
    return logabsdet + sign.log()


# --- Inverse and systems ---------------------------------------------------------------------------------------------


def inv_forward(A: Array) -> Array:
    require_square("linalg.inv", A)
    return attempt("linalg.inv", np.linalg.inv, A,
                   "The inversion could not be completed because the input matrix is singular.")


linalg_inv = operator(
    "linalg_inv(A)",
    forward=inv_forward,
    vjp=dict(A=lambda g, result: -product_adjoint(adjoint_product(result, g), result)),
    jvp=dict(A=lambda t, result: -(result @ t @ result)),
    dtypes=KEEP, tensors="A", node="LinalgInvEx", public=False, method=False, numpy=np.linalg.inv,
    samples=square_samples, source=f"{GILES}, 2.2.3",
    doc="""The inverse of a square matrix, or of each in a batch; saves the result.

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    """,
)


@composite("inverse(input)", samples=square_samples)
def inverse(input: Any) -> Any:
    """The inverse: see ``linalg.inv``."""
    return linalg_inv(input)


def is_vector_rhs(A: Any, B: Any) -> bool:
    """Whether B is a vector (or a batch of them), not a matrix."""
    return B.ndim == 1 or (B.ndim == A.ndim - 1 and tuple(B.shape) == tuple(A.shape[:-1]))


def require_system(name: str, A: Any, B: Any, left: bool) -> None:
    require_same(name, A, B)
    vector = is_vector_rhs(A, B)
    n = A.shape[-1]
    if vector and left and B.shape[-1] == n:
        return
    if vector or B.shape[-2 if left else -1] != n:
        rows, columns = (B.shape[-1], 1) if vector else B.shape[-2:]
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B "
                           f"({n}x{n} and {rows}x{columns}); the shapes are {tuple(A.shape)} and {tuple(B.shape)}")


def solve_forward(A: Array, B: Array, left: bool) -> tuple[Array, Array, Array]:
    """The solution, and the LU factors with LAPACK's exchanges where they are worth keeping (else both empty)."""
    require_square("linalg.solve", A)
    require_system("linalg.solve", A, B, left)
    vector = is_vector_rhs(A, B)
    b = B[..., None] if vector else B
    a, b = (A, b) if left else (A.swapaxes(-2, -1), b.swapaxes(-2, -1))
    lapack = scipy_lapack() if a.ndim == b.ndim == 2 and a.shape[-1] >= KEEP_FACTORS else None
    factors = (np.zeros(0, A.dtype), np.zeros(0, np.int32))
    if lapack is not None:
        getrf, getrs = lapack(("getrf", "getrs"), (a, b))
        LU, pivots, info = getrf(a)
        if info > 0:
            raise LinAlgError("linalg.solve: The solver failed because the input matrix is singular.")
        x, factors = getrs(LU, pivots, b)[0], (LU, pivots)
    else:
        try:
            x = np.linalg.solve(a, b)
        except np.linalg.LinAlgError:
            element, _ = batch_element(A, raises(np.linalg.inv))
            raise LinAlgError(
                f"linalg.solve: {element}The solver failed because the input matrix is singular."
            ) from None
    x = x if left else x.swapaxes(-2, -1)
    return x[..., 0] if vector else x, *factors


def solve_again(g: Array, LU: Array, pivots: Array, left: bool) -> Array:
    """The solution for the adjoint matrix and another right-hand side, from the factors."""
    (getrs,) = scipy_lapack()(("getrs",), (LU, g))
    b = g[:, None] if g.ndim == 1 else g if left else g.T.conj()
    x = getrs(LU, pivots, b if left else b.conj(), trans=2)[0]
    return x[:, 0] if g.ndim == 1 else x if left else x.T


again = operator(
    "_solve_again(g, LU, pivots, left)",
    forward=solve_again, differentiable=False, dtypes=KEEP, tensors="g LU pivots", public=False, method=False,
    samples=NO_SAMPLES,
)


def adjoint_solve(A: Any, g: Any, result: Any, left: bool) -> Any:
    """The cotangent of B: by the factors if nobody differentiates it again, which leaves O(n^2) work."""
    _, LU, pivots = result
    if LU.numel() and not _record.is_grad_enabled():
        return again(g, LU, pivots, left)
    return linalg_solve(mH(A), g, left=left)


def linalg_solve_vjp_A(g: Any, A: Any, result: Any, left: bool) -> Any:
    g = adjoint_solve(A, g, result, left)
    solution = result[0]
    if is_vector_rhs(A, g):
        return -(g.unsqueeze(-1) * conj(solution).unsqueeze(-2))
    return -product_adjoint(g, solution) if left else -adjoint_product(solution, g)


def linalg_solve_jvp_A(t: Any, A: Any, result: Any, left: bool) -> Any:
    solution = result[0]
    if is_vector_rhs(A, solution):
        return -linalg_solve(A, (t @ solution.unsqueeze(-1)).squeeze(-1))
    return -linalg_solve(A, t @ solution if left else solution @ t, left=left)


solve_factored = operator(
    "_solve(A, B, left=True)",
    forward=solve_forward,
    vjp=dict(A=linalg_solve_vjp_A, B=lambda g, A, result, left: adjoint_solve(A, g, result, left)),
    jvp=dict(A=linalg_solve_jvp_A, B=lambda t, A, left: linalg_solve(A, t, left=left)),
    dtypes=KEEP, tensors="A B", outputs=("result", "LU", "pivots"), nondifferentiable=("LU", "pivots"),
    node="LinalgSolveEx", public=False, method=False,
    samples=lambda make: [((make(3, 3), make(3)), {}), ((make(3, 3), make(3, 2)), {}),
                          ((make(2, 3, 3), make(2, 3)), {}), ((make(2, 3, 3), make(3, 2)), {}),
                          ((make(3, 3), make(2, 3), False), {})],
    source=f"{GILES}, 2.3.1",
)


@composite("linalg_solve(A, B, *, left=True)", public=False, method=False, numpy=np.linalg.solve,
           samples=lambda make: [((make(3, 3), make(3, 2)), {}), ((make(3, 3), make(2, 3)), dict(left=False))])
def linalg_solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """X in ``A @ X = B`` (``left=False``: ``X @ A = B``).

    Parameters
    ----------
    A : Tensor
        ``(..., n, n)``.
    B : Tensor
        ``(n,)``, ``(..., n)`` (one vector for each matrix) or ``(..., n, k)``. The leading dimensions broadcast.

    Raises
    ------
    LinAlgError
        If a matrix is singular.

    Notes
    -----
    Saves A and the result; of a large matrix the LU factors, too, where SciPy is installed.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.linalg.solve(fg.tensor([[2.0, 0.0], [0.0, 4.0]]), fg.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    return solve_factored(A, B, left)[0]


# --- Cholesky and triangular systems ---------------------------------------------------------------------------------


def cholesky_forward(A: Array) -> Array:
    require_square("linalg.cholesky", A)
    try:
        return np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        element, matrix = batch_element(A, raises(np.linalg.cholesky))
        raise LinAlgError(
            f"linalg.cholesky: {element}The factorization could not be completed because the input is not "
            f"positive-definite (the leading minor of order {bad_minor(matrix)} is not positive-definite)."
        ) from None


def bad_minor(A: Array) -> int:
    """The order of the first leading minor that is not positive-definite, by halving."""
    fails = raises(np.linalg.cholesky)
    good, bad = 0, int(A.shape[-1])
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if fails(A[:middle, :middle]) else (middle, bad)
    return bad


def linalg_cholesky_vjp_A(g: Any, result: Any) -> Any:
    half = part("half_tril", adjoint_product(result, g))
    inner = linalg_solve_triangular(mH(result), half + mH(half), upper=True)
    return linalg_solve_triangular(result, inner, upper=False, left=False) * 0.5


lower_cholesky = operator(
    "_cholesky(A)",
    forward=cholesky_forward,
    vjp=dict(A=linalg_cholesky_vjp_A),
    dtypes=KEEP, tensors="A", node="LinalgCholeskyEx", public=False, method=False,
    samples=NO_SAMPLES, doc="The lower Cholesky factor: see ``linalg.cholesky``.",
    source="Murray, Differentiation of the Cholesky decomposition (2016), eq. 10",
)


@composite(
    "linalg_cholesky(A, *, upper=False)", public=False, method=False, numpy=np.linalg.cholesky,
    samples=NO_SAMPLES,
)
def linalg_cholesky(A: Any, *, upper: bool = False) -> Any:
    """The lower triangular L with ``A = L @ L^H`` (upper: its conjugate transpose); only A's lower triangle is read.

    Saves the result.

    Raises
    ------
    LinAlgError
        If a matrix is not positive-definite.
    """
    if upper:
        return mH(lower_cholesky(mH(A)))
    return lower_cholesky(A)


def solve_triangular_forward(A: Array, B: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    require_square("linalg.solve_triangular", A)
    require_matrix("linalg.solve_triangular", B, "B")
    require_same("linalg.solve_triangular", A, B)
    if B.shape[-2 if left else -1] != A.shape[-1]:
        n, k = B.shape[-2:]
        raise RuntimeError(f"linalg.solve_triangular: Incompatible shapes of A and B for the equation "
                           f"{'AX' if left else 'XA'} = B ({A.shape[-1]}x{A.shape[-1]} and {n}x{k})")
    if left:
        return substitute(A, B, upper, unitriangular)
    return substitute(A.swapaxes(-2, -1), B.swapaxes(-2, -1), not upper, unitriangular).swapaxes(-2, -1)


def solve_triangular_vjp_A(g: Any, A: Any, result: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    g = linalg_solve_triangular(mH(A), g, upper=not upper, left=left, unitriangular=unitriangular)
    whole = product_adjoint(g, result) if left else adjoint_product(result, g)
    return -part(("strict_" if unitriangular else "") + ("triu" if upper else "tril"), whole)


def solve_triangular_jvp_A(t: Any, A: Any, result: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    t = part(("strict_" if unitriangular else "") + ("triu" if upper else "tril"), t)
    return -linalg_solve_triangular(A, t @ result if left else result @ t, upper=upper, left=left,
                                    unitriangular=unitriangular)


linalg_solve_triangular = operator(
    "linalg_solve_triangular(A, B, *, upper, left=True, unitriangular=False)",
    forward=solve_triangular_forward,
    vjp=dict(A=solve_triangular_vjp_A,
             B=lambda g, A, upper, left, unitriangular: linalg_solve_triangular(
                 mH(A), g, upper=not upper, left=left, unitriangular=unitriangular)),
    jvp=dict(A=solve_triangular_jvp_A,
             B=lambda t, A, upper, left, unitriangular: linalg_solve_triangular(
                 A, t, upper=upper, left=left, unitriangular=unitriangular)),
    dtypes=KEEP, tensors="A B", public=False, method=False,
    samples=lambda make: [((dominant(make, 3, 3), make(3, 2)), dict(upper=True)),
                          ((dominant(make, 2, 3, 3), make(2, 3)), dict(upper=False, left=False)),
                          ((dominant(make, 3, 3), make(4, 3, 2)), dict(upper=False, unitriangular=True))],
    source=f"{GILES}, 2.3.1, restricted to the triangle",
    doc="""X in ``A @ X = B`` for triangular A (``left=False``: ``X @ A = B``); the other triangle is not read.

    Nothing is checked: a zero on the diagonal gives infinities. SciPy's BLAS is used for large matrices where SciPy is
    installed.
    """,
)


@composite("cholesky(input, upper=False)", samples=NO_SAMPLES)
def cholesky(input: Any, upper: bool = False) -> Any:
    """The Cholesky factor: see ``linalg.cholesky``."""
    return linalg_cholesky(input, upper=upper)


@composite("cholesky_solve(input, L, upper=False)", samples=NO_SAMPLES)
def cholesky_solve(input: Any, L: Any, upper: bool = False) -> Any:
    """X in ``L @ L^H @ X = input`` for a Cholesky factor L."""
    first, second = (mH(L), L) if upper else (L, mH(L))
    half = linalg_solve_triangular(first, input, upper=False)
    return linalg_solve_triangular(second, half, upper=True)


@composite("cholesky_inverse(L, upper=False)", samples=NO_SAMPLES)
def cholesky_inverse(L: Any, upper: bool = False) -> Any:
    """The inverse of the matrix that has the Cholesky factor L."""
    eye = part("eye", L.detach() * 0 + 1)
    return cholesky_solve(eye, L, upper)
