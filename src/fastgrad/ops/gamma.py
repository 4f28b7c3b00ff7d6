"""Floor 3: the error function and the gamma function's family.

NumPy has neither: float32 and float64 run on the C library's loops (`fused`), and what C lacks is computed here from
textbook expansions, so that none of it needs SciPy.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ._declare import DIAGONAL, FLOAT, POSITIVE, UNIT, composite, operator
from ._loops import Array, doc, not_implemented

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def one_by_one(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python floats, over arrays."""
    over = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(over(x.astype(np.float64))).astype(np.float64)


def scipy_or(name: str, own: Callable[..., Array]) -> Callable[..., Array]:
    """SciPy's ufunc of that name where SciPy is installed, since it is faster; else the function given.

    It is looked for at the first call: importing SciPy takes longer than importing this package.
    """
    found: list[Callable[..., Array]] = []

    def function(*arguments: Any) -> Array:
        if not found:
            try:
                from scipy import special
            except ImportError:
                found.append(own)
            else:
                found.append(getattr(special, name))
        return found[0](*arguments)

    return function


def real_only(name: str, function: Callable[..., Array]) -> Callable[..., Any]:
    """A forward that computes in float64 and gives the input's dtype; NotImplementedError for complex tensors."""

    def forward(input: Array, *rest: Any) -> Any:
        if input.dtype.kind == "c":
            raise not_implemented(name, input.dtype)
        return np.asarray(function(input.astype(np.float64), *rest)).astype(input.dtype)

    return forward


# --- The error function ----------------------------------------------------------------------------------------------

erf_array = one_by_one(math.erf)
erfc_array = one_by_one(math.erfc)


def erfinv_array(x: Array) -> Array:
    """Winitzki's closed approximation, then Halley's iteration on erf(y) - x (near 1: on the logarithm of erfc)."""
    size = np.abs(x)
    inside = size < 1
    p = np.where(inside, size, 0.5)
    a = 0.147
    log = np.log1p(-p * p)
    b = 2 / (math.pi * a) + log / 2
    y = np.sqrt(np.sqrt(b * b - log / a) - b)
    tail = p > 0.5
    for _ in range(3):
        # error / slope, from erfc where erf has lost the digits that count; 1 - p is exact there.
        error = np.where(tail, (1 - p) - erfc_array(y), erf_array(y) - p)
        step = error / (TWO_OVER_ROOT_PI * np.exp(-y * y))
        y = y - step / (1 + y * step)
    y = np.where(size == 1, np.inf, np.where(inside, y, np.nan))
    return np.copysign(y, x)


