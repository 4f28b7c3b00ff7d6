"""Floor 3: any geometry over a tensor's memory, and copies in which one view is replaced."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as numpy_as_strided

from ._declare import KEEP, LINEAR, composite, operator
from ._helpers import normal_dim
from .indexing import FULL, assign
from .regions import ROW, Region, embed_region, region_of
from .views import several

Array = np.ndarray[Any, Any]


def strided_forward(input: Array, region: Region) -> Array:
    """The view that `region` describes, of an input that lies as the region's base does."""
    steps = region.offset - region.base_offset
    place = numpy_as_strided(input, (abs(steps) + 1,), (input.itemsize if steps > 0 else -input.itemsize,))
    return numpy_as_strided(place[-1:], region.shape, [s * input.itemsize for s in region.strides])


strided = operator(
    "_as_strided(input, region)",
    forward=strided_forward,
    vjp=dict(input=lambda g, region: embed_region(g, region)),
    dtypes=KEEP, view=True, jvp=LINEAR, node="AsStrided", public=False, method=False,
    samples=lambda make: [((make(2, 3), ROW), {})],
)


class Geometry:
    """What `region_of` reads of a view, before there is one."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dtype: Any) -> None:
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.offset = offset

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def storage_offset(self) -> int:
        return self.offset


def reaches(region: Region) -> bool:
    """Whether the region lies within its base's memory."""
    last = region.offset + sum((n - 1) * s for n, s in zip(region.shape, region.strides))
    return 0 in region.shape or (0 <= region.offset and last < region.span)


@composite(
    "as_strided(input, size, stride, storage_offset=None)",
    samples=lambda make: [
        ((make(4), (2, 2), (1, 2)), {}), ((make(5), (3, 2), (1, 1), 1), {}), ((make(3), (2, 3), (0, 1)), {}),
    ],
)
def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A view of the tensor's memory with any shape, strides and offset, counted in elements.

    Parameters
    ----------
    size, stride : tuple of int
        Shape and strides of the result. Several indices may share one place: their gradients add up.
    storage_offset : int, optional
        Where the result starts in the memory; where `input` does, if not given.

    Raises
    ------
    RuntimeError
        If the result would reach beyond the memory, or a stride is negative.
    """
    size, stride = several((size,)), several((stride,))
    offset = input.storage_offset() if storage_offset is None else storage_offset
    if len(size) != len(stride):
        raise RuntimeError(f"as_strided: mismatch in length of strides and shape: {len(stride)} and {len(size)}")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if offset < 0:
        raise RuntimeError(f"as_strided: Storage offset must be non-negative, got {offset}")
    wanted = Geometry(size, stride, offset, input.dtype)
    for base in (input, input._base):
        if base is not None and base.dtype == input.dtype and reaches(region_of(base, wanted)):
            return strided(base, region_of(base, wanted))
    raise RuntimeError(f"as_strided: setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset} "
                       f"are out of bounds for the memory of a tensor of shape {list(input.shape)}")


@composite(
    "as_strided_scatter(input, src, size, stride, storage_offset=None)",
    samples=lambda make: [((make(4), make(2), (2,), (2,)), {})],
)
def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A copy of `input` with `src` in the place of the view ``as_strided(size, stride, storage_offset)``."""
    return replaced(input, src, lambda out: out.as_strided(size, stride, storage_offset))


def replaced(input: Any, src: Any, view_of: Any) -> Any:
    out = input.clone()
    place = view_of(out)
    check_place(place.shape, src.shape)
    place.copy_(src)
    return out


def check_place(place: tuple[int, ...], src: tuple[int, ...]) -> None:
    if tuple(place) != tuple(src):
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src)}, slice "
                           f"size = {list(place)}")


@composite("select_scatter(input, src, dim, index)", samples=lambda make: [((make(2, 3), make(2), 1, -1), {})])
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """A copy of `input` with `src` in the place of ``select(dim, index)``."""
    at = normal_dim(dim, input.ndim)
    check_place(input.detach().select(at, index).shape, src.shape)
    return assign(input, src, ((FULL,) * at + (index, ...)))


@composite(
    "slice_scatter(input, src, dim=0, start=None, end=None, step=1)",
    samples=lambda make: [((make(4), make(2), 0, 1, 3), {}), ((make(2, 4), make(2, 2), -1), {"step": 2})],
)
def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """A copy of `input` with `src` in the place of a slice of `dim`."""
    index = ((FULL,) * normal_dim(dim, input.ndim) + (slice(start, end, step), ...))
    check_place(input.detach()[index].shape, src.shape)
    return assign(input, src, index)
