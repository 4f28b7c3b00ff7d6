"""Floor 3: diagonals, triangles and sliding windows: parts of a tensor that no slice names."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._declare import KEEP, LINEAR, composite, operator
from ._helpers import normal_dim

Array = np.ndarray[Any, Any]

# --- Diagonals -------------------------------------------------------------------------------------------------------


def diagonal_view(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    if array.ndim < 2:
        raise IndexError(f"diagonal: Dimension out of range: a diagonal needs 2 dimensions, but got {array.ndim}")
    first, second = normal_dim(dim1, array.ndim), normal_dim(dim2, array.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return array.diagonal(offset, first, second)


def embed_diagonal_forward(input: Array, shape: Any, offset: int, dim1: int, dim2: int) -> Array:
    out = np.zeros(shape, input.dtype)
    view = diagonal_view(out, offset, dim1, dim2)
    view.flags.writeable = True          # ours: nobody else has seen `out`
    view[...] = input
    return out


def embedded_shape(shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> tuple[tuple[int, ...], int, int]:
    """The shape of `diag_embed`, and its two dimensions counted from the front."""
    if not shape:
        raise IndexError("diag_embed: Dimension out of range: the input needs at least 1 dimension, but got 0")
    ndim = len(shape) + 1
    first, second = normal_dim(dim1, ndim), normal_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rest = list(shape[:-1])
    side = shape[-1] + abs(offset)
    for d in sorted((first, second)):
        rest.insert(d, side)
    return tuple(rest), first, second


def diag_embed_forward(input: Array, offset: int, dim1: int, dim2: int) -> Array:
    shape, first, second = embedded_shape(input.shape, offset, dim1, dim2)
    return embed_diagonal_forward(input, shape, offset, first, second)


diagonal = operator(
    "diagonal(input, offset=0, dim1=0, dim2=1)",
    forward=diagonal_view,
    vjp=dict(input=lambda g, input_shape, offset, dim1, dim2: embed_diagonal(g, input_shape, offset, dim1, dim2)),
    dtypes=KEEP, view=True, jvp=LINEAR, numpy=np.diagonal,
    samples=lambda make: [
        ((make(3, 4),), {}), ((make(3, 4), -1), {}), ((make(2, 3, 4), 1, -1, 0), {}), ((make(2, 2), 5), {}),
    ],
    doc="""The diagonal of the matrices that two dimensions make.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.
    offset : int
        Which diagonal: positive ones lie above the main one.
    dim1, dim2 : int
        The dimensions of the matrices.

    Returns
    -------
    Tensor
        A view; its last dimension runs along the diagonal.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.arange(9.).reshape(3, 3).diagonal(1)
    tensor([1., 5.])
    """,
)

embed_diagonal = operator(
    "_embed_diagonal(input, shape, offset, dim1, dim2)",      # zeros, but for input on the diagonal
    forward=embed_diagonal_forward,
    vjp=dict(input=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2)),
    dtypes=KEEP, jvp=LINEAR, node="DiagonalBackward", public=False, method=False,
    samples=lambda make: [((make(3), (3, 4), 0, 0, 1), {}), ((make(), (3, 3), 0, 0, 1), {})],
)

diag_embed = operator(
    "diag_embed(input, offset=0, dim1=-2, dim2=-1)",
    forward=diag_embed_forward,
    vjp=dict(input=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2)),
    dtypes=KEEP, jvp=LINEAR,
    samples=lambda make: [((make(3),), {}), ((make(2, 3), 1), {}), ((make(2, 3), -1, 0, 2), {})],
    doc="""Matrices with the last dimension of `input` on their diagonal and zeros elsewhere.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.diag_embed(fg.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """,
)


@composite(
    "diag(input, diagonal=0)", numpy=np.diag,
    samples=lambda make: [((make(3),), {}), ((make(3), -1), {}), ((make(3, 4),), {}), ((make(3, 4), 2), {})],
)
def diag(input: Any, diagonal: int = 0) -> Any:
    """A square matrix with the vector `input` on a diagonal, or a copy of the diagonal of the matrix `input`."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim == 2:
        return input.diagonal(diagonal).clone()
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")


@composite(
    "diagflat(input, offset=0)", numpy=np.diagflat,
    samples=lambda make: [((make(2, 2),), {}), ((make(2), 1), {})],
)
def diagflat(input: Any, offset: int = 0) -> Any:
    """A square matrix with all elements of `input` on a diagonal."""
    return diag_embed(input.reshape(-1), offset)


@composite(
    "diagonal_scatter(input, src, offset=0, dim1=0, dim2=1)",
    samples=lambda make: [((make(3, 3), make(3)), {}), ((make(2, 3), make(2), 1), {})],
)
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A copy of `input` with `src` on a diagonal."""
    out = input.clone()
    place = out.diagonal(offset, dim1, dim2)
    if place.shape != src.shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
                           f"slice size = {list(place.shape)}")
    place.copy_(src)
    return out


def trace_forward(input: Array) -> Array:
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return np.asarray(input.trace(dtype=np.int64 if input.dtype.kind in "biu" else input.dtype))


def trace_vjp_input(g: Any, input_shape: Any) -> Any:
    return embed_diagonal(g.expand(min(input_shape)), input_shape, 0, 0, 1)


operator(
    "trace(input)",
    forward=trace_forward,
    vjp=dict(input=trace_vjp_input),
    dtypes=KEEP, jvp=LINEAR,
    samples=lambda make: [((make(3, 3),), {}), ((make(2, 4),), {}), ((make(0, 0),), {})],
    doc="The sum of a matrix's diagonal, 0-dim.",
)

# --- Triangles -------------------------------------------------------------------------------------------------------


def triangle(function: Any, name: str) -> Any:
    def forward(input: Array, diagonal: int) -> Array:
        if input.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        result: Array = function(input, diagonal)
        return result

    return forward


tril = operator(
    "tril(input, diagonal=0)",
    forward=triangle(np.tril, "tril"),
    vjp=dict(input=lambda g, diagonal: tril(g, diagonal)),
    dtypes=KEEP, jvp=LINEAR, inplace=True, numpy=np.tril,
    samples=lambda make: [((make(3, 4),), {}), ((make(2, 3, 3), -1), {}), ((make(0, 3), 1), {})],
    doc="""The matrices in the last two dimensions with everything above a diagonal set to 0.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.
    diagonal : int
        Which diagonal: positive ones lie above the main one.

    Returns
    -------
    Tensor
        A copy.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.ones(2, 2).tril()
    tensor([[1., 0.],
            [1., 1.]])
    """,
)

triu = operator(
    "triu(input, diagonal=0)",
    forward=triangle(np.triu, "triu"),
    vjp=dict(input=lambda g, diagonal: triu(g, diagonal)),
    dtypes=KEEP, jvp=LINEAR, inplace=True, numpy=np.triu,
    samples=lambda make: [((make(3, 4),), {}), ((make(2, 3, 3), 1), {}), ((make(0, 3), -1), {})],
    doc="""The matrices in the last two dimensions with everything below a diagonal set to 0.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.
    diagonal : int
        Which diagonal: positive ones lie above the main one.

    Returns
    -------
    Tensor
        A copy.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.ones(2, 2).triu(1)
    tensor([[0., 1.],
            [0., 0.]])
    """,
)

# --- Windows ---------------------------------------------------------------------------------------------------------


def unfold_forward(input: Array, dimension: int, size: int, step: int) -> Array:
    at = normal_dim(dimension, input.ndim)
    length = input.shape[at] if input.ndim else 1
    if size < 0:
        raise RuntimeError(f"unfold: size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {at} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"unfold: step is {step} but must be > 0")
    if input.ndim == 0:
        return input.reshape(1)[:size]
    if size == 0:
        shape = list(input.shape)
        shape[at] = length // step + 1
        return np.lib.stride_tricks.as_strided(input, (*shape, 0), (*input.strides, input.itemsize))
    windows = np.lib.stride_tricks.sliding_window_view(input, size, at)
    return windows[(slice(None),) * at + (slice(None, None, step),)]


def fold_windows_forward(input: Array, shape: Any, dimension: int, size: int, step: int) -> Array:
    out: Array = np.zeros(shape, input.dtype)
    if not shape:
        return np.asarray(out + input.sum())
    at = normal_dim(dimension, len(shape))
    before = (slice(None),) * at
    span = step * input.shape[at]
    for k in range(size):                # one strided addition for each place within a window
        out[(*before, slice(k, k + span, step))][(*before, slice(input.shape[at]))] += input[..., k]
    return out


unfold = operator(
    "unfold(input, dimension, size, step)",
    forward=unfold_forward,
    vjp=dict(input=lambda g, input_shape, dimension, size, step: fold_windows(g, input_shape, dimension, size, step)),
    dtypes=KEEP, view=True, jvp=LINEAR, public=False,
    samples=lambda make: [((make(5), 0, 3, 1), {}), ((make(2, 7), 1, 3, 2), {}), ((make(4, 2), 0, 2, 3), {})],
    doc="""All slices of a length in a dimension, `step` apart; a view with a new last dimension of that length.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.arange(4.).unfold(0, 2, 1)
    tensor([[0., 1.],
            [1., 2.],
            [2., 3.]])
    """,
)

fold_windows = operator(
    "_fold_windows(input, shape, dimension, size, step)",
    forward=fold_windows_forward,
    vjp=dict(input=lambda g, dimension, size, step: unfold(g, dimension, size, step)),
    dtypes=KEEP, jvp=LINEAR, node="UnfoldBackward", public=False, method=False,
    samples=lambda make: [((make(3, 3), (5,), 0, 3, 1), {}), ((make(3, 3), (7,), 0, 3, 2), {})],
)
