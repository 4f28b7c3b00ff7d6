"""Floor 3: the largest, the smallest, and the one in the middle.

Where several elements are equal the forms differ, as in PyTorch: the reductions that return values only (amax, amin,
aminmax, and max, min, median of all elements) share the gradient evenly; those that also return an index give all of
it to the element at that index. NaN wins everywhere.
"""
from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from .._tensor import Tensor
from ._declare import KEEP, composite, functions, operator
from ._helpers import numpy_words, reduced_axes, unreduced
from ._loops import Array, doc, not_implemented
from .gathering import gather, ungather
from .reductions import DIM, OUT_OF_RANGE, REDUCED, axis_of, one_axis, shape_samples

MAXIMUM = np.maximum.reduce
MINIMUM = np.minimum.reduce
FLAT = "input : Tensor\ndim : int, optional\n    What to reduce; all elements as one row if not given.\nkeepdim : bool"
ONE = "input : Tensor\ndim : int\nkeepdim : bool\n    Whether the reduced dimension stays, with size 1."
AT_INDEX = "``g`` at the index returned, 0 elsewhere (elementary)."
EVENLY = "``g``, shared evenly among equal elements (elementary)."
PAIR = "A named tuple of values and indices."
EMPTY = "IndexError\n    If there is no such dimension, or it is empty.\nNotImplementedError\n    For complex numbers."

# --- Checks ----------------------------------------------------------------------------------------------------------


def check_order(kernel: str, input: Array) -> None:
    if input.dtype.kind == "c":
        raise not_implemented(kernel, input.dtype)


