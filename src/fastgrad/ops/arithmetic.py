"""Floor 3: arithmetic: sums, products, quotients, powers, signs.

The number protocol (``+``, ``*``, ``**`` ...) finds the operators by their names here. Where PyTorch's function takes
more than the operands (``alpha=``, ``rounding_mode=``), the public function is a plain one that calls the operator, so
that the operator itself stays a bare loop. ``conj`` is the identity on real tensors and numbers.
"""
from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from .._dtypes import DTYPES, result_type
from .._tensor import Tensor, attach
from ._declare import BILINEAR, DIAGONAL, FLOAT, KEEP, LINEAR, NONZERO, POSITIVE, composite, operator, publish
from ._helpers import conj
from ._loops import FLOATS, INEXACT, NUMBERS, REAL_NUMBERS, Array, doc, is_number, kernel, not_implemented, zeros
from .selection import where

TWO = "input, other : Tensor or number"

# --- Sums ------------------------------------------------------------------------------------------------------------

add = operator(
    "add(input, other)",
    forward=np.add,
    vjp=dict(input=lambda g: g, other=lambda g: g),
    fused=dict(forward="input + other", input="g", other="g"),
    jvp=LINEAR, public=False, method=False, numpy=np.add,
)


def sub_forward(input: Array, other: Array) -> Any:
    if input.dtype.kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    return np.subtract(input, other)


sub_forward.ufunc = np.subtract  # type: ignore[attr-defined]

sub = operator(
    "sub(input, other)",
    forward=sub_forward, loops=NUMBERS,
    vjp=dict(input=lambda g: g, other=lambda g: -g),
    fused=dict(forward="input - other", input="g", other="-g"),
    jvp=LINEAR, public=False, method=False, numpy=np.subtract,
)


def times_alpha(name: str, input: Any, other: Any, alpha: Any) -> Any:
    """``alpha * other`` in the dtype of the sum, after PyTorch's checks of alpha."""
    if not is_number(alpha):
        raise TypeError(f"{name}(): argument 'alpha' must be Number, not {type(alpha).__name__}")
    dtype = result_type(*[x if is_number(x) or isinstance(x, Tensor) else np.asarray(x) for x in (input, other)])
    if isinstance(alpha, complex) and not dtype.is_complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if isinstance(alpha, float) and dtype.category < 2:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if dtype.category == 0:
        alpha = bool(alpha)
    if isinstance(other, Tensor) and other.dtype != dtype:
        other = other.to(dtype)
    return other * alpha


ALPHA = (
    "input, other : Tensor or number\nalpha : number\n    What `other` is multiplied with first; of no higher category "
    "than the result."
)


