"""Floor 3: reading and writing by masks and by flat positions, and finding where a tensor is nonzero."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._errors import cannot_broadcast
from .._tensor import Tensor, attach, from_ndarray
from ._declare import KEEP, LINEAR, composite, operator
from .gathering import index_tensor, source_tensor
from .indexing import clear_at, index_forward, put_items, unindex, whole

Array = np.ndarray[Any, Any]

# --- Masks -----------------------------------------------------------------------------------------------------------


def mask_tensor(op: str, mask: Any) -> Tensor:
    if isinstance(mask, np.ndarray):
        mask = from_ndarray(mask, copy=True)
    if not isinstance(mask, Tensor):
        raise TypeError(f"{op}(): argument 'mask' must be Tensor, not {type(mask).__name__}")
    if mask.dtype.category != 0:
        raise RuntimeError(f"{op}: expected BoolTensor for mask, got {mask.dtype}")
    return mask


def common_shape(op: str, a: Any, b: Any) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    except ValueError:
        raise RuntimeError(cannot_broadcast(op, tuple(a.shape), tuple(b.shape))) from None


def some(values: Any) -> Tensor:
    return from_ndarray(np.array(values, bool), copy=True)


masked_select_at = operator(
    "_masked_select(input, indices, spec)",
    forward=index_forward,
    vjp=dict(input=lambda g, indices, spec, input_shape: unindex(g, indices, spec, input_shape)),
    dtypes=KEEP, tensors="input", sequence="indices", jvp=LINEAR, node="MaskedSelect", public=False, method=False,
    samples=lambda make: [((make(3), [some([True, False, True])], (0,)), {})],
)


@composite(
    "masked_select(input, mask)",
    samples=lambda make: [((make(2, 3), some([True, False, True])), {}), ((make(3), some([[True, False, True]])), {})],
)
def masked_select(input: Any, mask: Any) -> Any:
    """The elements where a mask is true.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    mask : Tensor
        Of bools; broadcast together with `input`.

    Returns
    -------
    Tensor
        A copy of one dimension, the elements in C order.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.tensor([1., -2., 3.])
    >>> x.masked_select(fg.tensor([True, False, True]))
    tensor([1., 3.])
    """
    mask = mask_tensor("masked_select", mask)
    shape = common_shape("masked_select", input, mask)
    if shape == ():
        input, shape = input.reshape(1), (1,)
    return masked_select_at(input.expand(shape), [mask.expand(shape)], (0,))


def masked_scatter_forward(input: Array, source: Array, mask: Array, in_place: bool) -> Array:
    wide = np.broadcast_to(mask, np.broadcast_shapes(input.shape, mask.shape))
    count = int(np.count_nonzero(wide))
    if count > source.size:
        raise RuntimeError(f"masked_scatter: Number of elements of source < number of ones in mask: {source.size} < "
                           f"{count}")
    out = input if in_place else np.broadcast_to(input, wide.shape).copy()
    out[wide] = source.reshape(-1)[:count]
    return out


def masked_scatter_vjp_input(g: Any, mask: Any) -> Any:
    return clear_at(g, [mask.expand(g.shape)], (0,)) if g.ndim else clear_at(g, [mask], (0,))


def masked_scatter_vjp_source(g: Any, mask: Any, source_shape: Any) -> Any:
    """The elements of g that came from source; those of source that were not used get zeros."""
    taken = masked_select(g, mask)
    size = int(np.prod(source_shape))
    padded = unindex(taken, [from_ndarray(np.arange(taken.numel()), copy=False)], (0,), (size,))
    return padded.reshape(source_shape)


masked_scatter_to = operator(
    "_masked_scatter(input, source, mask, in_place=False)",
    forward=masked_scatter_forward,
    vjp=dict(input=masked_scatter_vjp_input, source=masked_scatter_vjp_source),
    dtypes=KEEP, tensors="input source mask", jvp=LINEAR, node="MaskedScatter", public=False, method=False,
    samples=lambda make: [((make(2, 3), make(5), some([True, False, True])), {})],
)


@composite(
    "masked_scatter(input, mask, source)",
    samples=lambda make: [((make(3), some([True, False, True]), make(2, 2)), {})],
)
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """A copy of `input` with the elements of `source`, in C order, where the mask is true."""
    mask = mask_tensor("masked_scatter", mask)
    return masked_scatter_to(input, source_tensor("masked_scatter", "source", input, source), mask)


def masked_scatter_(self: Any, mask: Any, source: Any) -> Any:
    """In-place form of :func:`fastgrad.masked_scatter`."""
    mask = mask_tensor("masked_scatter", mask)
    return masked_scatter_to.inplace(self, source_tensor("masked_scatter", "source", self, source), mask, True)


attach("masked_scatter_", masked_scatter_)

# --- Flat positions --------------------------------------------------------------------------------------------------


def take_forward(input: Array, index: Array) -> Array:
    size = input.size
    if index.size and (index.min() < -size or index.max() >= size):
        worst = int(index.min() if index.min() < -size else index.max())
        raise IndexError(f"take: out of range: tried to access index {worst} on a tensor of {size} elements.")
    return np.asarray(input.reshape(-1)[index])


def take_vjp_input(g: Any, index: Any, input_shape: Any) -> Any:
    return unindex(g, [index], (0,), (int(np.prod(input_shape)),)).reshape(input_shape)


take_at = operator(
    "_take(input, index)",
    forward=take_forward,
    vjp=dict(input=take_vjp_input),
    dtypes=KEEP, tensors="input index", jvp=LINEAR, node="Take", public=False, method=False,
    samples=lambda make: [((make(2, 3), whole([[5, 0], [-1, 5]])), {})],
)


@composite(
    "take(input, index)",
    samples=lambda make: [((make(2, 3), whole([[5, 0], [-1, 5]])), {}), ((make(), whole(0)), {})],
)
def take(input: Any, index: Any) -> Any:
    """Elements by their position in C order; the result has the shape of `index`.

    Raises
    ------
    IndexError
        If a position is out of range.
    """
    return take_at(input, index_tensor("take", index))


@composite(
    "put(input, index, source, accumulate=False)",
    samples=lambda make: [((make(2, 3), whole([5, 0]), make(2)), {})],
)
def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """A copy of `input` with values written at positions counted in C order."""
    index = index_tensor("put", index)
    source = source_tensor("put", "source", input, source)
    return put_items(input.reshape(-1), source.reshape(index.shape), [index], (0,), accumulate).reshape(input.shape)


# --- Where a tensor is nonzero ---------------------------------------------------------------------------------------


def nonzero_arrays(input: Any) -> tuple[Any, ...]:
    """One index tensor for each dimension; a 0-dim tensor counts as one of shape (1,)."""
    array = input.detach().numpy()
    found = np.nonzero(array.reshape(1) if array.ndim == 0 else array)
    return tuple(from_ndarray(np.ascontiguousarray(a, np.int64), copy=False) for a in found)


@composite(
    "nonzero(input, *, as_tuple=False)", differentiable=False,
    samples=lambda make: [((make(2, 3),), {}), ((make(2, 3),), {"as_tuple": True}), ((make(),), {})],
)
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Where the tensor is not zero.

    Parameters
    ----------
    as_tuple : bool
        Whether to return one index tensor for each dimension, as ``input[...]`` takes them, instead of a matrix with
        one place in each row.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([[0., 5.], [7., 0.]]).nonzero()
    tensor([[0, 1],
            [1, 0]])
    """
    if as_tuple:
        return nonzero_arrays(input)
    return from_ndarray(np.ascontiguousarray(np.argwhere(input.detach().numpy()), np.int64), copy=False)


@composite("argwhere(input)", differentiable=False, numpy=np.argwhere, samples=lambda make: [((make(2, 3),), {})])
def argwhere(input: Any) -> Any:
    """Where the tensor is not zero, one place in each row; as `nonzero`."""
    return nonzero(input)
