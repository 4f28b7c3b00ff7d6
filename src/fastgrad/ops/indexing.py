"""Floor 3: `t[index]` and `t[index] = value`.

An index is taken apart as PyTorch does it. Ints, slices, None and Ellipsis come first: they give a view and save
nothing. Then index arrays and masks read from (or write to) that view; they are saved. So `x[0, :, [1, 2]]` has the
shape of `x[0][:, [1, 2]]`, while NumPy, which counts the 0 among the index arrays, would put their dimension first.
"""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _dtypes
from .._fast import set_index_functions
from .._tensor import Tensor, attach, from_ndarray
from ._declare import KEEP, LINEAR, composite, operator
from ._helpers import normal_dim
from .views import cast, written_value

Array = np.ndarray[Any, Any]
FULL = slice(None)

# --- Errors ----------------------------------------------------------------------------------------------------------


def index_error(array: Array, index: Any, error: IndexError) -> IndexError:
    """NumPy's complaint about ``array[index]`` in PyTorch's words."""
    text = str(error)
    if "too many indices" in text:
        if array.ndim == 0:
            return IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a "
                              "number (too many indices for tensor of dimension 0)")
        return IndexError(f"too many indices for tensor of dimension {array.ndim} with shape {tuple(array.shape)}")
    if "boolean index did not match" in text:
        return IndexError(mask_mismatch(array.shape, index))
    if "could not be broadcast together" in text:
        shapes = ", ".join(str(list(i.shape)) for i in index if isinstance(i, np.ndarray))
        return IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}")
    return IndexError(text.replace("for axis", "for dimension"))


def mask_mismatch(shape: tuple[int, ...], index: tuple[Any, ...]) -> str:
    """What is wrong with the first mask that does not fit the dimensions it covers."""
    covered = sum(covers(i) for i in index)
    dim = 0
    for item in index:
        if item is Ellipsis:
            dim += len(shape) - covered
            continue
        if isinstance(item, np.ndarray) and item.dtype == bool:
            for k, n in enumerate(item.shape):
                if n != shape[dim + k]:
                    return (f"The shape of the mask {list(item.shape)} at index {k} does not match the shape of the "
                            f"indexed tensor {list(shape)} at index {dim + k}")
        dim += covers(item)
    return f"a mask does not fit the indexed tensor of shape {list(shape)}"