def add_public(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return add(input, other) if type(alpha) is int and alpha == 1 else add(
        input, times_alpha("add", input, other, alpha))


def add_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    if not (type(alpha) is int and alpha == 1):
        other = times_alpha("add", self, other, alpha)
    return add.inplace(self, other)


def sub_public(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return sub(input, other) if type(alpha) is int and alpha == 1 else sub(
        input, times_alpha("sub", input, other, alpha))


def sub_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    if not (type(alpha) is int and alpha == 1):
        other = times_alpha("sub", self, other, alpha)
    return sub.inplace(self, other)


def present(function: Any, inplace: Any, names: tuple[str, ...], text: str) -> None:
    """Publish a plain function around an operator, and its in-place form."""
    function.__name__ = function.__qualname__ = names[0]
    function.__module__ = "fastgrad"
    function.__doc__ = text
    publish(function, names, method=True, public=True)
    inplace.__doc__ = f"In-place form of :func:`fastgrad.{names[0]}`: writes into the tensor and returns it."
    for name in names:
        attach(f"{name}_", inplace)


present(add_public, add_, ("add",), doc(
    "``input + alpha * other``; logical or on bool.", "Linear: saves nothing (elementary).",
    ">>> fg.add(fg.tensor([1.0, 2.0]), 10)\ntensor([11., 12.])", arguments=ALPHA))
present(sub_public, sub_, ("sub", "subtract"), doc(
    "``input - alpha * other``.", "Linear: saves nothing (elementary).",
    ">>> fg.sub(fg.tensor([1.0, 2.0]), 1)\ntensor([0., 1.])", arguments=ALPHA,
    raises="RuntimeError\n    For two bool tensors."))


@composite("rsub(input, other, *, alpha=1)", samples=lambda make: [((make(2, 3), make(3)), {}), ((make(), 2), {})])
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """``other - alpha * input``."""
    return sub_public(other, input, alpha=alpha)


def neg_forward(input: Array) -> Any:
    if input.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    return np.negative(input)


neg_forward.ufunc = np.negative  # type: ignore[attr-defined]

operator(
    "neg(input)",
    forward=neg_forward, loops=NUMBERS,
    vjp=dict(input=lambda g: -g),
    fused=dict(forward="-input", input="-g"),
    jvp=LINEAR, aliases=("negative",), inplace=True, numpy=np.negative,
    doc=doc("``-input``.", "Linear: saves nothing (elementary).",
            ">>> fg.neg(fg.tensor([1.0, -2.0]))\ntensor([-1.,  2.])", raises="RuntimeError\n    For bool."),
)

# --- Products and quotients ------------------------------------------------------------------------------------------

operator(
    "mul(input, other)",
    forward=np.multiply,
    vjp=dict(input=lambda g, other: g * conj(other), other=lambda g, input: g * conj(input)),
    fused=dict(forward="input * other", input="g * other", other="g * input"),
    jvp=BILINEAR, aliases=("multiply",), inplace=True, numpy=np.multiply,
    doc=doc("``input * other``; logical and on bool.",
            "Each factor's cotangent is the conjugate of the other times the cotangent, so each is saved only if the "
            "other requires grad (elementary).",
            ">>> fg.mul(fg.tensor([1.0, 2.0]), 10)\ntensor([10., 20.])", arguments=TWO),
)

div = operator(
    "div(input, other)",
    forward=np.true_divide,
    vjp=dict(input=lambda g, other: g / conj(other),
             other=lambda g, input, other: -g * conj(input / other / other)),
    fused=dict(forward="input / other", input="g / other", other="-g * (input / other / other)"),
    dtypes=FLOAT, jvp=DIAGONAL, domain=NONZERO, public=False, method=False, numpy=np.true_divide,
)


def quotient_forward(name: str, ufunc: np.ufunc) -> Any:
    """A forward that rounds or keeps a remainder: PyTorch's error where an integer is divided by 0."""

    def forward(input: Array, other: Array) -> Any:
        kind = input.dtype.kind
        if kind in "bc":
            raise not_implemented(name, input.dtype)
        if kind in "iu" and not np.all(other):
            raise RuntimeError(f"ZeroDivisionError: {name}: an integer tensor is divided by zero")
        return ufunc(input, other)

    forward.ufunc = ufunc  # type: ignore[attr-defined]
    return forward


QUOTIENT_ERRORS = (
    "RuntimeError\n    (\"ZeroDivisionError\") Where an integer is divided by 0; floats give inf and NaN.\n"
    "NotImplementedError\n    For bool and complex tensors."
)

floor_divide = operator(
    "floor_divide(input, other)",
    forward=quotient_forward("floor_divide", np.floor_divide), loops=FLOATS,
    vjp=dict(input=lambda g: zeros(g), other=lambda g: zeros(g)),
    jvp=DIAGONAL, inplace=True, numpy=np.floor_divide, domain=NONZERO, complex=False,
    doc=doc("``floor(input / other)``.", "The derivative is 0 (elementary).", arguments=TWO, raises=QUOTIENT_ERRORS),
)


def trunc_quotient(input: Array, other: Array) -> Any:
    """The quotient rounded towards 0, exactly for integers of every width."""
    if input.dtype.kind == "f":
        return np.trunc(np.true_divide(input, other))
    return floor_quotient_towards_zero(input, other)


def floor_quotient_towards_zero(input: Array, other: Array) -> Any:
    quotient = np.floor_divide(input, other)
    inexact = np.not_equal(np.multiply(quotient, other), input)
    return quotient + ((input < 0) != (other < 0)).astype(quotient.dtype) * inexact.astype(quotient.dtype)


div_trunc = operator(
    "_div_trunc(input, other)",
    forward=quotient_forward("div_trunc", trunc_quotient),  # type: ignore[arg-type]
    vjp=dict(input=lambda g: zeros(g), other=lambda g: zeros(g)),
    node="Div", public=False, method=False, domain=NONZERO, complex=False,
)

ROUNDED = {"floor": floor_divide, "trunc": div_trunc}


def rounded(mode: Any) -> Any:
    """The operator for a rounding mode that is not None."""
    if mode not in ROUNDED:
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'")
    return ROUNDED[mode]


def div_public(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    return div(input, other) if rounding_mode is None else rounded(rounding_mode)(input, other)


def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    return (div if rounding_mode is None else rounded(rounding_mode)).inplace(self, other)


present(div_public, div_, ("div", "divide"), doc(
    "``input / other``; integers give the default dtype.",
    "The cotangents are ``g / conj(other)`` and ``-g * conj(input / other**2)``; with a rounding mode, 0 (elementary).",
    ">>> fg.div(fg.tensor([7, -7]), 2, rounding_mode=\"trunc\")\ntensor([ 3, -3])",
    arguments="input, other : Tensor or number\nrounding_mode : None, \"floor\" or \"trunc\"\n"
    "    Rounding keeps integers integers.",
    raises="RuntimeError\n    (\"ZeroDivisionError\") Where an integer is divided by 0 with rounding."))


@composite("true_divide(input, other)", samples=lambda make: [((make(2, 3), make(3) + 5), {}), ((2, make(3) + 5), {})])
def true_divide(input: Any, other: Any) -> Any:
    """``input / other``, as :func:`fastgrad.div` without rounding."""
    return div(input, other)


def true_divide_(self: Tensor, other: Any) -> Tensor:
    """In-place form of :func:`fastgrad.true_divide`."""
    return div.inplace(self, other)


attach("true_divide_", true_divide_)

operator(
    "fmod(input, other)",
    forward=quotient_forward("fmod", np.fmod), loops=FLOATS,
    vjp=dict(input=lambda g: g, other=lambda g, input, other: -g * div_trunc(input, other)),
    fused=dict(input="g", other="-g * trunc(input / other)"),
    jvp=DIAGONAL, inplace=True, numpy=np.fmod, domain=NONZERO, complex=False,
    doc=doc("The remainder of division rounded towards 0; it has `input`'s sign.",
            "The derivative by `input` is 1, by `other` minus the rounded quotient (elementary).", arguments=TWO,
            raises=QUOTIENT_ERRORS),
)

operator(
    "reciprocal(input)",
    forward=np.reciprocal,
    vjp=dict(input=lambda g, result: -g * conj(result * result)),
    fused=dict(forward="1.0 / input", input="-g * (result * result)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.reciprocal, domain=POSITIVE,
    doc=doc("``1 / input``; integers give the default dtype.", "``-g * conj(result**2)`` (elementary)."),
)

operator(
    "remainder(input, other)",
    forward=quotient_forward("remainder", np.remainder), loops=FLOATS,
    vjp=dict(input=lambda g: g, other=lambda g, input, other: -g * floor_divide(input, other)),
    jvp=DIAGONAL, inplace=True, numpy=np.remainder, domain=NONZERO, complex=False,
    doc=doc("The remainder of division rounded down; it has `other`'s sign.",
            "The derivative by `input` is 1, by `other` minus the rounded quotient (elementary).", arguments=TWO,
            raises=QUOTIENT_ERRORS),
)

# --- Powers ----------------------------------------------------------------------------------------------------------


def pow_forward(input: Any, exponent: Any) -> Any:
    """Both arrive as they were given, since an integer to a negative power is an error only for a number."""
    dtype = result_type(input, exponent).numpy
    if dtype.kind == "b":
        raise not_implemented("pow", dtype)
    if dtype.kind in "iu" and is_number(exponent) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed: use a float exponent or tensor.")
    base = np.asarray(input).astype(dtype, copy=False)
    power = np.asarray(exponent).astype(dtype, copy=False)
    if dtype.kind != "i" or not np.any(power < 0):
        return np.power(base, power)
    result = np.power(base, np.maximum(power, 0))
    ones = np.where(base == 1, 1, np.where(base == -1, 1 - 2 * (power & 1), 0))
    return np.where(power < 0, ones, result).astype(dtype)


pow_forward.ufunc = np.power  # type: ignore[attr-defined]


def pow_vjp_input(g: Any, input: Any, exponent: Any) -> Any:
    if is_number(exponent):
        return zeros(g) if exponent == 0 else g * conj(exponent * input ** (exponent - 1))
    return where(exponent == 0, 0, g * conj(exponent * input ** (exponent - 1)))


def pow_vjp_exponent(g: Any, input: Any, exponent: Any, result: Any) -> Any:
    """``g * conj(result * log(input))``, and 0 for 0 to a power that is not negative."""
    real, imag = (exponent.real, exponent.imag) if exponent.dtype.is_complex else (exponent, None)
    at_zero = real >= 0 if imag is None else (real >= 0) & (imag == 0)
    if not is_number(input):
        slope = result * (input.to(result.dtype) if result.dtype.is_complex else input).log()
        return g * where((input == 0) & at_zero, 0, conj(slope))
    if input == 0:
        return g * where(at_zero, 0, conj(result * -math.inf))
    if result.dtype.is_complex:
        return g * conj(result * cmath.log(input))
    return g * (result * (math.log(input) if input > 0 else math.nan))


def pow_samples(make: Any) -> Any:
    positive = abs(make(2, 3)) + 0.5
    return [
        ((make(2, 3), 2), {}), ((make(2, 3), 3), {}), ((make(3), 0), {}), ((positive, 0.5), {}), ((positive, -1.5), {}),
        ((positive, make(3)), {}), ((positive, make()), {}), ((2.0, make(3)), {}), ((make(0), 2), {}),
    ]


# The fused forms take the roots and squares that NumPy's power takes for the same exponents.
power = operator(
    "pow(input, exponent)",
    tensors="input exponent", forward=pow_forward, loops=INEXACT,
    vjp=dict(input=pow_vjp_input, exponent=pow_vjp_exponent),
    fused=dict(
        input="exponent == 0.0 ? 0.0 : g * (exponent == 2.0 ? 2.0 * input : exponent == 3.0 ? 3.0 * (input * input) : "
              "exponent == 1.5 ? 1.5 * sqrt(input) : exponent * pow(input, exponent - 1.0))",
        exponent="g * (input == 0.0 && exponent >= 0.0 ? 0.0 : result * log(input))"),
    dtypes=KEEP, jvp=DIAGONAL, public=False, method=False, numpy=np.power, samples=pow_samples,
)

power_tensor = operator(
    "_pow_tensor(input, exponent)",
    tensors="input exponent", forward=pow_forward, loops=INEXACT,
    vjp=dict(input=pow_vjp_input, exponent=pow_vjp_exponent),
    fused=dict(
        input="exponent == 0.0 ? 0.0 : "
              "g * (exponent == 1.5 ? 1.5 * sqrt(input) : exponent * pow(input, exponent - 1.0))",
        exponent="g * (input == 0.0 && exponent >= 0.0 ? 0.0 : result * log(input))"),
    dtypes=KEEP, jvp=DIAGONAL, node="PowBackward1", public=False, method=False, samples=pow_samples,
)


def pow_public(input: Any, exponent: Any) -> Any:
    return (power if is_number(exponent) else power_tensor)(input, exponent)


def pow_(self: Tensor, exponent: Any) -> Tensor:
    return (power if is_number(exponent) else power_tensor).inplace(self, exponent)


present(pow_public, pow_, ("pow",), doc(
    "``input ** exponent``.",
    "``g * conj(exponent * input**(exponent - 1))``, 0 for the exponent 0; and ``g * conj(result * log(input))``, 0 "
    "where 0 is raised to a power that is not negative (elementary).",
    ">>> fg.pow(fg.tensor([1.0, 2.0, 3.0]), 2)\ntensor([1., 4., 9.])",
    arguments="input, exponent : Tensor or number",
    raises="RuntimeError\n    For an integer tensor to a negative integer number. (A negative tensor gives 0, 1 or "
    "-1.)"))


@composite("float_power(input, exponent)", numpy=np.float_power,
           samples=lambda make: [((abs(make(2, 3)) + 0.5, make(3)), {}), ((make(3), 2), {}), ((2, make(3)), {})])
def float_power(input: Any, exponent: Any) -> Any:
    """``input ** exponent`` computed in float64, or complex128 if either is complex."""
    kind = DTYPES[13] if result_type(input, exponent).is_complex else DTYPES[11]
    wide = [x.to(kind) if isinstance(x, Tensor) else (complex(x) if kind.is_complex else float(x))
            for x in (input, exponent)]
    return pow_public(*wide)


def square_forward(input: Array) -> Any:
    return np.square(input.astype(np.int64) if input.dtype.kind == "b" else input)


square_forward.ufunc = np.square  # type: ignore[attr-defined]

operator(
    "square(input)",
    forward=square_forward, loops=NUMBERS,
    vjp=dict(input=lambda g, input: g * (2 * conj(input))),
    fused=dict(forward="input * input", input="g * (2.0 * input)"),
    jvp=DIAGONAL, inplace=True, node="Pow", numpy=np.square,
    doc=doc("``input * input``.", "``2 * g * conj(input)`` (elementary)."),
)

# --- Signs -----------------------------------------------------------------------------------------------------------

absolute = operator(
    "abs(input)",
    forward=kernel("abs", np.absolute, "iufc"), loops=REAL_NUMBERS,
    vjp=dict(input=lambda g, input: g * input.sgn()),
    fused=dict(forward="fabs(input)", input="g * ((input > 0.0) - (input < 0.0))"),
    jvp=dict(input=lambda t, input: (t * conj(input.sgn())).real if input.dtype.is_complex else t * input.sgn()),
    aliases=("absolute",), numpy=(np.absolute, np.fabs),
    doc=doc("The absolute value; of complex numbers it is real.",
            "``g * sgn(input)``, 0 at 0 (elementary; complex: conjugate convention).",
            ">>> fg.abs(fg.tensor([-1.0, 2.0]))\ntensor([1., 2.])", raises="NotImplementedError\n    For bool."),
)


def abs_(self: Tensor) -> Tensor:
    """In-place form of :func:`fastgrad.abs`; RuntimeError for complex tensors, whose absolute value is real."""
    if self.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return absolute.inplace(self)


attach("abs_", abs_)
attach("absolute_", abs_)


def positive_forward(input: Array) -> Array:
    if input.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


operator(
    "positive(input)",
    forward=positive_forward, vjp=dict(input=lambda g: g), dtypes=KEEP, jvp=LINEAR, view=True, numpy=np.positive,
    doc=doc("``+input``: a view of it.", "Linear: saves nothing (elementary).", raises="RuntimeError\n    For bool."),
)


def sign_forward(input: Array) -> Any:
    """-1, 0 or 1; 0 for NaN as in PyTorch."""
    if input.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return sgn_forward(input)


def sgn_forward(input: Array) -> Any:
    kind = input.dtype.kind
    if kind == "b":
        return input.copy()
    if kind == "c":
        size = np.abs(input)
        return np.where(size == 0, 0, input / np.where(size == 0, 1, size)).astype(input.dtype)
    result = np.sign(input)
    return np.where(np.isnan(result), 0, result).astype(input.dtype) if kind == "f" else result


def sgn_vjp_input(g: Any, input: Any, result: Any) -> Any:
    """0 for real numbers. For complex ones the part of g / abs along the unit vector is removed."""
    if not input.dtype.is_complex:
        return zeros(g)
    size = input.abs()
    at_zero = size == 0
    size = where(at_zero, 1, size)
    return where(at_zero, 0, (g - (g * conj(result)).real * result) / size)


operator(
    "sgn(input)",
    forward=sgn_forward,
    vjp=dict(input=sgn_vjp_input),
    fused=dict(forward="(input > 0.0) - (input < 0.0)"),
    jvp=DIAGONAL, inplace=True,
    source="elementary; complex: d(z/|z|) in the conjugate convention",
    doc=doc("The sign; of complex numbers ``input / abs(input)``, 0 at 0.", "0 for real numbers (elementary)."),
)

operator(
    "sign(input)",
    forward=sign_forward,
    vjp=dict(input=lambda g: zeros(g)),
    fused=dict(forward="(input > 0.0) - (input < 0.0)"),
    jvp=DIAGONAL, inplace=True, numpy=np.sign, complex=False,
    doc=doc("-1, 0 or 1; 0 for NaN.", "The derivative is 0 (elementary).",
            raises="NotImplementedError\n    For complex tensors: use sgn."),
)
