"""Floor 3: exponentials, logarithms, roots, and what is made of them."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._declare import DIAGONAL, FLOAT, POSITIVE, PROMOTE, operator
from ._helpers import conj
from ._loops import FLOATS, Array, doc, is_number, not_implemented
from .selection import where

LN2 = math.log(2.0)
LN10 = math.log(10.0)

# --- Exponentials ----------------------------------------------------------------------------------------------------

operator(
    "exp(input)",
    forward=np.exp,
    vjp=dict(input=lambda g, result: g * conj(result)),
    fused=dict(input="g * result"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.exp,
    doc=doc("The exponential.", "``g * conj(result)`` (elementary).", ">>> fg.exp(fg.tensor([0.0]))\ntensor([1.])"),
)


def exp2_forward(input: Array) -> Any:
    return np.exp(input * LN2).astype(input.dtype) if input.dtype.kind == "c" else np.exp2(input)


exp2_forward.ufunc = np.exp2  # type: ignore[attr-defined]

operator(
    "exp2(input)",
    forward=exp2_forward, loops=FLOATS,
    vjp=dict(input=lambda g, result: g * conj(result) * LN2),
    fused=dict(input="g * result * 0.6931471805599453"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.exp2,
    doc=doc("2 to the power of the input.", "``g * conj(result) * log(2)`` (elementary)."),
)

operator(
    "expm1(input)",
    forward=np.expm1,
    vjp=dict(input=lambda g, result: g * (conj(result) + 1)),
    fused=dict(input="g * (result + 1.0)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.expm1,
    doc=doc("``exp(input) - 1``, accurate near 0.", "``g * (conj(result) + 1)`` (elementary)."),
)

# --- Logarithms ------------------------------------------------------------------------------------------------------

operator(
    "log(input)",
    forward=np.log,
    vjp=dict(input=lambda g, input: g / conj(input)),
    fused=dict(input="g / input"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.log, domain=POSITIVE,
    doc=doc("The natural logarithm: -inf at 0, NaN below.", "``g / conj(input)`` (elementary).",
            ">>> fg.log(fg.tensor([1.0]))\ntensor([0.])"),
)

operator(
    "log10(input)",
    forward=np.log10,
    vjp=dict(input=lambda g, input: g / (conj(input) * LN10)),
    fused=dict(input="g / (input * 2.302585092994046)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.log10, domain=POSITIVE,
    doc=doc("The logarithm to the base 10.", "``g / (conj(input) * log(10))`` (elementary)."),
)

operator(
    "log1p(input)",
    forward=np.log1p,
    vjp=dict(input=lambda g, input: g / (conj(input) + 1)),
    fused=dict(input="g / (input + 1.0)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.log1p, domain=POSITIVE,
    doc=doc("``log(1 + input)``, accurate near 0.", "``g / (conj(input) + 1)`` (elementary)."),
)

operator(
    "log2(input)",
    forward=np.log2,
    vjp=dict(input=lambda g, input: g / (conj(input) * LN2)),
    fused=dict(input="g / (input * 0.6931471805599453)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.log2, domain=POSITIVE,
    doc=doc("The logarithm to the base 2.", "``g / (conj(input) * log(2))`` (elementary)."),
)


def logaddexp_forward(input: Array, other: Array) -> Any:
    if input.dtype.kind not in "fc":
        raise not_implemented("logaddexp", input.dtype)
    if input.dtype.kind == "f":
        return np.logaddexp(input, other)
    larger = np.where(input.real >= other.real, input, other)
    smaller = np.where(input.real >= other.real, other, input)
    return larger + np.log1p(np.exp(smaller - larger))


logaddexp_forward.ufunc = np.logaddexp  # type: ignore[attr-defined]

operator(
    "logaddexp(input, other)",
    forward=logaddexp_forward, loops=FLOATS,
    vjp=dict(input=lambda g, input, other: g * conj((input - other).sigmoid()),
             other=lambda g, input, other: g * conj((other - input).sigmoid())),
    dtypes=PROMOTE, jvp=DIAGONAL, numpy=np.logaddexp,
    doc=doc("``log(exp(input) + exp(other))`` without overflow.", "``g * conj(sigmoid(input - other))``, and "
            "likewise (elementary).", arguments="input, other : Tensor"),
)


def logaddexp2_forward(input: Array, other: Array) -> Any:
    if input.dtype.kind != "f":
        raise not_implemented("logaddexp2", input.dtype)
    return np.logaddexp2(input, other)


logaddexp2_forward.ufunc = np.logaddexp2  # type: ignore[attr-defined]

operator(
    "logaddexp2(input, other)",
    forward=logaddexp2_forward, loops=FLOATS,
    vjp=dict(input=lambda g, input, other: g * ((input - other) * LN2).sigmoid(),
             other=lambda g, input, other: g * ((other - input) * LN2).sigmoid()),
    jvp=DIAGONAL, numpy=np.logaddexp2, complex=False,
    doc=doc("``log2(2**input + 2**other)`` without overflow.", "``g * sigmoid((input - other) * log(2))``, and "
            "likewise (elementary).", arguments="input, other : Tensor"),
)


def xlogy_forward(input: Array, other: Array) -> Any:
    if input.dtype.kind == "c":
        raise not_implemented("xlogy", input.dtype)
    return np.where((input == 0) & ~np.isnan(other), np.zeros((), input.dtype), input * np.log(other))


def xlogy_vjp_input(g: Any, input: Any, other: Any) -> Any:
    if is_number(other):
        slope = math.log(other) if other > 0 else -math.inf if other == 0 else math.nan
        return where((input == 0) & (other <= 0), 0, g * slope)
    return where((other <= 0) & (input == 0), 0, g * other.log())


operator(
    "xlogy(input, other)",
    forward=xlogy_forward,
    vjp=dict(input=xlogy_vjp_input, other=lambda g, input, other: g * input / other),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, domain=POSITIVE, complex=False,
    doc=doc("``input * log(other)``, and 0 wherever `input` is 0 and `other` not NaN.",
            "``g * log(other)``, 0 where the result is 0 by that rule and `other` at most 0; and ``g * input / other`` "
            "(elementary).", arguments="input, other : Tensor or number"),
)

# --- Roots -----------------------------------------------------------------------------------------------------------

operator(
    "rsqrt(input)",
    forward=lambda input: np.reciprocal(np.sqrt(input)),
    vjp=dict(input=lambda g, result: -0.5 * g * conj(result * result * result)),
    fused=dict(forward="1.0 / sqrt(input)", input="-0.5 * g * (result * result * result)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, domain=POSITIVE,
    doc=doc("``1 / sqrt(input)``.", "``-g / 2 * conj(result**3)`` (elementary)."),
)

operator(
    "sqrt(input)",
    forward=np.sqrt,
    vjp=dict(input=lambda g, result: g / (2 * conj(result))),
    fused=dict(forward="sqrt(input)", input="g / (2.0 * result)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.sqrt, domain=POSITIVE,
    doc=doc("The square root: NaN below 0.", "``g / (2 * conj(result))``: infinite at 0 (elementary).",
            ">>> fg.sqrt(fg.tensor([4.0]))\ntensor([2.])"),
)

# --- Logistic functions ----------------------------------------------------------------------------------------------


def logit_forward(input: Array, eps: float | None) -> Any:
    if input.dtype.kind == "c":
        raise not_implemented("logit", input.dtype)
    if eps is not None:
        input = np.clip(input, eps, 1 - eps)
    return np.log(input / (1 - input))


def logit_vjp_input(g: Any, input: Any, eps: float | None) -> Any:
    low = 0.0 if eps is None else eps
    inside = (input >= low) & (input <= 1 - low)
    return where(inside, g / (input * (1 - input)), math.nan if eps is None else 0)


operator(
    "logit(input, eps=None)",
    forward=logit_forward, vjp=dict(input=logit_vjp_input),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, complex=False,
    samples=lambda make: [((make(2, 3).sigmoid(),), {}), ((make().sigmoid(), 0.01), {}), ((make(0),), {})],
    doc=doc("``log(input / (1 - input))``, the inverse of sigmoid.",
            "``g / (input * (1 - input))``; outside [eps, 1 - eps] 0, outside [0, 1] without `eps` NaN (elementary).",
            arguments="input : Tensor\neps : float, optional\n    The input is first clamped to [eps, 1 - eps]."),
)

operator(
    "sigmoid(input)",
    forward=lambda input: 1 / (1 + np.exp(-input)),
    vjp=dict(input=lambda g, result: g * conj((1 - result) * result)),
    fused=dict(forward="1.0 / (1.0 + exp(-input))", input="g * ((1.0 - result) * result)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True,
    doc=doc("The logistic function ``1 / (1 + exp(-input))``.", "``g * conj((1 - result) * result)`` (elementary).",
            ">>> fg.sigmoid(fg.tensor([0.0]))\ntensor([0.5000])"),
)


def softplus_forward(input: Array, beta: float, threshold: float) -> Any:
    if input.dtype.kind != "f":
        raise not_implemented("softplus", input.dtype)
    scaled = input * beta
    return np.where(scaled > threshold, input, np.log1p(np.exp(scaled)) / beta)


operator(
    "softplus(input, beta=1.0, threshold=20.0)",
    forward=softplus_forward,
    vjp=dict(input=lambda g, input, beta, threshold: where(input * beta > threshold, g, g * (input * beta).sigmoid())),
    jvp=DIAGONAL, public=False, method=False, complex=False,
    samples=lambda make: [((make(2, 3),), {}), ((make(), 2.0, 1.0), {})],
    doc=doc("``log(1 + exp(beta * input)) / beta``; the input itself where ``beta * input`` is above `threshold`.",
            "``g * sigmoid(beta * input)``, above the threshold ``g`` (elementary).",
            arguments="input : Tensor\nbeta, threshold : float"),
)
