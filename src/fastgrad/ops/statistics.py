"""Floor 3: variance and standard deviation, covariance, and counting into bins."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._dtypes import get_default_dtype
from .._tensor import from_ndarray
from ._declare import KEEP, composite, functions, operator
from ._helpers import conj, numpy_words, real_product, unreduced
from ._loops import Array, doc, not_implemented
from .reductions import ADD, axis_of, nonzero_part
from .selection import where

ARGUMENTS = (
    "input : Tensor\ndim : int or tuple of int, optional\n    What to reduce; all dimensions if not given.\n"
    "unbiased : bool, optional\n    An older word for ``correction=1`` and ``correction=0``.\nkeepdim : bool\n"
    "    Whether reduced dimensions stay, with size 1.\ncorrection : number, optional\n"
    "    What is subtracted from the number of elements in the denominator; 1 if not given."
)
RAISES = (
    "RuntimeError\n    For integers and bool.\nIndexError\n    If there is no such dimension.\nTypeError\n"
    "    If both `unbiased` and `correction` are given."
)

# --- Variance --------------------------------------------------------------------------------------------------------


def what_to_reduce(name: str, dim: Any, unbiased: Any, correction: Any) -> tuple[Any, float]:
    """`dim` and the correction. A bool in `dim`'s place is `unbiased`, as in ``x.var(False)``."""
    if isinstance(dim, bool):
        if unbiased is not None:
            raise TypeError(f"{name}(): dim must be int or a tuple of ints, not bool")
        dim, unbiased = None, dim
    if unbiased is not None:
        if correction is not None:
            raise TypeError(f"{name}() takes unbiased or correction, not both")
        return dim, 1 if unbiased else 0
    return dim, 1 if correction is None else correction


