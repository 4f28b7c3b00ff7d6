"""Floor 3: QR and LU, what is solved with them, and the forms of functions that report failure in place of raising."""
from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._dtypes import int64
from .._tensor import from_ndarray
from ._declare import KEEP, composite, functions, operator
from ._helpers import normal_dim
from ._matrices import (
    NO_SAMPLES,
    Array,
    LinAlgError,
    mH,
    part,
    raises,
    require_matrix,
    require_same,
    require_square,
    scipy_lapack,
)
from .decompositions import bad_minor, linalg_inv, linalg_solve, linalg_solve_triangular, lower_cholesky
from .products import adjoint_product, product_adjoint

# --- QR --------------------------------------------------------------------------------------------------------------

MODES = ("reduced", "complete", "r")


def qr_forward(A: Array, mode: str) -> tuple[Array, Array]:
    require_matrix("linalg.qr", A)
    if mode not in MODES:
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                           "'complete'")
    if mode == "r":
        return np.zeros(0, A.dtype), np.linalg.qr(A, "r")
    Q, R = np.linalg.qr(A, mode)
    return Q, R


def hermitian_of_upper(t: Any) -> Any:
    """The Hermitian matrix with the upper triangle of t (of its diagonal, the real part)."""
    half = part("half_triu", t)
    return half + mH(half)


def linalg_qr_vjp_A(g: Any, A_shape: tuple[int, ...], result: Any, mode: str) -> Any:
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                           "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr.")
    m, n = A_shape[-2:]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    g_Q, g_R = g
    Q, R = result
    if m >= n:
        inner = product_adjoint(g_R, R) - adjoint_product(Q, g_Q)
        return over_adjoint(g_Q + Q @ hermitian_of_upper(inner), R)
    return wide_qr_vjp(g_Q, g_R, Q, R)


def wide_qr_vjp(g_Q: Any, g_R: Any, Q: Any, R: Any) -> Any:
    """For more columns than rows, A = Q [R1 R2]: R2 = Q^H A2 leads to A2 directly, and to A1 through Q."""
    m, n = R.shape[-2:]
    R1, R2 = R.narrow(-1, 0, m), R.narrow(-1, m, n - m)
    g_R1, g_R2 = g_R.narrow(-1, 0, m), g_R.narrow(-1, m, n - m)
    g_Q = g_Q + Q @ product_adjoint(R2, g_R2)                # A2 = Q R2
    inner = product_adjoint(g_R1, R1) - adjoint_product(Q, g_Q)
    g_A1 = over_adjoint(g_Q + Q @ hermitian_of_upper(inner), R1)
    return functions["cat"]([g_A1, Q @ g_R2], -1)


def over_adjoint(t: Any, R: Any) -> Any:
    """``t @ R^-H`` for an upper triangular R."""
    return linalg_solve_triangular(mH(R), t, upper=False, left=False)


linalg_qr = operator(
    "linalg_qr(A, mode='reduced')",
    forward=qr_forward,
    vjp=dict(A=linalg_qr_vjp_A),
    dtypes=KEEP, tensors="A", outputs=("Q", "R"), public=False, method=False,
    samples=lambda make: [((make(3, 2),), {}), ((make(2, 3),), {}), ((make(2, 3, 3), "complete"), {})],
    source="Walter and Lehmann, Algorithmic differentiation of linear algebra functions (2012), 4.3; Roberts and "
           "Roberts, QR and LQ decomposition matrix backpropagation algorithms (2020), for more columns than rows",
    doc="""``A = Q @ R`` with orthonormal columns in Q and an upper triangular R.

    ``mode`` is "reduced", "complete" (a square Q) or "r" (Q is empty). Saves the results. Not differentiable in mode
    "r", nor in mode "complete" with more rows than columns.
    """,
)


@composite("qr(input, some=True)", samples=lambda make: [((make(3, 2),), {})])
def qr(input: Any, some: bool = True) -> Any:
    """``(Q, R)``: see ``linalg.qr``; ``some=False`` gives a square Q."""
    return linalg_qr(input, "reduced" if some else "complete")


def householder_samples(make: Any) -> list[Any]:
    return [((make(3, 2), make(2)), {}), ((make(2, 3, 3), make(2, 3)), {})]


