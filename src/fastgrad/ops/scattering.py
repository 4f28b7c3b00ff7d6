"""Floor 3: scatter_reduce: sums, products, means and extremes over the values sent to one place."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor import Tensor, attach, from_ndarray
from ._declare import KEEP, composite, operator
from ._helpers import conj
from .gathering import Array, gather, gather_places, index_tensor, scatter, scatter_add, source_tensor
from .indexing import embed, whole


def used(src: Any, index: Any) -> tuple[Any, ...]:
    """The part of src that index reads: it may be larger."""
    return *[slice(n) for n in index.shape], ...


def padded(g: Any, src_shape: Any) -> Any:
    """g with zeros for the elements of src that index does not reach."""
    return g if tuple(g.shape) == tuple(src_shape) else embed(g, used(None, g), src_shape)


def constant(array: Any, like: Any) -> Tensor:
    return from_ndarray(np.asarray(array).astype(like.dtype.numpy), copy=False)


def touched(shape: tuple[int, ...], index: Any, dim: int) -> Array:
    """Which places some value is sent to."""
    mask = np.zeros(int(np.prod(shape)), bool)
    mask[gather_places("scatter_reduce", shape, dim, index.numpy()).reshape(-1)] = True
    return mask.reshape(shape)


def reduce_forward(function: Any, input: Array, src: Array, index: Array, dim: int) -> Array:
    out = input.copy()
    places = gather_places("scatter_reduce", input.shape, dim, index)
    function.at(out.reshape(-1), places.reshape(-1), src[used(src, index)].reshape(-1))
    return out


# --- Extremes --------------------------------------------------------------------------------------------------------


def extreme_forward(input: Array, src: Array, index: Array, dim: int, largest: bool) -> Array:
    return reduce_forward(np.maximum if largest else np.minimum, input, src, index, dim)


def shares(input: Any, src: Any, index: Any, dim: int, result: Any) -> tuple[Any, Any]:
    """What part of a place's gradient its own old value gets, and what part each value sent to it: equal for ties."""
    own = constant((input == result).numpy(), result)
    sent = constant((src.detach()[used(src, index)] == gather(result.detach(), dim, index)).numpy(), result)
    count = scatter_add(own, dim, index, sent)
    count = constant(np.maximum(count.numpy(), 1), result)
    return own / count, sent / gather(count, dim, index)


def extreme_vjp_input(g: Any, input: Any, src: Any, index: Any, dim: int, result: Any) -> Any:
    return g * shares(input, src, index, dim, result)[0]


def extreme_vjp_src(g: Any, input: Any, src: Any, index: Any, dim: int, result: Any, src_shape: Any) -> Any:
    return padded(gather(g, dim, index) * shares(input, src, index, dim, result)[1], src_shape)


scatter_extreme = operator(
    "_scatter_extreme(input, src, index, dim, largest)",
    forward=extreme_forward,
    vjp=dict(input=extreme_vjp_input, src=extreme_vjp_src),
    dtypes=KEEP, tensors="input src index", node="ScatterReduce", public=False, method=False, complex=False,
    samples=lambda make: [((make(3), make(3), whole([2, 0, 2]), 0, True), {})],
)

# --- Products --------------------------------------------------------------------------------------------------------


def prod_forward(input: Array, src: Array, index: Array, dim: int) -> Array:
    return reduce_forward(np.multiply, input, src, index, dim)


def without_zeros(input: Any, src: Any, index: Any, dim: int) -> tuple[Any, Any, Any, Any, Any]:
    """Zeros replaced by 1: both tensors, their zeros as 0 or 1, and the product of what is left at each place."""
    src = src[used(src, index)]
    own_zero, sent_zero = (constant(t.detach().numpy() == 0, t) for t in (input, src))
    own, sent = input + own_zero, src + sent_zero
    return own, sent, own_zero, sent_zero, scatter_prod(own, sent, index, dim)


def other_zeros(own_zero: Any, sent_zero: Any, index: Any, dim: int) -> Any:
    return scatter_add(own_zero, dim, index, sent_zero)


def prod_vjp_input(g: Any, input: Any, src: Any, index: Any, dim: int) -> Any:
    own, _, own_zero, sent_zero, product = without_zeros(input, src, index, dim)
    alone = constant((other_zeros(own_zero, sent_zero, index, dim) - own_zero).numpy() == 0, g)
    return g * alone * conj(product / own)


def prod_vjp_src(g: Any, input: Any, src: Any, index: Any, dim: int, src_shape: Any) -> Any:
    _, sent, own_zero, sent_zero, product = without_zeros(input, src, index, dim)
    zeros = gather(other_zeros(own_zero, sent_zero, index, dim), dim, index)
    alone = constant((zeros - sent_zero).numpy() == 0, g)
    return padded(gather(g, dim, index) * alone * conj(gather(product, dim, index) / sent), src_shape)


scatter_prod = operator(
    "_scatter_prod(input, src, index, dim)",
    forward=prod_forward,
    vjp=dict(input=prod_vjp_input, src=prod_vjp_src),
    dtypes=KEEP, tensors="input src index", node="ScatterReduce", public=False, method=False,
    samples=lambda make: [((make(3), make(3), whole([2, 0, 2]), 0), {})],
    source="product over all values but one; where two are zero, second derivatives are taken as 0",
)


# --- scatter_reduce --------------------------------------------------------------------------------------------------

NEUTRAL = {"sum": 0, "mean": 0, "prod": 1}


@composite(
    "scatter_reduce(input, dim, index, src, reduce, *, include_self=True)", complex=False,
    samples=lambda make: [
        ((make(3), 0, whole([2, 0, 2]), make(3), reduce), {"include_self": own})
        for reduce in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)
    ],
)
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """A copy of `input` with the values sent to each place along a dimension combined.

    Parameters
    ----------
    index, src : Tensor
        As for `scatter_add`.
    reduce : {"sum", "prod", "mean", "amax", "amin"}
        How the values for one place are combined. Ties of an extreme share its gradient evenly.
    include_self : bool
        Whether the place's old value takes part. A place that nothing is sent to keeps it either way.
    """
    index, src = index_tensor("scatter_reduce", index), source_tensor("scatter_reduce", "src", input, src)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if reduce in ("amax", "amin"):
        largest = reduce == "amax"
        start = input if include_self else scatter(input, dim, index, lowest(input.dtype, largest))
        return scatter_extreme(start, src, index, dim, largest)
    start = input if include_self else scatter(input, dim, index, NEUTRAL[reduce])
    if reduce == "prod":
        return scatter_prod(start, src, index, dim)
    total = scatter_add(start, dim, index, src)
    if reduce == "sum":
        return total
    ones = from_ndarray(np.ones(tuple(index.shape), input.dtype.numpy))
    own = from_ndarray(np.full(tuple(input.shape), int(include_self), input.dtype.numpy))
    counts = scatter_add(own, dim, index, ones)
    counts = constant(np.maximum(counts.numpy(), 1), input)
    return total / counts if input.dtype.category > 1 else total // counts


def lowest(dtype: Any, largest: bool) -> Any:
    """What every value of the dtype beats."""
    if dtype.category == 2:
        return -np.inf if largest else np.inf
    if dtype.category == 0:
        return not largest
    info = np.iinfo(dtype.numpy)
    return int(info.min if largest else info.max)


def scatter_reduce_(self: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """In-place form of :func:`fastgrad.scatter_reduce`."""
    return self.copy_(scatter_reduce(self, dim, index, src, reduce, include_self=include_self))


attach("scatter_reduce_", scatter_reduce_)