def empty_row(name: str, dim: int) -> IndexError:
    return IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def empty_all(name: str) -> str:
    return (f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument.")


def check_rows(name: str, input: Array, dim: Any) -> None:
    """An extremum needs elements: in each reduced dimension, where anything is asked for at all."""
    if input.size:
        return
    axes = reduced_axes(dim, input.ndim)
    if len(axes) == input.ndim:
        raise RuntimeError(empty_all(name)) if dim is None or dim == () else empty_row(name, axes[0])
    for axis in axes:
        if input.shape[axis] == 0:
            raise empty_row(name, axis)


# --- Values only -----------------------------------------------------------------------------------------------------


def extremal(input: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """A mask of the elements that equal the result; a constant."""
    return input.detach() == unreduced(result.detach(), tuple(input.shape), dim, keepdim)


def shared_evenly(g: Any, input: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    chosen = extremal(input, result, dim, keepdim)
    return unreduced(g, tuple(input.shape), dim, keepdim) / chosen.sum(dim, True) * chosen


def mean_of_equals(t: Any, input: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    chosen = extremal(input, result, dim, keepdim)
    return (t * chosen).sum(dim, keepdim) / chosen.sum(dim, keepdim)


def extremum_forward(name: str, reduce: Any, input: Array, dim: Any, keepdim: bool) -> Any:
    check_order(f"{name[1:]}_values_cpu", input)
    axis = axis_of(dim, input.ndim)
    check_rows(name, input, dim)
    return reduce(input, axis, None, None, keepdim)


def extremum_doc(what: str, name: str) -> str:
    return doc(f"The {what} over dimensions.", EVENLY, f">>> fg.tensor([[1., 3.], [2., 0.]]).{name}(1)\n"
               f"tensor({'[3., 2.]' if name == 'amax' else '[1., 0.]'})", arguments=DIM, returns=REDUCED,
               raises=OUT_OF_RANGE + "\n" + EMPTY)


def row_samples(make: Any) -> list[Any]:
    """Argument lists for a reduction that needs elements."""
    return [sample for sample in shape_samples(make) if sample[0][0].numel()]


operator(
    "amax(input, dim=(), keepdim=False)",
    forward=lambda input, dim, keepdim: extremum_forward("amax", MAXIMUM, input, dim, keepdim),
    vjp=dict(input=shared_evenly), jvp=dict(input=mean_of_equals),
    dtypes=KEEP, samples=row_samples, complex=False, doc=extremum_doc("maximum", "amax"),
)

operator(
    "amin(input, dim=(), keepdim=False)",
    forward=lambda input, dim, keepdim: extremum_forward("amin", MINIMUM, input, dim, keepdim),
    vjp=dict(input=shared_evenly), jvp=dict(input=mean_of_equals),
    dtypes=KEEP, samples=row_samples, complex=False, doc=extremum_doc("minimum", "amin"),
)


def aminmax_forward(input: Array, dim: Any, keepdim: bool) -> tuple[Any, Any]:
    check_order("aminmax_cpu", input)
    axis = one_axis("aminmax", dim, input.ndim)
    if not input.size and dim is None:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
                           "identity.")
    check_rows("aminmax", input, dim)
    return MINIMUM(input, axis, None, None, keepdim), MAXIMUM(input, axis, None, None, keepdim)


def aminmax_jvp_input(t: Any, input: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    return mean_of_equals(t, input, result[0], dim, keepdim), mean_of_equals(t, input, result[1], dim, keepdim)


def aminmax_vjp_input(g: Any, input: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    return (shared_evenly(g[0], input, result[0], dim, keepdim)
            + shared_evenly(g[1], input, result[1], dim, keepdim))


operator(
    "aminmax(input, *, dim=None, keepdim=False)",
    forward=aminmax_forward,
    vjp=dict(input=aminmax_vjp_input), jvp=dict(input=aminmax_jvp_input),
    outputs=("min", "max"), dtypes=KEEP, complex=False,
    samples=lambda make: [((make(2, 3),), {}), ((make(2, 3),), {"dim": 1, "keepdim": True}), ((make(),), {"dim": 0})],
    doc=doc("Minimum and maximum, over one dimension or of all elements.", EVENLY, arguments=FLAT,
            returns="A named tuple of min and max.", raises=EMPTY),
)

# --- Indices only ----------------------------------------------------------------------------------------------------


def index_forward(name: str, find: Any, input: Array, dim: Any, keepdim: bool) -> Any:
    if input.dtype.kind in "bc":
        raise RuntimeError(f"{name}(): does not support {'bool' if input.dtype.kind == 'b' else 'complex'} input")
    axis = one_axis(name, dim, input.ndim)
    if not input.size:
        if dim is None:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        check_rows(name, input, dim)
    return find(input, axis, keepdims=keepdim)


def index_doc(what: str, name: str) -> str:
    return doc(f"Where the {what} is, along a dimension or in the flattened tensor; of equal ones the first.", "",
               f">>> fg.tensor([1., 3., 3., 0.]).{name}()\ntensor({1 if name == 'argmax' else 3})", arguments=FLAT,
               returns="Of dtype int64.",
               raises="IndexError\n    If there is no such dimension, or it is empty.\nRuntimeError\n    For bool and "
                      "complex.")


operator(
    "argmax(input, dim=None, keepdim=False)",
    forward=lambda input, dim, keepdim: index_forward("argmax", np.argmax, input, dim, keepdim),
    dtypes=KEEP, differentiable=False, complex=False, doc=index_doc("maximum", "argmax"),
    samples=lambda make: [((make(2, 3),), {}), ((make(2, 3), 0), {}), ((make(2, 3), -1, True), {}), ((make(), 0), {})],
)

operator(
    "argmin(input, dim=None, keepdim=False)",
    forward=lambda input, dim, keepdim: index_forward("argmin", np.argmin, input, dim, keepdim),
    dtypes=KEEP, differentiable=False, complex=False, doc=index_doc("minimum", "argmin"),
    samples=lambda make: [((make(2, 3),), {}), ((make(2, 3), 0), {}), ((make(2, 3), -1, True), {}), ((make(), 0), {})],
)

# --- Values and indices along a dimension ----------------------------------------------------------------------------


def at_index_jvp_input(t: Any, indices: Any, dim: int, keepdim: bool) -> Any:
    if keepdim or t.ndim == 0:
        return gather(t, dim, indices)
    return gather(t, dim, indices.unsqueeze(dim)).squeeze(dim)


def at_index_vjp_input(g: Any, indices: Any, dim: int, keepdim: bool, input_shape: Any) -> Any:
    if input_shape and not keepdim:
        g, indices = g.unsqueeze(dim), indices.unsqueeze(dim)
    return ungather(g, indices, dim, input_shape)


def row_axis(name: str, kernel: str, input: Array, dim: Any) -> tuple[Array, int]:
    """The input with at least one dimension, and the one to reduce."""
    axis = one_axis(name, dim, input.ndim)
    check_order(kernel, input)
    check_rows(name, input, dim)
    return (input, axis % input.ndim) if input.ndim else (input.reshape(1), 0)


def extremum_row(name: str, reduce: Any, find: Any, input: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
    rows, axis = row_axis(name, name, input, dim)
    keep = keepdim and input.ndim > 0
    return reduce(rows, axis, None, None, keep), find(rows, axis, keepdims=keep)


def pair(values: Array, indices: Array, axis: int, keepdim: bool, ndim: int) -> tuple[Any, Any]:
    """Values and indices with the reduced dimension, kept or not."""
    if keepdim and ndim:
        return values, indices
    return values.squeeze(axis), indices.squeeze(axis)


def medians(rows: Array, axis: int, skip_nan: bool) -> Array:
    """The lower of the middle two of each row, with the reduced dimension; NaN win unless they are skipped."""
    n = rows.shape[axis]
    if rows.dtype.kind != "f" or not np.isnan(MAXIMUM(rows, None)):
        middle = (n - 1) // 2
        return np.partition(rows, middle, axis).take([middle], axis)
    numbers: Array = np.add.reduce(rows == rows, axis, np.int64, None, True)
    places: Array = (np.maximum(numbers, 1) - 1) // 2
    if not skip_nan:
        places = np.where(numbers < n, n - 1, places)
    return np.take_along_axis(np.sort(rows, axis), places, axis)       # NaN are sorted to the end


def median_row(name: str, skip_nan: bool, input: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if input.dtype.kind == "b":
        raise not_implemented("median_out", input.dtype)
    rows, axis = row_axis(name, "median_out", input, dim)
    if rows.size:
        values = medians(rows, axis, skip_nan)
    else:
        values = np.empty([1 if i == axis else n for i, n in enumerate(rows.shape)], rows.dtype)
    same = (rows == values) | ((rows != rows) & (values != values))
    return pair(values, np.argmax(same, axis, keepdims=True), axis, keepdim, input.ndim)


def mode_row(input: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
    rows, axis = row_axis("mode", "mode_cpu", input, dim)
    ordered = np.moveaxis(np.sort(rows, axis), axis, -1)
    n = ordered.shape[-1]
    places = np.arange(n)
    starts = np.ones(ordered.shape, bool)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    # How long the run of equal elements is that ends here; the first longest belongs to the smallest value.
    length = places - np.maximum.accumulate(np.where(starts, places, 0), -1)
    best = np.argmax(length, -1, keepdims=True) if length.size else np.zeros((*length.shape[:-1], 1), np.int64)
    values = np.moveaxis(np.take_along_axis(ordered, best, -1), -1, axis)
    same = np.flip((rows == values) | ((rows != rows) & (values != values)), axis)
    return pair(values, n - 1 - np.argmax(same, axis, keepdims=True), axis, keepdim, input.ndim)


def row_operator(name: str, forward: Any, node: str) -> Any:
    """An operator that returns values and indices along a dimension, and whose results are called `name`."""
    op = operator(
        f"_{name}_row(input, dim, keepdim)",
        forward=forward,
        vjp=dict(input=at_index_vjp_input), jvp=dict(input=at_index_jvp_input),
        outputs=("values", "indices"), nondifferentiable=("indices",), dtypes=KEEP, node=node, public=False,
        method=False, complex=False,
        samples=lambda make: [
            ((make(3), 0, False), {}), ((make(2, 3), -1, True), {}), ((make(2, 3), 0, False), {}),
            ((make(2, 3, 2), 1, False), {}), ((make(), 0, False), {}), ((make(0, 2), 1, False), {}),
        ],
        doc=f"The {name} along a dimension, and where it is; see :func:`fastgrad.{name}`.",
    )
    op.set_outputs(namedtuple(name, ["values", "indices"]), False)
    return op


max_row = row_operator(
    "max",
    lambda input, dim, keepdim: extremum_row("max", MAXIMUM, np.argmax, input, dim, keepdim), "MaxBackward0")
min_row = row_operator(
    "min",
    lambda input, dim, keepdim: extremum_row("min", MINIMUM, np.argmin, input, dim, keepdim), "MinBackward0")
median_of_row = row_operator(
    "median",
    lambda input, dim, keepdim: median_row("median", False, input, dim, keepdim), "MedianBackward1")
nanmedian_of_row = row_operator(
    "nanmedian",
    lambda input, dim, keepdim: median_row("nanmedian", True, input, dim, keepdim), "NanmedianBackward1")
mode_of_row = row_operator("mode", mode_row, "ModeBackward0")

# --- Of all elements -------------------------------------------------------------------------------------------------


def extremal_of_all(input: Any, result: Any) -> Any:
    """A mask of the elements that equal the result, NaN counted as equal; a constant."""
    values, value = input.detach(), result.detach()
    return values == value if value == value else values != values


def all_jvp_input(t: Any, input: Any, result: Any) -> Any:
    chosen = extremal_of_all(input, result)
    return (t * chosen).sum() / chosen.sum()


def all_vjp_input(g: Any, input: Any, result: Any) -> Any:
    chosen = extremal_of_all(input, result)
    return g / chosen.sum() * chosen


def extremum_all(name: str, reduce: Any, input: Array) -> Any:
    check_order(f"{name}_all", input)
    if not input.size:
        raise RuntimeError(empty_all(name))
    return reduce(input, None)


def median_all(skip_nan: bool, input: Array) -> Any:
    check_order("median_cpu", input)
    if not input.size:
        return np.array(np.nan if input.dtype.kind == "f" else np.iinfo(input.dtype).min, input.dtype)
    return medians(input.reshape(-1), 0, skip_nan).reshape(())


def all_operator(name: str, forward: Any, node: str) -> Any:
    return operator(
        f"_{name}_all(input)",
        forward=forward, vjp=dict(input=all_vjp_input), jvp=dict(input=all_jvp_input), dtypes=KEEP, node=node,
        public=False, method=False, complex=False,
        samples=lambda make: [((make(2, 3),), {}), ((make(),), {}), ((make(3, 2).T,), {})],
        doc=f"The {name} of all elements; see :func:`fastgrad.{name}`.",
    )


max_all = all_operator("max", lambda input: extremum_all("max", MAXIMUM, input), "MaxBackward1")
min_all = all_operator("min", lambda input: extremum_all("min", MINIMUM, input), "MinBackward1")
median_of_all = all_operator("median", lambda input: median_all(False, input), "MedianBackward0")
nanmedian_of_all = all_operator("nanmedian", lambda input: median_all(True, input), "NanmedianBackward0")

# --- The public forms ------------------------------------------------------------------------------------------------


def both_samples(make: Any) -> list[Any]:
    return [
        ((make(2, 3),), {}), ((make(2, 3), 0), {}), ((make(2, 3), -1, True), {}), ((make(),), {}), ((make(), 0), {}),
    ]


def larger_samples(make: Any) -> list[Any]:
    return [*both_samples(make), ((make(2, 3), make(3)), {})]


def largest(
    name: str, elementwise: str, of_all: Any, of_row: Any, input: Any, dim: Any, keepdim: Any, other: Any
) -> Any:
    """max and min: of all elements, along a dimension, or of two tensors."""
    if dim is None and other is None:
        if keepdim is not None:
            raise TypeError(f"{name}(): keepdim= needs dim=")
        return of_all(input)
    if other is None and isinstance(dim, (Tensor, np.ndarray)):
        dim, other = None, dim
    if other is not None:
        if dim is not None or keepdim is not None or not isinstance(other, (Tensor, np.ndarray)):
            raise TypeError(f"{name}() takes a dim and keepdim, or another Tensor")
        return functions[elementwise](input, other)
    return of_row(input, dim, bool(keepdim))


@composite("max(input, dim=None, keepdim=None, *, other=None)", samples=larger_samples, complex=False)
@numpy_words
def max(input: Any, dim: Any = None, keepdim: Any = None, *, other: Any = None) -> Any:
    """The maximum of all elements, or along a dimension with its indices, or elementwise of two tensors.

    Parameters
    ----------
    input : Tensor
    dim : int or Tensor, optional
        The dimension to reduce. A Tensor here is `other`.
    keepdim : bool
        Whether the reduced dimension stays, with size 1.
    other : Tensor, optional
        Then the result is :func:`fastgrad.maximum`.

    Returns
    -------
    Tensor or (values, indices)
        With `dim` a named tuple.

    Raises
    ------
    RuntimeError
        If there are no elements.
    IndexError
        If there is no such dimension, or it is empty.

    Notes
    -----
    The maximum of all shares its gradient evenly among equal elements; with `dim` it goes to the index returned, that
    of the first.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([[1., 5.], [3., 2.]]).max()
    tensor(5.)
    >>> values, indices = fg.tensor([[1., 5.], [3., 2.]]).max(1)
    >>> values.tolist(), indices.tolist()
    ([5.0, 3.0], [1, 0])
    """
    return largest("max", "maximum", max_all, max_row, input, dim, keepdim, other)


@composite("median(input, dim=None, keepdim=False)", samples=both_samples, complex=False)
@numpy_words
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of all elements, or along a dimension with its indices: the lower of the middle two.

    Parameters
    ----------
    input : Tensor
    dim : int, optional
    keepdim : bool
        Whether the reduced dimension stays, with size 1.

    Returns
    -------
    Tensor or (values, indices)
        With `dim` a named tuple; the index is that of the first element with this value. NaN if there is one.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([4., 1., 3., 2.]).median()
    tensor(2.)
    """
    return median_of_all(input) if dim is None else median_of_row(input, dim, keepdim)


@composite("min(input, dim=None, keepdim=None, *, other=None)", samples=larger_samples, complex=False)
@numpy_words
def min(input: Any, dim: Any = None, keepdim: Any = None, *, other: Any = None) -> Any:
    """The minimum of all elements, or along a dimension with its indices, or elementwise of two tensors.

    Arguments and errors as for :func:`fastgrad.max`; ties and NaN otherwise as there.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([[1., 5.], [3., 2.]]).min()
    tensor(1.)
    """
    return largest("min", "minimum", min_all, min_row, input, dim, keepdim, other)


@composite(
    "mode(input, dim=-1, keepdim=False)", complex=False,
    samples=lambda make: [((make(3),), {}), ((make(2, 3), 0), {}), ((make(2, 3), -1, True), {}), ((make(),), {})],
)
@numpy_words
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The commonest value along a dimension, and where it is last; of equally common ones the smallest.

    Parameters
    ----------
    input : Tensor
    dim : int
    keepdim : bool
        Whether the reduced dimension stays, with size 1.

    Returns
    -------
    (values, indices) : namedtuple of Tensor
    """
    return mode_of_row(input, dim, keepdim)


@composite("nanmedian(input, dim=None, keepdim=False)", samples=both_samples, complex=False)
@numpy_words
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of what is not NaN; otherwise as :func:`fastgrad.median`."""
    return nanmedian_of_all(input) if dim is None else nanmedian_of_row(input, dim, keepdim)
