"""Floor 3: running sums, products, maxima and minima along a dimension, and differences, their inverse.

The derivative of a running sum is a running sum from the other end. That of a running product, written without a
division so that zeros do no harm, is a linear recurrence, ``h[i] = x[i] + a[i] * h[i-1]``; since the derivatives of
such a recurrence are again such recurrences, all orders are right.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .._dtypes import as_dtype
from .._tensor import from_ndarray
from ._declare import KEEP, LINEAR, composite, functions, operator
from ._helpers import conj, normal_dim
from ._loops import Array, doc, not_implemented
from .gathering import gather, ungather
from .reductions import product_before, shifted
from .selection import where
from .views import cast, to_copy

DIM = "input : Tensor\ndim : int\ndtype : dtype, optional\n    What the input is cast to first."
RETURNS = "Of the input's shape and dtype; int64 for integers and bool."
RAISES = "IndexError\n    If there is no such dimension."


def dim_samples(make: Any) -> list[Any]:
    return [
        ((make(4), 0), {}), ((make(2, 3), -1), {}), ((make(2, 3), 0), {}), ((make(2, 3, 2), 1), {}), ((make(), 0), {}),
        ((make(2, 0), 1), {}), ((make(3, 2).T, 1), {}), ((make(1, 2), 0), {}),
    ]


# --- Linear recurrences ----------------------------------------------------------------------------------------------


def scan_forward(input: Array, other: Array, dim: int, reverse: bool) -> Array:
    x, a = np.moveaxis(input, dim, 0), np.moveaxis(other, dim, 0)
    if reverse:
        x, a = x[::-1], a[:0:-1]                  # a[i + 1] leads from i + 1 down to i
    else:
        a = a[1:]
    if x.ndim == 1 and x.dtype != np.complex64:   # a loop over Python's numbers takes a tenth of one over arrays
        h: Any = 0.0
        steps = []
        for x_i, a_i in zip(x.tolist(), [0.0, *a.tolist()]):
            h = x_i + a_i * h
            steps.append(h)
        out = np.array(steps, x.dtype)
    else:
        out = x.copy()
        for i in range(1, len(out)):
            out[i] += a[i - 1] * out[i - 1]
    return np.moveaxis(out[::-1] if reverse else out, 0, dim)


def scan_jvp_input(t: Any, other: Any, dim: int, reverse: bool) -> Any:
    return linear_scan(t, other, dim, reverse)


def scan_jvp_other(t: Any, other: Any, result: Any, dim: int, reverse: bool) -> Any:
    if reverse:
        n = t.shape[dim]
        moved = functions["cat"]([between(t * result, dim, 1, n), between(t * 0, dim, 0, 1)], dim) if n else t
    else:
        moved = t * shifted(result, dim, 0)
    return linear_scan(moved, other, dim, reverse)


def scan_vjp_input(g: Any, other: Any, dim: int, reverse: bool) -> Any:
    return linear_scan(g, conj(other), dim, not reverse)


def scan_vjp_other(g: Any, other: Any, result: Any, dim: int, reverse: bool) -> Any:
    t = linear_scan(g, conj(other), dim, not reverse)
    if reverse:
        return shifted(t, dim, 0) * conj(result)
    return t * conj(shifted(result, dim, 0))


# h[i] = input[i] + other[i] * h[i - 1]; reversed h[i] = input[i] + other[i + 1] * h[i + 1], which is its transpose.
linear_scan = operator(
    "_linear_scan(input, other, dim, reverse)",
    forward=scan_forward,
    vjp=dict(input=scan_vjp_input, other=scan_vjp_other), jvp=dict(input=scan_jvp_input, other=scan_jvp_other),
    public=False, method=False,
    samples=lambda make: [
        ((make(4), make(4), 0, False), {}), ((make(4), make(4), 0, True), {}), ((make(2, 3), make(2, 3), 1, True), {}),
        ((make(2, 3), make(2, 3), 0, False), {}),
    ],
    source="the recurrence is (I - L) h = x with L strictly triangular; transpose it",
)

# --- Sums ------------------------------------------------------------------------------------------------------------


def accumulated(accumulate: Any, input: Array, dim: int, dtype: Any, reverse: bool = False) -> Any:
    """A ufunc's `accumulate` with PyTorch's dtypes: int64 for integers and bool, float16 accumulated in float32."""
    axis = normal_dim(dim, input.ndim)
    if dtype is not None:
        target = as_dtype(dtype).numpy
        input = cast(input, dtype)
    else:
        target = input.dtype if input.dtype.kind in "fc" else np.dtype(np.int64)
    if input.ndim == 0:
        return input.astype(target)
    out = np.empty(input.shape, np.float32 if target.char == "e" else target)
    if reverse:              # read and written from the end, so that the result lies in memory in the usual order
        backwards = (slice(None),) * axis + (slice(None, None, -1),)
        accumulate(input[backwards], axis, out.dtype, out[backwards])
    else:
        accumulate(input, axis, out.dtype, out)
    return out.astype(target) if target.char == "e" else out


cumsum_reversed = operator(
    "_cumsum_reversed(input, dim)",
    forward=lambda input, dim: accumulated(np.add.accumulate, input, dim, None, True),
    vjp=dict(input=lambda g, dim: g.cumsum(dim)),
    dtypes=KEEP, jvp=LINEAR, node="Cumsum", public=False, method=False, samples=dim_samples,
)

operator(
    "cumsum(input, dim, *, dtype=None)",
    forward=lambda input, dim, dtype: accumulated(np.add.accumulate, input, dim, dtype),
    vjp=dict(input=lambda g, dim: cumsum_reversed(g, dim)),
    dtypes=KEEP, jvp=LINEAR, inplace=True, samples=dim_samples,
    doc=doc("Running sums along a dimension.", "The running sums of ``g`` from the end; saves nothing (elementary).",
            ">>> fg.tensor([1., 2., 3.]).cumsum(0)\ntensor([1., 3., 6.])", arguments=DIM, returns=RETURNS,
            raises=RAISES),
)


def logcumsumexp_forward(input: Array, dim: int) -> Any:
    axis = normal_dim(dim, input.ndim)
    if input.dtype.kind not in "fc":
        raise not_implemented("logcumsumexp_out_cpu", input.dtype)
    if input.ndim == 0:
        return input.copy()
    if input.dtype.kind == "f":
        wide = input.astype(np.float32) if input.dtype.char == "e" else input
        return np.logaddexp.accumulate(wide, axis).astype(input.dtype, copy=False)
    out = np.moveaxis(input.copy(), axis, 0)
    for i in range(1, len(out)):
        top = np.maximum(out[i].real, out[i - 1].real)
        top = np.where(np.isfinite(top), top, 0)
        out[i] = np.log(np.exp(out[i] - top) + np.exp(out[i - 1] - top)) + top
    return np.moveaxis(out, 0, axis)


def decay(result: Any, dim: int) -> Any:
    """``exp(y[i-1] - y[i])``, by which the weights of all earlier elements shrink at each step."""
    before = shifted(result, dim, -np.inf)
    # Equal infinities: their difference would be NaN, and the factor between equals is 1.
    return where(before == result, 0, before - result).exp()


def logcumsumexp_jvp_input(t: Any, input: Any, result: Any, dim: int) -> Any:
    own = (input - result).exp() * t
    return linear_scan(own, decay(result, dim), dim, False) if input.ndim else own


def logcumsumexp_vjp_input(g: Any, input: Any, result: Any, dim: int) -> Any:
    """``sum(g[k] * exp(x[i] - y[k]) for k >= i)``, as a recurrence whose factors are at most 1 and do not overflow."""
    if input.ndim:
        g = linear_scan(g, conj(decay(result, dim)), dim, True)
    return g * conj((input - result).exp())


operator(
    "logcumsumexp(input, dim)",
    forward=logcumsumexp_forward,
    vjp=dict(input=logcumsumexp_vjp_input),
    dtypes=KEEP, jvp=dict(input=logcumsumexp_jvp_input), samples=dim_samples,
    doc=doc("``log(cumsum(exp(input)))`` along a dimension, without overflow.",
            "``exp(input[i])`` times the sum of ``g[k] * exp(-result[k])`` over `k` from `i` on (elementary).",
            ">>> fg.tensor([1000., 1000.]).logcumsumexp(0)\ntensor([1000.0000, 1000.6932])",
            arguments="input : Tensor\ndim : int", returns="Of the input's shape and dtype.",
            raises=RAISES + "\nNotImplementedError\n    For integers and bool."),
)

# --- Products --------------------------------------------------------------------------------------------------------


def cumprod_jvp_input(t: Any, input: Any, dim: int, dtype: Any) -> Any:
    if dtype is not None:
        input, t = to_copy(input, dtype), to_copy(t, dtype)
    return linear_scan(t * product_before(input, dim), input, dim, False) if input.ndim else t


def cumprod_vjp_input(g: Any, input: Any, result: Any, dim: int, dtype: Any) -> Any:
    if dtype is not None:
        input = to_copy(input, dtype)
    if input.ndim == 0:
        return g
    if (input.detach().numpy() == 0).any():
        return conj(product_before(input, dim)) * linear_scan(g, conj(input), dim, True)
    return cumsum_reversed(g * conj(result), dim) / conj(input)


def zero_samples(make: Any) -> list[Any]:
    zeros = from_ndarray(np.array([[False, True, True, True], [True, False, True, False]]), False)
    return [*dim_samples(make), ((make(2, 4) * zeros, 1), {}), ((make(2, 4) * zeros, 0), {})]


operator(
    "cumprod(input, dim, *, dtype=None)",
    forward=lambda input, dim, dtype: accumulated(np.multiply.accumulate, input, dim, dtype),
    vjp=dict(input=cumprod_vjp_input),
    dtypes=KEEP, jvp=dict(input=cumprod_jvp_input), inplace=True, samples=zero_samples,
    doc=doc("Running products along a dimension.",
            "The running sums of ``g * result`` from the end, divided by the input; where there are zeros, the product "
            "of the elements before times the recurrence ``s[i] = g[i] + input[i+1] * s[i+1]`` (elementary).",
            ">>> fg.tensor([1., 2., 3.]).cumprod(0)\ntensor([1., 2., 6.])", arguments=DIM, returns=RETURNS,
            raises=RAISES),
)

# --- Maxima and minima -----------------------------------------------------------------------------------------------


def running_extremum(name: str, ufunc: np.ufunc, input: Array, dim: int) -> tuple[Array, Array]:
    axis = normal_dim(dim, input.ndim)
    if input.dtype.kind == "c":
        raise not_implemented(f"{name}_cpu", input.dtype)
    if input.ndim == 0:
        return input.copy(), np.zeros((), np.int64)
    values = ufunc.accumulate(input, axis, input.dtype)
    # An element that equals the extremum so far takes over (ties: the last), and so does any NaN.
    takes = (values == input) | (input != input)
    shape = [1] * input.ndim
    shape[axis] = -1
    places = np.where(takes, np.arange(input.shape[axis]).reshape(shape), 0)
    return values, np.maximum.accumulate(places, axis)


def running_jvp_input(t: Any, indices: Any, dim: int) -> Any:
    return gather(t, dim, indices)


def running_vjp_input(g: Any, indices: Any, dim: int, input_shape: Any) -> Any:
    return ungather(g, indices, dim, input_shape)


def running_doc(what: str) -> str:
    return doc(f"Running {what} along a dimension, and where they are; of equal ones the last.",
               "``g`` is added up at the indices returned (elementary).",
               arguments="input : Tensor\ndim : int", returns="A named tuple of values and indices.",
               raises=RAISES + "\nNotImplementedError\n    For complex numbers.")


operator(
    "cummax(input, dim)",
    forward=lambda input, dim: running_extremum("cummax", np.maximum, input, dim),
    vjp=dict(input=running_vjp_input), jvp=dict(input=running_jvp_input),
    outputs=("values", "indices"), nondifferentiable=("indices",), dtypes=KEEP, samples=dim_samples, complex=False,
    doc=running_doc("maxima"),
)

operator(
    "cummin(input, dim)",
    forward=lambda input, dim: running_extremum("cummin", np.minimum, input, dim),
    vjp=dict(input=running_vjp_input), jvp=dict(input=running_jvp_input),
    outputs=("values", "indices"), nondifferentiable=("indices",), dtypes=KEEP, samples=dim_samples, complex=False,
    doc=running_doc("minima"),
)

# --- Differences and integrals ---------------------------------------------------------------------------------------


def between(x: Any, dim: int, start: int, stop: int) -> Any:
    """``x[start:stop]`` along a dimension."""
    n = x.shape[dim]
    first, last = slice(start, stop).indices(n)[:2]
    return x.narrow(dim, first, max(last - first, 0))


@composite(
    "diff(input, n=1, dim=-1, prepend=None, append=None)",
    samples=lambda make: [
        ((make(4),), {}), ((make(2, 3), 2, 0), {}), ((make(2, 3),), {"prepend": make(2, 1), "append": make(2, 2)}),
        ((make(3), 5), {}), ((make(0),), {}),
    ],
)
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along a dimension, `n` times.

    Parameters
    ----------
    input : Tensor
    n : int
        How many times.
    dim : int
    prepend, append : Tensor, optional
        What to put before and behind the input first.

    Returns
    -------
    Tensor
        Shorter by `n` along `dim`. Of bool it says where neighbours differ.

    Raises
    ------
    RuntimeError
        If the input has no dimension, or `n` is negative.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.diff(fg.tensor([1., 4., 9.]))
    tensor([3., 5.])
    """
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    at = normal_dim(dim, input.ndim)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for extra in (prepend, append):
        if extra is not None and extra.ndim != input.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    if prepend is not None or append is not None:
        input = functions["cat"]([x for x in (prepend, input, append) if x is not None], at)
    for _ in range(min(n, input.shape[at])):
        later, earlier = between(input, at, 1, input.shape[at]), between(input, at, 0, input.shape[at] - 1)
        input = later.logical_xor(earlier) if input.dtype.category == 0 else later - earlier
    return input


