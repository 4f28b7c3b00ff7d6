"""Floor 3: copies of a tensor with its elements in another order, or several times over."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor import Tensor, from_ndarray
from ._declare import KEEP, LINEAR, composite, operator
from ._helpers import normal_dim

Array = np.ndarray[Any, Any]

# --- Reversing and rotating ------------------------------------------------------------------------------------------


def as_dims(dims: Any) -> tuple[int, ...]:
    return (dims,) if isinstance(dims, int) else tuple(dims)


def flip_forward(input: Array, dims: Any) -> Array:
    axes = tuple(normal_dim(d, input.ndim) for d in dims)
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"flip: dim {max(set(axes), key=axes.count)} appears multiple times in the list of dims")
    return np.flip(input, axes).copy() if input.ndim else input.copy()


flip = operator(
    "flip(input, *dims)",
    forward=flip_forward,
    vjp=dict(input=lambda g, dims: flip(g, dims)),
    dtypes=KEEP, jvp=LINEAR,
    samples=lambda make: [
        ((make(2, 3), (0,)), {}), ((make(2, 3), (0, -1)), {}), ((make(2, 3), ()), {}), ((make(0), (0,)), {}),
    ],
    doc="""The order of the elements reversed along the given dimensions.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    *dims : int
        The dimensions, or one tuple of them.

    Returns
    -------
    Tensor
        A copy.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.arange(3.).flip(0)
    tensor([2., 1., 0.])
    """,
)


@composite("fliplr(input)", numpy=np.fliplr, samples=lambda make: [((make(2, 3),), {})])
def fliplr(input: Any) -> Any:
    """A copy with dimension 1 reversed."""
    if input.ndim < 2:
        raise RuntimeError(f"Input must be >= 2-d: fliplr got shape {tuple(input.shape)}")
    return flip(input, 1)


@composite("flipud(input)", numpy=np.flipud, samples=lambda make: [((make(2, 3),), {})])
def flipud(input: Any) -> Any:
    """A copy with dimension 0 reversed."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d: flipud got a 0-dim tensor")
    return flip(input, 0)


def roll_forward(input: Array, shifts: Any, dims: Any) -> Array:
    steps = as_dims(shifts)
    axes = () if dims is None else as_dims(dims)
    if not axes and len(steps) == 1:
        return np.roll(input.reshape(-1), steps[0]).reshape(input.shape)
    if len(axes) != len(steps):
        raise RuntimeError(f"roll: shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}")
    if not steps:
        raise RuntimeError("roll: `shifts` required")
    if input.ndim == 0:
        raise IndexError(f"roll: Dimension specified as {axes[0]} but tensor has no dimensions")
    return np.roll(input, steps, tuple(normal_dim(d, input.ndim) for d in axes))


roll = operator(
    "roll(input, shifts, dims=None)",
    forward=roll_forward,
    vjp=dict(input=lambda g, shifts, dims: roll(g, tuple(-s for s in as_dims(shifts)), dims)),
    dtypes=KEEP, jvp=LINEAR, numpy=np.roll,
    samples=lambda make: [
        ((make(2, 3), 1), {}), ((make(2, 3), -1, 1), {}), ((make(2, 3), (1, 2), (0, -1)), {}), ((make(0), 1, 0), {}),
    ],
    doc="""The elements moved along dimensions; what falls off at one end re-enters at the other.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    shifts : int or tuple of int
        How far, for each dimension.
    dims : int or tuple of int, optional
        The dimensions. If not given, the elements move in C order.

    Returns
    -------
    Tensor
        A copy.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.arange(4.).roll(1)
    tensor([3., 0., 1., 2.])
    """,
)


def rot90_forward(input: Array, k: int, dims: Any) -> Array:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    first, second = (normal_dim(d, input.ndim) for d in dims)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return np.rot90(input, k, (first, second)).copy()


rot90 = operator(
    "rot90(input, k=1, dims=(0, 1))",
    forward=rot90_forward,
    vjp=dict(input=lambda g, k, dims: rot90(g, -k, dims)),
    dtypes=KEEP, jvp=LINEAR, numpy=np.rot90,
    samples=lambda make: [((make(2, 3),), {}), ((make(2, 3, 2), 2, (2, 0)), {}), ((make(2, 3), -1, (-1, 0)), {})],
    doc="A copy rotated by `k` quarter turns from the first of the two dimensions towards the second.",
)

# --- Repeating -------------------------------------------------------------------------------------------------------


def repeat_forward(input: Array, repeats: Any) -> Array:
    if len(repeats) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of "
                           f"tensor: repeat got {tuple(repeats)} for shape {input.shape}")
    if any(n < 0 for n in repeats):
        raise RuntimeError(f"repeat: Trying to create tensor with negative dimension: {tuple(repeats)}")
    return np.tile(input, tuple(repeats))


