"""Floor 5: NumPy's functions that shape, join, choose and sort, over tensors, by NumPy's signatures.

The continuation of `_numpy_functions`, whose `handlers` these join.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._numpy_functions import axes_of, call, implements, plain
from ._tensor import Tensor
from .numpy_interop import ABSENT, as_tensor, handlers

# --- Shape -----------------------------------------------------------------------------------------------------------


@implements(np.transpose)
def transpose(a: Any, axes: Any = None) -> Any:
    t = as_tensor(a)
    return t.permute(tuple(range(t.ndim))[::-1] if axes is None else tuple(axes))


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    shape = newshape if shape is None else shape
    if order == "F":
        t = as_tensor(a)
        target = (shape,) if isinstance(shape, int) else tuple(shape)
        return transpose(transpose(t).reshape(target[::-1]))
    return as_tensor(a).reshape(shape)


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Any:
    return (transpose(a) if order == "F" else as_tensor(a)).reshape(-1)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    t = as_tensor(a)
    axes = axes_of(axis, t.ndim)
    ndim = t.ndim + len(axes)
    for d in sorted(d % ndim for d in axes):
        t = t.unsqueeze(d)
    return t


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    t = as_tensor(a)
    if axis is None:
        return t.squeeze()
    for d in axes_of(axis, t.ndim):
        if t.shape[d] != 1:
            raise ValueError("numpy.squeeze: cannot select an axis to squeeze out which has size not equal to one: "
                             f"axis {d} of shape {tuple(t.shape)}")
    return t.squeeze(axes_of(axis, t.ndim))


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any) -> Any:
    return as_tensor(array).expand((shape,) if isinstance(shape, int) else tuple(shape))


@implements(np.concatenate)
def concatenate(arrays: Any, /, axis: Any = 0, *, dtype: Any = None) -> Any:
    parts = [as_tensor(a) for a in arrays]
    if axis is None:
        parts, axis = [p.reshape(-1) for p in parts], 0
    result = call("cat", parts, axis)
    return result if dtype is None else result.to(dtype)


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Any:
    result = call("stack", [as_tensor(a) for a in arrays], axis)
    return result if dtype is None else result.to(dtype)


def joined(name: str) -> Callable[..., Any]:
    return lambda tup, *, dtype=None: call(name, [as_tensor(a) for a in tup])


for _name in ("vstack", "hstack", "dstack", "column_stack"):
    handlers[getattr(np, _name)] = joined(_name)


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    return concatenate([arr, values], axis)


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return list(call("tensor_split", as_tensor(ary), indices_or_sections, axis))


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    t = as_tensor(ary)
    if isinstance(indices_or_sections, int) and t.shape[axis] % indices_or_sections:
        raise ValueError("numpy.split: array split does not result in an equal division")
    return array_split(t, indices_or_sections, axis)


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    t = as_tensor(m)
    return call("flip", t, axes_of(axis, t.ndim))


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return call("roll", as_tensor(a), shift) if axis is None else call("roll", as_tensor(a), shift, axis)


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    counts = repeats if isinstance(repeats, int) else as_tensor(repeats)
    return call("repeat_interleave", as_tensor(a), counts, dim=axis)


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return call("diagonal", as_tensor(a), offset, axis1, axis2)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return diagonal(a, offset, axis1, axis2).sum(-1, dtype=dtype)


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    t = as_tensor(array)
    width = np.broadcast_to(pad_width, (t.ndim, 2)).tolist()
    if mode == "constant" and isinstance(constant_values, (int, float, complex)):
        # PyTorch lists the last dimension first.
        return call("pad", t, [n for pair in width[::-1] for n in pair], value=constant_values)
    if mode not in ("edge", "wrap", "reflect", "symmetric"):
        raise TypeError(f"numpy.pad of fastgrad tensors has no mode {mode!r} with these arguments; it has constant, "
                        "edge, reflect, symmetric and wrap")
    for dim, (before, after) in enumerate(width):
        places = np.pad(np.arange(t.shape[dim]), (before, after), mode)  # type: ignore[call-overload]
        t = take(t, places, dim)
    return t


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if sparse:
        raise TypeError("numpy.meshgrid of fastgrad tensors has no sparse=True")
    return tuple(call("meshgrid", *(as_tensor(x) for x in xi), indexing=indexing))


@implements(np.block)
def block(arrays: Any) -> Any:
    def assemble(part: Any, dim: int) -> Any:
        if not isinstance(part, list):
            return as_tensor(part)
        return concatenate([assemble(p, dim + 1) for p in part], dim)

    def depth(part: Any) -> int:
        return 1 + depth(part[0]) if isinstance(part, list) else 0

    return assemble(arrays, -depth(arrays))


# --- Choosing --------------------------------------------------------------------------------------------------------


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    mask = as_tensor(condition)
    mask = mask if mask.dtype.name == "bool" else mask != 0
    if x is None and y is None:
        return nonzero(mask)
    x, y = (v if isinstance(v, (Tensor, int, float, complex)) else as_tensor(v) for v in (x, y))
    return call("where", mask, x, y)


@implements(np.nonzero)
def nonzero(a: Any) -> Any:
    return tuple(as_tensor(i) for i in np.nonzero(as_tensor(a).detach().numpy()))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    return as_tensor(np.flatnonzero(as_tensor(a).detach().numpy()))


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None) -> Any:
    t, index = as_tensor(a), as_tensor(indices)
    if axis is None:
        return t.reshape(-1)[index]
    return t[(slice(None),) * (axis % t.ndim) + (index,)]


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    return take(arr, np.flatnonzero(as_tensor(condition).detach().numpy()))


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    t = as_tensor(arr) if axis is not None else as_tensor(arr).reshape(-1)
    dim = 0 if axis is None else axis
    return take(t, np.delete(np.arange(t.shape[dim]), plain(obj)), dim)


@implements(np.insert)
def insert(arr: Any, obj: int, values: Any, axis: Any = None) -> Any:
    t = as_tensor(arr) if axis is not None else as_tensor(arr).reshape(-1)
    if not isinstance(obj, int):
        raise TypeError("numpy.insert of fastgrad tensors takes one position, a number")
    dim = 0 if axis is None else axis % t.ndim
    row = as_tensor(values)
    if not (row.ndim and (row.ndim == t.ndim or axis is None)):
        row = call("broadcast_to", row, [n for d, n in enumerate(t.shape) if d != dim]).unsqueeze(dim)
    cut = obj % (t.shape[dim] + 1) if obj >= 0 else obj + t.shape[dim]
    return concatenate([t.narrow(dim, 0, cut), row.to(t.dtype), t.narrow(dim, cut, t.shape[dim] - cut)], dim)


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = as_tensor(default)
    for condition, choice in list(zip(condlist, choicelist))[::-1]:
        result = where(condition, choice, result)
    return result


@implements(np.unique)
def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: Any = None) -> Any:
    if return_index:
        raise TypeError("numpy.unique of fastgrad tensors has no return_index")
    return call("unique", as_tensor(ar), True, return_inverse, return_counts, axis)


@implements(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return call("isin", as_tensor(element), as_tensor(test_elements), invert=invert)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    return call("bucketize", as_tensor(x), as_tensor(bins), right=not right)


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    return call("take_along_dim", as_tensor(arr), as_tensor(indices), axis)


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None) -> Any:
    return take(a, np.flatnonzero(np.asarray(as_tensor(condition).detach())), axis)


@implements(np.sort)
def sort(a: Any, axis: Any = -1, *, stable: Any = None) -> Any:
    t = as_tensor(a)
    return (t.reshape(-1).sort(0) if axis is None else t.sort(axis))[0]


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, *, stable: Any = None) -> Any:
    t = as_tensor(a)
    return call("argsort", t.reshape(-1), 0, stable=True) if axis is None else call("argsort", t, axis, stable=True)


@implements(np.clip)
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = (b if a is None or a is ABSENT else a for a, b in ((a_min, min), (a_max, max)))
    low, high = (as_tensor(b) if isinstance(b, (np.ndarray, list)) else b for b in (low, high))
    return call("clamp", as_tensor(a), low, high)

# --- Names that NumPy has since 2.1 ----------------------------------------------------------------------------------

if hasattr(np, "unstack"):
    handlers[np.unstack] = lambda x, /, *, axis=0: tuple(as_tensor(x).unbind(axis))
