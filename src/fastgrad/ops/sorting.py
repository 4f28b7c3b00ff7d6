"""Floor 3: sorting, and searching in what is sorted.

The values of a sort are read by the indices it found, so its derivative is that of `gather`: the indices are saved.
"""
from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from .._tensor import Tensor, from_ndarray
from ._declare import KEEP, LINEAR, composite, operator
from ._helpers import normal_dim
from .gathering import gather_forward, gather_vjp_input
from .indexing import whole

Array = np.ndarray[Any, Any]

# --- Reading by the order found --------------------------------------------------------------------------------------


sort_values = operator(
    "_sort_values(input, dim, index)",
    forward=gather_forward,
    vjp=dict(input=gather_vjp_input),
    dtypes=KEEP, tensors="input index", jvp=LINEAR, node="Sort", public=False, method=False,
    samples=lambda make: [((make(3), 0, whole([2, 0, 1])), {})],
)

topk_values = operator(
    "_topk_values(input, dim, index)",
    forward=gather_forward,
    vjp=dict(input=gather_vjp_input),
    dtypes=KEEP, tensors="input index", jvp=LINEAR, node="Topk", public=False, method=False,
    samples=lambda make: [((make(3), 0, whole([2, 0])), {})],
)

kthvalue_values = operator(
    "_kthvalue_values(input, dim, index)",
    forward=gather_forward,
    vjp=dict(input=gather_vjp_input),
    dtypes=KEEP, tensors="input index", jvp=LINEAR, node="Kthvalue", public=False, method=False,
    samples=lambda make: [((make(3), 0, whole([2])), {})],
)


def order_along(op: str, input: Any, dim: int, descending: bool) -> Array:
    """The stable order of the elements along a dimension; NaN counts as the greatest."""
    at = normal_dim(dim, input.ndim)
    if input.dtype.is_complex:
        raise RuntimeError(f"{op}: Sort does not support complex dtypes on CPU; sort by .abs() or .real")
    array = input.detach().numpy()
    if array.ndim == 0:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(array, at, kind="stable")
    # Equal elements must keep their order, so sort the reversed array and reverse the result.
    backwards = np.argsort(np.flip(array, at), at, kind="stable")
    return np.flip(array.shape[at] - 1 - backwards, at)


def as_index(order: Array) -> Tensor:
    return from_ndarray(np.asarray(order, np.int64, order="C"), copy=False)


SortResult = namedtuple("sort", ["values", "indices"])
TopkResult = namedtuple("topk", ["values", "indices"])
KthvalueResult = namedtuple("kthvalue", ["values", "indices"])


@composite(
    "argsort(input, dim=-1, descending=False, stable=False)", differentiable=False, complex=False,
    samples=lambda make: [((make(3),), {}), ((make(2, 3), 0, True), {})],
)
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The indices that sort along a dimension. Always stable."""
    return as_index(order_along("argsort", input, dim, descending))


@composite(
    "sort(input, dim=-1, descending=False, *, stable=False)", complex=False,
    samples=lambda make: [((make(5),), {}), ((make(2, 3), 0, True), {}), ((make(),), {}), ((make(0, 2), 0), {})],
)
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool | None = False) -> Any:
    """The elements in order along a dimension, and where they were.

    Parameters
    ----------
    input : Tensor
        Real.
    dim : int
        The dimension.
    descending : bool
        Whether the greatest comes first. NaN counts as the greatest.
    stable : bool
        Accepted; the sort is always stable.

    Returns
    -------
    (values, indices) : namedtuple of Tensor

    Examples
    --------
    >>> import fastgrad as fg
    >>> values, indices = fg.tensor([3., 1., 2.]).sort()
    >>> values.tolist(), indices.tolist()
    ([1.0, 2.0, 3.0], [1, 2, 0])
    """
    index = as_index(order_along("sort", input, dim, descending))
    return SortResult(sort_values(input, dim, index), index)


@composite("msort(input)", complex=False, samples=lambda make: [((make(3, 2),), {})])
def msort(input: Any) -> Any:
    """The elements in order along dimension 0."""
    return sort(input, 0).values


@composite(
    "topk(input, k, dim=-1, largest=True, sorted=True)", complex=False,
    samples=lambda make: [((make(5), 2), {}), ((make(3, 2), 2, 0, False), {}), ((make(), 1), {}), ((make(3), 0), {})],
)
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The greatest (or smallest) elements along a dimension, in order, and where they are.

    Parameters
    ----------
    input : Tensor
        Real.
    k : int
        How many.
    dim : int
        The dimension.
    largest : bool
        Whether the greatest are wanted. NaN counts as the greatest.
    sorted : bool
        Accepted; the result is always in order.

    Returns
    -------
    (values, indices) : namedtuple of Tensor

    Raises
    ------
    RuntimeError
        If there are fewer than `k`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> values, indices = fg.tensor([3., 1., 2.]).topk(2)
    >>> values.tolist(), indices.tolist()
    ([3.0, 2.0], [0, 2])
    """
    at = normal_dim(dim, input.ndim)
    n = input.shape[at] if input.ndim else 1
    if not 0 <= k <= n:
        raise RuntimeError(f"topk: selected index k out of range: k is {k}, and dimension {dim} has size {n}")
    order = order_along("topk", input, at, largest)
    index = as_index(order if order.ndim == 0 else order[(slice(None),) * at + (slice(k),)])
    return TopkResult(topk_values(input, at, index), index)


