"""Floor 3: what in-place writes through views are recorded as.

See Note [In-place writes through a view] in `_record`. A region is how a view lies in its base's memory; the operators
here read it, embed into zeros, clear it and replace it, on values that may themselves lie differently in memory.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import _record
from .._compute import replace_history
from ._declare import KEEP, LINEAR, operator


class Region(NamedTuple):
    """A view's geometry within its base, counted in elements of the span of memory that the base covers.

    With ``parts`` the view sees the real numbers that a complex base is made of (``z.real``, ``view_as_real``): the
    view's strides and offset count those.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    base_shape: tuple[int, ...]
    base_strides: tuple[int, ...]
    base_offset: int
    span: int
    parts: bool = False


def region_of(base: Any, view: Any) -> Region:
    steps = [(n - 1) * s for n, s in zip(base.shape, base.stride())]
    low = base.storage_offset() + sum(s for s in steps if s < 0)
    parts = base.dtype.is_complex and not view.dtype.is_complex
    return Region(
        tuple(view.shape), view.stride(), view.storage_offset() - (2 * low if parts else low), tuple(base.shape),
        base.stride(), base.storage_offset() - low, 0 if 0 in base.shape else 1 + sum(abs(s) for s in steps), parts,
    )


def window(storage: Any, shape: Any, strides: Any, offset: int) -> Any:
    """A view of flat storage by shape, strides and offset in elements."""
    return as_strided(storage[offset:], shape, [s * storage.itemsize for s in strides])


def laid_out(values: Any, region: Region) -> Any:
    """The base's values in fresh storage, where a tensor with the base's strides has them."""
    storage = np.zeros(region.span, values.dtype)
    window(storage, region.base_shape, region.base_strides, region.base_offset)[...] = values
    return storage


def base_of(storage: Any, region: Region) -> Any:
    return window(storage, region.base_shape, region.base_strides, region.base_offset).copy()


def view_of(storage: Any, region: Region) -> Any:
    """What the view sees of storage that holds the base."""
    seen = storage.view(storage.real.dtype) if region.parts else storage
    return window(seen, region.shape, region.strides, region.offset)


def embed_forward(input: Any, region: Region) -> Any:
    n = 2 * region.span if region.parts else region.span
    seen = np.zeros(n, input.dtype)
    # add.at, since an expanded view sends several cotangents to one place.
    np.add.at(seen, window(np.arange(n), region.shape, region.strides, region.offset), input)
    return base_of(seen.view(np.result_type(input.dtype, np.complex64)) if region.parts else seen, region)


def clear_forward(input: Any, region: Region) -> Any:
    storage = laid_out(input, region)
    view_of(storage, region)[...] = 0
    return base_of(storage, region)


def replace_forward(input: Any, other: Any, region: Region) -> Any:
    storage = laid_out(input, region)
    view_of(storage, region)[...] = other
    return base_of(storage, region)


ROW = Region((3,), (1,), 3, (2, 3), (3, 1), 0, 6)      # for the tests: the second row of a 2 x 3 matrix

read_region = operator(
    "_read_region(input, region)",
    forward=lambda input, region: view_of(laid_out(input, region), region).copy(),
    vjp=dict(input=lambda g, region: embed_region(g, region)),
    dtypes=KEEP, jvp=LINEAR, node="AsStrided", method=False, public=False,
    samples=lambda make: [((make(2, 3), ROW), {})],
)

embed_region = operator(
    "_embed_region(input, region)",
    forward=embed_forward,
    vjp=dict(input=lambda g, region: read_region(g, region)),
    dtypes=KEEP, jvp=LINEAR, method=False, public=False,
    samples=lambda make: [((make(3), ROW), {})],
)

clear_region = operator(
    "_clear_region(input, region)",
    forward=clear_forward,
    vjp=dict(input=lambda g, region: clear_region(g, region)),
    dtypes=KEEP, jvp=LINEAR, method=False, public=False,
    samples=lambda make: [((make(2, 3), ROW), {})],
)

replace_region = operator(
    "_replace_region(input, other, region)",
    forward=replace_forward,
    vjp=dict(input=lambda g, region: clear_region(g, region), other=lambda g, region: read_region(g, region)),
    dtypes=KEEP, jvp=LINEAR, node="CopySlices", method=False, public=False,
    samples=lambda make: [((make(2, 3), make(3), ROW), {})],
)


def rebase(base: Any, view: Any) -> None:
    """The base is from now on the old base with the view's region replaced by the written view."""
    replace_history(replace_region, base, (base, view, region_of(base, view)))


def renew(base: Any, view: Any) -> None:
    """The view is from now on a view of the base as it is now, in every grad mode."""
    previous = _record.set_grad_mode(True)
    try:
        replace_history(read_region, view, (base, region_of(base, view)))
    finally:
        _record.set_grad_mode(previous)


_record.set_view_functions(rebase, renew)