def repeat_vjp_input(g: Any, input_shape: Any, repeats: Any) -> Any:
    """Sum over the copies: each dimension comes apart into (copy, position)."""
    extra = len(repeats) - len(input_shape)
    shape = [*repeats[:extra]]
    copies = [*range(extra)]
    for n, own in zip(repeats[extra:], input_shape):
        copies.append(len(shape))
        shape += [n, own]
    return g.reshape(tuple(shape)).sum(tuple(copies)) if copies else g


operator(
    "repeat(input, *repeats)",
    forward=repeat_forward,
    vjp=dict(input=repeat_vjp_input),
    dtypes=KEEP, jvp=LINEAR, public=False,
    samples=lambda make: [
        ((make(3), (2,)), {}), ((make(2, 1), (3, 1, 2)), {}), ((make(), ()), {}), ((make(), (2,)), {}),
        ((make(2), (0,)), {}),
    ],
    doc="""Copies of the tensor side by side, so many in each dimension; new dimensions come first.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([1., 2.]).repeat(2, 2)
    tensor([[1., 2., 1., 2.],
            [1., 2., 1., 2.]])
    """,
)


@composite("tile(input, dims)", numpy=np.tile, samples=lambda make: [((make(2, 3), (2,)), {}), ((make(3), (2, 2)), {})])
def tile(input: Any, *dims: Any) -> Any:
    """As :meth:`Tensor.repeat`, where missing counts in front are 1."""
    counts = tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    return input.repeat((1,) * (input.ndim - len(counts)) + tuple(counts))


@composite(
    "repeat_interleave(input, repeats, dim=None, *, output_size=None)", numpy=np.repeat,
    samples=lambda make: [
        ((make(2, 3), 2), {}), ((make(2, 3), 2, 1), {}), ((make(), 3), {}),
        ((make(2, 3), from_ndarray(np.array([0, 2, 1]), copy=True), -1), {}),
    ],
)
def repeat_interleave(
    input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None,
    axis: int | None = None,
) -> Any:
    """Each element (or slice of a dimension) several times in a row.

    Parameters
    ----------
    repeats : int or Tensor
        How many times: for all, or one number for each position of `dim`.
    dim : int, optional
        Also as ``axis``. If not given, the elements are taken in C order.
    output_size : int, optional
        The sum of `repeats`, where it is known; checked.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([1., 2.]).repeat_interleave(2)
    tensor([1., 1., 2., 2.])
    """
    if repeats is None:              # repeat_interleave(repeats): the index that the form with an input would use
        counts = counted(input)
        return from_ndarray(np.repeat(np.arange(counts.size), counts), copy=False)
    dim = dim if axis is None else axis
    if dim is None:
        input, dim = input.reshape(-1), 0
    elif input.ndim == 0:
        normal_dim(dim, 0)
        input = input.reshape(1)
    at = normal_dim(dim, input.ndim)
    n = input.shape[at]
    if isinstance(repeats, (Tensor, np.ndarray, list, tuple)):
        counts = counted(repeats)
        if counts.size == 1:
            repeats = int(counts[0])
        elif counts.size != n:
            raise RuntimeError(f"repeats must have the same size as input along dim, but got repeats.size(0) = "
                               f"{counts.size} and input.size({at}) = {n}")
        else:
            check_output_size(output_size, int(counts.sum()))
            return input.index_select(at, from_ndarray(np.repeat(np.arange(n), counts), copy=False))
    if repeats < 0:
        raise RuntimeError(f"repeat_interleave: Repeats must be non-negative, got {repeats}")
    check_output_size(output_size, n * repeats)
    shape = input.shape
    spread = input.unsqueeze(at + 1).expand((*shape[:at + 1], repeats, *shape[at + 1:]))
    return spread.clone().reshape((*shape[:at], n * repeats, *shape[at + 1:]))


def counted(repeats: Any) -> Array:
    counts = repeats.numpy() if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.dtype.kind not in "iu" or counts.dtype.itemsize < 4:
        raise RuntimeError(f"repeats has to be Long or Int tensor, not {counts.dtype}")
    if counts.ndim > 1:
        raise RuntimeError(f"repeat_interleave: repeats must be 0-dim or 1-dim tensor, not one of shape {counts.shape}")
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    return counts.reshape(-1)


def check_output_size(given: int | None, actual: int) -> None:
    if given is not None and given != actual:
        raise RuntimeError(f"repeat_interleave: allocated size does not match required size: output_size={given}, but "
                           f"the sum of repeats is {actual}")