@composite("linalg_householder_product(A, tau)", public=False, method=False, samples=householder_samples)
def linalg_householder_product(A: Any, tau: Any) -> Any:
    """The first n columns of the product of reflections ``1 - tau[i] v v^H``, where v is column i of A below a 1.

    ``A`` is ``(..., m, n)`` with ``m >= n``, ``tau`` ``(..., k)`` with ``k <= n``.
    """
    m, n, k = A.shape[-2], A.shape[-1], tau.shape[-1]
    if m < n or n < k:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to "
                           f"input.shape[-1], and that to tau.shape[-1]; got shapes {tuple(A.shape)} and "
                           f"{tuple(tau.shape)}")
    columns = part("strict_tril", A) + part("eye", A.detach() * 0 + 1)
    product = part("eye", A.detach() * 0 + 1)
    for i in range(k - 1, -1, -1):
        v = columns.narrow(-1, i, 1)
        product = product - tau.narrow(-1, i, 1).unsqueeze(-1) * (v @ adjoint_product(v, product))
    return product


@composite("orgqr(input, tau)", samples=householder_samples)
def orgqr(input: Any, tau: Any) -> Any:
    """The product of reflections: see ``linalg.householder_product``."""
    return linalg_householder_product(input, tau)


# --- LU --------------------------------------------------------------------------------------------------------------


def factor_matrix(A: Array, pivot: bool) -> tuple[Array, Array]:
    """L (without its diagonal of ones) and U in one matrix, and which row each row was exchanged with, from 0."""
    m, n = A.shape
    lapack = scipy_lapack()
    if pivot and lapack is not None and A.size:
        LU, pivots, _ = lapack("getrf", (A,))(A)
        return np.ascontiguousarray(LU), pivots
    LU, pivots = A.copy(), np.arange(min(m, n))
    for k in range(min(m, n)):
        if pivot:
            row = k + int(np.argmax(np.abs(LU[k:, k])))
            pivots[k] = row
            LU[[k, row]] = LU[[row, k]]
        if LU[k, k] != 0:
            LU[k + 1:, k] /= LU[k, k]
            LU[k + 1:, k + 1:] -= np.outer(LU[k + 1:, k], LU[k, k + 1:])
    return LU, pivots


def each_matrix(function: Callable[[Array], Sequence[Array]], A: Array, shapes: Sequence[tuple[int, ...]],
                dtypes: Sequence[Any]) -> tuple[Array, ...]:
    """The outputs of a function of one matrix, for a batch."""
    batch = A.shape[:-2]
    count = math.prod(batch)
    outputs = tuple(np.zeros((count, *shape), dtype) for shape, dtype in zip(shapes, dtypes))
    for i, matrix in enumerate(A.reshape(count, *A.shape[-2:])):
        for output, value in zip(outputs, function(matrix)):
            output[i] = value
    return tuple(o.reshape(batch + o.shape[1:]) for o in outputs)


def lu_factor_forward(A: Array, pivot: bool) -> tuple[Array, Array, Array]:
    require_matrix("linalg.lu_factor", A)
    k = min(A.shape[-2:])

    def factor(matrix: Array) -> tuple[Array, Array, Array]:
        LU, pivots = factor_matrix(matrix, pivot)
        zero = np.flatnonzero(np.diagonal(LU) == 0)
        return LU, pivots + 1, np.array(zero[0] + 1 if zero.size else 0)

    return each_matrix(factor, A, (A.shape[-2:], (k,), ()), (A.dtype, np.int32, np.int32))


def rows_of(pivots: Array, m: int) -> Array:
    """The order of rows that LAPACK's exchanges (from 1) come to."""
    order = np.broadcast_to(np.arange(m), (*pivots.shape[:-1], m)).copy()
    for index in np.ndindex(*pivots.shape[:-1]):
        for i, p in enumerate(pivots[index]):
            order[index][[i, p - 1]] = order[index][[p - 1, i]]
    return order


def permutation_of(pivots: Any, like: Any, m: int) -> Any:
    """The constant matrix P with ``A = P @ L @ U``."""
    order = rows_of(pivots.detach().numpy(), m)
    P = np.swapaxes(np.eye(m, dtype=like.dtype.numpy)[order], -2, -1)
    return constant(P)


def constant(array: Array) -> Any:
    """A tensor of its own memory."""
    return from_ndarray(np.array(array))


