"""Floor 3: small pieces that several families' formulas use."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
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
    if not hasattr(dim, "__index__") or isinstance(dim, bool):
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
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


def real_product(a: Any, b: Any) -> Any:
    """``Re(conj(a) * b)``: what each pair of complex elements adds to the inner product of the underlying reals."""
    return (a.conj() * b).real if a.dtype.is_complex else a * b


def unreduced(g: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """The cotangent of a reduction with its reduced dimensions put back as size 1, ready to broadcast."""
    if keepdim or dim is None or not shape:      # a full reduction broadcasts as it is
        return g
    axes = reduced_axes(dim, len(shape))
    return g.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape)))


def numpy_words(function: Callable[..., Any]) -> Callable[..., Any]:
    """For composites: take NumPy's keywords ``axis`` and ``keepdims`` beside PyTorch's, as every operator does."""

    @wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for word, own in (("axis", "dim"), ("keepdims", "keepdim")):
                if word in kwargs:
                    if own in kwargs:
                        raise TypeError(f"{function.__name__}() got both '{own}' and '{word}'")
                    kwargs[own] = kwargs.pop(word)
        return function(*args, **kwargs)

    return renamed
