"""Floor 3: joining tensors into one, and splitting one into several views of it."""
from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from .._tensor import Tensor
from ._declare import KEEP, LINEAR, PROMOTE, composite, operator
from ._helpers import normal_dim
from .indexing import FULL, select_items, slice_items
from .views import as_tensor, atleast_1d, atleast_2d, atleast_3d, broadcast_tensors

Array = np.ndarray[Any, Any]

# --- Joining ---------------------------------------------------------------------------------------------------------


def is_skipped(shape: tuple[int, ...]) -> bool:
    """PyTorch joins an empty 1-D tensor to anything."""
    return len(shape) == 1 and shape[0] == 0


def cat_forward(tensors: list[Array], dim: int, sizes: tuple[int, ...]) -> Array:
    kept = [t for t in tensors if not is_skipped(t.shape)]
    return np.concatenate(kept, dim) if kept else tensors[0]


def cat_vjp_tensors(g: Any, tensors_shape: Any, dim: int, sizes: tuple[int, ...]) -> list[Any]:
    """Each tensor's own part of g; an empty one that was skipped gets its emptiness back."""
    gradients: list[Any] = []
    start = 0
    before = (FULL,) * dim
    for shape, size in zip(tensors_shape, sizes):
        if shape is None:
            gradients.append(None)
        elif is_skipped(shape):
            gradients.append(g.reshape(-1)[:0])
        else:
            gradients.append(slice_items(g, (*before, slice(start, start + size), ...)))
        start += size
    return gradients


cat_along = operator(
    "_cat(tensors, dim, sizes)",          # sizes: how long each tensor is in dim
    forward=cat_forward,
    vjp=dict(tensors=cat_vjp_tensors),
    dtypes=PROMOTE, tensors="tensors", sequence="tensors", jvp=LINEAR, node="Cat", public=False, method=False,
    samples=lambda make: [
        (([make(2, 3), make(1, 3)], 0, (2, 1)), {}), (([make(2), make(0), make(1)], 0, (2, 0, 1)), {}),
    ],
)


def listed(tensors: Any, name: str) -> list[Tensor]:
    """The tensors as a list; TypeError with PyTorch's words if they are not a list or tuple of tensors."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                        f"{type(tensors).__name__}")
    given = [as_tensor(t) if isinstance(t, np.ndarray) else t for t in tensors]
    for i, t in enumerate(given):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}(): expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
    return given


@composite(
    "cat(tensors, dim=0)", aliases=("concat", "concatenate"), method=False, numpy=np.concatenate,
    samples=lambda make: [
        (([make(2, 3), make(1, 3)],), {}), (([make(2, 1), make(2, 3)], -1), {}), (([make(0), make(2)],), {}),
    ],
)
def cat(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Any = None) -> Any:
    """Join tensors along a dimension that they have.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of equal shape but for `dim`; different dtypes are promoted. An empty 1-D tensor is skipped.
    dim : int
        Also as ``axis``. With ``axis=None`` in NumPy's function the tensors are flattened first.
    out : Tensor, optional
        Where to write the result; not recorded.

    Returns
    -------
    Tensor
        Of the promoted dtype; nothing is saved for its derivative.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.cat([fg.ones(2), fg.zeros(1)])
    tensor([1., 1., 0.])
    """
    given = listed(tensors, "cat")
    if not given:
        raise ValueError("cat(): expected a non-empty list of Tensors")
    shapes = [tuple(t.shape) for t in given]
    first = shapes[0]
    if is_skipped(first):
        first = next((s for s in shapes if not is_skipped(s)), first)
    at = normal_dim(dim if axis is None else axis, len(first))
    if not all(shapes):
        raise RuntimeError(f"cat: zero-dimensional tensor (at position {shapes.index(())}) cannot be concatenated; use "
                           "stack")
    sizes = tuple([s[at] if s == first else joined_size(s, first, at, i) for i, s in enumerate(shapes)])
    result = cat_along(given, at, sizes)
    return result if out is None else written_out(result, out)


def joined_size(shape: tuple[int, ...], first: tuple[int, ...], dim: int, i: int) -> int:
    """The size in `dim` of tensor number i, if all others agree with the first tensor's."""
    if is_skipped(shape):
        return 0
    if len(shape) != len(first):
        raise RuntimeError(f"cat: Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
    if shape[:dim] != first[:dim] or shape[dim + 1:] != first[dim + 1:]:
        k = next(k for k in range(len(shape)) if k != dim and shape[k] != first[k])
        raise RuntimeError(f"cat: Sizes of tensors must match except in dimension {dim}. Expected size {first[k]} but "
                           f"got size {shape[k]} for tensor number {i} in the list.")
    return shape[dim]


def written_out(result: Any, out: Any) -> Any:
    if result.requires_grad or out.requires_grad:
        raise RuntimeError("functions with out=... arguments don't support automatic differentiation, but one of the "
                           "arguments requires grad.")
    return out.copy_(result)


def stack_forward(tensors: list[Array], dim: int) -> Array:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0].shape
    for i, t in enumerate(tensors):
        if t.shape != shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                               f"{list(t.shape)} at entry {i}")
    at = normal_dim(dim, len(shape) + 1)
    place = (FULL,) * at + (None, ...)
    return np.concatenate([t[place] for t in tensors], at)      # np.stack does this too, and takes three times as long


