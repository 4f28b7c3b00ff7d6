"""Floor 3: shapes and views: operators that move or repeat elements and save nothing.

Views share the input's memory.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .._data import scalar_array
from .._dtypes import as_dtype
from .._size import Size
from .._tensor import Tensor, from_ndarray
from ._declare import KEEP, LINEAR, composite, operator
from ._helpers import normal_dim, reduced_axes

# --- Casting and copying ---------------------------------------------------------------------------------------------

to_copy = operator(
    "_to_copy(input, dtype)",
    forward=lambda input, dtype: cast(input, dtype),
    vjp=dict(input=lambda g: g),          # the engine casts the cotangent back
    dtypes=KEEP, jvp=LINEAR, node="ToCopy", public=False, method=False,
    samples=lambda make: [((make(3), as_dtype("float64")), {})],
)


def cast(array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """`astype` that drops an imaginary part without NumPy's warning."""
    target = as_dtype(dtype)
    if array.dtype.kind == "c" and not target.is_complex:
        array = array.real
    return array.astype(target.numpy)


def written_value(value: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """What is to be written into elements of `dtype`: an array is cast, a number must fit."""
    if isinstance(value, (int, float, complex)):
        return scalar_array(value, as_dtype(dtype))
    return cast(np.asarray(value), dtype)


copy = operator(
    "_copy(input, other)",                # used in place only: copy_, fill_
    forward=lambda input, other: np.broadcast_to(written_value(other, input.dtype), copied_shape(input, other)),
    vjp=dict(input=lambda g: g.new_zeros(g.shape), other=lambda g: g),      # what was there before no longer matters
    dtypes=KEEP, jvp=LINEAR, node="Copy", public=False, method=False,
    samples=lambda make: [((make(2, 3), make(3)), {})],
)


def copied_shape(input: Any, other: Any) -> tuple[int, ...]:
    """input's shape; the in-place form refuses when other is larger (`inplace_shape`)."""
    return np.broadcast_shapes(input.shape, np.shape(other))


operator(
    "clone(input)",
    forward=lambda input: input.copy(),
    vjp=dict(input=lambda g: g),
    dtypes=KEEP, jvp=LINEAR, numpy=np.copy,
    samples=lambda make: [((make(2, 3),), {}), ((make(),), {}), ((make(0, 2),), {})],
    doc="""A copy in memory of its own that stays in the graph.

    Parameters
    ----------
    input : Tensor
        Of any dtype.

    Returns
    -------
    Tensor
        Contiguous, of the same shape and dtype; gradients pass through it unchanged.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.tensor([1., 2.])
    >>> y = x.clone()
    >>> y[0] = 5
    >>> x
    tensor([1., 2.])
    """,
)

# --- Shape -----------------------------------------------------------------------------------------------------------


def reshape_forward(input: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    for i, n in enumerate(shape):
        if n < -1:                 # NumPy takes any negative size for -1
            raise RuntimeError(f"reshape: invalid shape dimension {n} at index {i} of shape {list(shape)}")
    try:
        return input.reshape(shape)
    except ValueError:
        if list(shape).count(-1) > 1:
            raise RuntimeError(f"reshape: only one dimension can be inferred, but the shape is {list(shape)}") from None
        raise RuntimeError(f"reshape: shape '{list(shape)}' is invalid for input of size {input.size}") from None


operator(
    "reshape(input, *shape)",
    forward=reshape_forward,
    vjp=dict(input=lambda g, input_shape: g.reshape(input_shape)),
    dtypes=KEEP, view=True, jvp=LINEAR, node="Reshape", numpy=np.reshape,
    samples=lambda make: [((make(2, 3), (3, 2)), {}), ((make(2, 3), (-1,)), {}), ((make(0, 3), (3, 0)), {})],
    doc="""The same elements, in C order, in another shape.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.
    *shape : int
        Sizes, or one tuple of them; one may be -1 and is then computed.

    Returns
    -------
    Tensor
        A view where the strides allow it, otherwise a copy.

    Raises
    ------
    RuntimeError
        If the number of elements does not fit.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.arange(6.).reshape(2, -1)
    tensor([[0., 1., 2.],
            [3., 4., 5.]])
    """,
)


def view_forward(input: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    result = reshape_forward(input, shape)
    if result.size and not np.may_share_memory(result, input):
        raise RuntimeError(
            f"view: view size is not compatible with input tensor's size and stride: shape {input.shape} with strides "
            f"{input.strides} (bytes) cannot be seen as {shape} without a copy. Use .reshape(...) instead."
        )
    return result


operator(
    "view(input, *shape)",
    forward=view_forward,
    vjp=dict(input=lambda g, input_shape: g.reshape(input_shape)),
    dtypes=KEEP, view=True, jvp=LINEAR, public=False,
    samples=lambda make: [((make(2, 3), (3, 2)), {}), ((make(4), (2, -1)), {})],
    doc="""As :func:`fastgrad.reshape`, but always a view: RuntimeError where the strides do not allow it.""",
)

operator(
    "expand(input, *size)",
    forward=lambda input, size: expand_forward(input, size),
    vjp=dict(input=lambda g: g),          # the engine sums over the repeated axes
    dtypes=KEEP, view=True, jvp=LINEAR, public=False,
    samples=lambda make: [((make(1, 3), (2, 3)), {}), ((make(3), (2, 3)), {}), ((make(2, 1), (4, -1, 3)), {})],
    doc="""Dimensions of size 1 seen as larger ones, and new ones in front; a view in which elements repeat.

    Parameters
    ----------
    *size : int
        Sizes, or one tuple of them; -1 keeps a size as it is.

    Returns
    -------
    Tensor
        A view with stride 0 in the expanded dimensions; it cannot be written to in place.

    Raises
    ------
    RuntimeError
        If a size differs and the existing one is not 1.
    """,
)


def expand_forward(input: np.ndarray[Any, Any], size: tuple[int, ...]) -> np.ndarray[Any, Any]:
    extra = len(size) - input.ndim
    if extra < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({input.ndim})"
        )
    shape: list[Any] = []
    for i, n in enumerate(size):
        own = input.shape[i - extra] if i >= extra else None
        if n == -1 and own is None:
            raise RuntimeError(f"expand: the expanded size of the tensor (-1) isn't allowed in a leading, non-existing "
                               f"dimension {i}")
        if n != -1 and own is not None and own not in (n, 1):
            raise RuntimeError(f"expand: The expanded size of the tensor ({n}) must match the existing size ({own}) at "
                               f"non-singleton dimension {i}. Target sizes: {tuple(size)}. Tensor sizes: {input.shape}")
        shape.append(own if n == -1 else n)
    return np.broadcast_to(input, shape)


operator(
    "sum_to_size(input, *size)",
    forward=lambda input, size: sum_to(input, size),
    vjp=dict(input=lambda g, input_shape: g.expand(input_shape)),
    dtypes=KEEP, jvp=LINEAR, public=False,
    samples=lambda make: [((make(2, 3), (1, 3)), {}), ((make(4, 2, 3), (2, 1)), {})],
    doc="""The sum over what broadcasting to this tensor's shape would have repeated; the opposite of `expand`.""",
)


def sum_to(array: np.ndarray[Any, Any], size: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Undo broadcasting: sum over the axes in which ``size`` is 1 or absent."""
    extra = array.ndim - len(size)
    if extra < 0 or any(n not in (1, m) for n, m in zip(size, array.shape[extra:])):
        raise RuntimeError(f"sum_to_size: size {tuple(size)} is not expandable to size {array.shape}")
    axes = (*range(extra), *(i + extra for i, n in enumerate(size) if n == 1 and array.shape[i + extra] != 1))
    return np.add.reduce(array, axis=axes, keepdims=True).reshape(size) if axes else array


operator(
    "transpose(input, dim0, dim1)",
    forward=lambda input, dim0, dim1: input.swapaxes(normal_dim(dim0, input.ndim), normal_dim(dim1, input.ndim))
    if input.ndim else input[...],
    vjp=dict(input=lambda g, dim0, dim1: g.transpose(dim0, dim1)),
    dtypes=KEEP, view=True, jvp=LINEAR, aliases=("swapaxes", "swapdims"), numpy=np.swapaxes,
    samples=lambda make: [((make(2, 3), 0, 1), {}), ((make(2, 3, 4), -1, 0), {})],
    doc="""Two dimensions exchanged.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    dim0, dim1 : int
        The dimensions; negative ones count from the end.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If there is no such dimension.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([[1., 2., 3.]]).transpose(0, 1).shape
    fastgrad.Size([3, 1])
    """,
)


def permutation(dims: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    if len(dims) != ndim:
        raise RuntimeError("permute: number of dimensions in the tensor input does not match the length of the desired "
                           f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}")
    order = tuple(normal_dim(d, ndim) for d in dims)
    if len(set(order)) != ndim:
        raise RuntimeError(f"permute: duplicate dims are not allowed: {dims}")
    return order


def inverse_permutation(dims: tuple[int, ...]) -> tuple[int, ...]:
    order = permutation(dims, len(dims))
    return tuple(order.index(i) for i in range(len(order)))


operator(
    "permute(input, *dims)",
    forward=lambda input, dims: input.transpose(permutation(dims, input.ndim)),
    vjp=dict(input=lambda g, dims: g.permute(inverse_permutation(dims))),
    dtypes=KEEP, view=True, jvp=LINEAR,
    samples=lambda make: [((make(2, 3, 4), (2, 0, 1)), {}), ((make(2, 3), (-1, 0)), {})],
    doc="""The dimensions in another order.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    *dims : int
        All dimensions in their new order, or one tuple of them.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    RuntimeError
        If a dimension is missing or named twice.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(2, 3, 4).permute(2, 0, 1).shape
    fastgrad.Size([4, 2, 3])
    """,
)

operator(
    "squeeze(input, dim=None)",
    forward=lambda input, dim: squeeze_forward(input, dim),
    vjp=dict(input=lambda g, input_shape: g.reshape(input_shape)),
    dtypes=KEEP, view=True, jvp=LINEAR,
    samples=lambda make: [((make(1, 3, 1),), {}), ((make(1, 3, 1), 0), {}), ((make(2, 1), (0, 1)), {})],
    doc="""Dimensions of size 1 left out.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    dim : int or tuple of int, optional
        Which ones; those of another size stay. All, if not given.

    Returns
    -------
    Tensor
        A view.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(1, 3, 1).squeeze().shape, fg.zeros(1, 3, 1).squeeze(0).shape
    (fastgrad.Size([3]), fastgrad.Size([3, 1]))
    """,
)


def squeeze_forward(input: np.ndarray[Any, Any], dim: Any) -> np.ndarray[Any, Any]:
    axes = reduced_axes(dim, input.ndim)
    return input.reshape([n for i, n in enumerate(input.shape) if not (i in axes and n == 1)])


operator(
    "unsqueeze(input, dim)",
    forward=lambda input, dim: np.expand_dims(input, normal_dim(dim, input.ndim + 1)),
    vjp=dict(input=lambda g, dim: g.squeeze(dim)),
    dtypes=KEEP, view=True, jvp=LINEAR,
    samples=lambda make: [((make(3), 0), {}), ((make(2, 3), -1), {})],
    doc="""A new dimension of size 1.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    dim : int
        Where the new dimension stands in the result.

    Returns
    -------
    Tensor
        A view.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(3).unsqueeze(0).shape, fg.zeros(3).unsqueeze(-1).shape
    (fastgrad.Size([1, 3]), fastgrad.Size([3, 1]))
    """,
)


# --- Made of the above -----------------------------------------------------------------------------------------------


def several(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments themselves, or the one list or tuple that was given in their place."""
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


def each(function: Any, tensors: tuple[Any, ...]) -> Any:
    """One result for one tensor, a tuple for several: the habit of the atleast_* family."""
    results = tuple(function(t) for t in several(tensors))
    one = len(tensors) == 1 and not isinstance(tensors[0], (tuple, list))
    return results[0] if one else results


def as_tensor(x: Any) -> Any:
    return x if isinstance(x, Tensor) else from_ndarray(np.asarray(x), copy=True)


@composite(
    "atleast_1d(*tensors)", method=False, numpy=np.atleast_1d,
    samples=lambda make: [((make(),), {}), ((make(2), make()), {})],
)
def atleast_1d(*tensors: Any) -> Any:
    """Each tensor with at least one dimension: a 0-dim one becomes shape (1,). Views."""
    return each(lambda t: t if t.ndim else t.reshape(1), tensors)


@composite(
    "atleast_2d(*tensors)", method=False, numpy=np.atleast_2d,
    samples=lambda make: [((make(),), {}), ((make(2), make(2, 3)), {})],
)
def atleast_2d(*tensors: Any) -> Any:
    """Each tensor with at least two dimensions; new ones come first. Views."""
    return each(lambda t: t if t.ndim > 1 else t.reshape(1, t.numel()), tensors)


@composite(
    "atleast_3d(*tensors)", method=False, numpy=np.atleast_3d,
    samples=lambda make: [((make(),), {}), ((make(2), make(2, 3)), {})],
)
def atleast_3d(*tensors: Any) -> Any:
    """Each tensor with at least three dimensions: (n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1). Views."""
    return each(lambda t: t if t.ndim > 2 else t.unsqueeze(-1) if t.ndim == 2 else t.reshape(1, t.numel(), 1), tensors)


@composite(
    "broadcast_tensors(*tensors)", method=False, numpy=np.broadcast_arrays,
    samples=lambda make: [((make(3), make(2, 1)), {})],
)
def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """The tensors expanded to their common shape; views.

    Raises
    ------
    RuntimeError
        If the shapes cannot be broadcast together.
    """
    given = tuple(as_tensor(t) for t in several(tensors))
    shape = broadcast_shapes(*(t.shape for t in given))
    return tuple(t.expand(shape) for t in given)


@composite("broadcast_shapes(*shapes)", method=False, differentiable=False, samples=lambda make: [])
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of the given shapes have once broadcast together."""
    try:
        return Size(np.broadcast_shapes(*shapes))
    except ValueError:
        raise RuntimeError(
            "Shape mismatch: objects cannot be broadcast to a single shape: " + ", ".join(str(tuple(s)) for s in shapes)
        ) from None


@composite("broadcast_to(input, size)", samples=lambda make: [((make(3), (2, 3)), {}), ((make(), (2,)), {})])
def broadcast_to(input: Any, size: Any) -> Any:
    """`input` expanded to `size`; a view. As :meth:`Tensor.expand`."""
    return input.expand(size)


@composite(
    "flatten(input, start_dim=0, end_dim=-1)",
    samples=lambda make: [((make(2, 3),), {}), ((make(2, 3, 4), 1), {}), ((make(),), {}), ((make(2, 3, 4), 0, -2), {})],
)
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Join several dimensions into one.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    start_dim, end_dim : int
        The first and the last of them.

    Returns
    -------
    Tensor
        A view where the strides allow it, otherwise a copy.

    Raises
    ------
    RuntimeError
        If `start_dim` comes after `end_dim`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(2, 3, 4).flatten(1).shape
    fastgrad.Size([2, 12])
    """
    first, last = normal_dim(start_dim, input.ndim), normal_dim(end_dim, input.ndim)
    if last < first:
        raise RuntimeError(f"flatten() has invalid args: start_dim cannot come after end_dim; they are {start_dim} and "
                           f"{end_dim} for a tensor of {input.ndim} dimensions")
    if input.ndim == 0:
        return input.reshape(1)
    if first == last:
        return input
    shape = input.shape
    return input.reshape((*shape[:first], int(np.prod(shape[first:last + 1])), *shape[last + 1:]))


@composite("ravel(input)", numpy=np.ravel, samples=lambda make: [((make(2, 3),), {}), ((make(),), {})])
def ravel(input: Any) -> Any:
    """The elements in C order as one dimension; a view where the strides allow it."""
    return input if input.ndim == 1 and input.is_contiguous() else input.reshape(-1)


@composite(
    "unflatten(input, dim, sizes)",
    samples=lambda make: [((make(2, 6), 1, (2, -1)), {}), ((make(6), -1, (3, 2)), {})],
)
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """Split one dimension into several of the given sizes (one may be -1); a view."""
    at = normal_dim(dim, input.ndim)
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = int(np.prod([n for n in sizes if n != -1]))
    length = input.shape[at] if input.ndim else 1
    if sizes.count(-1) > 1:
        raise RuntimeError(f"unflatten: only one dimension can be inferred, but sizes is {sizes}")
    if (known == 0 or length % known) if -1 in sizes else known != length:
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
                           f"({length}) in the input tensor")
    return input.reshape((*input.shape[:at], *sizes, *input.shape[at + 1:]))


@composite(
    "movedim(input, source, destination)", aliases=("moveaxis",), numpy=np.moveaxis,
    samples=lambda make: [((make(2, 3, 4), 0, 2), {}), ((make(2, 3, 4), (0, 1), (-1, 0)), {})],
)
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Move dimensions to other places, the others keeping their order; a view."""
    if isinstance(source, int) != isinstance(destination, int):
        raise TypeError("movedim(): 'source' and 'destination' must both be an int, or both a tuple of ints, not "
                        f"{type(source).__name__} and {type(destination).__name__}")
    sources = (source,) if isinstance(source, int) else tuple(source)
    targets = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(sources) != len(targets):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should contain "
                           f"the same number of dims as destination ({list(targets)} dims)")
    sources = tuple(normal_dim(d, input.ndim) for d in sources)
    targets = tuple(normal_dim(d, input.ndim) for d in targets)
    for what, dims in (("source", sources), ("destination", targets)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{what}` ({list(dims)})")
    if input.ndim == 0:
        return input
    rest = [d for d in range(input.ndim) if d not in sources]
    placed = dict(zip(targets, sources))
    order = [placed[d] if d in placed else rest.pop(0) for d in range(input.ndim)]
    return input.permute(order)
