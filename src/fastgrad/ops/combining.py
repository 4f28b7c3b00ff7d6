"""Floor 3: elementwise operators of three tensors."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._dtypes import result_type
from ._declare import DIAGONAL, KEEP, operator
from ._helpers import conj
from ._loops import Array, doc, is_number, not_implemented

# --- Sums of products and quotients ----------------------------------------------------------------------------------


def addcdiv_forward(input: Array, tensor1: Array, tensor2: Array, value: Any) -> Any:
    dtype = result_type(input, tensor1, tensor2).numpy
    if tensor1.dtype.kind in "biu" and tensor2.dtype.kind in "biu":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported: convert to a floating point dtype, or use div with "
            "rounding_mode=\"trunc\""
        )
    return input.astype(dtype) + dtype.type(value) * (tensor1.astype(dtype) / tensor2.astype(dtype))


def addcmul_forward(input: Array, tensor1: Array, tensor2: Array, value: Any) -> Any:
    dtype = result_type(input, tensor1, tensor2).numpy
    return input.astype(dtype) + dtype.type(value) * tensor1.astype(dtype) * tensor2.astype(dtype)


THREE = "input, tensor1, tensor2 : Tensor\nvalue : number"

operator(
    "addcdiv(input, tensor1, tensor2, *, value=1)",
    tensors="input tensor1 tensor2", forward=addcdiv_forward,
    vjp=dict(input=lambda g: g, tensor1=lambda g, tensor2, value: g * conj(value / tensor2),
             tensor2=lambda g, tensor1, tensor2, value: -g * conj(value * tensor1 / (tensor2 * tensor2))),
    dtypes=KEEP, jvp=DIAGONAL, inplace=True,
    samples=lambda make: [((make(2, 3), make(3), make(2, 1) + 5), {}), ((make(), make(), make() + 5), {"value": 2.5})],
    doc=doc("``input + value * tensor1 / tensor2``.", "Those of sum and quotient (elementary).", arguments=THREE,
            raises="RuntimeError\n    For an integer divided by an integer."),
)

operator(
    "addcmul(input, tensor1, tensor2, *, value=1)",
    tensors="input tensor1 tensor2", forward=addcmul_forward,
    vjp=dict(input=lambda g: g, tensor1=lambda g, tensor2, value: g * conj(tensor2 * value),
             tensor2=lambda g, tensor1, value: g * conj(tensor1 * value)),
    dtypes=KEEP, jvp=DIAGONAL, inplace=True,
    samples=lambda make: [((make(2, 3), make(3), make(2, 1)), {}), ((make(), make(), make()), {"value": 2.5})],
    doc=doc("``input + value * tensor1 * tensor2``.", "Those of sum and product (elementary).", arguments=THREE),
)

# --- Interpolation ---------------------------------------------------------------------------------------------------


def lerp_forward(input: Array, end: Array, weight: Any) -> Any:
    if input.dtype != end.dtype:
        raise RuntimeError(f"lerp: expected dtype {input.dtype} for `end` but got dtype {end.dtype}")
    if input.dtype.kind not in "fc":
        raise not_implemented("lerp", input.dtype)
    if not is_number(weight):
        if weight.ndim and weight.dtype != input.dtype:
            raise RuntimeError(f"lerp: expected dtype {input.dtype} for `weight` but got dtype {weight.dtype}")
        if weight.dtype.kind == "c" and input.dtype.kind != "c":
            raise RuntimeError(f"lerp: a complex weight ({weight.dtype}) needs complex ends, got {input.dtype}; "
                               "convert them first")
        weight = weight.astype(input.dtype)
    else:
        if isinstance(weight, complex) and input.dtype.kind != "c":
            raise RuntimeError(f"lerp: value cannot be converted to type {input.dtype} without overflow: {weight}")
        weight = input.dtype.type(weight)
    # From the nearer end, so that weights 0 and 1 give the ends exactly.
    near = np.abs(weight) < 0.5
    return np.where(near, input + weight * (end - input), end - (end - input) * (1 - weight)).astype(input.dtype)


operator(
    "lerp(input, end, weight)",
    tensors="input end weight", forward=lerp_forward,
    vjp=dict(input=lambda g, weight: g * (1 - conj(weight)), end=lambda g, weight: g * conj(weight),
             weight=lambda g, input, end: g * conj(end - input)),
    dtypes=KEEP, jvp=DIAGONAL, inplace=True,
    samples=lambda make: [((make(2, 3), make(3), 0.3), {}), ((make(2, 3), make(3), make(2, 1)), {}),
                          ((make(), make(), make()), {})],
    doc=doc("``input + weight * (end - input)``.",
            "``g * conj(1 - weight)``, ``g * conj(weight)``, ``g * conj(end - input)``; with a number as weight "
            "nothing is saved (elementary).",
            arguments="input, end : Tensor\n    Of one dtype.\nweight : Tensor or number"),
)
