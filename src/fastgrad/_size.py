"""The shape of a tensor: a tuple of ints that knows its product."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11

__all__ = ["Size"]

MAX_SIZE = 2**63 - 1  # sizes are signed 64-bit integers


class Size(tuple[int, ...]):
    """A shape: a tuple of ints whose slices, sums and multiples are shapes again.

    Parameters
    ----------
    sizes : iterable of int
        Sizes, converted by ``operator.index``, so NumPy integers and 0-dim integer tensors will do.

    Raises
    ------
    TypeError
        If an item is not an integer.

    Notes
    -----
    Code that already has a tuple of ints skips the conversion: ``tuple.__new__(Size, ints)``.

    Examples
    --------
    >>> import fastgrad as fg
    >>> size = fg.Size([2, 3])
    >>> size, size[1:], size + (4,), size.numel(), size == (2, 3)
    (fastgrad.Size([2, 3]), fastgrad.Size([3]), fastgrad.Size([2, 3, 4]), 6, True)
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = (), /) -> Self:
        items = tuple(sizes)
        for i, item in enumerate(items):
            if not hasattr(item, "__index__"):
                raise TypeError(f"fastgrad.Size() takes an iterable of 'int' (item {i} is '{type(item).__name__}')")
        return tuple.__new__(cls, map(operator.index, items))

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape, 1 for the empty shape."""
        return math.prod(self)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> Size: ...
    def __getitem__(self, index: Any, /) -> Any:
        item = tuple.__getitem__(self, index)
        return tuple.__new__(Size, item) if type(item) is tuple else item

    def __add__(self, other: object, /) -> Size:
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to fastgrad.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: object, /) -> Size:
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to fastgrad.Size")
        return Size(tuple.__add__(tuple(other), self))

    def __mul__(self, times: SupportsIndex, /) -> Size:
        return tuple.__new__(Size, tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"fastgrad.Size([{', '.join(map(str, self))}])"


def sizes_of(function: str, size: tuple[Any, ...], named: Any = None) -> tuple[int, ...]:
    """Read a shape given as ``f(2, 3)``, ``f((2, 3))`` or ``f(size=(2, 3))``; ``named`` is the last form's argument."""
    if named is not None:
        if size:
            raise TypeError(f"{function}() got multiple values for argument 'size'")
        if not isinstance(named, tuple | list):
            raise _not_sizes(function, named)
        items: Any = named
    elif not size:
        raise TypeError(f'{function}() missing 1 required positional argument: "size"; () makes a 0-dim tensor')
    elif len(size) == 1 and isinstance(size[0], tuple | list):
        items = size[0]
    else:
        items = size
    sizes = tuple([item if type(item) is int else _one_size(function, item) for item in items])
    if sizes and max(sizes) > MAX_SIZE:
        raise TypeError(
            f"{function}(): argument 'size' failed to unpack: Overflow when unpacking long long: {max(sizes)}"
        )
    if sizes and min(sizes) < 0:
        raise RuntimeError(f"{function}: Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}")
    return sizes


def _one_size(function: str, item: Any) -> int:
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        raise _not_sizes(function, item)
    try:
        return operator.index(item)
    except (TypeError, RuntimeError):  # an array or a tensor that is not one integer
        raise _not_sizes(function, item) from None


def _not_sizes(function: str, item: object) -> TypeError:
    return TypeError(f"{function}(): argument 'size' must be tuple of ints, not {type(item).__name__}")
