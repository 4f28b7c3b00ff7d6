"""Floor 3: quantiles: two elements of a sorted row, and a weighted mean of them."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor import Tensor, from_ndarray
from ._declare import composite
from ._helpers import normal_dim, numpy_words
from .gathering import gather
from .selection import where

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def checked_q(name: str, input: Any, q: Any, interpolation: str) -> Any:
    """`q` as a tensor, after PyTorch's checks."""
    if not input.dtype.is_floating_point or input.dtype.name == "float16":
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if not isinstance(q, Tensor):
        if not isinstance(q, np.ndarray) and not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = from_ndarray(np.asarray(q, input.dtype.numpy), False)
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype != input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    values = q.detach().numpy()
    if not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
                           f"{interpolation}")
    return q


def quantiles(name: str, input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, skip_nan: bool) -> Any:
    q = checked_q(name, input, q, interpolation)
    ndim = input.ndim
    axis = None if dim is None else normal_dim(dim, ndim)
    rows = input.reshape(-1) if dim is None or ndim == 0 else input.movedim(axis, -1)
    array = rows.detach().numpy()
    order = np.argsort(array, -1, kind="stable")                 # NaN at the end
    numbers = np.add.reduce(array == array, -1, np.int64, None, True)
    last = np.maximum(numbers - 1, 0) if skip_nan else np.full_like(numbers, array.shape[-1] - 1)
    last = last.astype(array.dtype)
    rank = q.reshape(-1) * from_ndarray(last, False)             # (..., number of quantiles)
    exact = rank.detach().numpy()
    if not skip_nan:                                             # a row with NaN has that as each of its quantiles
        exact = np.where(numbers < array.shape[-1], last, exact)
    if interpolation == "nearest":
        exact = np.rint(exact)
    below = np.ceil(exact) if interpolation == "higher" else np.floor(exact)
    low = gather(rows, -1, element(order, below))
    if interpolation in ("linear", "midpoint"):
        high = gather(rows, -1, element(order, np.ceil(exact)))
        result = between(low, high, 0.5 if interpolation == "midpoint" else rank - from_ndarray(below, False), exact)
    else:
        result = low
    return arranged(result, q, axis, ndim, keepdim)


def element(order: Any, rank: Any) -> Any:
    return from_ndarray(np.take_along_axis(order, rank.astype(np.int64), -1), False)


def between(low: Any, high: Any, weight: Any, rank: Any) -> Any:
    """``low + weight * (high - low)``; where the rank is whole, the element itself, be it infinite or NaN."""
    whole = np.floor(rank) == rank
    return where(from_ndarray(whole, False), low, low + weight * (high - low))


def arranged(result: Any, q: Any, axis: int | None, ndim: int, keepdim: bool) -> Any:
    """The quantiles, which lie along the last dimension, moved to the front; the reduced dimension put back."""
    result = result.movedim(-1, 0)
    if keepdim and ndim:
        result = result.unsqueeze(axis + 1) if axis is not None else result.reshape((-1,) + (1,) * ndim)
    return result if q.ndim else result.squeeze(0)


def quantile_samples(make: Any) -> list[Any]:
    several = from_ndarray(np.array([0.1, 0.3, 0.8], make().dtype.numpy), False)
    return [
        ((make(5), 0.3), {}), ((make(2, 4), several), {}), ((make(2, 4), several, 1, True), {}),
        ((make(3, 2), 0.5, 0), {}), ((make(), 0.5), {}), ((make(5), 0.3), {"interpolation": "nearest"}),
        ((make(5), 0.3), {"interpolation": "midpoint"}),
    ]


@composite(
    "nanquantile(input, q, dim=None, keepdim=False, *, interpolation='linear')", samples=quantile_samples,
    complex=False,
)
@numpy_words
def nanquantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:
    """Quantiles of what is not NaN; otherwise as :func:`fastgrad.quantile`."""
    return quantiles("nanquantile", input, q, dim, keepdim, interpolation, True)


@composite(
    "quantile(input, q, dim=None, keepdim=False, *, interpolation='linear')", samples=quantile_samples, complex=False,
)
@numpy_words
def quantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:
    """Quantiles along a dimension, or of all elements.

    Parameters
    ----------
    input : Tensor
        Of dtype float32 or float64.
    q : float or Tensor
        In [0, 1]; a tensor of the input's dtype, of at most one dimension.
    dim : int, optional
    keepdim : bool
        Whether the reduced dimension stays, with size 1.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}
        What lies between two elements.

    Returns
    -------
    Tensor
        With a first dimension for several `q`.

    Raises
    ------
    RuntimeError
        For other dtypes, an empty input, and `q` outside [0, 1].

    Notes
    -----
    The gradient goes to the one or two elements between which the quantile lies, by their weights, and to `q`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([1., 2., 4.]).quantile(0.75)
    tensor(3.)
    """
    return quantiles("quantile", input, q, dim, keepdim, interpolation, False)