def lower_and_upper(LU: Any) -> tuple[Any, Any]:
    m, n = LU.shape[-2:]
    k = min(m, n)
    left, top = LU.narrow(-1, 0, k), LU.narrow(-2, 0, k)
    return part("strict_tril", left) + part("eye", left.detach() * 0 + 1), part("triu", top)


def lu_vjp(g_L: Any, g_U: Any, L: Any, U: Any) -> Any:
    """The cotangent of ``P^T A`` from those of L and U, whichever of m and n is larger."""
    m, n, k = L.shape[-2], U.shape[-1], L.shape[-1]
    L1, U1 = L.narrow(-2, 0, k), U.narrow(-1, 0, k)
    g_L1, g_U1 = g_L.narrow(-2, 0, k), g_U.narrow(-1, 0, k)
    inner_L, inner_U = adjoint_product(L1, g_L1), product_adjoint(g_U1, U1)
    blocks = []
    if n > k:       # U2 = L1^-1 A2
        U2, g_U2 = U.narrow(-1, k, n - k), g_U.narrow(-1, k, n - k)
        inner_L = inner_L - product_adjoint(g_U2, U2)
        blocks.append(linalg_solve_triangular(mH(L1), g_U2, upper=True, unitriangular=True))
    if m > k:       # L2 = A2 U1^-1
        L2, g_L2 = L.narrow(-2, k, m - k), g_L.narrow(-2, k, m - k)
        inner_U = inner_U - adjoint_product(L2, g_L2)
        blocks.append(linalg_solve_triangular(mH(U1), g_L2, upper=False, left=False))
    inner = part("strict_tril", inner_L) + part("triu", inner_U)
    inner = linalg_solve_triangular(mH(L1), inner, upper=True, unitriangular=True)
    square = linalg_solve_triangular(mH(U1), inner, upper=False, left=False)
    return functions["cat"]([square, *blocks], -1 if n > k else -2) if blocks else square


def lu_factor_vjp_A(g: Any, result: Any, pivot: bool) -> Any:
    LU, pivots, _ = result
    m, n = LU.shape[-2:]
    k = min(m, n)
    L, U = lower_and_upper(LU)
    g_L, g_U = part("strict_tril", g.narrow(-1, 0, k)), part("triu", g.narrow(-2, 0, k))
    return permutation_of(pivots, LU, m) @ lu_vjp(g_L, g_U, L, U)


lu_factor_ex = operator(
    "_lu_factor_ex(A, pivot=True)",
    forward=lu_factor_forward,
    vjp=dict(A=lu_factor_vjp_A),
    dtypes=KEEP, tensors="A", outputs=("LU", "pivots", "info"), nondifferentiable=("pivots", "info"), public=False,
    method=False, node="LinalgLuFactorEx",
    samples=lambda make: [((make(3, 3),), {}), ((make(3, 2),), {}), ((make(2, 3),), {}), ((make(2, 2, 2),), {})],
    source="de Hoog, Anderssen and Lukas, Differentiation of matrix functionals using triangular factorization (2011)",
)

FactorResult = namedtuple("linalg_lu_factor", "LU pivots")
FactorExResult = namedtuple("linalg_lu_factor_ex", "LU pivots info")
LUResult = namedtuple("linalg_lu", "P L U")


@composite("linalg_lu_factor_ex(A, *, pivot=True, check_errors=False)", public=False, method=False,
           samples=lambda make: [((make(3, 3),), {})])
def linalg_lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """``(LU, pivots, info)``: the factors in one matrix; info is the order of the first zero on U's diagonal, or 0."""
    result = lu_factor_ex(A, pivot)
    if check_errors:
        require_success("linalg.lu_factor_ex", result.info, lambda i: f"U[{i},{i}] is zero")
    return FactorExResult(*result)


@composite("linalg_lu_factor(A, *, pivot=True)", public=False, method=False,
           samples=lambda make: [((make(3, 3),), {}), ((make(3, 2),), {})])
def linalg_lu_factor(A: Any, *, pivot: bool = True) -> Any:
    """``(LU, pivots)`` for ``linalg.lu_solve``: L without its diagonal and U in one matrix, and LAPACK's exchanges."""
    LU, pivots, info = lu_factor_ex(A, pivot)
    require_success("linalg.lu_factor", info, lambda i: (
        f"U[{i},{i}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform "
        "the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"))
    return FactorResult(LU, pivots)