def stack_vjp_tensors(g: Any, dim: int) -> list[Any]:
    at = normal_dim(dim, g.ndim)
    before = (FULL,) * at
    return [select_items(g, (*before, i, ...)) for i in range(g.shape[at])]


stack = operator(
    "stack(tensors, dim=0)",
    forward=stack_forward,
    vjp=dict(tensors=stack_vjp_tensors),
    dtypes=PROMOTE, tensors="tensors", sequence="tensors", jvp=LINEAR, method=False, numpy=np.stack,
    samples=lambda make: [
        (([make(2, 3), make(2, 3)],), {}), (([make(2, 3), make(2, 3)], -1), {}), (([make(), make(), make()],), {}),
        (([make(0), make(0)], 1), {}),
    ],
    doc="""Join tensors of one shape along a new dimension.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of equal shape; different dtypes are promoted.
    dim : int
        Where the new dimension stands in the result.

    Returns
    -------
    Tensor
        Of the promoted dtype, with one dimension more; nothing is saved for its derivative.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.stack([fg.ones(2), fg.zeros(2)], dim=1)
    tensor([[1., 0.],
            [1., 0.]])
    """,
)


@composite(
    "hstack(tensors)", method=False, numpy=np.hstack,
    samples=lambda make: [
        (([make(2), make(1)],), {}), (([make(2, 1), make(2, 2)],), {}), (([make(), make()],), {}),
    ],
)
def hstack(tensors: Any) -> Any:
    """Join along dimension 1, or 0 for tensors of one dimension."""
    given = atleast_1d(listed(tensors, "hstack"))
    return cat(given, 0 if given and given[0].ndim == 1 else 1)


@composite("vstack(tensors)", aliases=("row_stack",), method=False, numpy=np.vstack,
           samples=lambda make: [(([make(2), make(2)],), {}), (([make(1, 2), make(2, 2)],), {})])
def vstack(tensors: Any) -> Any:
    """Join along dimension 0, tensors of one dimension being rows."""
    return cat(atleast_2d(listed(tensors, "vstack")), 0)


@composite("dstack(tensors)", method=False, numpy=np.dstack,
           samples=lambda make: [(([make(2), make(2)],), {}), (([make(2, 1), make(2, 1)],), {})])
def dstack(tensors: Any) -> Any:
    """Join along dimension 2, after `atleast_3d`."""
    return cat(atleast_3d(listed(tensors, "dstack")), 2)


@composite("column_stack(tensors)", method=False, numpy=np.column_stack,
           samples=lambda make: [(([make(2), make(2)],), {}), (([make(2), make(2, 2)],), {})])
