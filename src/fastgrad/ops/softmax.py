"""Floor 3: softmax and its relatives.

The maximum is subtracted before anything is exponentiated: exp overflows above 709 (float64), 88 (float32), and the
shift cancels. Softmax and log_softmax save their result only.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ._declare import FLOAT, KEEP, composite, functions, operator
from ._helpers import conj, normal_dim, unreduced
from ._loops import Array, doc, not_implemented
from .reductions import ADD, OUT_OF_RANGE, REDUCED, axis_of
from .views import cast

MAXIMUM = np.maximum.reduce

ARGUMENTS = (
    "input : Tensor\ndim : int\n    Along which the results add up to 1.\ndtype : dtype, optional\n"
    "    What the input is cast to first."
)
RAISES = (
    "IndexError\n    If there is no such dimension.\nNotImplementedError\n    For integers, bool and complex numbers "
    "(without `dtype`)."
)


def shifted_exponent(name: str, input: Array, dim: int, dtype: Any) -> tuple[Array, int, Any]:
    """The input minus its maximum along the dimension in a wide enough dtype, the axis, and the dtype of the result."""
    if dtype is not None:
        input = cast(input, dtype)
    if input.dtype.kind != "f":
        raise not_implemented(f"{name}_lastdim_kernel_impl", input.dtype)
    axis = normal_dim(dim, input.ndim)
    target = input.dtype
    if target.char == "e":
        input = input.astype(np.float32)
    if input.ndim == 0 or input.size == 0:
        return input - input, axis, target       # one element: NaN if it is NaN or infinite, else 0
    return input - MAXIMUM(input, axis, None, None, True), axis, target


def softmax_forward(input: Array, dim: int, dtype: Any) -> Any:
    e, axis, target = shifted_exponent("softmax", input, dim, dtype)
    e = np.exp(e)
    if e.ndim:
        e /= ADD(e, axis, None, None, True)
    return e if e.dtype == target else e.astype(target)


def softmax_vjp_input(g: Any, result: Any, dim: int) -> Any:
    weighted = g * result
    return weighted - result * weighted.sum(dim, True)


def softmax_jvp_input(t: Any, result: Any, dim: int) -> Any:
    return softmax_vjp_input(t, result, dim)       # the Jacobian is symmetric


def log_softmax_forward(input: Array, dim: int, dtype: Any) -> Any:
    x, axis, target = shifted_exponent("log_softmax", input, dim, dtype)
    if x.ndim:
        x -= np.log(ADD(np.exp(x), axis, None, None, True))
    return x if x.dtype == target else x.astype(target)


def samples(make: Any) -> list[Any]:
    return [
        ((make(3), 0), {}), ((make(2, 3), -1), {}), ((make(2, 3), 0), {}), ((make(2, 3, 2), 1), {}), ((make(), 0), {}),
        ((make(2, 0), 1), {}), ((make(3, 2).T, 1), {}),
    ]


operator(
    "log_softmax(input, dim, dtype=None)",
    forward=log_softmax_forward,
    vjp=dict(input=lambda g, result, dim: g - result.exp() * g.sum(dim, True)),
    dtypes=KEEP, jvp=dict(input=lambda t, result, dim: t - (result.exp() * t).sum(dim, True)), samples=samples,
    complex=False,
    doc=doc("The logarithm of softmax, without its loss of accuracy.", "``g - exp(result) * sum(g)`` (elementary).",
            ">>> fg.tensor([1000., 0.]).log_softmax(0)\ntensor([    0., -1000.])", arguments=ARGUMENTS,
            returns="Of the input's shape and dtype.", raises=RAISES),
)


def logsumexp_forward(input: Array, dim: Any, keepdim: bool) -> Any:
    axis = axis_of(dim, input.ndim)
    target = input.dtype
    if target.char == "e":
        input = input.astype(np.float32)
    real = input.real if target.kind == "c" else input
    if real.size:
        top = MAXIMUM(real, axis, None, None, True)
        # An infinite maximum stays in the exponential: inf - inf would be NaN, where the result is that infinity.
        top = np.where(np.isfinite(top), top, top.dtype.type(0))
    else:
        top = real.dtype.type(0)
    total = np.log(ADD(np.exp(input - top), axis, None, None, keepdim))
    result = total + (top if keepdim or not top.ndim else top.reshape(total.shape))
    return result if result.dtype == target else result.astype(target)


def logsumexp_jvp_input(t: Any, input: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    return ((input - unreduced(result, tuple(input.shape), dim, keepdim)).exp() * t).sum(dim, keepdim)


def logsumexp_vjp_input(g: Any, input: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    shape = tuple(input.shape)
    return unreduced(g, shape, dim, keepdim) * conj((input - unreduced(result, shape, dim, keepdim)).exp())


operator(
    "logsumexp(input, dim, keepdim=False)",
    forward=logsumexp_forward,
    vjp=dict(input=logsumexp_vjp_input),
    dtypes=FLOAT, jvp=dict(input=logsumexp_jvp_input),
    samples=lambda make: [
        ((make(3), 0), {}), ((make(2, 3), 1, True), {}), ((make(2, 3, 2), (0, -1)), {}), ((make(), 0), {}),
        ((make(0, 3), 0), {}),
    ],
    doc=doc("``log(sum(exp(input)))`` over dimensions, without overflow.",
            "``g * exp(input - result)``, the softmax (elementary). NaN where all are -inf, as in PyTorch.",
            ">>> fg.tensor([1000., 1000.]).logsumexp(0)\ntensor(1000.6932)",
            arguments="input : Tensor\n    Integers are cast to the default dtype.\ndim : int or tuple of int\n"
                      "keepdim : bool",
            returns="-inf where there is nothing to add. " + REDUCED, raises=OUT_OF_RANGE),
)

operator(
    "softmax(input, dim, dtype=None)",
    forward=softmax_forward,
    vjp=dict(input=softmax_vjp_input),
    dtypes=KEEP, jvp=dict(input=softmax_jvp_input), samples=samples, complex=False,
    doc=doc("``exp(input)``, divided by its sum along a dimension.",
            "``result * (g - sum(g * result))`` (elementary).",
            ">>> fg.tensor([0., 0., 1000.]).softmax(0)\ntensor([0., 0., 1.])", arguments=ARGUMENTS,
            returns="Of the input's shape and dtype.", raises=RAISES),
)


@composite("softmin(input, dim, dtype=None)", method=False, public=False, samples=samples, complex=False)
def softmin(input: Any, dim: int, dtype: Any = None) -> Any:
    """The softmax of ``-input``."""
    return functions["softmax"](-input, dim, dtype)
