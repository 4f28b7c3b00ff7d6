"""Floor 3: comparison, logic and bits: operators with nothing to differentiate.

In-place forms write 0 and 1 in the tensor's own dtype, as PyTorch's do.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor import Tensor
from ._declare import COMPARE, SAME, composite, operator
from ._loops import ANY_REAL, INTEGERS, REALS_AND_BOOL, Array, doc, kernel

TWO = "input, other : Tensor or number"
TRUTH = "Of dtype bool and the broadcast shape. It never requires grad."

# --- Order and equality ----------------------------------------------------------------------------------------------

operator(
    "eq(input, other)",
    forward=np.equal, dtypes=COMPARE, differentiable=False, inplace=True, numpy=np.equal,
    doc=doc("Where two are equal; NaN equals nothing.", arguments=TWO, returns=TRUTH,
            example=">>> fg.tensor([1, 2]) == 2\ntensor([False,  True])"),
)

operator(
    "ge(input, other)",
    forward=kernel("ge", np.greater_equal, ANY_REAL), loops=REALS_AND_BOOL, dtypes=COMPARE,
    differentiable=False, aliases=("greater_equal",), inplace=True, numpy=np.greater_equal, complex=False,
    doc=doc("Where `input` is at least `other`.", arguments=TWO, returns=TRUTH),
)

operator(
    "gt(input, other)",
    forward=kernel("gt", np.greater, ANY_REAL), loops=REALS_AND_BOOL, dtypes=COMPARE,
    differentiable=False, aliases=("greater",), inplace=True, numpy=np.greater, complex=False,
    doc=doc("Where `input` is more than `other`.", arguments=TWO, returns=TRUTH),
)

operator(
    "le(input, other)",
    forward=kernel("le", np.less_equal, ANY_REAL), loops=REALS_AND_BOOL, dtypes=COMPARE,
    differentiable=False, aliases=("less_equal",), inplace=True, numpy=np.less_equal, complex=False,
    doc=doc("Where `input` is at most `other`.", arguments=TWO, returns=TRUTH),
)

operator(
    "lt(input, other)",
    forward=kernel("lt", np.less, ANY_REAL), loops=REALS_AND_BOOL, dtypes=COMPARE,
    differentiable=False, aliases=("less",), inplace=True, numpy=np.less, complex=False,
    doc=doc("Where `input` is less than `other`.", arguments=TWO, returns=TRUTH,
            raises="NotImplementedError\n    For complex numbers, which have no order."),
)

operator(
    "ne(input, other)",
    forward=np.not_equal, dtypes=COMPARE, differentiable=False, aliases=("not_equal",), inplace=True,
    numpy=np.not_equal, doc=doc("Where two are not equal; NaN differs from everything.", arguments=TWO, returns=TRUTH),
)


@composite("equal(input, other)", differentiable=False, numpy=np.array_equal,
           samples=lambda make: [((make(2, 3), make(2, 3)), {})])
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements, whatever their dtypes.

    Returns
    -------
    bool
    """
    for name, t in (("input", input), ("other", other)):
        if not isinstance(t, Tensor):
            raise TypeError(f"equal(): argument '{name}' must be Tensor, not {type(t).__name__}")
    a, b = input.detach().numpy(), other.detach().numpy()
    return a.shape == b.shape and bool(np.equal(a, b).all())


def close_forward(input: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    if input.dtype != other.dtype:
        raise RuntimeError(f"isclose: {input.dtype} did not match {other.dtype}: the dtypes must be the same")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    result = np.equal(input, other)
    if equal_nan and input.dtype.kind in "fc":
        result = result | (np.isnan(input) & np.isnan(other))
    if rtol == 0 and atol == 0:
        return result
    if input.dtype.kind not in "fc":                       # the differences of integers and bool may not fit them
        input, other = input.astype(np.float64), other.astype(np.float64)
    error = np.abs(input - other)
    return np.asarray(result | (np.isfinite(error) & (error <= atol + np.abs(rtol * other))))


isclose = operator(
    "isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False)",
    forward=close_forward, dtypes=SAME, differentiable=False,
    samples=lambda make: [((make(2, 3), make(3)), {}), ((make(), make(), 0.5, 0.1, True), {})],
    doc=doc("Where ``|input - other| <= atol + rtol * |other|``.", returns=TRUTH,
            arguments="input, other : Tensor\n    Of one dtype.\nrtol, atol : float\nequal_nan : bool\n    Whether two "
            "NaN are close.", raises="RuntimeError\n    If the dtypes differ or a tolerance is negative."),
)


@composite("allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False)", differentiable=False,
           samples=lambda make: [((make(2, 3), make(3)), {})])
def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether :func:`fastgrad.isclose` holds everywhere.

    Returns
    -------
    bool
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).numpy().all())


# --- Kinds of numbers ------------------------------------------------------------------------------------------------

operator(
    "isfinite(input)",
    forward=np.isfinite, dtypes=COMPARE, differentiable=False, numpy=np.isfinite,
    doc=doc("Where numbers are neither infinite nor NaN.", returns=TRUTH),
)

operator(
    "isinf(input)",
    forward=np.isinf, dtypes=COMPARE, differentiable=False, numpy=np.isinf,
    doc=doc("Where numbers are infinite (complex: either part).", returns=TRUTH),
)

operator(
    "isnan(input)",
    forward=np.isnan, dtypes=COMPARE, differentiable=False, numpy=np.isnan,
    doc=doc("Where numbers are NaN (complex: either part).", returns=TRUTH),
)


def signed_infinity(name: str, function: Any) -> Any:
    def forward(input: Array) -> Any:
        if input.dtype.kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")
        return function(input)

    return forward


