"""Floor 5: NumPy's products, linear algebra, transforms and questions about arrays over tensors, by NumPy's signatures.

The continuation of `_numpy_functions`, whose `handlers` these join.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import creation
from ._numpy_functions import axes_of, call, implements, plain
from .numpy_interop import as_tensor, handlers

# --- Products --------------------------------------------------------------------------------------------------------


@implements(np.dot)
def dot(a: Any, b: Any) -> Any:
    a, b = as_tensor(a), as_tensor(b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if b.ndim <= 2:
        return a @ b
    return call("tensordot", a, b, ([-1], [-2]))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    return call("vdot", as_tensor(a).reshape(-1), as_tensor(b).reshape(-1))


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    return call("inner", as_tensor(a), as_tensor(b))


@implements(np.outer, *([np.linalg.outer] if hasattr(np.linalg, "outer") else []))
def outer(a: Any, b: Any) -> Any:
    return call("outer", as_tensor(a).reshape(-1), as_tensor(b).reshape(-1))


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    return call("tensordot", as_tensor(a), as_tensor(b), axes)


@implements(np.einsum)
def einsum(*operands: Any, optimize: Any = False, order: str = "K") -> Any:
    if not isinstance(operands[0], str):
        return call("einsum", *operands)
    return call("einsum", operands[0], *(as_tensor(t) for t in operands[1:]))


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    return call("kron", as_tensor(a), as_tensor(b))


@implements(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    return call("vander", as_tensor(x), N, increasing)


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (call("movedim", as_tensor(t), d, -1) for t, d in ((a, axisa), (b, axisb)))
    ndim = max(a.ndim, b.ndim)
    a, b = (t.reshape((1,) * (ndim - t.ndim) + tuple(t.shape)) for t in (a, b))
    return call("movedim", call("linalg_cross", a, b), -1, axisc)


# --- Linear algebra --------------------------------------------------------------------------------------------------


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    t = as_tensor(x)
    if ord is None and axis is None and t.ndim > 2:
        return call("linalg_norm", t.reshape(-1)).reshape((1,) * t.ndim if keepdims else ())
    return call("linalg_norm", t, ord, axis, keepdims)


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    return call("linalg_svd", as_tensor(a), full_matrices) if compute_uv else call("linalg_svdvals", as_tensor(a))


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    result = call("linalg_qr", as_tensor(a), mode)
    return result[1] if mode == "r" else result


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    return call("linalg_pinv", as_tensor(a), rcond if rtol is None else rtol, hermitian)


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    solution, residuals, rank, values = call("linalg_lstsq", as_tensor(a), as_tensor(b), rcond, driver="gelsd")
    return solution, residuals.reshape(-1), rank, values


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    return call("linalg_eigh", as_tensor(a), UPLO)


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return call("linalg_eigvalsh", as_tensor(a), UPLO)


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    return call("linalg_cholesky", as_tensor(a), upper=upper)


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    return call("linalg_solve", as_tensor(a), as_tensor(b))


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    return call("linalg_cond", as_tensor(x), p)


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    return call("linalg_matrix_rank", as_tensor(A), tol, hermitian, rtol=rtol)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any) -> Any:
    return call("linalg_multi_dot", [as_tensor(a) for a in arrays])


def unary(name: str) -> Any:
    return lambda a, *args: call(name, as_tensor(a), *args)


for _name in ("det", "slogdet", "inv", "eig", "eigvals", "matrix_power", "tensorinv"):
    handlers[getattr(np.linalg, _name)] = unary(f"linalg_{_name}")


# Names that NumPy has since 2.0.
if hasattr(np.linalg, "vector_norm"):

    @implements(np.linalg.vector_norm)
    def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
        return call("linalg_vector_norm", as_tensor(x), ord, axis, keepdims)

    @implements(np.linalg.matrix_norm)
    def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
        return call("linalg_matrix_norm", as_tensor(x), ord, (-2, -1), keepdims)

    @implements(np.linalg.cross)
    def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
        return call("linalg_cross", as_tensor(x1), as_tensor(x2), dim=axis)

    @implements(np.linalg.vecdot)
    def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
        return call("linalg_vecdot", as_tensor(x1), as_tensor(x2), dim=axis)

    @implements(np.linalg.svdvals)
    def svdvals(x: Any, /) -> Any:
        return call("linalg_svdvals", as_tensor(x))

    @implements(np.matrix_transpose, np.linalg.matrix_transpose)
    def matrix_transpose(x: Any, /) -> Any:
        return as_tensor(x).transpose(-2, -1)

    @implements(np.linalg.diagonal)
    def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
        return call("diagonal", as_tensor(x), offset, -2, -1)

    @implements(np.linalg.trace)
    def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
        return linalg_diagonal(x, offset=offset).sum(-1, dtype=dtype)

    handlers[np.linalg.matmul] = lambda x1, x2, /: as_tensor(x1) @ as_tensor(x2)
    handlers[np.linalg.tensordot] = lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes)


# --- Fourier transforms ----------------------------------------------------------------------------------------------


def transform(name: str) -> Any:
    """One-dimensional transforms have ``n`` and ``axis``, the others ``s`` and ``axes``."""
    if name in ("fftshift", "ifftshift"):
        return lambda x, axes=None: call(f"fft_{name}", as_tensor(x), axes)
    if name.endswith(("2", "n")):
        default = (-2, -1) if name.endswith("2") else None
        return lambda a, s=None, axes=default, norm=None: call(f"fft_{name}", as_tensor(a), s, axes, norm)
    return lambda a, n=None, axis=-1, norm=None: call(f"fft_{name}", as_tensor(a), n, axis, norm)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn",
              "rfftn", "irfftn", "fftshift", "ifftshift"):
    handlers[getattr(np.fft, _name)] = transform(_name)


# --- Making arrays like another --------------------------------------------------------------------------------------


def like(name: str) -> Any:
    return lambda a, dtype=None, order="K", subok=True, shape=None: getattr(creation, name)(a, dtype=dtype)


for _name in ("zeros_like", "ones_like", "empty_like"):
    handlers[getattr(np, _name)] = like(_name)


@implements(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Any:
    return creation.full_like(a, fill_value, dtype=dtype)


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return call("clone", a)


# --- Questions whose answer is no tensor -----------------------------------------------------------------------------


def about(function: Any) -> Any:
    """NumPy's own function of the values: its answer has no derivative."""
    return lambda *args, **kwargs: function(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})


for _name in ("array2string", "array_repr", "array_str", "can_cast", "common_type", "iscomplexobj", "isrealobj",
              "may_share_memory", "min_scalar_type", "ndim", "result_type", "shape", "shares_memory"):
    handlers[getattr(np, _name)] = about(getattr(np, _name))


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    shape = tuple(a.shape)
    return math.prod(shape if axis is None else [shape[d] for d in axes_of(axis, len(shape))])
