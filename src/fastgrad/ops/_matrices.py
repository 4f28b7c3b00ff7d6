"""Floor 3: what the linear algebra families share: checks, the error, the batch, and triangular substitution."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .._tensor import from_ndarray
from ._helpers import conj

Array = Any                # np.ndarray[Any, Any]
SUBSTITUTION_BASE = 32     # below this size a dense solve is faster than splitting further


def NO_SAMPLES(make: Any) -> list[Any]:
    """For operators that read only a triangle of a matrix, or whose result is only determined up to a phase.

    Differences of single elements are not what their formulas give; tests/test_ops_linalg.py tests them.
    """
    return []


class LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """A matrix that a decomposition cannot handle: singular, not positive-definite, or not finite."""


# --- Checks ----------------------------------------------------------------------------------------------------------


def require_matrix(name: str, A: Any, argument: str = "A") -> None:
    """RuntimeError unless A is a matrix, or a batch of them, of floating point or complex dtype."""
    if not hasattr(A, "ndim"):
        raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(A).__name__}")
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions. Got shape "
                           f"{tuple(A.shape)}")
    require_inexact(name, A)


def require_inexact(name: str, A: Any) -> None:
    kind = np.dtype(A.dtype).kind
    if kind not in "fc":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype}; convert it "
                           "first, e.g. with .double()")
    if np.dtype(A.dtype) == np.float16:
        raise NotImplementedError(f"{name}: not implemented for 'Half': Low precision dtypes not supported; use "
                                  ".float()")


def require_square(name: str, A: Any) -> None:
    require_matrix(name, A)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} "
                           "matrices")


def require_same(name: str, A: Any, B: Any) -> None:
    if not hasattr(B, "ndim"):
        raise TypeError(f"{name}(): argument 'B' must be Tensor, not {type(B).__name__}")
    if A.dtype != B.dtype:
        raise RuntimeError(f"{name}: Expected A and B to have the same dtype, but found A of type {A.dtype} and B of "
                           f"type {B.dtype} instead")


def batch_element(A: Array, fails: Callable[[Array], bool]) -> tuple[str, Array]:
    """Words for the first matrix of a batch for which ``fails`` holds, and that matrix; no words for a lone one."""
    if A.ndim == 2:
        return "", A
    flat = A.reshape(math.prod(A.shape[:-2]), *A.shape[-2:])
    for i, matrix in enumerate(flat):
        if fails(matrix):
            return f"(Batch element {i}): ", matrix
    return "", flat[0]


def raises(function: Callable[[Array], Any]) -> Callable[[Array], bool]:
    """Whether NumPy refuses a matrix."""

    def fails(matrix: Array) -> bool:
        try:
            function(matrix)
        except np.linalg.LinAlgError:
            return True
        return False

    return fails


def attempt(name: str, function: Callable[[Array], Any], A: Array, message: str) -> Any:
    """function(A); NumPy's LinAlgError becomes ours, and says which matrix of the batch it was."""
    try:
        return function(A)
    except np.linalg.LinAlgError:
        element, _ = batch_element(A, raises(function))
        raise LinAlgError(f"{name}: {element}{message}") from None


def not_converged(A: Array, what: str) -> str:
    """Why an iteration came to no end."""
    if np.isfinite(A).all():
        return f"The algorithm failed to converge ({what})"
    return "The algorithm failed to converge because the input matrix contained non-finite values."


# --- Small formulas on tensors ---------------------------------------------------------------------------------------


def mH(t: Any) -> Any:
    """The conjugate transpose of a tensor of matrices."""
    return conj(t).transpose(-2, -1)


def as_columns(t: Any) -> Any:
    """Numbers, one for each matrix, shaped to multiply them."""
    return t.unsqueeze(-1).unsqueeze(-1)


@lru_cache(64)
def _pattern(kind: str, n: int, m: int) -> Array:
    ones = np.ones((n, m))
    patterns: dict[str, Callable[[], Array]] = {
        "eye": lambda: np.eye(n, m),
        "off_diagonal": lambda: ones - np.eye(n, m),
        "tril": lambda: np.tril(ones),
        "triu": lambda: np.triu(ones),
        "strict_tril": lambda: np.tril(ones, -1),
        "strict_triu": lambda: np.triu(ones, 1),
        "half_tril": lambda: np.tril(ones) - 0.5 * np.eye(n, m),
        "half_triu": lambda: np.triu(ones) - 0.5 * np.eye(n, m),
    }
    pattern = patterns[kind]()
    pattern.flags.writeable = False
    return pattern