@composite("linalg_lu(A, *, pivot=True)", public=False, method=False,
           samples=lambda make: [((make(3, 3),), {}), ((make(3, 2),), {}), ((make(2, 3),), {})])
def linalg_lu(A: Any, *, pivot: bool = True) -> Any:
    """``(P, L, U)`` with ``A = P @ L @ U``: a permutation, a lower triangle with ones, and an upper triangle.

    Without ``pivot``, P is empty.
    """
    LU, pivots, _ = lu_factor_ex(A, pivot)
    P = permutation_of(pivots, A, A.shape[-2]) if pivot else constant(np.zeros(0, A.dtype.numpy))
    return LUResult(P, *lower_and_upper(LU))


@composite("linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False)", public=False, method=False,
           samples=NO_SAMPLES)
def linalg_lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """X in ``A @ X = B`` for what ``linalg.lu_factor(A)`` returned (``left=False``: ``X @ A = B``; or A's adjoint)."""
    require_square("linalg.lu_solve", LU)
    require_same("linalg.lu_solve", LU, B)
    if not left:      # X A = B is A^H X^H = B^H
        return mH(linalg_lu_solve(LU, pivots, mH(B), adjoint=not adjoint))
    P = permutation_of(pivots, LU, LU.shape[-1])
    if adjoint:
        half = linalg_solve_triangular(mH(LU), B, upper=False)
        return P @ linalg_solve_triangular(mH(LU), half, upper=True, unitriangular=True)
    half = linalg_solve_triangular(LU, adjoint_product(P, B), upper=False, unitriangular=True)
    return linalg_solve_triangular(LU, half, upper=True)


@composite("lu_solve(b, LU_data, LU_pivots)", samples=NO_SAMPLES)
def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """X in ``A @ X = b``: see ``linalg.lu_solve``."""
    return linalg_lu_solve(LU_data, LU_pivots, b)


# --- Functions that report failure in place of raising ---------------------------------------------------------------


def require_success(name: str, info: Any, message: Callable[[int], str]) -> None:
    """LinAlgError for the first number in info that is not 0."""
    values = info.detach().numpy()
    if not values.any():
        return
    where = int(np.flatnonzero(values.reshape(-1))[0])
    element = f"(Batch element {where}): " if values.ndim else ""
    raise LinAlgError(f"{name}: {element}{message(int(values.reshape(-1)[where]))}")


def inv_ex_forward(A: Array) -> tuple[Array, Array]:
    require_square("linalg.inv", A)
    n = A.shape[-1]

    def invert(matrix: Array) -> tuple[Array, Array]:
        try:
            return np.linalg.inv(matrix), np.array(0)
        except np.linalg.LinAlgError:
            zero = np.flatnonzero(np.diagonal(factor_matrix(matrix, True)[0]) == 0)
            return np.full((n, n), np.inf, A.dtype), np.array(zero[0] + 1 if zero.size else n)

    return each_matrix(invert, A, ((n, n), ()), (A.dtype, np.int32))


InverseResult = namedtuple("linalg_inv_ex", "inverse info")

inv_ex = operator(
    "_inv_ex(A)",
    forward=inv_ex_forward,
    vjp=dict(A=lambda g, result: -product_adjoint(adjoint_product(result[0], g), result[0])),
    dtypes=KEEP, tensors="A", outputs=("inverse", "info"), nondifferentiable=("info",), public=False, method=False,
    node="LinalgInvEx", samples=lambda make: [((make(2, 2),), {}), ((make(2, 3, 3),), {})],
)


@composite("linalg_inv_ex(A, *, check_errors=False)", public=False, method=False,
           samples=lambda make: [((make(2, 2),), {})])
def linalg_inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    """``(inverse, info)``: info is 0, or says at which order a singular matrix (whose inverse is infinite) failed."""
    if check_errors:
        linalg_inv(A.detach())
    return InverseResult(*inv_ex(A))


CholeskyResult = namedtuple("linalg_cholesky_ex", "L info")


def cholesky_info(A: Array) -> Array:
    fails = raises(np.linalg.cholesky)
    return each_matrix(lambda M: [np.array(bad_minor(M) if fails(M) else 0)], A, ((),), (np.int32,))[0]


@composite("linalg_cholesky_ex(A, *, upper=False, check_errors=False)", public=False, method=False,
           samples=NO_SAMPLES)
