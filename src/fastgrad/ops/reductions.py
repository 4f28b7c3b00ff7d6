"""Floor 3: sums, products and counts over dimensions.

What a `dim` argument may be: a number, several, or None or () for all dimensions. Integers and bool are summed in
int64, float16 is accumulated in float32. Sums and means save nothing.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dtypes import as_dtype
from .._tensor import from_ndarray
from ._declare import KEEP, LINEAR, composite, functions, operator
from ._helpers import conj, normal_dim, reduced_axes, unreduced
from ._loops import Array, doc
from .selection import where
from .views import cast, to_copy

ADD = np.add.reduce
MULTIPLY = np.multiply.reduce
NATIVE = "fdFD"        # dtype characters whose reductions accumulate in, and return, their own dtype

DIM = (
    "input : Tensor\ndim : int or tuple of int, optional\n    What to reduce; all dimensions if not given.\n"
    "keepdim : bool\n    Whether reduced dimensions stay, with size 1."
)
DTYPE = DIM + "\ndtype : dtype, optional\n    What the input is cast to first."
REDUCED = "Without the reduced dimensions, or with size 1 there."
OUT_OF_RANGE = "IndexError\n    If there is no such dimension.\nRuntimeError\n    If one is named twice."


def axis_of(dim: Any, ndim: int) -> Any:
    """`dim` as NumPy's reductions take it, after PyTorch's checks."""
    if dim is None or (type(dim) is int and -ndim <= dim < ndim):
        return dim
    return reduced_axes(dim, ndim)


def one_axis(name: str, dim: Any, ndim: int) -> Any:
    """`dim` where only None or one dimension makes sense."""
    if dim is None or (type(dim) is int and -ndim <= dim < ndim):
        return dim
    if isinstance(dim, (tuple, list)) or not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
    normal_dim(dim, ndim)
    return None            # 0-dim: its only element is all there is


def reduced(reduce: Callable[..., Any], input: Array, axis: Any, keepdim: bool, dtype: Any) -> Any:
    """A ufunc's `reduce` with PyTorch's dtypes: int64 for integers and bool, float16 accumulated in float32."""
    if dtype is None:
        if input.dtype.char in NATIVE:
            return reduce(input, axis, None, None, keepdim)
        target = input.dtype if input.dtype.kind == "f" else np.dtype(np.int64)
    else:
        target = as_dtype(dtype).numpy
        input = cast(input, dtype)
    if target.char == "e":
        return reduce(input, axis, np.float32, None, keepdim).astype(target)
    return reduce(input, axis, target, None, keepdim)


def nonzero_part(function: Callable[[Any], Any], x: Any) -> Any:
    """``function(x)`` where x is not 0, and 0 where it is, with derivatives of every order that are 0 there too.

    A mask over the result alone would not do: the derivative at 0, infinite or NaN, times the mask's 0 is NaN.
    """
    zero = x.detach() == 0
    if not zero.numpy().any():
        return function(x)
    return where(zero, 0, function(where(zero, 1, x)))


def shape_samples(make: Any) -> list[Any]:
    """Argument lists for a reduction over any dimensions."""
    return [
        ((make(2, 3),), {}), ((make(2, 3), 0), {}), ((make(2, 3, 4), (0, -1), True), {}), ((make(),), {}),
        ((make(), -1), {}), ((make(3, 0), 0), {}), ((make(2, 3), ()), {}), ((make(2, 3).T, 1), {}),
    ]


# --- Truth -----------------------------------------------------------------------------------------------------------


def truth_forward(reduce: Callable[..., Any], input: Array, dim: Any, keepdim: bool) -> Any:
    if isinstance(dim, (tuple, list)) and not dim:
        axis: Any = ()                # unlike elsewhere, () is no dimension here: so it is in PyTorch
    else:
        axis = axis_of(dim, input.ndim)
    result = reduce(input, axis, np.bool_, None, keepdim)
    return result.astype(np.uint8) if input.dtype == np.uint8 else result


operator(
    "all(input, dim=None, keepdim=False)",
    forward=lambda input, dim, keepdim: truth_forward(np.logical_and.reduce, input, dim, keepdim),
    dtypes=KEEP, differentiable=False, samples=shape_samples,
    doc=doc("Whether all elements are true (not zero; NaN is true).",
            "", ">>> fg.tensor([1., 0.]).all()\ntensor(False)",
            arguments=DIM, returns="Of dtype bool (uint8 for uint8). " + REDUCED, raises=OUT_OF_RANGE),
)

operator(
    "any(input, dim=None, keepdim=False)",
    forward=lambda input, dim, keepdim: truth_forward(np.logical_or.reduce, input, dim, keepdim),
    dtypes=KEEP, differentiable=False, samples=shape_samples,
    doc=doc("Whether any element is true (not zero; NaN is true).", "", ">>> fg.tensor([1., 0.]).any()\ntensor(True)",
            arguments=DIM, returns="Of dtype bool (uint8 for uint8). " + REDUCED, raises=OUT_OF_RANGE),
)

operator(
    "count_nonzero(input, dim=None)",
    forward=lambda input, dim: ADD(input != 0, axis_of(dim, input.ndim), np.int64),
    dtypes=KEEP, differentiable=False,
    samples=lambda make: [((make(2, 3),), {}), ((make(2, 3), 0), {}), ((make(2, 3), (0, 1)), {}), ((make(),), {})],
    doc=doc("How many elements are not zero.", "", ">>> fg.tensor([1., 0., 2.]).count_nonzero()\ntensor(2)",
            arguments="input : Tensor\ndim : int or tuple of int, optional", returns="Of dtype int64.",
            raises=OUT_OF_RANGE),
)

# --- Sums and means --------------------------------------------------------------------------------------------------


def mean_dtype(name: str, input: Array, dtype: Any) -> Array:
    """The input cast to `dtype`, which must have fractions."""
    if dtype is not None:
        input = cast(input, dtype)
    if input.dtype.kind not in "fc":
        which = "Input dtype" if dtype is None else "Optional dtype"
        raise RuntimeError(
            f"{name}(): could not infer output dtype. {which} must be either a floating point or complex dtype. Got: "
            f"{input.dtype}; convert the tensor with .float(), or pass dtype="
        )
    return input


def mean_forward(input: Array, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None or input.dtype.char not in NATIVE:
        input = mean_dtype("mean", input, dtype)
    axis = axis_of(dim, input.ndim)
    if input.dtype.char == "e":
        # The sum may be out of float16's range where the mean is not.
        total = ADD(input, axis, np.float32, None, keepdim)
        return (total / (input.size // max(total.size, 1))).astype(np.float16)
    total = ADD(input, axis, None, None, keepdim)
    return total / (input.size // max(total.size, 1))


def mean_vjp_input(g: Any, input_shape: Any, dim: Any, keepdim: bool) -> Any:
    n = math.prod(input_shape) // max(g.numel(), 1)
    # Beyond float16's largest number n would be infinite in that dtype, but its reciprocal is not 0.
    g = g / n if n <= 65504 else g * (1.0 / n)
    return unreduced(g, input_shape, dim, keepdim).expand(input_shape)


operator(
    "mean(input, dim=None, keepdim=False, *, dtype=None)",
    forward=mean_forward,
    vjp=dict(input=mean_vjp_input),
    dtypes=KEEP, jvp=LINEAR, reduces="mean", samples=shape_samples,
    doc=doc("The arithmetic mean over dimensions.",
            "``g / n`` for each of the `n` elements; saves nothing (elementary).",
            ">>> fg.tensor([[1., 2.], [3., 6.]]).mean(0)\ntensor([2., 4.])",
            arguments=DTYPE, returns="Of the input's dtype; NaN where nothing is averaged. " + REDUCED,
            raises=OUT_OF_RANGE + "\nRuntimeError\n    For integers and bool without `dtype`."),
)


def not_nan(input: Any) -> Any:
    """A mask of the elements that are numbers; a constant."""
    array = input.detach().numpy()
    return from_ndarray(np.asarray(array == array), False)


def nansum_forward(input: Array, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if input.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if input.dtype.kind == "f":
        input = np.where(np.isnan(input), input.dtype.type(0), input)
    return reduced(ADD, input, axis_of(dim, input.ndim), keepdim, dtype)


def nansum_jvp_input(t: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    return (t * not_nan(input)).sum(dim, keepdim)


def nansum_vjp_input(g: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    return unreduced(g, tuple(input.shape), dim, keepdim) * not_nan(input)


operator(
    "nansum(input, dim=None, keepdim=False, *, dtype=None)",
    forward=nansum_forward,
    vjp=dict(input=nansum_vjp_input),
    dtypes=KEEP, jvp=dict(input=nansum_jvp_input), samples=shape_samples, complex=False,
    doc=doc("The sum over dimensions, NaN counted as 0.", "``g`` where the input is not NaN, else 0 (elementary).",
            ">>> fg.nansum(fg.tensor([4.0, -1.0]).sqrt())\ntensor(2.)",
            arguments=DTYPE, returns=REDUCED, raises=OUT_OF_RANGE),
)


@composite("nanmean(input, dim=None, keepdim=False, *, dtype=None)", samples=shape_samples, complex=False)
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean over dimensions of what is not NaN.

    Parameters
    ----------
    input : Tensor
    dim : int or tuple of int, optional
        What to reduce; all dimensions if not given.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    dtype : dtype, optional
        What the sum is made in.

    Returns
    -------
    Tensor
        NaN where there is nothing but NaN.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.nanmean(fg.tensor([4.0, -1.0]).sqrt())
    tensor(2.)
    """
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but got "
                           f"{input.dtype.name}")
    total = functions["nansum"](input, dim, keepdim, dtype=dtype)
    return total / not_nan(input).sum(dim, keepdim)


