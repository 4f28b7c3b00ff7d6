"""Floor 3: trigonometric and hyperbolic functions and their inverses.

Formulas hold for complex numbers on the principal branches (NumPy's, which are those of C99 and of PyTorch).
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._declare import ABOVE_ONE, DIAGONAL, FLOAT, LINEAR, REALS, UNIT, operator
from ._helpers import conj
from ._loops import FLOATS, Array, doc, not_implemented
from .selection import where

# --- Trigonometric ---------------------------------------------------------------------------------------------------


def scaled(name: str, factor: float) -> Any:
    """A forward that multiplies by a constant; RuntimeError for complex tensors."""

    def forward(input: Array) -> Any:
        if input.dtype.kind == "c":
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        return input * input.dtype.type(factor)

    return forward


operator(
    "cos(input)",
    forward=np.cos,
    vjp=dict(input=lambda g, input: g * -conj(input.sin())),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.cos,
    doc=doc("The cosine.", "``-g * conj(sin(input))`` (elementary).", ">>> fg.cos(fg.tensor([0.0]))\ntensor([1.])"),
)

operator(
    "deg2rad(input)",
    forward=scaled("deg2rad", math.pi / 180),
    vjp=dict(input=lambda g: g * (math.pi / 180)),
    fused=dict(forward="input * 0.017453292519943295", input="g * 0.017453292519943295"),
    dtypes=FLOAT, jvp=LINEAR, inplace=True, numpy=(np.deg2rad, np.radians), node="Deg2Rad", complex=False,
    doc=doc("Degrees to radians.", "Linear: saves nothing (elementary)."),
)

operator(
    "rad2deg(input)",
    forward=scaled("rad2deg", 180 / math.pi),
    vjp=dict(input=lambda g: g * (180 / math.pi)),
    fused=dict(forward="input * 57.29577951308232", input="g * 57.29577951308232"),
    dtypes=FLOAT, jvp=LINEAR, inplace=True, numpy=(np.rad2deg, np.degrees), node="Rad2Deg", complex=False,
    doc=doc("Radians to degrees.", "Linear: saves nothing (elementary)."),
)

operator(
    "sin(input)",
    forward=np.sin,
    vjp=dict(input=lambda g, input: g * conj(input.cos())),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.sin,
    doc=doc("The sine.", "``g * conj(cos(input))`` (elementary).", ">>> fg.sin(fg.tensor([0.0]))\ntensor([0.])"),
)


def sinc_forward(input: Array) -> Any:
    scaled = input * input.dtype.type(math.pi)
    return np.where(input == 0, input.dtype.type(1),
                    np.sin(scaled) / np.where(input == 0, 1, scaled)).astype(input.dtype)


def sinc_vjp_input(g: Any, input: Any) -> Any:
    """``(pi x cos(pi x) - sin(pi x)) / (pi x^2)``, and its limit 0 at 0."""
    at_zero = input == 0
    x = where(at_zero, 1, input)
    scaled = x * math.pi
    return where(at_zero, 0, g * conj((scaled * scaled.cos() - scaled.sin()) / (scaled * x)))


operator(
    "sinc(input)",
    forward=sinc_forward, vjp=dict(input=sinc_vjp_input),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.sinc,
    doc=doc("``sin(pi * input) / (pi * input)``, 1 at 0.", "Elementary; 0 at 0."),
)

operator(
    "tan(input)",
    forward=np.tan,
    vjp=dict(input=lambda g, result: g * conj(1 + result * result)),
    fused=dict(input="g * (1.0 + result * result)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.tan, domain=(-1.4, 1.4),
    doc=doc("The tangent.", "``g * conj(1 + result**2)`` (elementary).", ">>> fg.tan(fg.tensor([0.0]))\ntensor([0.])"),
)

# --- Inverse trigonometric -------------------------------------------------------------------------------------------

operator(
    "acos(input)",
    forward=np.arccos,
    vjp=dict(input=lambda g, input: g * -conj((1 - input * input).rsqrt())),
    fused=dict(input="g * -(1.0 / sqrt(1.0 - input * input))"),
    dtypes=FLOAT, jvp=DIAGONAL, aliases=("arccos",), inplace=True, numpy=np.arccos, domain=UNIT,
    doc=doc("The inverse cosine, in [0, pi].", "``-g * conj((1 - input**2) ** -0.5)`` (elementary)."),
)

operator(
    "asin(input)",
    forward=np.arcsin,
    vjp=dict(input=lambda g, input: g * conj((1 - input * input).rsqrt())),
    fused=dict(input="g * (1.0 / sqrt(1.0 - input * input))"),
    dtypes=FLOAT, jvp=DIAGONAL, aliases=("arcsin",), inplace=True, numpy=np.arcsin, domain=UNIT,
    doc=doc("The inverse sine, in [-pi/2, pi/2].", "``g * conj((1 - input**2) ** -0.5)`` (elementary)."),
)

operator(
    "atan(input)",
    forward=np.arctan,
    vjp=dict(input=lambda g, input: g / conj(input * input + 1)),
    fused=dict(input="g / (input * input + 1.0)"),
    dtypes=FLOAT, jvp=DIAGONAL, aliases=("arctan",), inplace=True, numpy=np.arctan, domain=REALS,
    doc=doc("The inverse tangent, in (-pi/2, pi/2).", "``g / conj(1 + input**2)`` (elementary)."),
)


def atan2_forward(input: Array, other: Array) -> Any:
    if input.dtype.kind == "c":
        raise not_implemented("atan2", input.dtype)
    return np.arctan2(input, other)


atan2_forward.ufunc = np.arctan2  # type: ignore[attr-defined]


def radius2(y: Any, x: Any) -> Any:
    """``x**2 + y**2``, and 1 at the origin, where the gradient is to be 0."""
    return where((y == 0) & (x == 0), 1, y * y + x * x)


operator(
    "atan2(input, other)",
    forward=atan2_forward, loops=FLOATS,
    vjp=dict(input=lambda g, input, other: g * (other / radius2(input, other)),
             other=lambda g, input, other: g * -(input / radius2(input, other))),
    fused=dict(input="g * (other / (input == 0.0 && other == 0.0 ? 1.0 : input * input + other * other))",
               other="g * -(input / (input == 0.0 && other == 0.0 ? 1.0 : input * input + other * other))"),
    dtypes=FLOAT, jvp=DIAGONAL, aliases=("arctan2",), inplace=True, numpy=np.arctan2, complex=False,
    doc=doc("The angle of the point (other, input), in [-pi, pi].",
            "``g * other / r**2`` and ``-g * input / r**2``, 0 at the origin (elementary).",
            arguments="input, other : Tensor or number"),
)

# --- Hyperbolic ------------------------------------------------------------------------------------------------------

operator(
    "cosh(input)",
    forward=np.cosh,
    vjp=dict(input=lambda g, input: g * conj(input.sinh())),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.cosh,
    doc=doc("The hyperbolic cosine.", "``g * conj(sinh(input))`` (elementary)."),
)

operator(
    "sinh(input)",
    forward=np.sinh,
    vjp=dict(input=lambda g, input: g * conj(input.cosh())),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.sinh,
    doc=doc("The hyperbolic sine.", "``g * conj(cosh(input))`` (elementary)."),
)

operator(
    "tanh(input)",
    forward=np.tanh,
    vjp=dict(input=lambda g, result: g * conj(1 - result * result)),
    fused=dict(input="g * (1.0 - result * result)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.tanh,
    doc=doc("The hyperbolic tangent.", "``g * conj(1 - result**2)`` (elementary).",
            ">>> fg.tanh(fg.tensor([0.0]))\ntensor([0.])"),
)

# --- Inverse hyperbolic ----------------------------------------------------------------------------------------------


def acosh_vjp_input(g: Any, input: Any) -> Any:
    if input.dtype.is_complex:           # two roots: the root of the product has its cut elsewhere
        return g / conj((input - 1).sqrt() * (input + 1).sqrt())
    return g * (input * input - 1).rsqrt()


operator(
    "acosh(input)",
    forward=np.arccosh, vjp=dict(input=acosh_vjp_input),
    fused=dict(input="g * (1.0 / sqrt(input * input - 1.0))"),
    dtypes=FLOAT, jvp=DIAGONAL, aliases=("arccosh",), inplace=True, numpy=np.arccosh, domain=ABOVE_ONE,
    doc=doc("The inverse hyperbolic cosine.", "``g * (input**2 - 1) ** -0.5`` (elementary)."),
)

operator(
    "asinh(input)",
    forward=np.arcsinh,
    vjp=dict(input=lambda g, input: g * conj((input * input + 1).rsqrt())),
    fused=dict(input="g * (1.0 / sqrt(input * input + 1.0))"),
    dtypes=FLOAT, jvp=DIAGONAL, aliases=("arcsinh",), inplace=True, numpy=np.arcsinh,
    doc=doc("The inverse hyperbolic sine.", "``g * conj((input**2 + 1) ** -0.5)`` (elementary)."),
)

operator(
    "atanh(input)",
    forward=np.arctanh,
    vjp=dict(input=lambda g, input: g / conj(1 - input * input)),
    fused=dict(input="g / (1.0 - input * input)"),
    dtypes=FLOAT, jvp=DIAGONAL, aliases=("arctanh",), inplace=True, numpy=np.arctanh, domain=UNIT,
    doc=doc("The inverse hyperbolic tangent.", "``g / conj(1 - input**2)`` (elementary)."),
)

# --- Distance --------------------------------------------------------------------------------------------------------


def hypot_forward(input: Array, other: Array) -> Any:
    if input.dtype.kind != "f":
        raise not_implemented("hypot", input.dtype)
    return np.hypot(input, other)


hypot_forward.ufunc = np.hypot  # type: ignore[attr-defined]

operator(
    "hypot(input, other)",
    forward=hypot_forward, loops=FLOATS,
    vjp=dict(input=lambda g, input, result: g * (input / result), other=lambda g, other, result: g * (other / result)),
    fused=dict(input="g * (input / result)", other="g * (other / result)"),
    jvp=DIAGONAL, inplace=True, numpy=np.hypot, complex=False,
    doc=doc("``sqrt(input**2 + other**2)`` without overflow.",
            "``g * input / result`` and ``g * other / result``: NaN at the origin (elementary).",
            arguments="input, other : Tensor"),
)
