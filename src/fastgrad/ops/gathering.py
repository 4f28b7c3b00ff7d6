"""Floor 3: reading and writing by index tensors under a name: gather and scatter, the index_* and the masked_* family.

All save the index tensor, and nothing else; what they write where indices repeat is the last value, or a sum. Their
in-place forms write to the places concerned only: that is what the plain argument ``in_place`` is for.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor import Tensor, attach, from_ndarray
from ._declare import KEEP, LINEAR, composite, functions, operator
from ._helpers import normal_dim
from .indexing import (
    FULL,
    clear_at,
    embed,
    index_forward,
    put_forward,
    put_vjp_input,
    put_vjp_values,
    unindex,
    whole,
)
from .views import cast

Array = np.ndarray[Any, Any]

# --- Checks ----------------------------------------------------------------------------------------------------------


def index_tensor(op: str, index: Any) -> Tensor:
    """The index as an integer tensor."""
    if isinstance(index, np.ndarray):
        index = from_ndarray(index, copy=True)
    if not isinstance(index, Tensor):
        raise TypeError(f"{op}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if index.dtype.category != 1:
        raise RuntimeError(f"{op}(): Expected dtype int32/int64 for index, got {index.dtype}")
    return index


def source_tensor(op: str, name: str, input: Any, source: Any) -> Any:
    if isinstance(source, np.ndarray):
        source = from_ndarray(source, copy=True)
    if not isinstance(source, Tensor):
        raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(source).__name__}")
    if source.dtype != input.dtype:
        raise RuntimeError(f"{op}(): Expected self.dtype to be equal to {name}.dtype, got {input.dtype} and "
                           f"{source.dtype}")
    return source


def check_range(index: Array, n: int, dim: int, lowest: int = 0, error: type[Exception] = RuntimeError) -> None:
    if lowest == 0 and index.dtype == np.int64 and index.size and index.view(np.uint64).max() < n:
        return          # one pass instead of two: as unsigned numbers the negative ones are the largest
    if index.size and (index.min() < lowest or index.max() >= n):
        worst = int(index.min() if index.min() < lowest else index.max())
        raise error(f"index {worst} is out of bounds for dimension {dim} with size {n}")


def check_index_shape(op: str, index: Any, shape: tuple[int, ...], dim: int) -> None:
    """The index lies within `shape` in every dimension but `dim` (0-dim counts as one dimension of size 1)."""
    if not isinstance(index, np.ndarray):
        raise TypeError(f"{op}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if index.dtype.kind not in "iu":
        raise RuntimeError(f"{op}(): Expected dtype int32/int64 for index, got {index.dtype}")
    if max(index.ndim, 1) != max(len(shape), 1):
        raise RuntimeError(f"{op}: Index tensor must have the same number of dimensions as input tensor, got shape "
                           f"{tuple(index.shape)} for an input of shape {tuple(shape)}")
    for d, (n, m) in enumerate(zip(index.shape, shape)):
        if d != dim and n > m:
            raise RuntimeError(f"{op}: Size does not match at dimension {d} expected index {list(index.shape)} to be "
                               f"no larger than self {list(shape)} apart from dimension {dim}")


# --- gather and scatter ----------------------------------------------------------------------------------------------


def at_least_1d(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if shape else (1,)


def places_along(shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """The flat positions in an array of `shape` that `index` names along `dim`, of the shape of `index`."""
    places = np.zeros(index.shape, np.int64)
    stride = 1
    for d in range(len(shape) - 1, -1, -1):
        if d == dim:
            places += stride * index.astype(np.int64, copy=False)
        else:
            n = index.shape[d]
            places += (stride * np.arange(n)).reshape((n,) + (1,) * (index.ndim - 1 - d))
        stride *= shape[d]
    return places


def gather_places(op: str, shape: tuple[int, ...], dim: int, index: Array) -> Array:
    at = normal_dim(dim, len(shape))
    check_index_shape(op, index, shape, at)
    shape = at_least_1d(shape)
    check_range(index, shape[at], at)
    return places_along(shape, at, index.reshape(at_least_1d(index.shape))).reshape(index.shape)


def gather_forward(input: Array, dim: int, index: Array, sparse_grad: bool = False) -> Array:
    if not isinstance(input, np.ndarray):
        raise TypeError(f"gather(): argument 'input' must be Tensor, not {type(input).__name__}")
    if input.ndim == 1 and isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype == np.int64:
        normal_dim(dim, 1)
        check_range(index, input.size, 0)
        return input[index]
    places = gather_places("gather", input.shape, dim, index)
    if places.size == 0:
        return np.empty(places.shape, input.dtype)
    return np.asarray(input.reshape(-1)[places])


def ungather_forward(input: Array, index: Array, dim: int, shape: tuple[int, ...]) -> Array:
    out = np.zeros(shape, input.dtype)
    places = gather_places("gather", shape, dim, index)
    np.add.at(out.reshape(-1), places.reshape(-1), input.reshape(-1))
    return out


def gather_vjp_input(g: Any, index: Any, dim: int, input_shape: Any) -> Any:
    return ungather(g, index, dim, input_shape)


def scatter_forward(input: Array, src: Any, index: Array, dim: int, add: bool, in_place: bool) -> Array:
    places = gather_places("scatter", input.shape, dim, index)
    if isinstance(src, np.ndarray) and src.ndim == 0 and index.ndim:
        src = src.item()
    if isinstance(src, np.ndarray):
        if src.ndim != index.ndim or any(n > m for n, m in zip(index.shape, src.shape)):
            raise RuntimeError(f"scatter: Expected index {list(index.shape)} to be no larger than self "
                               f"{list(input.shape)} apart from dimension {dim} and to be no larger size than src "
                               f"{list(src.shape)}")
        src = src[tuple(slice(n) for n in index.shape)].reshape(-1)
    else:
        src = cast(np.asarray(src), input.dtype)
    out = input if in_place else input.copy()
    flat = out.reshape(-1)
    places = places.reshape(-1)
    if add:
        np.add.at(flat, places, src)
    else:
        flat[places] = src
    if in_place and not np.shares_memory(flat, out):          # strides that do not flatten: `flat` was a copy
        out[...] = flat.reshape(out.shape)
    return out


def scatter_vjp_src(g: Any, index: Any, dim: int, add: bool, src_shape: Any) -> Any:
    picked = gather(g, dim, index)
    if not add:
        lost = scattered_over(tuple(g.shape), dim, index.numpy())
        if lost is not None:
            picked = clear_at(picked, [from_ndarray(lost, copy=False)], (0,))
    if src_shape and tuple(src_shape) != tuple(picked.shape):
        picked = embed(picked, (*(slice(n) for n in picked.shape), ...), src_shape)
    return picked


def scattered_over(shape: tuple[int, ...], dim: int, index: Array) -> Array | None:
    """Where a value was written over by a later one at the same place; None if none was."""
    places = gather_places("scatter", shape, dim, index)
    order = np.arange(places.size).reshape(places.shape)
    last = np.empty(int(np.prod(shape)), np.int64)
    last[places] = order
    lost: Array = np.asarray(last[places] != order)
    return lost if lost.any() else None


def gather_samples(make: Any) -> list[Any]:
    return [
        ((make(3), 0, whole([2, 0, 2, 1])), {}), ((make(2, 3), 1, whole([[0, 2], [1, 1]])), {}),
        ((make(2, 3), -2, whole([[1, 0]])), {}), ((make(), 0, whole(0)), {}), ((make(3), 0, whole([])), {}),
    ]


gather = operator(
    "gather(input, dim, index, *, sparse_grad=False)",
    forward=gather_forward,
    vjp=dict(input=gather_vjp_input),
    dtypes=KEEP, tensors="input index", jvp=LINEAR,
    samples=gather_samples,
    doc="""Elements picked along a dimension: for ``dim=0`` in two dimensions, ``out[i, j] = input[index[i, j], j]``.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    dim : int
        The dimension.
    index : Tensor
        Of integers, with as many dimensions as `input`, and no larger than it except in `dim`. An element that is
        picked several times gets the sum of the gradients.
    sparse_grad : bool
        Accepted and ignored.

    Returns
    -------
    Tensor
        Of the shape of `index`.

    Raises
    ------
    RuntimeError
        If an index is out of bounds, or the shapes do not fit.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([[1., 2.], [3., 4.]]).gather(1, fg.tensor([[0, 0], [1, 0]]))
    tensor([[1., 1.],
            [4., 3.]])
    """,
)

ungather = operator(
    "_ungather(input, index, dim, shape)",        # zeros, to which input is added where gather would read
    forward=ungather_forward,
    vjp=dict(input=lambda g, index, dim: gather(g, dim, index)),
    dtypes=KEEP, tensors="input index", jvp=LINEAR, node="GatherBackward", public=False, method=False,
    samples=lambda make: [((make(4), whole([2, 0, 2, 1]), 0, (3,)), {})],
)

scatter_to = operator(
    "_scatter(input, src, index, dim, add=False, in_place=False)",
    forward=scatter_forward,
    vjp=dict(input=lambda g, index, dim: scatter_to(g, 0, index, dim), src=scatter_vjp_src),
    dtypes=KEEP, tensors="input src index", jvp=LINEAR, node="Scatter", public=False, method=False,
    samples=lambda make: [
        ((make(3), make(3), whole([2, 0, 2]), 0), {}), ((make(2, 3), make(3, 3), whole([[1, 0]]), 0), {}),
    ],
)

scatter_add_to = operator(
    "_scatter_add(input, src, index, dim, add=True, in_place=False)",
    forward=scatter_forward,
    vjp=dict(input=lambda g: g, src=scatter_vjp_src),
    dtypes=KEEP, tensors="input src index", jvp=LINEAR, node="ScatterAdd", public=False, method=False,
    samples=lambda make: [((make(3), make(3), whole([2, 0, 2]), 0), {})],
)


def scatter_source(input: Any, src: Any, value: Any) -> Any:
    given = src if value is None else value
    if given is None:
        raise TypeError("scatter() missing required argument 'src' (or 'value')")
    if isinstance(given, (int, float, complex)) or (isinstance(given, Tensor) and given.ndim == 0 and input.ndim):
        return given
    return source_tensor("scatter", "src", input, given)


def scatter_any(input: Any, dim: int, index: Any, src: Any, value: Any, reduce: str | None, in_place: bool) -> Any:
    index = index_tensor("scatter", index)
    if reduce == "multiply":
        factor = scatter_source(input, src, value)
        if not isinstance(factor, Tensor):
            factor = from_ndarray(np.full(tuple(index.shape), factor, input.dtype.numpy))
        reduced = functions["scatter_reduce"](input, dim, index, factor, "prod")
        return input.copy_(reduced) if in_place else reduced
    if reduce not in (None, "add"):
        raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce}")
    op = scatter_to if reduce is None else scatter_add_to
    source = scatter_source(input, src, value)
    return (op.inplace if in_place else op)(input, source, index, dim, reduce == "add", in_place)


@composite(
    "scatter(input, dim, index, src)",
    samples=lambda make: [
        ((make(3), 0, whole([2, 0]), make(2)), {}), ((make(2, 3), 1, whole([[0, 2]]), 1.5), {}),
        ((make(2, 3), 0, whole([[1, 1, 0]]), make(1, 3)), {}),
    ],
)
def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """A copy of `input` with values written along a dimension: ``out[index[i, j], j] = src[i, j]`` for ``dim=0``.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    dim : int
        The dimension.
    index : Tensor
        Of integers, with as many dimensions as `input`, and no larger than `src`.
    src : Tensor or number
        Of `input`'s dtype. Where places repeat, the last value stays, and it alone has a gradient. Also ``value=``.
    reduce : {"add", "multiply"}, optional
        What to do instead of replacing.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(3).scatter(0, fg.tensor([2, 0]), fg.tensor([5., 7.]))
    tensor([7., 0., 5.])
    """
    return scatter_any(input, dim, index, src, value, reduce, False)


def scatter_(self: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """In-place form of :func:`fastgrad.scatter`."""
    return scatter_any(self, dim, index, src, value, reduce, True)


@composite(
    "scatter_add(input, dim, index, src)",
    samples=lambda make: [
        ((make(3), 0, whole([2, 0, 2]), make(3)), {}), ((make(2, 3), 1, whole([[0, 0]]), make(1, 2)), {}),
    ],
)
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """A copy of `input` with `src` added along a dimension: ``out[index[i, j], j] += src[i, j]`` for ``dim=0``."""
    src = source_tensor("scatter_add", "src", input, src)
    return scatter_add_to(input, src, index_tensor("scatter_add", index), dim)


def scatter_add_(self: Any, dim: int, index: Any, src: Any) -> Any:
    """In-place form of :func:`fastgrad.scatter_add`."""
    src = source_tensor("scatter_add", "src", self, src)
    return scatter_add_to.inplace(self, src, index_tensor("scatter_add", index), dim, True, True)


attach("scatter_", scatter_)
attach("scatter_add_", scatter_add_)


@composite(
    "take_along_dim(input, indices, dim=None)",
    samples=lambda make: [((make(2, 3), whole([[0], [2]]), 1), {}), ((make(2, 3), whole([5, 1])), {})],
)
def take_along_dim(input: Any, indices: Any, dim: int | None = None, *, axis: int | None = None) -> Any:
    """`gather` with negative indices, `input` and `indices` broadcast together; over all elements without `dim`."""
    indices = index_tensor("take_along_dim", indices)
    dim = dim if axis is None else axis
    if dim is None:
        input, indices, dim = input.reshape(-1), indices.reshape(-1), 0
    if input.ndim != indices.ndim:
        raise RuntimeError("take_along_dim(): input and indices should have the same number of dimensions, but got "
                           f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices")
    at = normal_dim(dim, input.ndim)
    places = indices.numpy()
    n = input.shape[at] if input.ndim else 1
    check_range(places, n, at, -n)
    places = np.where(places < 0, places + n, places)
    shape = list(np.broadcast_shapes(
        tuple(1 if d == at else m for d, m in enumerate(input.shape)),
        tuple(1 if d == at else m for d, m in enumerate(places.shape)),
    ))
    if shape:
        input = input.expand([n if d == at else m for d, m in enumerate(shape)])
        places = np.broadcast_to(places, [places.shape[at] if d == at else m for d, m in enumerate(shape)])
    return gather(input, at, from_ndarray(places, copy=True))


# --- One index vector for a dimension: index_* -----------------------------------------------------------------------


index_select_at = operator(
    "_index_select(input, indices, spec)",
    forward=index_forward,
    vjp=dict(input=lambda g, indices, spec, input_shape: unindex(g, indices, spec, input_shape)),
    dtypes=KEEP, tensors="input", sequence="indices", jvp=LINEAR, node="IndexSelect", public=False, method=False,
    samples=lambda make: [((make(3, 2), [whole([2, 0, 2])], (0, ...)), {})],
)

index_add_at = operator(
    "_index_add(input, values, indices, spec, accumulate=True, in_place=False)",
    forward=put_forward,
    vjp=dict(input=lambda g: g, values=put_vjp_values),
    dtypes=KEEP, tensors="input values", sequence="indices", jvp=LINEAR, node="IndexAdd", public=False, method=False,
    samples=lambda make: [((make(3, 2), make(3, 2), [whole([2, 0, 2])], (0, ...)), {})],
)

index_copy_at = operator(
    "_index_copy(input, values, indices, spec, accumulate=False, in_place=False)",
    forward=put_forward,
    vjp=dict(input=put_vjp_input, values=put_vjp_values),
    dtypes=KEEP, tensors="input values", sequence="indices", jvp=LINEAR, node="IndexCopy", public=False, method=False,
    samples=lambda make: [((make(3, 2), make(2, 2), [whole([2, 0])], (0, ...)), {})],
)

index_fill_at = operator(
    "_index_fill(input, values, indices, spec, accumulate=False, in_place=False)",
    forward=put_forward,
    vjp=dict(input=put_vjp_input, values=put_vjp_values),
    dtypes=KEEP, tensors="input values", sequence="indices", jvp=LINEAR, node="IndexFill", public=False, method=False,
    samples=lambda make: [((make(3, 2), make(), [whole([2, 0])], (0, ...)), {})],
)


def index_vector(op: str, input: Any, dim: int, index: Any, lowest: int, error: type[Exception]) -> tuple[int, Tensor]:
    """The dimension counted from the front, and the index as a vector; a 0-dim input counts as one of 1 element."""
    index = index_tensor(op, index)
    at = normal_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(f"{op}(): Index is supposed to be a vector, got shape {tuple(index.shape)}")
    n = input.shape[at] if input.ndim else 1
    check_range(index.numpy(), n, at, -n if lowest else 0, error)
    return at, index if index.ndim else index.reshape(1)


def out_of_range(input: Any, error: type[Exception]) -> type[Exception]:
    """PyTorch's exception for an index that is out of bounds differs for vectors."""
    return IndexError if input.ndim <= 1 else error


