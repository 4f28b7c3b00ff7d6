"""Floor 3: complex numbers: parts, conjugate, angle, and their view as pairs of real numbers.

PyTorch's convention: the gradient of a real loss is ``dL/da + i dL/db`` for ``z = a + i b``, so a holomorphic function
multiplies the cotangent by the conjugate of its derivative.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._tensor import Tensor, attach
from ._declare import FLOAT, KEEP, LINEAR, composite, functions, operator
from ._loops import Array, doc, zeros
from .selection import where

# --- Parts -----------------------------------------------------------------------------------------------------------

conj_complex = operator(
    "_conj(input)",
    forward=np.conjugate, vjp=dict(input=lambda g: g.conj()), dtypes=KEEP, jvp=LINEAR, node="Conj", public=False,
    method=False, doc=doc("The complex conjugate of a complex tensor.", "Linear up to conjugation (elementary)."),
)


@composite("conj(input)", aliases=("conj_physical", "conjugate"), numpy=np.conjugate)
def conj(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor itself.

    Returns
    -------
    Tensor
        A new tensor. (PyTorch's is a view that conjugates lazily; this one is not.)
    """
    check_tensor("conj", input)
    return conj_complex(input) if input.dtype.is_complex else input


def check_tensor(name: str, input: Any) -> None:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")


imag_part = operator(
    "_imag(input)",
    forward=lambda input: input.imag, vjp=dict(input=lambda g: g * 1j), dtypes=KEEP, jvp=dict(input=lambda t: t.imag),
    view=True, node="Imag", public=False, method=False,
    doc=doc("The imaginary part of a complex tensor.", "``1j * g`` (elementary)."),
    samples=lambda make: [((make(2, 3) * (1 + 1j),), {})],
)

real_part = operator(
    "_real(input)",
    forward=lambda input: input.real, vjp=dict(input=lambda g: g * (1 + 0j)), dtypes=KEEP,
    jvp=dict(input=lambda t: t.real), view=True, node="Real", public=False, method=False,
    doc=doc("The real part of a complex tensor.", "``g`` (elementary)."),
    samples=lambda make: [((make(2, 3) * (1 + 1j),), {})],
)


@composite("imag(input)", method=False, numpy=np.imag, samples=lambda make: [((make(2, 3) * (1 + 1j),), {})])
def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view.

    Raises
    ------
    RuntimeError
        If the tensor is real.
    """
    check_tensor("imag", input)
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return imag_part(input)  # type: ignore[no-any-return]


@composite("real(input)", method=False, numpy=np.real, samples=lambda make: [((make(2, 3) * (1 + 1j),), {})])
def real(input: Tensor) -> Tensor:
    """The real part, a view; a real tensor itself."""
    check_tensor("real", input)
    return real_part(input) if input.dtype.is_complex else input


def set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value if isinstance(value, Tensor) else functions["tensor"](value))


def set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value if isinstance(value, Tensor) else functions["tensor"](value))


attach("real", property(real, set_real, doc="The real part, a view; a real tensor itself."))
attach("imag", property(imag, set_imag, doc="The imaginary part, a view; RuntimeError for real tensors."))

# --- Angle -----------------------------------------------------------------------------------------------------------


def angle_forward(input: Array) -> Any:
    """0 or pi for real numbers (0 for -0.0, as in PyTorch), NaN for NaN."""
    if input.dtype.kind == "c":
        return np.angle(input)
    result = np.where(input < 0, input.dtype.type(math.pi), input.dtype.type(0))
    return np.where(np.isnan(input), input, result)


def angle_vjp_input(g: Any, input: Any) -> Any:
    """``g * i z / |z|^2``, 0 at 0; 0 for real numbers."""
    if not input.dtype.is_complex:
        return zeros(g)
    at_zero = input == 0
    z = where(at_zero, 1, input)
    return where(at_zero, 0, g * (1j * z / (z * z.conj()).real))


operator(
    "angle(input)",
    forward=angle_forward, vjp=dict(input=angle_vjp_input), dtypes=FLOAT,
    jvp=dict(input=lambda t, input: (t / input).imag if input.dtype.is_complex else zeros(t)), numpy=np.angle,
    source="elementary: d arg z = Im(dz / z)",
    doc=doc("The angle of complex numbers, in (-pi, pi]; of real ones 0, or pi below 0.",
            "``g * i z / |z|**2``, 0 at 0 (elementary)."),
)

# --- Pairs of real numbers -------------------------------------------------------------------------------------------


def pairs_forward(input: Array) -> Array:
    if input.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    parts = input.real
    return np.lib.stride_tricks.as_strided(parts, (*parts.shape, 2), (*parts.strides, parts.itemsize))


operator(
    "view_as_real(input)",
    forward=pairs_forward, vjp=dict(input=lambda g: g.contiguous().view_as_complex()), dtypes=KEEP, jvp=LINEAR,
    view=True, samples=lambda make: [((make(2, 3) * (1 + 1j),), {}), ((make() * (1 + 1j),), {})],
    doc=doc("A view of a complex tensor with one more dimension of size 2: real and imaginary part.",
            "The cotangent seen as complex (elementary)."),
)


def unpaired_forward(input: Array) -> Array:
    if input.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"view_as_complex is only supported for float and double tensors, but got a tensor of "
                           f"scalar type: {input.dtype}")
    if input.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, not {input.shape[-1]}")
    if input.strides[-1] != input.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1: use .contiguous()")
    if any(stride % (2 * input.itemsize) for stride in input.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension: use .contiguous()")
    target: type[np.complexfloating[Any, Any]] = np.complex64 if input.dtype == np.float32 else np.complex128
    if input.size == 0:
        return np.empty(input.shape[:-1], target)
    first = np.lib.stride_tricks.as_strided(input, (*input.shape[:-1], 2))
    return first.view(target)[..., 0]


operator(
    "view_as_complex(input)",
    forward=unpaired_forward, vjp=dict(input=lambda g: g.view_as_real()), dtypes=KEEP, jvp=LINEAR, view=True,
    complex=False, samples=lambda make: [((make(3, 2).contiguous(),), {}), ((make(2).contiguous(),), {})],
    doc=doc("A view of pairs of real numbers (last dimension of size 2, contiguous) as complex numbers.",
            "The cotangent's parts (elementary)."),
)


# --- Questions -------------------------------------------------------------------------------------------------------


@composite("is_conj(input)", differentiable=False, samples=lambda make: [((make(3),), {})])
def is_conj(input: Tensor) -> bool:
    """Whether the conjugation of a tensor is still to be done: never, since :func:`fastgrad.conj` does it at once."""
    return False


@composite("resolve_conj(input)", samples=lambda make: [((make(3),), {})])
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself, since :func:`fastgrad.conj` leaves nothing to be done."""
    return input


@composite("resolve_neg(input)", samples=lambda make: [((make(3),), {})])
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself, since negation leaves nothing to be done."""
    return input
