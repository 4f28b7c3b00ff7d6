"""Floor 3: rounding, and taking numbers apart into their pieces."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor import Tensor
from ._declare import DIAGONAL, FLOAT, KEEP, LINEAR, NONZERO, SAME, composite, operator
from ._loops import FLOATS, Array, doc, not_implemented, zeros
from .arithmetic import present
from .selection import where

FLAT = "The derivative is 0 (elementary)."
NO_KERNEL = "NotImplementedError\n    For bool and complex tensors."

# --- To whole numbers ------------------------------------------------------------------------------------------------


def rounding(name: str, ufunc: np.ufunc) -> Any:
    """A forward that rounds floats and leaves integers as they are."""

    def forward(input: Array) -> Any:
        if input.dtype.kind in "bc":
            raise not_implemented(name, input.dtype)
        return input.copy() if input.dtype.kind in "iu" else ufunc(input)

    forward.ufunc = ufunc  # type: ignore[attr-defined]
    return forward


operator(
    "ceil(input)",
    forward=rounding("ceil", np.ceil), loops=FLOATS, vjp=dict(input=lambda g: zeros(g)),
    fused=dict(forward="ceil(input)"), jvp=DIAGONAL, inplace=True, numpy=np.ceil, complex=False,
    doc=doc("Rounded up; integers stay.", FLAT, raises=NO_KERNEL),
)

operator(
    "floor(input)",
    forward=rounding("floor", np.floor), loops=FLOATS, vjp=dict(input=lambda g: zeros(g)),
    fused=dict(forward="floor(input)"), jvp=DIAGONAL, inplace=True, numpy=np.floor, complex=False,
    doc=doc("Rounded down; integers stay.", FLAT, ">>> fg.floor(fg.tensor([-0.5, 1.5]))\ntensor([-1.,  1.])",
            raises=NO_KERNEL),
)


def frac_forward(input: Array) -> Any:
    if input.dtype.kind != "f":
        raise not_implemented("frac", input.dtype)
    return input - np.trunc(input)


operator(
    "frac(input)",
    forward=frac_forward, vjp=dict(input=lambda g: g),
    fused=dict(forward="input - trunc(input)", input="g"), jvp=LINEAR, inplace=True, complex=False,
    doc=doc("The part after the point, with the sign of the input.",
            "The derivative is 1: saves nothing (elementary)."),
)

round_whole = operator(
    "round(input)",
    forward=rounding("round", np.rint), loops=FLOATS, vjp=dict(input=lambda g: zeros(g)),
    fused=dict(forward="rint(input)"), jvp=DIAGONAL, public=False, method=False,
    complex=False, doc=doc("Rounded to the nearest whole number, halves to even; integers stay.", FLAT),
)


def round_decimals_forward(input: Array, decimals: int) -> Any:
    if input.dtype.kind != "f":
        raise not_implemented("round", input.dtype)
    scale: Any = 10.0 ** abs(decimals)
    wide = input.astype(np.float32) if input.dtype == np.float16 else input
    scale = wide.dtype.type(scale)
    result = np.rint(wide * scale) / scale if decimals >= 0 else np.rint(wide / scale) * scale
    return np.asarray(result).astype(input.dtype)


round_decimals = operator(
    "_round_decimals(input, decimals)",
    forward=round_decimals_forward, vjp=dict(input=lambda g: zeros(g)), jvp=DIAGONAL, node="Round",
    doc=doc("Rounded to `decimals` digits.", FLAT, arguments="input : Tensor\ndecimals : int"), public=False,
    method=False, complex=False, samples=lambda make: [((make(2, 3), 1), {}), ((make(), -1), {})],
)


def round_public(input: Any, *, decimals: int = 0) -> Any:
    return round_whole(input) if decimals == 0 else round_decimals(input, decimals)


def round_(self: Tensor, *, decimals: int = 0) -> Tensor:
    return round_whole.inplace(self) if decimals == 0 else round_decimals.inplace(self, decimals)


present(round_public, round_, ("round",), doc(
    "Rounded to the nearest whole number, halves to even; integers stay.", FLAT,
    ">>> fg.round(fg.tensor([0.5, 1.5, -0.7]))\ntensor([ 0.,  2., -1.])",
    arguments="input : Tensor\ndecimals : int\n    Digits after the point to keep; negative: before it. Floats only, "
    "if not 0.",
    raises=NO_KERNEL))

operator(
    "trunc(input)",
    forward=rounding("trunc", np.trunc), loops=FLOATS, vjp=dict(input=lambda g: zeros(g)),
    fused=dict(forward="trunc(input)"), jvp=DIAGONAL, aliases=("fix",), inplace=True, numpy=(np.trunc, np.fix),
    complex=False, doc=doc("Rounded towards 0; integers stay.", FLAT, raises=NO_KERNEL),
)

# --- Pieces of a number ----------------------------------------------------------------------------------------------


def copysign_forward(input: Array, other: Array) -> Any:
    if input.dtype.kind == "c":
        raise not_implemented("copysign", input.dtype)
    return np.copysign(input, other)


copysign_forward.ufunc = np.copysign  # type: ignore[attr-defined]

operator(
    "copysign(input, other)",
    forward=copysign_forward, loops=FLOATS,
    vjp=dict(input=lambda g, input, result: where(input == 0, 0, g * (result.sgn() * input.sgn())),
             other=lambda g: zeros(g)),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, numpy=np.copysign, domain=NONZERO, complex=False,
    doc=doc("`input` with the sign of `other`.", "1 or -1 as the sign was kept or changed, 0 at 0; 0 by `other` "
            "(elementary).", arguments="input, other : Tensor or number"),
)


def frexp_forward(input: Array) -> Any:
    if input.dtype.kind != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return np.frexp(input)


def frexp_vjp_input(g: Any, result: Any) -> Any:
    return g * (-result[1]).exp2()


operator(
    "frexp(input)",
    forward=frexp_forward, vjp=dict(input=frexp_vjp_input), outputs=("mantissa", "exponent"),
    nondifferentiable=("exponent",), dtypes=KEEP, jvp=DIAGONAL, numpy=np.frexp, complex=False,
    doc=doc("Mantissa in [0.5, 1) and exponent, so that ``input = mantissa * 2**exponent``.",
            "``g * 2**-exponent`` for the mantissa (elementary).",
            returns="A named tuple of mantissa and exponent (int32)."),
)


def heaviside_forward(input: Array, values: Array) -> Any:
    if not isinstance(values, np.ndarray):
        raise TypeError(f"heaviside(): argument 'values' must be Tensor, not {type(values).__name__}")
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes: "
                           f"{input.dtype} and {values.dtype}")
    if input.dtype.kind == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    return np.where(input == 0, values, (input > 0).astype(input.dtype))


operator(
    "heaviside(input, values)",
    tensors="input values", forward=heaviside_forward, dtypes=SAME, differentiable=False, inplace=True,
    numpy=np.heaviside, complex=False, samples=lambda make: [((make(2, 3), make(3)), {}), ((make(), make()), {})],
    doc=doc("0 below 0, 1 above, and `values` at 0; NaN counts as below.",
            arguments="input, values : Tensor\n    Of one dtype.", raises="RuntimeError\n    If the dtypes differ."),
)


@composite("ldexp(input, other)", numpy=np.ldexp, samples=lambda make: [((make(2, 3), make(3)), {})])
def ldexp(input: Any, other: Any) -> Any:
    """``input * 2**other``.

    Parameters
    ----------
    input, other : Tensor
    """
    return input * (2.0 ** other)


def nan_to_num_forward(input: Array, nan: Any, posinf: Any, neginf: Any) -> Any:
    if input.dtype.kind not in "fc":
        return input.copy()
    return np.nan_to_num(input, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


operator(
    "nan_to_num(input, nan=0.0, posinf=None, neginf=None)",
    forward=nan_to_num_forward,
    vjp=dict(input=lambda g, input: where(input.isfinite(), g, 0)),
    jvp=DIAGONAL, inplace=True, numpy=np.nan_to_num, complex=True,
    samples=lambda make: [((make(2, 3),), {}), ((make(), 1.0, 2.0, -2.0), {})],
    doc=doc("NaN and infinities replaced by numbers.", "1 where the input is finite, else 0 (elementary).",
            arguments="input : Tensor\nnan, posinf, neginf : number, optional\n    By default 0, and the largest and "
            "the smallest number of the dtype."),
)


def nextafter_forward(input: Array, other: Array) -> Any:
    if input.dtype.kind != "f":
        raise not_implemented("nextafter", input.dtype)
    return np.nextafter(input, other)


operator(
    "nextafter(input, other)",
    forward=nextafter_forward, inplace=True, numpy=np.nextafter, complex=False, jvp=DIAGONAL,
    vjp=dict(input=lambda g, input, other: where(input == other, 0, g), other=lambda g: zeros(g)),
    doc=doc("The next number of the dtype after `input` towards `other`.",
            "1 by `input` and 0 by `other`; 0 where they are equal (as in PyTorch).",
            arguments="input, other : Tensor"),
)