def var_forward(name: str, input: Array, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    if input.dtype.kind not in "fc":
        raise RuntimeError(f"{name}: std and var only support floating point and complex dtypes, not {input.dtype}")
    dim, correction = what_to_reduce(name, dim, unbiased, correction)
    axis = axis_of(dim, input.ndim)
    x = input.astype(np.float32) if input.dtype.char == "e" else input
    mean = ADD(x, axis, None, None, True)
    n = x.size // max(mean.size, 1)
    mean = mean / n
    deviation = x - mean
    # A second pass over the deviations, since the difference of two sums of squares would cancel.
    square = deviation.real**2 + deviation.imag**2 if x.dtype.kind == "c" else deviation * deviation
    return ADD(square, axis, None, None, keepdim) / max(n - correction, 0)


def var_cotangent(g: Any, input: Any, dim: Any, keepdim: bool, correction: float) -> Any:
    """``2 (x - mean) / (n - correction)``, times g."""
    shape = tuple(input.shape)
    deviation = input - input.mean(dim, True)
    n = math.prod(shape) // max(g.numel(), 1)
    freedom = n - correction
    if freedom <= 0 and dim is None:
        # What PyTorch has where the variance of all elements is infinite or NaN.
        return g * where(deviation == 0, math.nan, math.inf)
    g = unreduced(g, shape, dim, keepdim)
    return (g * (2.0 / freedom) if freedom else g * math.inf) * deviation


def var_jvp_input(t: Any, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    dim, correction = what_to_reduce("var", dim, unbiased, correction)
    deviation = input - input.mean(dim, True)
    total = real_product(deviation, t).sum(dim, keepdim)
    freedom = math.prod(input.shape) // max(total.numel(), 1) - correction
    return total * (2.0 / freedom if freedom else math.inf)


def std_jvp_input(
    t: Any, input: Any, result: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Any:
    t = var_jvp_input(t, input, dim, unbiased, keepdim, correction)
    return nonzero_part(lambda std: t / (std * 2), result)


def var_vjp_input(g: Any, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    dim, correction = what_to_reduce("var", dim, unbiased, correction)
    return var_cotangent(g, input, dim, keepdim, correction)


def std_vjp_input(g: Any, input: Any, result: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    dim, correction = what_to_reduce("std", dim, unbiased, correction)
    # The square root has no derivative at 0; of equal numbers the subgradient 0 is taken.
    return var_cotangent(nonzero_part(lambda std: g / (std * 2), result), input, dim, keepdim, correction)


def var_samples(make: Any) -> list[Any]:
    return [
        ((make(3),), {}), ((make(2, 3), 0), {}), ((make(2, 3), (0, -1), True, True), {}), ((make(2, 3), False), {}),
        ((make(2, 3, 4), 1), {"correction": 0, "keepdim": True}), ((make(4, 0), 0), {}), ((make(3, 2).T, 1), {}),
    ]


operator(
    "std(input, dim=None, unbiased=None, keepdim=False, *, correction=None)",
    forward=lambda *given: np.sqrt(var_forward("std", *given)).astype(given[0].real.dtype, copy=False),
    vjp=dict(input=std_vjp_input),
    dtypes=KEEP, jvp=dict(input=std_jvp_input), samples=var_samples,
    doc=doc("The standard deviation over dimensions, by default of a sample.",
            "``g * (input - mean) / ((n - correction) * result)``, and 0 where the result is 0 (elementary).",
            ">>> fg.tensor([1., 2., 3.]).std()\ntensor(1.)", arguments=ARGUMENTS,
            returns="Of the input's dtype, real; NaN for a sample of one.", raises=RAISES),
)

operator(
    "var(input, dim=None, unbiased=None, keepdim=False, *, correction=None)",
    forward=lambda *given: var_forward("var", *given).astype(given[0].real.dtype, copy=False),
    vjp=dict(input=var_vjp_input),
    dtypes=KEEP, jvp=dict(input=var_jvp_input), samples=var_samples,
    doc=doc("The variance over dimensions, by default of a sample.",
            "``2 * g * (input - mean) / (n - correction)`` (elementary).",
            ">>> fg.tensor([1., 2., 3.]).var(correction=0)\ntensor(0.6667)", arguments=ARGUMENTS,
            returns="Of the input's dtype, real; NaN for a sample of one.", raises=RAISES),
)


def with_mean(name: str, spread: str, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    if input.dtype.category < 2:
        raise RuntimeError(f"{name} only support floating point and complex dtypes, not {input.dtype.name}")
    dim, correction = what_to_reduce(name, dim, unbiased, correction)
    return functions[spread](input, dim, keepdim=keepdim, correction=correction), input.mean(dim, keepdim)


@composite(
    "std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None)", method=False, samples=var_samples)
@numpy_words
def std_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    """The standard deviation and the mean, as a tuple; see :func:`fastgrad.std`."""
    return with_mean("std_mean", "std", input, dim, unbiased, keepdim, correction)


@composite(
    "var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None)", method=False, samples=var_samples)
@numpy_words
def var_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    """The variance and the mean, as a tuple; see :func:`fastgrad.var`."""
    return with_mean("var_mean", "var", input, dim, unbiased, keepdim, correction)


# --- Covariance ------------------------------------------------------------------------------------------------------


def checked_weights(name: str, weights: Any, n: int, integers: bool) -> Any:
    kind = "integral" if integers else "floating point"
    if weights.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} "
                           "dimensions")
    if weights.dtype.category != (1 if integers else 2):
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {weights.dtype.name} "
                           "dtype")
    if weights.numel() != n:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but "
                           f"got {weights.numel()} != {n}")
    if weights.numel() and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return weights.reshape(-1)


@composite(
    "cov(input, *, correction=1, fweights=None, aweights=None)",
    samples=lambda make: [
        ((make(4),), {}), ((make(2, 4),), {}), ((make(2, 4),), {"correction": 0}),
        ((make(2, 3),), {"fweights": from_ndarray(np.array([1, 2, 1]), False), "aweights": make(3).detach().abs()}),
    ],
)
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance matrix of variables (rows) from observations (columns).

    Parameters
    ----------
    input : Tensor
        Of at most two dimensions; of fewer, one variable.
    correction : int
        What is subtracted from the number of observations.
    fweights : Tensor of int, optional
        How often each observation was made.
    aweights : Tensor of float, optional
        How much each observation counts.

    Returns
    -------
    Tensor
        Square; 0-dim for one variable.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.cov(fg.tensor([[1., 2., 3.], [3., 2., 1.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with "
                           f"{input.ndim} dimensions")
    if input.dtype.category == 0:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    if input.dtype.category == 1:
        input = input.to(get_default_dtype())
    rows = input if input.ndim == 2 else input.reshape(1, -1)
    n = rows.shape[1]
    weights = None
    if fweights is not None:
        weights = checked_weights("fweights", fweights, n, True)
    if aweights is not None:
        more = checked_weights("aweights", aweights, n, False)
        weights = more if weights is None else weights * more
    if weights is None:
        deviation = rows - rows.mean(1, True)
        freedom: Any = n - correction
        weighted = deviation
    else:
        total = weights.sum()
        deviation = rows - (rows * weights).sum(1, True) / total
        if aweights is None or correction == 0:
            freedom = total - correction
        elif fweights is None:
            freedom = total - correction * (weights * aweights).sum() / total
        else:
            freedom = total - correction * (weights * aweights.reshape(-1)).sum() / total
        weighted = deviation * weights
    if bool(freedom <= 0):
        freedom = 0
    result = weighted @ conj(deviation).transpose(0, 1) / freedom
    return result if input.ndim == 2 and len(rows) != 1 else result.squeeze()


@composite("corrcoef(input)", samples=lambda make: [((make(4),), {}), ((make(2, 4),), {})])
def corrcoef(input: Any) -> Any:
    """Pearson's correlation coefficients of variables (rows) from observations (columns).

    Parameters
    ----------
    input : Tensor
        Of at most two dimensions; of fewer, one variable.

    Returns
    -------
    Tensor
        Square, with parts within [-1, 1]; 0-dim for one variable.
    """
    if input.ndim > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an input with "
                           f"{input.ndim} dimensions")
    covariance = functions["cov"](input)
    if covariance.ndim == 0:
        return covariance / covariance
    diagonal = covariance.diagonal()
    spread = (diagonal.real if diagonal.dtype.is_complex else diagonal).sqrt()
    result = covariance / spread.unsqueeze(1) / spread.unsqueeze(0)
    if result.dtype.is_complex:
        return functions["complex"](result.real.clamp(-1, 1), result.imag.clamp(-1, 1))
    return result.clamp(-1, 1)


# --- Counting --------------------------------------------------------------------------------------------------------


def bincount_forward(input: Array, weights: Any, minlength: int) -> Any:
    if input.dtype.kind not in "iu":
        raise not_implemented("bincount_cpu", input.dtype)
    if minlength < 0:
        raise RuntimeError(f"bincount: minlength should be >= 0, not {minlength}")
    if input.ndim != 1 or (input.size and input.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return np.bincount(input, minlength=minlength).astype(np.int64)
    if weights.shape != input.shape:
        raise RuntimeError("bincount: weights should be 1-d and have the same length as input, not of shape "
                           f"{weights.shape}")
    counts = np.bincount(input, weights, minlength)
    return counts.astype(np.float32) if weights.dtype == np.float32 else counts


operator(
    "bincount(input, weights=None, minlength=0)",
    forward=bincount_forward, numpy=np.bincount,
    tensors="input weights", dtypes=KEEP, differentiable=False, complex=False,
    samples=lambda make: [((from_ndarray(np.array([0, 2, 2]), False),), {}),
                          ((from_ndarray(np.array([0, 2, 2]), False), make(3).detach(), 5), {})],
    doc=doc("How often each number from 0 on occurs, or the sum of its weights.", "",
            ">>> fg.bincount(fg.tensor([0, 2, 2]))\ntensor([1, 0, 2])",
            arguments="input : Tensor of int\n    Of one dimension, not negative.\nweights : Tensor, optional\n"
                      "    Of the same shape.\nminlength : int\n    The least length of the result.",
            returns="int64, float32 for float32 weights, else float64; of one dimension.",
            raises="RuntimeError\n    For negative numbers and other shapes."),
)


def histc_forward(input: Array, bins: int, min: float, max: float) -> Any:
    if input.dtype.kind != "f" or input.dtype.char == "e":
        raise not_implemented("histogram_cpu", input.dtype)
    if bins <= 0:
        raise RuntimeError(f"histc: bins must be > 0, but got {bins} for dimension 0")
    if max < min:
        raise RuntimeError(f"histc: max must be larger than min, but got {min} and {max}")
    low, high = float(min), float(max)
    if low == high and input.size:
        low, high = float(input.min()), float(input.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"histc: range of [{low}, {high}] is not finite")
    if low == high:
        low, high = low - 1, high + 1
    inside = input[(input >= low) & (input <= high)]
    places = ((inside - low) * (bins / (high - low))).astype(np.int64)
    return np.bincount(np.minimum(places, bins - 1), minlength=bins).astype(input.dtype)


operator(
    "histc(input, bins=100, min=0, max=0)",
    forward=histc_forward,
    dtypes=KEEP, differentiable=False, complex=False,
    samples=lambda make: [((make(7), 4), {}), ((make(2, 3), 3, -1, 1), {})],
    doc=doc("How many elements lie in each of `bins` intervals of equal width.", "",
            ">>> fg.histc(fg.tensor([1., 2., 1.]), bins=4, min=0, max=3)\ntensor([0., 2., 1., 0.])",
            arguments="input : Tensor\nbins : int\nmin, max : number\n    The range; that of the elements if both are "
                      "equal. What is outside is not counted.",
            returns="Of the input's dtype and one dimension.",
            raises="RuntimeError\n    If there are no bins, or the range is not finite."),
)