def interval_areas(name: str, y: Any, x: Any, dx: Any, dim: int) -> tuple[Any, int]:
    """Twice the area of the trapezoid over each interval, and the dimension."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}() takes x or dx, not both")
    if y.ndim == 0:
        raise IndexError(f"{name}: Dimension specified as {dim} but tensor has no dimensions")
    at = normal_dim(dim, y.ndim)
    if y.dtype.category == 0:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    n = y.shape[at]
    heights = between(y, at, 1, n) + between(y, at, 0, n - 1)
    if x is None:
        return heights * (1 if dx is None else dx), at
    if x.dtype.category == 0:
        raise RuntimeError(f"{name}: received a bool input for `x`, but bool is not supported")
    along = at - y.ndim
    if x.ndim == 1:
        if x.shape[0] != n:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.reshape((n,) + (1,) * (-along - 1))
    elif -along > x.ndim or x.shape[along] != n:
        raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
    return heights * (between(x, along, 1, n) - between(x, along, 0, n - 1)), at


def trapezoid_samples(make: Any) -> list[Any]:
    return [
        ((make(4),), {}), ((make(2, 3),), {"dx": 0.5, "dim": 0}), ((make(2, 3), make(3)), {}),
        ((make(2, 3), make(2, 1)), {"dim": 0}), ((make(2, 3), make(2, 3)), {}), ((make(1),), {}),
    ]


@composite("cumulative_trapezoid(y, x=None, *, dx=None, dim=-1)", method=False, samples=trapezoid_samples)
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Running integrals along a dimension by the trapezoidal rule, shorter by one than the input.

    Parameters
    ----------
    y : Tensor
        The integrand.
    x : Tensor, optional
        The points; of one dimension, or with `y`'s.
    dx : number, optional
        The distance of the points (1).
    dim : int
    """
    areas, at = interval_areas("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(at) / 2.0


@composite("trapezoid(y, x=None, *, dx=None, dim=-1)", aliases=("trapz",), method=False, samples=trapezoid_samples)
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral along a dimension by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        The integrand.
    x : Tensor, optional
        The points; of one dimension, or with `y`'s.
    dx : number, optional
        The distance of the points (1).
    dim : int

    Raises
    ------
    IndexError
        If `y` has no dimension.
    RuntimeError
        If `x` has another number of points than `y`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.trapezoid(fg.tensor([1., 2., 3.]))
    tensor(4.)
    """
    areas, at = interval_areas("trapezoid", y, x, dx, dim)
    return areas.sum(at) / 2.0
