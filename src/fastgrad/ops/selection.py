"""Floor 3: elementwise operators that choose: where, masks, bounds, the larger and the smaller of two.

A gradient goes where the value came from. `where` is what the other formulas choose with.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .._dtypes import iinfo, result_type
from .._tensor import Tensor, attach
from ._declare import DIAGONAL, KEEP, composite, functions, operator
from ._loops import REALS_AND_BOOL, Array, doc, is_number, not_implemented

# --- Where and masks -------------------------------------------------------------------------------------------------


def boolean(condition: Any) -> Array:
    """A condition's bool array; uint8 is taken as bool, as PyTorch still does."""
    if not isinstance(condition, np.ndarray):
        raise TypeError(f"where(): argument 'condition' must be Tensor, not {type(condition).__name__}")
    if condition.dtype == np.bool_:
        return condition
    if condition.dtype == np.uint8:
        return condition.astype(np.bool_)
    raise RuntimeError(
        f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}; compare it "
        "with something, e.g. condition != 0"
    )


def where_forward(condition: Array, input: Any, other: Any) -> Array:
    condition = boolean(condition)
    if isinstance(input, np.ndarray) and isinstance(other, np.ndarray) and input.dtype == other.dtype:
        return np.where(condition, input, other)
    dtype = result_type(input, other).numpy
    return np.where(condition, np.asarray(input).astype(dtype, copy=False), np.asarray(other).astype(dtype, copy=False))


where = operator(
    "_where(condition, input, other)",
    tensors="condition input other",
    forward=where_forward,
    vjp=dict(
        input=lambda g, condition: where(condition, g, 0),
        other=lambda g, condition: where(condition, 0, g),
    ),
    dtypes=KEEP, jvp=dict(input=lambda t, condition: where(condition, t, 0),
                          other=lambda t, condition: where(condition, 0, t)),
    node="Where", public=False, method=False,
    samples=lambda make: [
        ((make(2, 3).real > 0, make(2, 3), make(2, 3)), {}), ((make(3).real > 0, make(2, 1), make()), {}),
        ((make(3).real > 0, make(3), 2.5), {}), ((make(3).real > 0, 2, make(3)), {}),
        ((make(0).real > 0, make(0), make(0)), {}),
    ],
)


