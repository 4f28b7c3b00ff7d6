"""Floor 3: small pieces that several families' formulas use."""
from __future__ import annotations

from typing import Any

from .._errors import dim_out_of_range


def conj(x: Any) -> Any:
    """The complex conjugate; a real tensor or number is returned as it is."""
    if isinstance(x, (int, float)):
        return x
    if isinstance(x, complex):
        return x.conjugate()
    return x.conj() if x.dtype.is_complex else x


def normal_dim(dim: int, ndim: int) -> int:
    """``dim`` counted from the front; IndexError if there is no such dimension (0 and -1 exist even in 0-dim)."""
    size = max(ndim, 1)
    if not -size <= dim < size:
        raise IndexError(dim_out_of_range(dim, ndim))
    return dim % size


def reduced_axes(dim: int | tuple[int, ...] | list[int] | None, ndim: int) -> tuple[int, ...]:
    """The dimensions that ``dim`` (a number, several, or None or () for all) means, counted from the front, ascending.

    RuntimeError for one that is named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, (tuple, list)):
        if not dim:
            return tuple(range(ndim))
        dims = [normal_dim(d, ndim) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"dim {max(set(dims), key=dims.count)} appears multiple times in the list of dims")
        return tuple(sorted(dims)) if ndim else ()
    if not hasattr(dim, "__index__"):
        raise TypeError(f"dim must be int or a tuple of ints, not {type(dim).__name__}")
    return (normal_dim(dim, ndim),) if ndim else (normal_dim(dim, 0),)[:0]


def unreduced(g: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """The cotangent of a reduction with its reduced dimensions put back as size 1, ready to broadcast."""
    if keepdim or not shape:
        return g
    axes = reduced_axes(dim, len(shape))
    return g.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape)))