def column_stack(tensors: Any) -> Any:
    """Join along dimension 1, tensors of fewer than two dimensions being columns."""
    return cat([t if t.ndim > 1 else t.reshape(t.numel(), 1) for t in listed(tensors, "column_stack")], 1)


@composite("block_diag(*tensors)", method=False, samples=lambda make: [((make(2, 1), make(3), make()), {})])
def block_diag(*tensors: Any) -> Any:
    """A matrix with the tensors (matrices, rows or single elements) along its diagonal."""
    given = [as_tensor(t) for t in (tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list) else tensors)]
    for i, t in enumerate(given):
        if t.ndim > 2:
            raise RuntimeError(f"block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} "
                               "dimensions")
    blocks = [t if t.ndim == 2 else t.reshape(1, t.numel()) for t in given]
    width = sum(b.shape[1] for b in blocks)
    rows, start = [], 0
    for b in blocks:
        n, m = b.shape
        left, right = (as_tensor(np.zeros((n, k), b.dtype.numpy)) for k in (start, width - start - m))
        rows.append(cat([left, b, right], 1))
        start += m
    return cat(rows, 0)


@composite(
    "meshgrid(*tensors, indexing='ij')", method=False,
    samples=lambda make: [((make(2), make(3)), {}), ((make(2), make(3), make()), {"indexing": "xy"})],
)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Coordinate tensors of a grid from one tensor for each axis; views.

    Parameters
    ----------
    *tensors : Tensor
        Of one dimension, or 0-dim.
    indexing : {"ij", "xy"}
        Whether the first tensor varies along dimension 0 (the default), or along dimension 1.
    """
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    if not given:
        raise ValueError("meshgrid expects a non-empty TensorList")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f"meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {indexing}")
    given = [as_tensor(t) for t in given]
    for t in given:
        if t.ndim > 1:
            raise RuntimeError(f"meshgrid: Expected 0D or 1D tensor in the tensor list but got: shape {tuple(t.shape)}")
    if len({t.dtype for t in given}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swapped = indexing == "xy" and len(given) > 1
    if swapped:
        given[:2] = given[1::-1]
    n = len(given)
    grids = list(broadcast_tensors(*(
        t.reshape((1,) * i + (t.numel(),) + (1,) * (n - 1 - i)) for i, t in enumerate(given)
    )))
    if swapped:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@composite("cartesian_prod(*tensors)", method=False, samples=lambda make: [((make(2), make(3)), {}), ((make(2),), {})])
def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of the elements of 1-D tensors, one a row."""
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(f"cartesian_prod: Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack_columns([g.reshape(-1) for g in meshgrid(*tensors)])


def stack_columns(columns: list[Any]) -> Any:
    return cat([c.unsqueeze(1) for c in columns], 1)


# --- Splitting -------------------------------------------------------------------------------------------------------


def split_forward(input: Array, sizes: tuple[int, ...], dim: int) -> tuple[Array, ...]:
    before = (FULL,) * dim
    ends = accumulate(sizes)
    return tuple(input[(*before, slice(end - n, end))] for n, end in zip(sizes, ends))


def split_vjp_input(g: Any, sizes: Any, dim: int) -> Any:
    return cat_along(list(g), dim, sizes) if isinstance(g, tuple) else g


def unbind_forward(input: Array, dim: int) -> tuple[Array, ...]:
    if input.ndim == 0:
        raise IndexError("unbind: Dimension specified as 0 but tensor has no dimensions")
    before: tuple[Any, ...] = (slice(None),) * normal_dim(dim, input.ndim)
    return tuple(input[(*before, i, ...)] for i in range(input.shape[len(before)]))


def unbind_vjp_input(g: Any, dim: int) -> Any:
    return stack(list(g), dim) if isinstance(g, tuple) else g.unsqueeze(dim)


split_even = operator(
    "_split(input, sizes, dim)",
    forward=split_forward,
    vjp=dict(input=split_vjp_input),
    dtypes=KEEP, view=True, multi_view=True, jvp=LINEAR, node="Split", public=False, method=False,
    samples=lambda make: [((make(5, 2), (2, 2, 1), 0), {}), ((make(2, 3), (3,), 1), {})],
)

split_sizes = operator(
    "_split_with_sizes(input, sizes, dim)",
    forward=split_forward,
    vjp=dict(input=split_vjp_input),
    dtypes=KEEP, view=True, multi_view=True, jvp=LINEAR, node="SplitWithSizes", public=False, method=False,
    samples=lambda make: [((make(5, 2), (0, 4, 1), 0), {})],
)

operator(
    "unbind(input, dim=0)",
    forward=unbind_forward,
    vjp=dict(input=unbind_vjp_input),
    dtypes=KEEP, view=True, multi_view=True, jvp=LINEAR,
    samples=lambda make: [((make(3, 2),), {}), ((make(3, 2), -1), {}), ((make(1, 2),), {})],
    doc="""The slices along a dimension.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        The dimension that disappears.

    Returns
    -------
    tuple of Tensor
        Views. In-place writes to them are refused, as for all views of which one operation makes several.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([[1., 2.], [3., 4.]]).unbind(1)
    (tensor([1., 3.]), tensor([2., 4.]))
    """,
)


def sized(input: Any, dim: int, name: str) -> tuple[int, int]:
    """The dimension counted from the front, and its size."""
    if input.ndim == 0:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    at = normal_dim(dim, input.ndim)
    return at, input.shape[at]


@composite(
    "split(input, split_size_or_sections, dim=0)",
    samples=lambda make: [((make(5, 2), 2), {}), ((make(2, 5), [1, 4], -1), {}), ((make(2), 3), {})],
)
def split(input: Any, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> tuple[Any, ...]:
    """Parts of equal length along a dimension, or of the lengths listed.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    split_size_or_sections : int or list of int
        The length of each part (the last may be shorter), or of all of them. Also as ``split_size=``.
    dim : int
        The dimension that is split.

    Returns
    -------
    tuple of Tensor
        Views. In-place writes to them are refused, as for all views of which one operation makes several.

    Raises
    ------
    RuntimeError
        If the lengths listed do not add up to the size of `dim`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> [part.tolist() for part in fg.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    size = split_size_or_sections if split_size is None else split_size
    at, n = sized(input, dim, "split")
    if isinstance(size, (list, tuple)):
        sizes = tuple(int(s) for s in size)
        if any(s < 0 for s in sizes):
            raise RuntimeError("split_with_sizes expects split_sizes have only non-negative entries, but got "
                               f"split_sizes={list(sizes)}")
        if sum(sizes) != n:
            raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
                               f"dimension {dim}), but got split_sizes={list(sizes)}")
        return split_sizes(input, sizes, at)  # type: ignore[no-any-return]
    if not hasattr(size, "__index__"):
        raise TypeError(f"split(): argument 'split_size_or_sections' must be int or a list of ints, not "
                        f"{type(size).__name__}")
    size = size.__index__()
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and n:
        raise RuntimeError(f"split: split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    whole, rest = divmod(n, size) if size else (1, 0)
    return split_even(input, (size,) * whole + ((rest,) if rest or not whole else ()), at)  # type: ignore[no-any-return]


@composite("split_with_sizes(input, split_sizes, dim=0)", samples=lambda make: [((make(3, 2), [1, 2]), {})])
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """Views of `input` of the given sizes in `dim`; as `split` with a list."""
    return split(input, list(split_sizes), dim)  # type: ignore[no-any-return]


@composite("chunk(input, chunks, dim=0)", samples=lambda make: [((make(5, 2), 3), {}), ((make(2, 4), 2, -1), {})])
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """At most so many parts of equal length along a dimension; the last may be shorter.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    chunks : int
        How many parts.
    dim : int
        The dimension that is split.

    Returns
    -------
    tuple of Tensor
        Views. In-place writes to them are refused, as for all views of which one operation makes several.

    Examples
    --------
    >>> import fastgrad as fg
    >>> [part.tolist() for part in fg.arange(5).chunk(3)]
    [[0, 1], [2, 3], [4]]
    """
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    at, n = sized(input, dim, "chunk")
    if n == 0:
        return split_sizes(input, (0,) * chunks, at)  # type: ignore[no-any-return]
    return split(input, -(-n // chunks), at)  # type: ignore[no-any-return]


@composite(
    "tensor_split(input, indices_or_sections, dim=0)", numpy=np.array_split,
    samples=lambda make: [((make(5, 2), 3), {}), ((make(2, 5), (1, 3), -1), {})],
)
def tensor_split(
    input: Any, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None,
    axis: int | None = None,
) -> tuple[Any, ...]:
    """Views of `input`: so many of nearly equal length in `dim`, or cut at the given indices.

    In-place writes to them are refused, as for all views of which one operation makes several.
    """
    cut = next((c for c in (indices_or_sections, indices, sections) if c is not None), None)
    at, n = sized(input, dim if axis is None else axis, "tensor_split")
    if isinstance(cut, (Tensor, np.ndarray)):
        cut = cut.tolist()
    if isinstance(cut, (list, tuple)):
        edges = [slice(None, int(c)).indices(n)[1] for c in cut]
        bounds = [0, *edges, n]
        sizes = [max(b - a, 0) for a, b in zip(bounds, bounds[1:])]
        if sum(sizes) == n:
            return split_sizes(input, tuple(sizes), at)  # type: ignore[no-any-return]
        before = (FULL,) * at           # indices that go back: the pieces overlap, so each is cut for itself
        return tuple(slice_items(input, (*before, slice(a, b), ...)) for a, b in zip(bounds, bounds[1:]))
    if not isinstance(cut, int) or cut <= 0:
        raise RuntimeError(f"tensor_split: number of sections must be larger than 0, got {cut}")
    short, longer = divmod(n, cut)
    return split_sizes(input, (short + 1,) * longer + (short,) * (cut - longer), at)  # type: ignore[no-any-return]


def even_or_cut(input: Any, cut: Any, dim: int, name: str) -> tuple[Any, ...]:
    if isinstance(cut, int) and (cut <= 0 or input.shape[dim] % cut):
        raise RuntimeError(f"{name} attempted to split along dimension {dim}, but the size of the dimension "
                           f"{input.shape[dim]} is not divisible by the split_size {cut}!")
    return tensor_split(input, cut, dim)  # type: ignore[no-any-return]


@composite("hsplit(input, indices_or_sections)", numpy=np.hsplit,
           samples=lambda make: [((make(2, 4), 2), {}), ((make(4), (1, 2)), {})])
def hsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """`tensor_split` along dimension 1, or 0 for a tensor of one dimension; equal lengths only."""
    if input.ndim < 1:
        raise RuntimeError(f"hsplit requires a tensor with at least 1 dimension, but got {input.ndim} dimensions!")
    return even_or_cut(input, indices_or_sections, 0 if input.ndim == 1 else 1, "hsplit")


@composite("vsplit(input, indices_or_sections)", numpy=np.vsplit, samples=lambda make: [((make(4, 2), 2), {})])
def vsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """`tensor_split` along dimension 0 of a tensor of at least two; equal lengths only."""
    if input.ndim < 2:
        raise RuntimeError(f"vsplit requires a tensor with at least 2 dimension, but got {input.ndim} dimensions!")
    return even_or_cut(input, indices_or_sections, 0, "vsplit")


@composite("dsplit(input, indices_or_sections)", numpy=np.dsplit, samples=lambda make: [((make(1, 2, 4), 2), {})])
def dsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """`tensor_split` along dimension 2; equal lengths only."""
    if input.ndim < 3:
        raise RuntimeError(f"dsplit requires a tensor with at least 3 dimension, but got {input.ndim} dimensions!")
    return even_or_cut(input, indices_or_sections, 2, "dsplit")
