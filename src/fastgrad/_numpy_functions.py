"""Floor 5: NumPy's functions over tensors, by NumPy's signatures.

`handlers` has those whose arguments or meaning differ from PyTorch's function of the same kind (``np.median`` is the
mean of the two middle elements, ``np.std`` divides by n, ``np.split`` counts pieces). All others are found in the
declarations (`numpy=`) and called through `call_declared`, which renames arguments.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ._tensor import Tensor, from_ndarray
from .numpy_interop import ABSENT, as_tensor, handlers
from .ops import declarations, functions


def plain(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else value


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """A function of fastgrad by name, or a declared one of a namespace (``linalg_qr``)."""
    if name in functions:
        return functions[name](*args, **kwargs)
    for declared in (name, f"special_{name}"):
        if declared in declarations:
            return declarations[declared].function(*args, **kwargs)
    raise TypeError(f"fastgrad has no function '{name}', which this NumPy function needs for tensors")


def implements(*targets: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a handler for one or several NumPy functions."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for target in targets:
            handlers[target] = handler
        return handler

    return register


# --- Declared functions: renaming arguments --------------------------------------------------------------------------

RENAMED = {"axis": ("dim", "dims"), "axes": ("dims", "dim"), "keepdims": ("keepdim",), "decimals": ("decimals",)}
IDLE = {"order", "subok", "copy", "casting", "like"}


@lru_cache(1024)
def parameters_of(function: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


@lru_cache(1024)
def signature_of(function: Any) -> inspect.Signature:
    return inspect.signature(function)


def call_declared(target: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call an operator with the arguments of the NumPy function it stands for."""
    own = parameters_of(target)
    bound = signature_of(function).bind(*args, **kwargs)
    positional: list[Any] = []
    named = {}
    for i, (name, value) in enumerate(bound.arguments.items()):
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            positional.extend(value)
            continue
        if name in IDLE or value is ABSENT or (value is None and i > 0):
            continue
        value = from_ndarray(value, copy=True) if isinstance(value, np.ndarray) else value
        chosen = next((n for n in (name, *RENAMED.get(name, ())) if n in own), None)
        if chosen is not None and i > 0:
            named[chosen] = value
        elif i == len(positional) and not named:
            positional.append(value)
        else:
            raise TypeError(f"numpy.{function.__name__} of fastgrad tensors has no argument '{name}'")
    return target(*positional, **named)