def in_dim(input: Any, at: int) -> tuple[Any, ...]:
    return (*(FULL,) * at, 0, ...)


@composite(
    "index_select(input, dim, index)",
    samples=lambda make: [
        ((make(2, 3), 1, whole([2, 0, 2])), {}), ((make(3), 0, whole([])), {}), ((make(), 0, whole([0])), {}),
    ],
)
def index_select(input: Any, dim: int, index: Any) -> Any:
    """The slices of a dimension that an index names, in its order.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    dim : int
        The dimension.
    index : Tensor
        A vector of integers; a slice may be named several times.

    Returns
    -------
    Tensor
        A copy.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([1., 2., 3.]).index_select(0, fg.tensor([2, 0, 2]))
    tensor([3., 1., 3.])
    """
    at, vector = index_vector("index_select", input, dim, index, 0, out_of_range(input, RuntimeError))
    if input.ndim == 0:
        if vector.numel() != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {vector.numel()} value(s)")
        return input.clone()
    return index_select_at(input, [vector], in_dim(input, at))


def sourced(op: str, input: Any, dim: int, index: Any, source: Any, error: type[Exception]) -> Any:
    """What index_add and index_copy check: (input as at least 1-D, vector, dim, source as at least 1-D)."""
    at, vector = index_vector(op, input, dim, index, 0, out_of_range(input, error))
    source = source_tensor(op, "source", input, source)
    count = source.shape[at] if source.ndim > at else 1
    if vector.numel() != count:
        raise error(f"{op}_(): Number of indices ({vector.numel()}) should be equal to source.size(dim): ({count}), "
                    f"for dim: {at}")
    own, other = list(input.shape), list(source.shape)
    if len(own) != len(other) or own[:at] != other[:at] or own[at + 1:] != other[at + 1:]:
        raise error(f"{op}: source tensor shape must match self tensor shape, excluding the specified dimension. Got "
                    f"self.shape = {own} source.shape = {other}")
    return at, vector, source