@composite(
    "kthvalue(input, k, dim=-1, keepdim=False)", complex=False,
    samples=lambda make: [((make(5), 2), {}), ((make(3, 2), 1, 0, True), {}), ((make(), 1), {})],
)
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The `k`-th smallest element (counted from 1) along a dimension, and where it is.

    Returns
    -------
    (values, indices) : namedtuple of Tensor
    """
    at = normal_dim(dim, input.ndim)
    n = input.shape[at] if input.ndim else 1
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {at}: k is {k}, the size {n}")
    order = order_along("kthvalue", input, at, False)
    index = as_index(order if order.ndim == 0 else order[(slice(None),) * at + (slice(k - 1, k),)])
    values = kthvalue_values(input, at, index)
    if not keepdim and input.ndim:
        values, index = values.squeeze(at), index.squeeze(at)
    return KthvalueResult(values, index)


# --- Searching -------------------------------------------------------------------------------------------------------


def positions(sorted_sequence: Any, values: Any, right: bool, out_int32: bool) -> Any:
    side = "right" if right else "left"
    edges = sorted_sequence.detach().numpy()
    wanted = values.detach().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if edges.ndim == 1:
        found = np.searchsorted(edges, wanted, side)
    else:
        if edges.shape[:-1] != wanted.shape[:-1]:
            raise RuntimeError("searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                               f"boundaries tensor and input value tensor must match, but we got boundaries tensor "
                               f"{list(edges.shape)} and input value tensor {list(wanted.shape)}")
        found = np.empty(wanted.shape, np.int64)
        for row in np.ndindex(*edges.shape[:-1]):
            found[row] = np.searchsorted(edges[row], wanted[row], side)
    return from_ndarray(np.asarray(found, np.int32 if out_int32 else np.int64), copy=False)


@composite(
    "searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None)", method=False,
    differentiable=False, complex=False, numpy=np.searchsorted,
    samples=lambda make: [((make(4).sort().values, make(2, 3)), {})],
)
def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Where each value would have to be inserted to keep the order, along the last dimension of `sorted_sequence`."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("searchsorted(): side and right can't be set to opposites, got side of left while right was "
                           "True")
    if sorter is not None:
        sorted_sequence = sorted_sequence.detach().gather(-1, sorter)
    return positions(sorted_sequence, input, right or side == "right", out_int32)


@composite(
    "bucketize(input, boundaries, *, out_int32=False, right=False)", method=False, differentiable=False,
    complex=False, samples=lambda make: [((make(2, 3), make(4).sort().values), {})],
)
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """The number of the interval between `boundaries` (of one dimension) in which each element lies."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize: boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return positions(boundaries, input, right, out_int32)


@composite(
    "unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None)", differentiable=False,
    samples=lambda make: [((make(4).detach(),), {}), ((make(2, 3).detach(),), {"dim": 0})],
)
def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None,
) -> Any:
    """The different elements (or slices along `dim`), in order; also where each is found, and how often.

    Returns
    -------
    Tensor, or tuple of (output, inverse_indices, counts), as asked for.
    """
    axis = None if dim is None else normal_dim(dim, input.ndim)
    output, inverse, counts = np.unique(
        input.detach().numpy(), return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    results = [from_ndarray(np.ascontiguousarray(output), copy=True)]
    if return_inverse:
        results.append(as_index(inverse.reshape(-1) if axis is not None else inverse.reshape(tuple(input.shape))))
    if return_counts:
        results.append(as_index(counts))
    return results[0] if len(results) == 1 else tuple(results)


@composite(
    "unique_consecutive(input, return_inverse=False, return_counts=False, dim=None)", differentiable=False,
    samples=lambda make: [((make(4).detach(),), {})],
)
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along `dim`) without those that equal the one before; as `unique` otherwise."""
    array = input.detach().numpy()
    axis = 0 if dim is None else normal_dim(dim, input.ndim)
    lines = array.reshape(-1, 1) if dim is None else np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    new = np.ones(len(lines), bool)
    new[1:] = (lines[1:] != lines[:-1]).any(1)
    first = np.flatnonzero(new)
    output = array.reshape(-1)[first] if dim is None else array.take(first, axis)
    results = [from_ndarray(np.ascontiguousarray(output), copy=True)]
    if return_inverse:
        inverse = np.cumsum(new) - 1
        results.append(as_index(inverse.reshape(array.shape) if dim is None else inverse))
    if return_counts:
        results.append(as_index(np.diff(np.append(first, len(lines)))))
    return results[0] if len(results) == 1 else tuple(results)