# --- Reductions ------------------------------------------------------------------------------------------------------


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def one_by_one(name: str, t: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """A reduction that takes one dimension at a time."""
    if t.ndim == 0:
        return call(name, t)  # type: ignore[no-any-return]
    for dim in sorted((d % t.ndim for d in axes_of(axis, t.ndim)), reverse=True):
        t = call(name, t, dim, keepdims)
    return t


@implements(np.sum)
def sum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    return call("sum", as_tensor(a), axis, keepdims, dtype=dtype)


@implements(np.prod)
def prod(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    t = as_tensor(a) if dtype is None else as_tensor(a).to(dtype)
    return one_by_one("prod", t, axis, keepdims)


@implements(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    t = as_tensor(a)
    if dtype is not None or not (t.dtype.is_floating_point or t.dtype.is_complex):
        t = t.to(dtype if dtype is not None else np.float64)
    return call("mean", t, axis, keepdims)


@implements(np.var)
def var(a: Any, axis: Any = None, *, ddof: float = 0, correction: Any = None, keepdims: bool = False) -> Any:
    return call("var", as_tensor(a), axis, correction=ddof if correction is None else correction, keepdim=keepdims)


@implements(np.std)
def std(a: Any, axis: Any = None, *, ddof: float = 0, correction: Any = None, keepdims: bool = False) -> Any:
    return call("std", as_tensor(a), axis, correction=ddof if correction is None else correction, keepdim=keepdims)


def extreme(name: str) -> Callable[..., Any]:
    def handler(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        t = as_tensor(a)
        return call(name, t, axes_of(axis, t.ndim), keepdims)

    return handler


handlers[np.max] = handlers[np.amax] = extreme("amax")
handlers[np.min] = handlers[np.amin] = extreme("amin")


def position(name: str) -> Callable[..., Any]:
    def handler(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return call(name, as_tensor(a), axis, keepdims)

    return handler


handlers[np.argmax], handlers[np.argmin] = position("argmax"), position("argmin")


def truth(name: str) -> Callable[..., Any]:
    def handler(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return one_by_one(name, as_tensor(a), axis, keepdims)

    return handler


handlers[np.all], handlers[np.any] = truth("all"), truth("any")


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return handlers[np.max](a, axis, keepdims=keepdims) - handlers[np.min](a, axis, keepdims=keepdims)


def nan_reduction(name: str) -> Callable[..., Any]:
    def handler(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        t = as_tensor(a)
        return call(name, t, axes_of(axis, t.ndim), keepdims)

    return handler


handlers[np.nansum], handlers[np.nanmean] = nan_reduction("nansum"), nan_reduction("nanmean")


def nan_ignored(target: Any, stand_in: float) -> Callable[..., Any]:
    """A function of the elements with NaN replaced by what changes nothing; NaN where nothing else is there."""

    def handler(a: Any, axis: Any = None, **rest: Any) -> Any:
        t = as_tensor(a)
        missing = call("isnan", t)
        result = handlers[target](call("where", missing, stand_in, t), axis, **rest)
        if target not in (np.max, np.min):
            return result
        return call("where", one_by_one("all", missing, axis, rest.get("keepdims", False)), np.nan, result)

    return handler


handlers[np.nanmax], handlers[np.nanmin] = nan_ignored(np.max, -np.inf), nan_ignored(np.min, np.inf)
handlers[np.nanprod], handlers[np.nancumsum] = nan_ignored(np.prod, 1.0), nan_ignored(np.cumsum, 0.0)
handlers[np.nancumprod] = nan_ignored(np.cumprod, 1.0)


@implements(np.nanvar)
def nanvar(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Any:
    t = as_tensor(a)
    axes = axes_of(axis, t.ndim)
    present = ~call("isnan", t)
    centred = call("where", present, t - call("nanmean", t, axes, True), 0.0)
    return call("sum", centred * centred, axes, keepdims) / (call("sum", present, axes, keepdims) - ddof)


@implements(np.nanstd)
def nanstd(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Any:
    return nanvar(a, axis, ddof=ddof, keepdims=keepdims).sqrt()


@implements(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
        fweights: Any = None, aweights: Any = None) -> Any:
    rows = observations(m, y, rowvar)
    weights = {k: as_tensor(w) for k, w in (("fweights", fweights), ("aweights", aweights)) if w is not None}
    return call("cov", rows, correction=int(not bias) if ddof is None else ddof, **weights)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    return call("corrcoef", observations(x, y, rowvar))


def observations(m: Any, y: Any, rowvar: bool) -> Tensor:
    """One variable a row."""
    parts = [p if rowvar or p.ndim < 2 else p.transpose(0, 1) for p in map(as_tensor, (m,) if y is None else (m, y))]
    return parts[0] if y is None else call("cat", [call("atleast_2d", p) for p in parts])


def scan(name: str) -> Callable[..., Any]:
    def handler(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        t = as_tensor(a) if dtype is None else as_tensor(a).to(dtype)
        return call(name, t.reshape(-1), 0) if axis is None else call(name, t, axis)

    return handler


handlers[np.cumsum], handlers[np.cumprod] = scan("cumsum"), scan("cumprod")


def quantiles(name: str, factor: float) -> Callable[..., Any]:
    def handler(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Any:
        t = as_tensor(a)
        given = as_tensor(q)
        return call(name, t, given.to(t.dtype) * factor, axis, keepdims, interpolation=method)

    return handler


handlers[np.quantile], handlers[np.nanquantile] = quantiles("quantile", 1.0), quantiles("nanquantile", 1.0)
handlers[np.percentile], handlers[np.nanpercentile] = quantiles("quantile", 0.01), quantiles("nanquantile", 0.01)


@implements(np.median)
def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return call("quantile", as_tensor(a), 0.5, axis, keepdims)


@implements(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return call("nanquantile", as_tensor(a), 0.5, axis, keepdims)


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    t = as_tensor(a)
    if weights is None:
        return call("mean", t, axis, keepdims)
    w = as_tensor(weights)
    if axis is not None and w.ndim == 1 and t.ndim > 1:
        w = w.reshape([-1 if i == axis % t.ndim else 1 for i in range(t.ndim)])
    return call("sum", t * w, axis, keepdims) / call("sum", w.expand(t.shape), axis, keepdims)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return call("sum", as_tensor(a) != 0, axis, keepdims)


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    if x is None:
        return call("trapezoid", as_tensor(y), dx=dx, dim=axis)
    return call("trapezoid", as_tensor(y), as_tensor(x), dim=axis)


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    extra = {k: as_tensor(v) for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    return call("diff", as_tensor(a), n, axis, **extra)


# --- Elements --------------------------------------------------------------------------------------------------------


@implements(np.round, np.around)
def round(a: Any, decimals: int = 0) -> Any:
    return call("round", as_tensor(a), decimals=decimals)


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    result = call("angle", as_tensor(z))
    return result * (180 / np.pi) if deg else result


@implements(np.i0)
def i0(x: Any) -> Any:
    return call("i0", as_tensor(x))


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    return call("nan_to_num", as_tensor(x), nan, posinf, neginf)


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    a, b = as_tensor(a), as_tensor(b)
    return call("isclose", a, b.to(a.dtype), rtol, atol, equal_nan)


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    a, b = (as_tensor(x).detach().numpy() for x in (a, b))
    return bool(np.allclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    a, b = (as_tensor(x).detach().numpy() for x in (a1, a2))
    return bool(np.array_equal(a, b, equal_nan))


# --- Names that NumPy has since 2.1 ----------------------------------------------------------------------------------

if hasattr(np, "astype"):
    handlers[np.astype] = lambda x, dtype, /, *, copy=True: as_tensor(x).to(dtype)

if hasattr(np, "cumulative_sum"):

    def cumulative(scan: Any, first: float) -> Callable[..., Any]:
        def handler(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
            t = as_tensor(x) if dtype is None else as_tensor(x).to(dtype)
            if axis is None and t.ndim > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            dim = 0 if axis is None else axis
            result = handlers[scan](t, dim)
            return call("cat", [result.narrow(dim, 0, 1) * 0 + first, result], dim) if include_initial else result

        return handler

    handlers[np.cumulative_sum] = cumulative(np.cumsum, 0.0)
    handlers[np.cumulative_prod] = cumulative(np.cumprod, 1.0)