def linalg_cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """``(L, info)``: info is 0, or the order of the leading minor that is not positive-definite; L is then NaN."""
    require_square("linalg.cholesky_ex", A)
    info = constant(cholesky_info(A.detach().numpy()))
    bad = info.numpy() != 0
    if bad.any() and not check_errors:
        eye = np.eye(A.shape[-1], dtype=A.dtype.numpy)
        L = lower_cholesky(functions["where"](constant(bad[..., None, None]), constant(eye), A))
        L = functions["where"](constant(bad[..., None, None]), math.nan, L)
    else:
        L = lower_cholesky(A)
    return CholeskyResult(mH(L) if upper else L, info)


SolveResult = namedtuple("linalg_solve_ex", "result info")


@composite("linalg_solve_ex(A, B, *, left=True, check_errors=False)", public=False, method=False,
           samples=lambda make: [((make(2, 2), make(2)), {})])
def linalg_solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """``(result, info)``: info is 0, or the order at which a singular matrix failed; the result is then NaN."""
    require_square("linalg.solve_ex", A)
    info = lu_factor_ex(A.detach()).info
    bad = info.numpy() != 0
    if not bad.any() or check_errors:
        return SolveResult(linalg_solve(A, B, left=left), info)
    eye = np.eye(A.shape[-1], dtype=A.dtype.numpy)
    mask = constant(np.broadcast_to(bad[..., None, None], A.shape))
    return SolveResult(linalg_solve(functions["where"](mask, constant(eye) * math.nan, A), B, left=left), info)


# --- Tensors as matrices, Vandermonde --------------------------------------------------------------------------------


@composite("linalg_tensorinv(A, ind=2)", public=False, method=False,
           samples=lambda make: [((make(4, 2, 2), 1), {}), ((make(2, 2, 4), 2), {})])
def linalg_tensorinv(A: Any, ind: int = 2) -> Any:
    """The inverse of A as a map from its last dimensions to its first ``ind`` ones."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    rows, columns = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    m, n = math.prod(rows), math.prod(columns)
    if m != n:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
                           f"but got {n} != {m}")
    return linalg_inv(A.reshape(m, n)).reshape(columns + rows)


@composite("linalg_tensorsolve(A, B, dims=None)", public=False, method=False, numpy=np.linalg.tensorsolve,
           samples=lambda make: [((make(2, 2, 4), make(2, 2)), {}), ((make(2, 4, 2), make(2, 2), (1,)), {})])
def linalg_tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:
    """X in ``tensordot(A, X, X.ndim) == B``; ``dims`` of A are moved to its end first."""
    if dims is not None:
        chosen = [normal_dim(d, A.ndim) for d in dims]
        A = A.permute((*(d for d in range(A.ndim) if d not in chosen), *chosen))
    shape = tuple(A.shape[B.ndim:])
    m, n = math.prod(A.shape[:B.ndim]), math.prod(shape)
    if m != n:
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                           f"prod(self.shape[:other.ndim]), but got {n} != {m}")
    return linalg_solve(A.reshape(m, n), B.reshape(-1)).reshape(shape)


MAX_VANDER = 2**40     # elements: 8 TiB of float64


@composite("linalg_vander(x, *, N=None)", public=False, method=False,
           samples=lambda make: [((make(3),), {}), ((make(2, 3),), dict(N=2))])
def linalg_vander(x: Any, *, N: int | None = None) -> Any:
    """The powers 0 to N - 1 of every element, along a new last dimension."""
    N = x.shape[-1] if N is None else N
    if N <= 1:
        raise RuntimeError(f"linalg.vander: N must be greater than 1, got {N}")
    if N * max(x.numel(), 1) > MAX_VANDER:
        raise RuntimeError(f"linalg.vander: {N} powers of {x.numel()} elements are too many to allocate")
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        x = x.to(int64)            # powers of small integers overflow at once
    powers = [x.new_ones(x.shape), x]
    while len(powers) < N:
        powers.append(powers[-1] * x)
    return functions["stack"](powers[:N], -1)


@composite("vander(x, N=None, increasing=False)", method=False, samples=NO_SAMPLES)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of a vector's elements, descending unless ``increasing``: N of them, or as many as elements."""
    n = x.shape[0] if N is None else N
    if n < 2:
        powers = x.new_ones(x.shape).unsqueeze(-1).narrow(-1, 0, n)
    else:
        powers = linalg_vander(x, N=n)
    return powers if increasing else powers.flip(-1)