def pattern_like(kind: str, t: Any) -> Any:
    """A constant matrix of zeros and ones (and halves on a diagonal) of t's last two sizes and its real dtype."""
    dtype = t.dtype.to_real() if t.dtype.is_complex else t.dtype
    return from_ndarray(_pattern(kind, t.shape[-2], t.shape[-1]).astype(dtype.numpy))


def part(kind: str, t: Any) -> Any:
    """The elements of t that the pattern keeps, the others 0."""
    return t * pattern_like(kind, t)


def is_zero(t: Any) -> bool:
    """Whether a cotangent is nothing but the zeros that the engine fills in, and not to be differentiated either."""
    return not t.requires_grad and not t.detach().numpy().any()


# --- Triangular systems ----------------------------------------------------------------------------------------------


@lru_cache(1)
def scipy_blas() -> Any:
    """SciPy's BLAS, or None: SciPy is optional."""
    try:
        from scipy.linalg import blas
    except ImportError:
        return None
    return blas


@lru_cache(1)
def scipy_lapack() -> Any:
    """What finds SciPy's LAPACK functions, or None: SciPy is optional."""
    try:
        from scipy.linalg import get_lapack_funcs
    except ImportError:
        return None
    return get_lapack_funcs


def triangle(A: Array, upper: bool, unitriangular: bool) -> Array:
    """A with everything outside its triangle cleared, as nobody has promised that it is."""
    if unitriangular:
        return (np.triu(A, 1) if upper else np.tril(A, -1)) + np.eye(A.shape[-1], dtype=A.dtype)
    return np.triu(A) if upper else np.tril(A)


def substitute(A: Array, B: Array, upper: bool, unitriangular: bool) -> Array:
    """X with ``A @ X = B`` for triangular matrices A; a zero on a diagonal gives infinities, as division does."""
    n = A.shape[-1]
    blas = scipy_blas() if A.ndim == B.ndim == 2 and n > SUBSTITUTION_BASE else None
    if blas is not None:
        trsm = getattr(blas, {"f": "s", "d": "d", "F": "c", "D": "z"}[A.dtype.char] + "trsm")
        transposed = A.flags.c_contiguous
        return trsm(1, A.T if transposed else A, B, lower=upper if transposed else not upper, trans_a=transposed,
                    diag=unitriangular)
    return substitute_blocks(A, B, upper, unitriangular)


def substitute_blocks(A: Array, B: Array, upper: bool, unitriangular: bool) -> Array:
    """The same by halving: the work is in matrix products, and batches need no loop."""
    n = A.shape[-1]
    if n <= SUBSTITUTION_BASE:
        square = triangle(A, upper, unitriangular)
        try:
            return np.linalg.solve(square, B)
        except np.linalg.LinAlgError:
            return substitute_rows(square, B, upper)
    half = n // 2
    low, high = slice(0, half), slice(half, n)
    first, second = (high, low) if upper else (low, high)
    X1 = substitute_blocks(A[..., first, first], B[..., first, :], upper, unitriangular)
    X2 = substitute_blocks(A[..., second, second], B[..., second, :] - A[..., second, first] @ X1, upper, unitriangular)
    return np.concatenate([X2, X1] if upper else [X1, X2], axis=-2)


def substitute_rows(A: Array, B: Array, upper: bool) -> Array:
    """The same row by row, which divides by whatever the diagonal has."""
    n = A.shape[-1]
    X = np.zeros(np.broadcast_shapes(A.shape[:-2], B.shape[:-2]) + (n, B.shape[-1]), A.dtype)
    for i in range(n - 1, -1, -1) if upper else range(n):
        done = slice(i + 1, n) if upper else slice(0, i)
        X[..., i, :] = (B[..., i, :] - (A[..., i, None, done] @ X[..., done, :])[..., 0, :]) / A[..., i, i, None]
    return X