def covers(item: Any) -> int:
    """How many dimensions of the indexed tensor one item of an index uses up."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, np.ndarray) and item.dtype == bool:
        return item.ndim
    return 1


def read(array: Array, index: Any) -> Array:
    try:
        return array[index]  # type: ignore[no-any-return]
    except IndexError as error:
        raise index_error(array, index, error) from None


def write(array: Array, index: Any, value: Any) -> None:
    try:
        array[index] = value
    except IndexError as error:
        raise index_error(array, index, error) from None
    except ValueError as error:
        target = np.broadcast_to(np.empty((), bool), array.shape)[index].shape
        if "broadcast" not in str(error) and "assign" not in str(error):
            raise
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(np.shape(value))} cannot be broadcast to "
                           f"indexing result of shape {list(target)}") from None


# --- Basic indexing: views -------------------------------------------------------------------------------------------
# A basic index is a tuple of ints, slices and None that ends in Ellipsis or contains one: so NumPy gives an array, even
# of no dimensions, and never a scalar.


def embed_forward(input: Array, index: Any, shape: tuple[int, ...]) -> Array:
    out = np.zeros(shape, input.dtype)
    out[index] = input
    return out


def clear_forward(input: Array, index: Any) -> Array:
    out = input.copy()
    write(out, index, 0)
    return out


def assign_forward(input: Array, value: Any, index: Any, in_place: bool) -> Array:
    out = input if in_place else input.copy()
    write(out, index, written_value(value, input.dtype))
    return out


def assign_vjp_value(g: Any, index: Any, value_shape: Any) -> Any:
    return fitted(slice_items(g, index), value_shape)


def fitted(g: Any, shape: tuple[int, ...]) -> Any:
    """g with the ones in front that a value may have beyond the dimensions of the place it is assigned to."""
    extra = len(shape) - g.ndim
    return g.reshape((1,) * extra + tuple(g.shape)) if extra > 0 else g


slice_items = operator(
    "_slice(input, index)",
    forward=read,
    vjp=dict(input=lambda g, index, input_shape: embed(g, index, input_shape)),
    dtypes=KEEP, view=True, jvp=LINEAR, node="Slice", public=False, method=False,
    samples=lambda make: [
        ((make(4), (slice(1, 3), ...)), {}), ((make(3, 4), (..., None, slice(None, None, -2))), {}),
        ((make(3, 4), (1, ..., 0)), {}), ((make(3), (slice(2, 1), ...)), {}), ((make(), (...,)), {}),
    ],
)

select_items = operator(
    "_select(input, index)",
    forward=read,
    vjp=dict(input=lambda g, index, input_shape: embed(g, index, input_shape)),
    dtypes=KEEP, view=True, jvp=LINEAR, node="Select", public=False, method=False,
    samples=lambda make: [((make(3, 2), (-1, ...)), {}), ((make(3, 2), (0, 1, ...)), {})],
)

embed = operator(
    "_embed(input, index, shape)",        # zeros, but for input at the index
    forward=embed_forward,
    vjp=dict(input=lambda g, index: slice_items(g, index)),
    dtypes=KEEP, jvp=LINEAR, node="SliceBackward", public=False, method=False,
    samples=lambda make: [((make(2), (slice(1, 3), ...), (4,)), {}), ((make(), (1, 0, ...), (2, 2)), {})],
)

clear = operator(
    "_clear(input, index)",
    forward=clear_forward,
    vjp=dict(input=lambda g, index: clear(g, index)),
    dtypes=KEEP, jvp=LINEAR, public=False, method=False,
    samples=lambda make: [((make(4), (slice(1, 3), ...)), {})],
)

assign = operator(
    "_assign(input, value, index, in_place=False)",
    forward=assign_forward,
    vjp=dict(input=lambda g, index: clear(g, index), value=assign_vjp_value),
    dtypes=KEEP, tensors="input value", jvp=LINEAR, node="CopySlices", public=False, method=False,
    samples=lambda make: [
        ((make(4), make(2), (slice(1, 3), ...)), {}), ((make(2, 3), make(1, 1, 1), (0, ...)), {}),
        ((make(3), make(), (slice(None, None, -1), ...)), {}),
    ],
)


@composite(
    "select(input, dim, index)", samples=lambda make: [((make(2, 3), 1, -1), {}), ((make(2, 3), -2, 0), {})],
)
def select(input: Any, dim: int, index: int) -> Any:
    """The slice at one position of a dimension, which disappears; a view.

    Raises
    ------
    IndexError
        If there is no such dimension or position.
    """
    if input.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at = normal_dim(dim, input.ndim)
    n = input.shape[at]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension "
                         f"{dim}")
    return select_items(input, (FULL,) * at + (int(index), ...))


@composite(
    "narrow(input, dim, start, length)",
    samples=lambda make: [((make(4, 2), 0, 1, 2), {}), ((make(4), -1, -2, 1), {}), ((make(4), 0, 4, 0), {})],
)
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """`length` positions of a dimension from `start` on; a view.

    Raises
    ------
    RuntimeError
        If they reach beyond the end.
    """
    if input.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    at, n, start = normal_dim(dim, input.ndim), input.shape[normal_dim(dim, input.ndim)], int(start)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    first = start + n if start < 0 else start
    if first + length > n:
        raise RuntimeError(f"narrow: start ({first}) + length ({length}) exceeds dimension size ({n}).")
    return slice_items(input, (FULL,) * at + (slice(first, first + length), ...))


# --- Index arrays and masks ------------------------------------------------------------------------------------------
# `spec` is the index with slices and Ellipsis as they are, and for each index array its number among `indices`.


def numpy_index(indices: list[Array], spec: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(indices[item] if type(item) is int else item for item in spec)


def add_at(out: Array, index: tuple[Any, ...], values: Any) -> None:
    """``out[index] += values`` where repeated indices add up.

    `np.add.at` is fast for one index array on flat memory only, so the index is turned into that; and masks, or a
    single place, cannot repeat anything.
    """
    arrays = [i for i in index if isinstance(i, np.ndarray)]
    if all(a.dtype == bool or a.size == 1 for a in arrays):
        out[index] += values
    elif out.ndim == 1 and len(index) == 1:
        np.add.at(out, as_places(index[0], out.size), np.broadcast_to(values, index[0].shape).reshape(-1))
    else:
        places = np.arange(out.size).reshape(out.shape)[index]
        np.add.at(out.reshape(-1), places.reshape(-1), np.broadcast_to(values, places.shape).reshape(-1))


def as_places(index: Array, n: int) -> Array:
    """Flat, non-negative int64 positions: what the quick loop of `np.add.at` takes."""
    flat = index.reshape(-1).astype(np.int64, copy=False)
    return flat + n * (flat < 0) if flat.size and flat.min() < 0 else flat


def index_forward(input: Array, indices: list[Array], spec: Any) -> Array:
    return read(input, numpy_index(indices, spec))


def unindex_forward(input: Array, indices: list[Array], spec: Any, shape: tuple[int, ...]) -> Array:
    out = np.zeros(shape, input.dtype)
    add_at(out, numpy_index(indices, spec), input)
    return out


def clear_at_forward(input: Array, indices: list[Array], spec: Any) -> Array:
    out = input.copy()
    write(out, numpy_index(indices, spec), 0)
    return out


def put_forward(
    input: Array, values: Any, indices: list[Array], spec: Any, accumulate: bool = False, in_place: bool = False
) -> Array:
    out = input if in_place else input.copy()
    index = numpy_index(indices, spec)
    values = cast(np.asarray(values), input.dtype)
    if accumulate:
        read(out, index)               # the checks that `write` would do
        add_at(out, index, values)
    else:
        write(out, index, values)
    return out


def put_vjp_input(g: Any, indices: Any, spec: Any, accumulate: bool) -> Any:
    return g if accumulate else clear_at(g, indices, spec)


def put_vjp_values(g: Any, indices: Any, spec: Any, accumulate: bool, values_shape: Any) -> Any:
    picked = index_items(g, indices, spec)
    if not accumulate:
        lost = overwritten([i.numpy() for i in indices], spec, tuple(g.shape))
        if lost is not None:
            picked = clear_at(picked, [from_ndarray(lost, copy=False)], (0,))
    return fitted(picked, values_shape)


def overwritten(indices: list[Array], spec: Any, shape: tuple[int, ...]) -> Array | None:
    """Where an assignment through repeated indices was written over by a later one; None if it nowhere was."""
    if all(i.dtype == bool or i.size <= 1 for i in indices):
        return None
    size = int(np.prod(shape))
    places = np.arange(size).reshape(shape)[numpy_index(indices, spec)]
    order = np.arange(places.size).reshape(places.shape)
    last = np.empty(size, np.int64)
    last[places] = order
    lost: Array = last[places] != order
    return lost if lost.any() else None


def index_samples(make: Any) -> list[Any]:
    ints, mask = whole([2, 0, 2]), from_ndarray(np.array([True, False, True]), copy=True)
    return [
        ((make(3), [ints], (0,)), {}), ((make(4, 3, 2), [ints], (slice(None), 0)), {}),
        ((make(3, 2), [mask], (0,)), {}), ((make(3, 2, 3), [ints, ints], (0, slice(None), 1)), {}),
        ((make(3, 4), [whole([[0, -1], [1, 0]])], (..., 0)), {}), ((make(3), [whole([])], (0,)), {}),
    ]


def whole(values: Any) -> Tensor:
    return from_ndarray(np.array(values, np.int64), copy=True)


index_items = operator(
    "_index(input, indices, spec)",
    forward=index_forward,
    vjp=dict(input=lambda g, indices, spec, input_shape: unindex(g, indices, spec, input_shape)),
    dtypes=KEEP, tensors="input", sequence="indices", jvp=LINEAR, node="Index", public=False, method=False,
    samples=index_samples,
)

unindex = operator(
    "_unindex(input, indices, spec, shape)",      # zeros, to which input is added at the index
    forward=unindex_forward,
    vjp=dict(input=lambda g, indices, spec: index_items(g, indices, spec)),
    dtypes=KEEP, tensors="input", sequence="indices", jvp=LINEAR, node="IndexPut", public=False, method=False,
    samples=lambda make: [((make(3), [whole([2, 0, 2])], (0,), (4,)), {})],
)

clear_at = operator(
    "_clear_at(input, indices, spec)",
    forward=clear_at_forward,
    vjp=dict(input=lambda g, indices, spec: clear_at(g, indices, spec)),
    dtypes=KEEP, tensors="input", sequence="indices", jvp=LINEAR, public=False, method=False,
    samples=lambda make: [((make(4), [whole([2, 0, 2])], (0,)), {})],
)

put_items = operator(
    "_index_put(input, values, indices, spec, accumulate=False, in_place=False)",
    forward=put_forward,
    vjp=dict(input=put_vjp_input, values=put_vjp_values),
    dtypes=KEEP, tensors="input values", sequence="indices", jvp=LINEAR, node="IndexPut", public=False, method=False,
    samples=lambda make: [
        ((make(4), make(3), [whole([2, 0, 2])], (0,)), {}), ((make(4), make(3), [whole([2, 0, 2])], (0,), True), {}),
        ((make(2, 3), make(1, 2), [whole([1, -1])], (slice(None), 0)), {}),
    ],
)

# --- Taking an index apart -------------------------------------------------------------------------------------------


def index_array(item: Any) -> Tensor:
    """An index array or mask as a tensor; IndexError if it cannot be one."""
    if isinstance(item, Tensor):
        tensor = item
    else:
        try:
            array = np.array(item)
        except ValueError as error:
            raise IndexError(f"an index list must be a regular array of integers or bools: {error}") from None
        if array.size == 0 and not isinstance(item, np.ndarray):
            array = array.astype(np.int64)
        if array.dtype.kind not in "biuf":
            raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
                             f"indices (got {type(item).__name__})")
        tensor = from_ndarray(array, copy=False)
    category = tensor.dtype.category
    if category > 1:
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, not {tensor.dtype}")
    if tensor.dtype.code == 1:
        warnings.warn("indexing with dtype uint8 is now deprecated, please use a dtype bool instead (or int64, if "
                      "these are positions)", UserWarning, stacklevel=4)
        return from_ndarray(tensor.numpy() != 0, copy=False)
    return tensor


def taken_apart(index: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], list[Tensor]]:
    """The basic part of an index, then what is left for the result of that: spec and index arrays (see above)."""
    basic: list[Any] = []
    spec: list[Any] = []
    arrays: list[Tensor] = []
    for item in index if type(index) is tuple else (index,):
        kind = type(item)
        if kind is int:
            basic.append(item)
        elif item is None:
            basic.append(None)
            spec.append(FULL)
        elif item is Ellipsis:
            basic.append(...)
            spec.append(...)
        elif kind is slice:
            basic.append(plain_slice(item))
            spec.append(FULL)
        elif kind is bool or isinstance(item, np.bool_):
            spec.append(len(arrays))
            arrays.append(from_ndarray(np.array(bool(item)), copy=True))
        elif isinstance(item, (Tensor, np.ndarray, list, range, tuple)):
            array = index_array(item)
            if array.ndim == 0 and array.dtype.category == 1:
                basic.append(int(array.item()))
                continue
            basic += [FULL] * (array.ndim if array.dtype.category == 0 else 1)
            spec.append(len(arrays))
            arrays.append(array)
        elif hasattr(item, "__index__"):
            basic.append(item.__index__())
        else:
            raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
                             f"indices (got {kind.__name__})")
    if not any(i is Ellipsis for i in basic):
        basic.append(...)
    return tuple(basic), tuple(spec), arrays


def plain_slice(item: slice) -> slice:
    """The slice with Python ints, whatever integers it was given: a tensor must not hang on a node."""
    if item.step is None and type(item.start) in NONE_OR_INT and type(item.stop) in NONE_OR_INT:
        return item
    parts = [None if p is None else p.__index__() if hasattr(p, "__index__") else bad_slice(p)
             for p in (item.start, item.stop, item.step)]
    if parts[2] == 0:
        raise ValueError("slice step cannot be zero")
    return slice(*parts)


NONE_OR_INT = frozenset({type(None), int})


def bad_slice(part: Any) -> Any:
    raise TypeError("slice indices must be integers or None or have an __index__ method, not "
                    f"{type(part).__name__}")


def is_full(basic: tuple[Any, ...]) -> bool:
    return all(i is Ellipsis or i is FULL or (type(i) is slice and i == FULL) for i in basic)


def has_only_ints(basic: tuple[Any, ...]) -> bool:
    return type(basic[0]) is int and all(type(i) is int for i in basic[:-1])


INDEX_CODES = frozenset(d.code for d in _dtypes.DTYPES if d.category <= 1) - {_dtypes.uint8.code}


def getitem(t: Tensor, index: Any) -> Any:
    """What ``t[index]`` calls. The usual ``t[i]`` and ``t[i:j]`` come first, and short: loops are made of them."""
    kind = type(index)
    if kind is int:
        return select_items(t, (index, ...))
    if kind is slice:
        return slice_items(t, (plain_slice(index), ...))
    if kind is Tensor and index.ndim and index.dtype.code in INDEX_CODES:
        return index_items(t, [index], (0,))
    basic, spec, arrays = taken_apart(index)
    if not arrays:
        return (select_items if has_only_ints(basic) else slice_items)(t, basic)
    if not is_full(basic):
        t = slice_items(t, basic)
    return index_items(t, arrays, spec)


def setitem(t: Tensor, index: Any, value: Any) -> None:
    """What ``t[index] = value`` calls; recorded, so that gradients flow to the value and past the places it took."""
    if not isinstance(value, (Tensor, int, float, complex)):
        value = np.asarray(value)
        if value.dtype.kind not in "biufc":
            raise TypeError(f"can't assign a {value.dtype} array to a tensor of {t.dtype}")
    elif type(value) is complex and not t.dtype.is_complex:
        raise RuntimeError(f"value cannot be converted to type {t.dtype} without overflow: {value} is complex")
    kind = type(index)
    arrays = None
    if kind is int:
        basic = (index, ...)
    elif kind is slice:
        basic = (plain_slice(index), ...)
    else:
        basic, spec, arrays = taken_apart(index)
    if not arrays:
        if not (isinstance(value, Tensor) and is_there_already(t, basic, value)):
            assign.inplace(t, value, basic, True)
        return
    if not is_full(basic):
        t = slice_items(t, basic)
    put_items.inplace(t, value, arrays, spec, False, True)


def is_there_already(t: Tensor, basic: Any, value: Tensor) -> bool:
    """Whether value is the very view ``t[basic]`` after an in-place change: ``t[i] += x`` ends by assigning that."""
    base = value._base
    if base is None or not (base is t or base is t._base) or (t.requires_grad and not value.requires_grad):
        return False
    place = read(t.detach().numpy(), basic)
    held = value.detach().numpy()
    return (place.__array_interface__["data"] == held.__array_interface__["data"] and place.shape == held.shape
            and place.strides == held.strides and place.dtype == held.dtype)


set_index_functions(getitem, setitem)


# --- index_put -------------------------------------------------------------------------------------------------------


def put_spec(indices: Any) -> tuple[tuple[Any, ...], list[Tensor]]:
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put(): argument 'indices' must be tuple of Tensors, not {type(indices).__name__}")
    basic, spec, arrays = taken_apart(tuple(FULL if i is None else index_array(i) for i in indices))
    if len(arrays) < sum(i is not None for i in indices):     # a 0-dim index tensor: as an array of one place
        arrays = [index_array(i).reshape(1) for i in indices if i is not None]
        spec = (*range(len(arrays)), ...)
    return spec, arrays


@composite(
    "index_put(input, indices, values, accumulate=False)",
    samples=lambda make: [
        ((make(3, 2), (whole([2, 0]),), make(2, 2)), {}), ((make(3), (whole([1, 1]),), make(2), True), {}),
    ],
)
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """A copy of `input` with `values` written at (or, with `accumulate`, added to) the places that `indices` name.

    Parameters
    ----------
    indices : tuple of Tensor
        Integer or bool tensors, as in ``input[indices]``.
    values : Tensor
        Broadcast to the shape of ``input[indices]``, of `input`'s dtype.
    accumulate : bool
        Whether repeated places add up; otherwise the last value stays.
    """
    check_put_dtype(input, values)
    spec, arrays = put_spec(indices)
    return put_items(input, values, arrays, spec, accumulate)


def index_put_(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """In-place form of :func:`fastgrad.index_put`."""
    check_put_dtype(self, values)
    spec, arrays = put_spec(indices)
    return put_items.inplace(self, values, arrays, spec, accumulate, True)


attach("index_put_", index_put_)


def check_put_dtype(input: Any, values: Any) -> None:
    if isinstance(values, Tensor) and values.dtype != input.dtype:
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {input.dtype} for the "
                           f"destination and {values.dtype} for the source.")