@composite(
    "where(condition, input=None, other=None)", method=False, numpy=np.where,
    samples=lambda make: [((make(2, 3).real > 0, make(2, 3), make(3)), {}), ((make(3).real > 0, make(3), 1.5), {})],
)
def where_public(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Choose from `input` where `condition` holds, else from `other`.

    Parameters
    ----------
    condition : Tensor of bool (or uint8)
    input, other : Tensor or number
        They broadcast with `condition`. Without both, the result is ``condition.nonzero(as_tuple=True)``.

    Returns
    -------
    Tensor
        Of the broadcast shape and the common dtype of `input` and `other`.

    Raises
    ------
    RuntimeError
        If `condition` is neither bool nor uint8, or shapes do not fit.

    Notes
    -----
    The cotangent goes to the argument chosen; the other one gets exactly zero there (elementary). Where the argument
    not chosen was computed with an infinite derivative, that operator's own formula still gives 0 * inf = NaN.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.tensor([1.0, -2.0])
    >>> fg.where(x > 0, x, 0.0)
    tensor([1., 0.])
    """
    if input is None and other is None:
        return functions["nonzero"](condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where() takes a condition, or a condition and both input and other")
    return where(condition, input, other)


def where_method(self: Tensor, condition: Any, other: Any) -> Any:
    """This tensor where `condition` holds, else `other`: see :func:`fastgrad.where`."""
    return where(condition, self, other)


where_method.__name__ = where_method.__qualname__ = "where"
attach("where", where_method)


def fits(name: str, value: Any, dtype: Any) -> None:
    """RuntimeError if a number cannot be written as `dtype` (a dtype of NumPy) without overflow."""
    bad = isinstance(value, complex) and dtype.kind != "c"
    if not bad and dtype.kind in "iu" and is_number(value):
        info = iinfo(dtype)
        bad = value != value or not info.min <= value <= info.max
    if bad:
        raise RuntimeError(f"{name}: value cannot be converted to type {dtype} without overflow: {value}")


def masked_fill_forward(input: Array, mask: Array, value: Any) -> Array:
    if mask.dtype != np.bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    if np.ndim(value):
        raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{np.ndim(value)} dimension(s).")
    fits("masked_fill", value if is_number(value) else value.item(), input.dtype)
    return np.where(mask, np.asarray(value).astype(input.dtype), input)


operator(
    "masked_fill(input, mask, value)",
    tensors="input mask value",
    forward=masked_fill_forward,
    vjp=dict(input=lambda g, mask: where(mask, 0, g), value=lambda g, mask: where(mask, g, 0)),
    dtypes=KEEP, jvp=dict(input=lambda t, mask: where(mask, 0, t), value=lambda t, mask: where(mask, t, 0)),
    inplace=True,
    samples=lambda make: [
        ((make(2, 3), make(2, 3).real > 0, 1.5), {}), ((make(2, 3), make(3).real > 0, make()), {}),
        ((make(), make().real > 0, 2), {}), ((make(0, 3), make(0, 3).real > 0, 2), {}),
    ],
    doc=doc("A copy with `value` where `mask` holds.", "The cotangent is 0 where filled; `value` gets the sum of it "
            "there (elementary).", arguments="input : Tensor\nmask : Tensor of bool, broadcasting with `input`\n"
            "value : number or 0-dim Tensor", returns="Of the broadcast shape and `input`'s dtype.",
            example=">>> x = fg.tensor([1.0, -2.0])\n>>> x.masked_fill(x < 0, 0.0)\ntensor([1., 0.])"),
)

# --- Bounds ----------------------------------------------------------------------------------------------------------


def clamp_forward(input: Array, min: Any, max: Any) -> Array:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [bound for bound in (min, max) if bound is not None]
    of_float = input.dtype.kind == "f" and all(type(bound) in (float, int) for bound in bounds)
    dtype = input.dtype if of_float else result_type(input, *bounds).numpy
    if dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if dtype.kind == "b":
        raise not_implemented("clamp", dtype)
    for bound in bounds:
        fits("clamp", bound, dtype)
    result = input.astype(dtype, copy=False)
    if min is not None:
        result = np.maximum(result, min if of_float else np.asarray(min).astype(dtype, copy=False))
    if max is not None:
        result = np.minimum(result, max if of_float else np.asarray(max).astype(dtype, copy=False))
    return np.asarray(result).astype(dtype, copy=False)


def inside(input: Any, min: Any, max: Any) -> Any:
    """Where the result is `input` itself. A bound counts as inside, NaN does not."""
    if min is None:
        return input <= max
    return input >= min if max is None else (input >= min) & (input <= max)


def clamp_vjp_min(g: Any, input: Any, min: Any, max: Any) -> Any:
    below = input < min
    return where(below if max is None else below & (min < max), g, 0)


def clamp_vjp_max(g: Any, input: Any, min: Any, max: Any) -> Any:
    above = input > max
    return where(above if min is None else above | (max < min), g, 0)


clamp = operator(
    "clamp(input, min=None, max=None)",
    tensors="input min max",
    forward=clamp_forward,
    vjp=dict(input=lambda g, input, min, max: where(inside(input, min, max), g, 0), min=clamp_vjp_min,
             max=clamp_vjp_max),
    dtypes=KEEP, jvp=DIAGONAL, aliases=("clip",), inplace=True, numpy=np.clip, complex=False,
    samples=lambda make: [
        ((make(2, 3), -0.5, 0.7), {}), ((make(3), None, 0.7), {}), ((make(3), 0.1), {}), ((make(), -0.5, 0.5), {}),
        ((make(2, 3), make(3), None), {}), ((make(2, 3), make(3), make(2, 1)), {}),
        ((make(0), -1, 1), {}),
    ],
    doc=doc(
        "Bound values from below, from above or both; where the bounds cross, `max` wins. NaN stays NaN.",
        "The derivative is 1 inside and at the bounds, 0 outside; a bound that is a tensor gets the cotangent where it "
        "is the result (elementary).",
        ">>> fg.tensor([-1.0, 0.5, 2.0]).clamp(0.0, 1.0)\ntensor([0.0000, 0.5000, 1.0000])",
        arguments="input : Tensor\nmin, max : number or Tensor, optional\n    At least one.",
        raises="RuntimeError\n    Without any bound, or if a bound does not fit an integer dtype.\n"
        "NotImplementedError\n    For bool and complex tensors.",
    ),
)


def one_bound(name: str, function: Any) -> Any:
    """The forward of a one-sided clamp, which is a bare loop on floats (`fused`)."""

    def forward(input: Array, bound: Array) -> Any:
        if input.dtype.kind == "c":
            raise NotImplementedError("clamp is not supported for complex types")
        if input.dtype.kind == "b":
            raise not_implemented(name, input.dtype)
        return function(input, bound)

    return forward


operator(
    "clamp_max(input, max)",
    tensors="input max", forward=one_bound("clamp_max", np.minimum),
    vjp=dict(input=lambda g, input, max: where(input <= max, g, 0), max=lambda g, input, max: where(input > max, g, 0)),
    fused=dict(forward="input > max || max != max ? max : input", input="input <= max ? g : 0.0",
               max="input > max ? g : 0.0"),
    jvp=DIAGONAL, inplace=True, complex=False,
    samples=lambda make: [((make(2, 3), 0.2), {}), ((make(3), make(2, 1)), {}), ((make(), make()), {})],
    doc=doc("Bound values from above, as ``clamp(input, max=max)``.", "1 up to the bound, 0 above (elementary).",
            arguments="input : Tensor\nmax : Tensor or number"),
)

operator(
    "clamp_min(input, min)",
    tensors="input min", forward=one_bound("clamp_min", np.maximum),
    vjp=dict(input=lambda g, input, min: where(input >= min, g, 0), min=lambda g, input, min: where(input < min, g, 0)),
    fused=dict(forward="input < min || min != min ? min : input", input="input >= min ? g : 0.0",
               min="input < min ? g : 0.0"),
    jvp=DIAGONAL, inplace=True, complex=False,
    samples=lambda make: [((make(2, 3), 0.2), {}), ((make(3), make(2, 1)), {}), ((make(), make()), {})],
    doc=doc("Bound values from below, as ``clamp(input, min=min)``.", "1 from the bound on, 0 below (elementary).",
            arguments="input : Tensor\nmin : Tensor or number"),
)

# --- The larger and the smaller of two -------------------------------------------------------------------------------


def of_two(name: str, ufunc: np.ufunc) -> Any:
    """The forward: RuntimeError for complex numbers, which have no order."""

    def forward(input: Array, other: Array) -> Any:
        if input.dtype.kind == "c":
            raise RuntimeError(f"{name} not implemented for complex tensors.")
        return ufunc(input, other)

    forward.ufunc = ufunc  # type: ignore[attr-defined]
    return forward


operator(
    "fmax(input, other)",
    forward=of_two("fmax", np.fmax), loops=REALS_AND_BOOL,
    vjp=dict(input=lambda g, input, other: where(first_is_more(input, other), g, 0),
             other=lambda g, input, other: where(first_is_more(input, other), 0, g)),
    fused=dict(input="input >= other || other != other ? g : 0.0", other="input >= other || other != other ? 0.0 : g"),
    jvp=DIAGONAL, numpy=np.fmax, complex=False,
    doc=doc("The larger of two; of a number and NaN, the number.", "A tie goes to `input` (elementary).",
            arguments="input, other : Tensor"),
)

operator(
    "fmin(input, other)",
    forward=of_two("fmin", np.fmin), loops=REALS_AND_BOOL,
    vjp=dict(input=lambda g, input, other: where(first_is_less(input, other), g, 0),
             other=lambda g, input, other: where(first_is_less(input, other), 0, g)),
    fused=dict(input="input <= other || other != other ? g : 0.0", other="input <= other || other != other ? 0.0 : g"),
    jvp=DIAGONAL, numpy=np.fmin, complex=False,
    doc=doc("The smaller of two; of a number and NaN, the number.", "A tie goes to `input` (elementary).",
            arguments="input, other : Tensor"),
)


def first_is_more(input: Any, other: Any) -> Any:
    return (input >= other) | (other != other)


def first_is_less(input: Any, other: Any) -> Any:
    return (input <= other) | (other != other)


def share(g: Any, tie: Any, lost: Any) -> Any:
    """The cotangent of one of two: half at a tie, none where the other was chosen."""
    return where(tie, g / 2, where(lost, 0, g))


operator(
    "maximum(input, other)",
    forward=of_two("maximum", np.maximum), loops=REALS_AND_BOOL,
    vjp=dict(input=lambda g, input, other: share(g, input == other, input < other),
             other=lambda g, input, other: share(g, input == other, input > other)),
    fused=dict(input="input == other ? g / 2.0 : input < other ? 0.0 : g",
               other="input == other ? g / 2.0 : input > other ? 0.0 : g"),
    jvp=DIAGONAL, numpy=np.maximum, complex=False,
    doc=doc("The larger of two; NaN if either is.", "A tie gives one half to each (elementary).",
            ">>> fg.maximum(fg.tensor([1.0, 5.0]), fg.tensor([3.0, 2.0]))\ntensor([3., 5.])",
            arguments="input, other : Tensor", raises="RuntimeError\n    For complex tensors."),
)

operator(
    "minimum(input, other)",
    forward=of_two("minimum", np.minimum), loops=REALS_AND_BOOL,
    vjp=dict(input=lambda g, input, other: share(g, input == other, input > other),
             other=lambda g, input, other: share(g, input == other, input < other)),
    fused=dict(input="input == other ? g / 2.0 : input > other ? 0.0 : g",
               other="input == other ? g / 2.0 : input < other ? 0.0 : g"),
    jvp=DIAGONAL, numpy=np.minimum, complex=False,
    doc=doc("The smaller of two; NaN if either is.", "A tie gives one half to each (elementary).",
            ">>> fg.minimum(fg.tensor([1.0, 5.0]), fg.tensor([3.0, 2.0]))\ntensor([1., 2.])",
            arguments="input, other : Tensor", raises="RuntimeError\n    For complex tensors."),
)

# --- Rectifiers ------------------------------------------------------------------------------------------------------


def relu_forward(input: Array) -> Array:
    if input.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if input.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    return np.where(input < 0, np.zeros((), input.dtype), input)


operator(
    "relu(input)",
    forward=relu_forward,
    vjp=dict(input=lambda g, result: where(result <= 0, 0, g)),
    fused=dict(forward="input < 0.0 ? 0.0 : input", input="result <= 0.0 ? 0.0 : g"),
    jvp=DIAGONAL, inplace=True, complex=False,
    doc=doc("``max(input, 0)``; NaN stays NaN.", "The derivative is 1 above 0, else 0 (elementary).",
            ">>> fg.relu(fg.tensor([-1.0, 2.0]))\ntensor([0., 2.])"),
)

operator(
    "threshold(input, threshold, value)",
    forward=lambda input, threshold, value: np.where(input <= threshold, np.asarray(value).astype(input.dtype), input),
    vjp=dict(input=lambda g, input, threshold: where(input <= threshold, 0, g)),
    jvp=DIAGONAL, method=False, complex=False,
    samples=lambda make: [((make(2, 3), 0.1, 20.0), {}), ((make(), 0.1, 20.0), {})],
    doc=doc("`value` where `input` is at most `threshold`, else `input`.",
            "The derivative is 1 above the threshold, else 0 (elementary).",
            arguments="input : Tensor\nthreshold, value : number"),
)