operator(
    "erf(input)",
    forward=real_only("erf", erf_array),
    vjp=dict(input=lambda g, input: g * (TWO_OVER_ROOT_PI * (-(input * input)).exp())),
    fused=dict(forward="erf(input)", input="g * (1.1283791670955126 * exp(-(input * input)))"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, complex=False,
    doc=doc("The error function.", "``2 / sqrt(pi) * exp(-input**2)`` (elementary).",
            ">>> fg.erf(fg.tensor([0.0]))\ntensor([0.])"),
)

operator(
    "erfc(input)",
    forward=real_only("erfc", erfc_array),
    vjp=dict(input=lambda g, input: -g * (TWO_OVER_ROOT_PI * (-(input * input)).exp())),
    fused=dict(forward="erfc(input)", input="-g * (1.1283791670955126 * exp(-(input * input)))"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, complex=False,
    doc=doc("``1 - erf(input)``, accurate where it is small.", "``-2 / sqrt(pi) * exp(-input**2)`` (elementary)."),
)

operator(
    "erfinv(input)",
    forward=real_only("erfinv", scipy_or("erfinv", erfinv_array)),
    vjp=dict(input=lambda g, result: g * ((result * result).exp() / TWO_OVER_ROOT_PI)),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, domain=UNIT, complex=False,
    source="S. Winitzki, A handy approximation for the error function and its inverse (2008), for the start",
    doc=doc("The inverse of erf: infinite at -1 and 1, NaN outside.",
            "``sqrt(pi) / 2 * exp(result**2)`` (elementary)."),
)

# --- The gamma function ----------------------------------------------------------------------------------------------

# B(2k) / (2k), k = 1 ... 8: the asymptotic series of digamma, Abramowitz and Stegun 6.3.18.
DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
# B(2k) / (2k)!, k = 1 ... 8: Euler and Maclaurin's formula for the Hurwitz zeta function.
ZETA_SERIES = tuple(2 * k * b / math.factorial(2 * k) for k, b in enumerate(DIGAMMA_SERIES, 1))
SHIFT = 10      # from here on the series above are exact to double precision
MAX_STEPS = 10_000      # below -MAX_STEPS the sum is cut short, and zeta is off by what is missing


def lgamma_one(x: float) -> float:
    if math.isinf(x):
        return math.inf
    if x <= 0 and x == math.floor(x):
        return math.inf
    return math.lgamma(x)


def digamma_array(x: Array) -> Array:
    """Reflection below 0, recurrence up to SHIFT, and the asymptotic series from there (A&S 6.3.5, 6.3.7, 6.3.18)."""
    negative = x < 0
    reflected = np.where(negative, 1 - x, x)
    y = np.where(reflected > 0, reflected, 1.0)
    result = np.zeros_like(y)
    for _ in range(SHIFT):
        small = y < SHIFT
        result = result - np.where(small, 1 / y, 0)
        y = np.where(small, y + 1, y)
    inverse = 1 / (y * y)
    tail = np.zeros_like(y)
    for coefficient in reversed(DIGAMMA_SERIES):
        tail = (tail + coefficient) * inverse
    result = result + np.log(y) - 0.5 / y - tail
    # pi * cot(pi x) from the fraction only, since pi * x would lose it.
    fraction = x - np.trunc(x)
    result = np.where(negative, result - math.pi / np.tan(math.pi * fraction), result)
    result = np.where(negative & (fraction == 0), np.nan, result)
    result = np.where(np.isnan(x), x, result)
    return np.where(x == 0, np.copysign(np.inf, -x), np.where(np.isposinf(x), np.inf, result))


def zeta_array(s: float, x: Array) -> Array:
    """The Hurwitz zeta function: its sum up to SHIFT, then Euler and Maclaurin's formula (A&S 23.2.3 for the rest)."""
    y = x.copy()
    total = np.zeros_like(y)
    least = float(np.min(y, initial=0.0, where=np.isfinite(y)))
    for _ in range(min(SHIFT - math.floor(least), MAX_STEPS)):
        small = y < SHIFT
        total = total + np.where(small, y ** -s, 0)
        y = np.where(small, y + 1, y)
    total = total + y ** (1 - s) / (s - 1) + 0.5 * y ** -s
    rising = s                       # s (s+1) ... (s+2k-2)
    for k, coefficient in enumerate(ZETA_SERIES, 1):
        total = total + coefficient * rising * y ** (1 - s - 2 * k)
        rising *= (s + 2 * k - 1) * (s + 2 * k)
    return total


def digamma_of(x: Array) -> Array:
    """As PyTorch has it at the poles: infinite with the sign of zero, NaN at negative whole numbers."""
    result = scipy_digamma(x)
    return np.where(x == 0, np.copysign(np.inf, -x), result)


scipy_digamma = scipy_or("digamma", digamma_array)
scipy_zeta = scipy_or("zeta", lambda s, x: zeta_array(s, x))


def polygamma_array(x: Array, n: int) -> Array:
    """``(-1)**(n+1) n! zeta(n+1, x)`` (A&S 6.4.10)."""
    return (-1.0) ** (n + 1) * math.factorial(n) * scipy_zeta(n + 1.0, x)


digamma = operator(
    "digamma(input)",
    forward=real_only("digamma", digamma_of),
    vjp=dict(input=lambda g, input: g * polygamma(1, input)),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, domain=POSITIVE, complex=False,
    source="Abramowitz and Stegun, Handbook of Mathematical Functions, 6.3 and 6.4",
    doc=doc("The derivative of lgamma.", "``polygamma(1, input)`` (Abramowitz and Stegun 6.4.1)."),
)

operator(
    "lgamma(input)",
    forward=real_only("lgamma", one_by_one(lgamma_one)),
    vjp=dict(input=lambda g, input: g * digamma(input)),
    fused=dict(forward="lgamma(input)"),
    dtypes=FLOAT, jvp=DIAGONAL, inplace=True, domain=POSITIVE, complex=False,
    source="Abramowitz and Stegun, Handbook of Mathematical Functions, 6.3.1",
    doc=doc("The logarithm of the absolute value of the gamma function.", "``digamma(input)`` (Abramowitz and Stegun "
            "6.3.1)."),
)

polygamma_operator = operator(
    "_polygamma(input, n)",
    forward=real_only("polygamma", polygamma_array),
    vjp=dict(input=lambda g, input, n: g * polygamma_operator(input, n + 1)),
    dtypes=FLOAT, jvp=DIAGONAL, node="Polygamma", domain=POSITIVE, complex=False, public=False, method=False,
    source="Abramowitz and Stegun, Handbook of Mathematical Functions, 6.4",
    samples=lambda make: [((make(2, 3).abs() + 0.5, 1), {}), ((make().abs() + 0.5, 2), {})],
)


@composite("polygamma(n, input)", method=False, complex=False,
           samples=lambda make: [((2, make(2, 3).abs() + 0.5), {}), ((0, make(2).abs() + 0.5), {})])
def polygamma(n: int, input: Any) -> Any:
    """The derivative of order `n` of the digamma function.

    Parameters
    ----------
    n : int
        Not negative.
    input : Tensor

    Raises
    ------
    RuntimeError
        If `n` is negative.
    """
    if not isinstance(n, int):
        raise TypeError(f"polygamma(): argument 'n' must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return digamma(input) if n == 0 else polygamma_operator(input, n)


@composite("mvlgamma(input, p)", complex=False, samples=lambda make: [((make(2, 3).abs() + 2, 2), {})])
def mvlgamma(input: Any, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension `p`.

    Raises
    ------
    RuntimeError
        If `p` is less than 1.
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    result = input.lgamma()
    for j in range(1, p):
        result = result + (input - j / 2).lgamma()
    return result + p * (p - 1) / 4 * math.log(math.pi)