def index_put_call(op: Any, input: Any, vector: Tensor, at: int, values: Any, add: bool, in_place: bool) -> Any:
    if input.ndim == 0:                       # a 0-dim tensor is written to as one of shape (1,)
        if in_place:
            op.inplace(input.reshape(1), values, [vector], (0, ...), add, True)
            return input
        return op(input.reshape(1), values, [vector], (0, ...), add, False).reshape(())
    return (op.inplace if in_place else op)(input, values, [vector], in_dim(input, at), add, in_place)


def index_add_any(input: Any, dim: int, index: Any, source: Any, alpha: Any, in_place: bool) -> Any:
    at, vector, source = sourced("index_add", input, dim, index, source, RuntimeError)
    return index_put_call(index_add_at, input, vector, at, source if alpha == 1 else source * alpha, True, in_place)


@composite(
    "index_add(input, dim, index, source, *, alpha=1)",
    samples=lambda make: [
        ((make(3), 0, whole([1, 1]), make(2)), {}), ((make(2, 3), -1, whole([2, 0]), make(2, 2)), {"alpha": 2.0}),
    ],
)
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """A copy of `input` with ``alpha * source`` added to the slices that `index` names; repeated ones add up.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(3).index_add(0, fg.tensor([1, 1]), fg.tensor([10., 20.]))
    tensor([ 0., 30.,  0.])
    """
    return index_add_any(input, dim, index, source, alpha, False)