def sum_forward(input: Array, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if dtype is None and input.dtype.char in NATIVE:
        return ADD(input, axis_of(dim, input.ndim), None, None, keepdim)
    return reduced(ADD, input, axis_of(dim, input.ndim), keepdim, dtype)


operator(
    "sum(input, dim=None, keepdim=False, *, dtype=None)",
    forward=sum_forward,
    vjp=dict(input=lambda g, input_shape, dim, keepdim: unreduced(g, input_shape, dim, keepdim).expand(input_shape)),
    dtypes=KEEP, jvp=LINEAR, reduces="sum", samples=shape_samples,
    doc=doc("The sum over dimensions.", "``g`` for every element that was added; saves nothing (elementary).",
            ">>> fg.tensor([[1., 2.], [3., 4.]]).sum(1)\ntensor([3., 7.])",
            arguments=DTYPE, returns="Of the input's dtype; int64 for integers and bool. " + REDUCED,
            raises=OUT_OF_RANGE),
)

# --- Products --------------------------------------------------------------------------------------------------------


def prod_forward(input: Array, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return reduced(MULTIPLY, input, one_axis("prod", dim, input.ndim), keepdim, dtype)


def product_before(x: Any, dim: int) -> Any:
    """For each element the product of those before it along a dimension."""
    return shifted(x, dim, 1).cumprod(dim)


def shifted(x: Any, dim: int, first: float) -> Any:
    """The elements moved up by one along a dimension; the last falls out, and `first` comes in."""
    n = x.shape[dim]
    if n == 0:
        return x
    shape = tuple(1 if i == dim % x.ndim else m for i, m in enumerate(x.shape))
    edge = from_ndarray(np.full(shape, first, x.dtype.numpy), False)
    return functions["cat"]([edge, x.narrow(dim, 0, n - 1)], dim)


def product_of_others(x: Any, dim: int | None) -> Any:
    """For each element the product of all others along a dimension, right and differentiable where some are zero."""
    if dim is None or x.ndim == 0:
        return product_of_others(x.reshape(-1), 0).reshape(x.shape)
    return product_before(x, dim) * product_before(x.flip(dim), dim).flip(dim)


def prod_derivative(input: Any, result: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """For each element the product of the others."""
    if dtype is not None:
        input = to_copy(input, dtype)
    if (input.detach().numpy() == 0).any():
        return product_of_others(input, dim)
    return unreduced(result, tuple(input.shape), dim, keepdim) / input


def prod_jvp_input(t: Any, input: Any, result: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return (t * prod_derivative(input, result, dim, keepdim, dtype)).sum(dim, keepdim)


def prod_vjp_input(g: Any, input: Any, result: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    g = unreduced(g, tuple(input.shape), dim, keepdim)
    return g * conj(prod_derivative(input, result, dim, keepdim, dtype))


def zero_samples(make: Any) -> list[Any]:
    """Argument lists for products: no, one and two zeros in a row."""
    one_zero = make(2, 3) * from_ndarray(np.array([[False, True, True], [True, True, True]]), False)
    two_zeros = make(2, 4) * from_ndarray(np.array([[True, False, True, False], [False, True, True, True]]), False)
    return [
        ((make(2, 3), 0), {}), ((one_zero, -1), {}), ((two_zeros, 1), {}), ((two_zeros, 0), {}), ((make(), 0), {}),
        ((make(2, 0, 3), 1), {}),
    ]


operator(
    "prod(input, dim=None, keepdim=False, *, dtype=None)",
    forward=prod_forward,
    vjp=dict(input=prod_vjp_input),
    dtypes=KEEP, jvp=dict(input=prod_jvp_input),
    samples=lambda make: [((make(3),), {}), ((make(2, 3), 1, True), {}), *zero_samples(make)],
    doc=doc("The product over one dimension, or of all elements.",
            "``g * result / input``; where there are zeros, ``g`` times the product of the others, from both sides "
            "(elementary).", ">>> fg.tensor([2., 3., 4.]).prod()\ntensor(24.)",
            arguments=DTYPE.replace("int or tuple of int", "int"),
            returns="Of the input's dtype; int64 for integers and bool. 1 where nothing is multiplied. " + REDUCED,
            raises="IndexError\n    If there is no such dimension.\nTypeError\n    If `dim` is a tuple."),
)