operator(
    "isneginf(input)",
    forward=signed_infinity("isneginf", lambda input: input == -np.inf), dtypes=COMPARE, differentiable=False,
    numpy=np.isneginf, complex=False, doc=doc("Where numbers are negative infinity.", returns=TRUTH),
)

operator(
    "isposinf(input)",
    forward=signed_infinity("isposinf", lambda input: input == np.inf), dtypes=COMPARE, differentiable=False,
    numpy=np.isposinf, complex=False, doc=doc("Where numbers are positive infinity.", returns=TRUTH),
)

operator(
    "isreal(input)",
    forward=np.isreal, dtypes=COMPARE, differentiable=False, numpy=np.isreal,
    doc=doc("Where the imaginary part is 0; everywhere, if there is none.", returns=TRUTH),
)


def signbit_forward(input: Array) -> Any:
    if input.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return np.signbit(input) if input.dtype.kind == "f" else input < 0


operator(
    "signbit(input)",
    forward=signbit_forward, dtypes=COMPARE, differentiable=False, numpy=np.signbit, complex=False,
    doc=doc("Where the sign bit is set: negative numbers, -0.0 and some NaN.", returns=TRUTH),
)


def isin_forward(elements: Array, test_elements: Array, assume_unique: bool, invert: bool) -> Array:
    return np.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)


operator(
    "isin(elements, test_elements, *, assume_unique=False, invert=False)",
    tensors="elements test_elements", forward=isin_forward, differentiable=False, method=False, numpy=np.isin,
    samples=lambda make: [((make(2, 3), make(4)), {}), ((make(3), 1.0), {})],
    doc=doc("Where an element is one of `test_elements`.", arguments="elements, test_elements : Tensor or number\n"
            "assume_unique, invert : bool", returns="Of dtype bool and `elements`' shape."),
)

# --- Logic -----------------------------------------------------------------------------------------------------------

operator(
    "logical_and(input, other)",
    forward=np.logical_and, dtypes=COMPARE, differentiable=False, inplace=True, numpy=np.logical_and,
    doc=doc("Where both are nonzero.", arguments=TWO, returns=TRUTH),
)

operator(
    "logical_not(input)",
    forward=np.logical_not, dtypes=COMPARE, differentiable=False, inplace=True, numpy=np.logical_not,
    doc=doc("Where the input is zero.", returns=TRUTH),
)

operator(
    "logical_or(input, other)",
    forward=np.logical_or, dtypes=COMPARE, differentiable=False, inplace=True, numpy=np.logical_or,
    doc=doc("Where either is nonzero.", arguments=TWO, returns=TRUTH),
)

operator(
    "logical_xor(input, other)",
    forward=np.logical_xor, dtypes=COMPARE, differentiable=False, inplace=True, numpy=np.logical_xor,
    doc=doc("Where exactly one is nonzero.", arguments=TWO, returns=TRUTH),
)

# --- Bits ------------------------------------------------------------------------------------------------------------

BITS = "Of the broadcast shape and the common dtype."
NO_FLOATS = "NotImplementedError\n    For floating point and complex tensors."

operator(
    "bitwise_and(input, other)",
    forward=kernel("bitwise_and", np.bitwise_and, "biu"), differentiable=False, inplace=True, numpy=np.bitwise_and,
    domain="integers", doc=doc("Bit by bit and; on bool, logical and.", arguments=TWO, returns=BITS, raises=NO_FLOATS),
)

operator(
    "bitwise_left_shift(input, other)",
    forward=kernel("lshift", np.left_shift, "iu"), loops=INTEGERS, differentiable=False, inplace=True,
    numpy=np.left_shift, domain="integers",
    doc=doc("Bits moved towards the more significant; by as many as there are, or by less than 0: 0.", arguments=TWO,
            returns=BITS, raises=NO_FLOATS),
)

operator(
    "bitwise_not(input)",
    forward=kernel("bitwise_not", np.invert, "biu"), differentiable=False, inplace=True, numpy=np.invert,
    domain="integers", doc=doc("Every bit inverted; on bool, logical not.", returns=BITS, raises=NO_FLOATS),
)

operator(
    "bitwise_or(input, other)",
    forward=kernel("bitwise_or", np.bitwise_or, "biu"), differentiable=False, inplace=True, numpy=np.bitwise_or,
    domain="integers", doc=doc("Bit by bit or; on bool, logical or.", arguments=TWO, returns=BITS, raises=NO_FLOATS),
)

operator(
    "bitwise_right_shift(input, other)",
    forward=kernel("rshift", np.right_shift, "iu"), loops=INTEGERS, differentiable=False, inplace=True,
    numpy=np.right_shift, domain="integers",
    doc=doc("Bits moved towards the less significant, the sign kept.", arguments=TWO, returns=BITS, raises=NO_FLOATS),
)

operator(
    "bitwise_xor(input, other)",
    forward=kernel("bitwise_xor", np.bitwise_xor, "biu"), differentiable=False, inplace=True, numpy=np.bitwise_xor,
    domain="integers", doc=doc("Bit by bit exclusive or.", arguments=TWO, returns=BITS, raises=NO_FLOATS),
)

operator(
    "gcd(input, other)",
    forward=kernel("gcd", np.gcd, "iu"), differentiable=False, inplace=True, numpy=np.gcd, domain="integers",
    loops=INTEGERS, doc=doc("The greatest common divisor.", arguments=TWO, returns=BITS, raises=NO_FLOATS),
)

operator(
    "lcm(input, other)",
    forward=kernel("lcm", np.lcm, "iu"), differentiable=False, inplace=True, numpy=np.lcm, domain="integers",
    loops=INTEGERS, doc=doc("The least common multiple.", arguments=TWO, returns=BITS, raises=NO_FLOATS),
)