def index_add_(self: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """In-place form of :func:`fastgrad.index_add`."""
    return index_add_any(self, dim, index, source, alpha, True)


def index_copy_any(input: Any, dim: int, index: Any, source: Any, in_place: bool) -> Any:
    at, vector, source = sourced("index_copy", input, dim, index, source, IndexError)
    return index_put_call(index_copy_at, input, vector, at, source, False, in_place)


@composite(
    "index_copy(input, dim, index, source)",
    samples=lambda make: [
        ((make(3, 2), 0, whole([2, 0]), make(2, 2)), {}), ((make(2, 3), 1, whole([1]), make(2, 1)), {}),
    ],
)
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """A copy of `input` with the slices that `index` names replaced by those of `source`."""
    return index_copy_any(input, dim, index, source, False)


def index_copy_(self: Any, dim: int, index: Any, source: Any) -> Any:
    """In-place form of :func:`fastgrad.index_copy`."""
    return index_copy_any(self, dim, index, source, True)


def index_fill_any(input: Any, dim: int, index: Any, value: Any, in_place: bool) -> Any:
    at, vector = index_vector("index_fill", input, dim, index, -1, IndexError)
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{value.ndim} dimension(s).")
    return index_put_call(index_fill_at, input, vector, at, value, False, in_place)


@composite(
    "index_fill(input, dim, index, value)",
    samples=lambda make: [((make(3, 2), 0, whole([2, 0]), 1.5), {}), ((make(2, 3), 1, whole([1, 2]), make()), {})],
)
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """A copy of `input` with one number (or 0-dim tensor) in the slices that `index` names."""
    return index_fill_any(input, dim, index, value, False)


def index_fill_(self: Any, dim: int, index: Any, value: Any) -> Any:
    """In-place form of :func:`fastgrad.index_fill`."""
    return index_fill_any(self, dim, index, value, True)


for _function in (index_add_, index_copy_, index_fill_):
    attach(_function.__name__, _function)
