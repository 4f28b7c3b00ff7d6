"""Floor 5: a tensor handed to NumPy: ``np.exp(t)``, ``ndarray * t``, ``np.add.reduce(t)``, ``np.linalg.solve(A, t)``.

NumPy asks a tensor for two things. `__array_ufunc__` gets every ufunc (the arithmetic of ndarrays and NumPy numbers
among them) and its methods; `__array_function__` all other functions of NumPy's namespaces. Both look for what the
declarations named (`numpy=`), and then run that operator, so results are tensors and part of the graph. What nobody
named is refused by name: falling back to ndarrays would drop the gradient without a word.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from ._tensor import Tensor, attach, from_ndarray
from .ops import functions
from .ops._declare import numpy_functions

__all__: list[str] = []

ABSENT: Any = getattr(np, "_NoValue", None)     # what NumPy passes for an argument that was not given
handlers: dict[Any, Callable[..., Any]] = {}    # NumPy function -> ours; filled by the `_numpy_*` modules at first use

# The ufuncs that no declaration names, by what they are made of.
COMPOSED: dict[Any, Callable[..., Any]] = {
    np.cbrt: lambda x: x.sign() * x.abs() ** (1 / 3),
    np.divmod: lambda x, y: (x // y, x % y),
    np.matvec if hasattr(np, "matvec") else "matvec": lambda x, y: (x @ y.unsqueeze(-1)).squeeze(-1),
    np.modf: lambda x: (x - x.trunc(), x.trunc()),
    np.rint: lambda x: x.round(),
    np.vecmat if hasattr(np, "vecmat") else "vecmat": lambda x, y: (x.conj().unsqueeze(-2) @ y).squeeze(-2),
}

# SciPy's ufuncs, by name, so that SciPy need not be imported to know them.
SCIPY_NAMES = {"expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma"}

# What the reduction along an axis of a ufunc is called.
REDUCTIONS = {
    np.add: "sum", np.multiply: "prod", np.maximum: "amax", np.minimum: "amin", np.logical_and: "all",
    np.logical_or: "any", np.logaddexp: "logsumexp",
}
ACCUMULATIONS = {
    np.add: "cumsum", np.multiply: "cumprod", np.maximum: "cummax", np.minimum: "cummin",
    np.logaddexp: "logcumsumexp",
}

# Arguments of ufuncs that say nothing about the value.
IDLE = {"casting", "order", "subok"}


def as_tensor(value: Any) -> Tensor:
    """A tensor; a copy of an ndarray, a number or a list, so that writing to it later changes no graph."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return functions["stack"]([as_tensor(v) for v in value])  # type: ignore[no-any-return]
    return from_ndarray(np.asarray(value), copy=True)


# --- ufuncs ----------------------------------------------------------------------------------------------------------


def refused(name: str) -> TypeError:
    return TypeError(
        f"numpy.{name} is not available for fastgrad tensors: write it with fastgrad's functions, or use "
        "t.detach().numpy() for a result that carries no gradient"
    )


def operator_of(ufunc: Any) -> Callable[..., Any]:
    """What a ufunc dispatches to. TypeError if nothing does."""
    found = numpy_functions.get(ufunc) or COMPOSED.get(ufunc)
    if found is None:
        name = ufunc.__name__
        for candidate in (SCIPY_NAMES.get(name, name), f"special_{name}"):
            if candidate in functions and getattr(np, name, ufunc) is ufunc:
                return functions[candidate]  # type: ignore[no-any-return]
        raise refused(name)
    return found


def known_operand(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray, np.generic, int, float, complex, list, tuple))


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs: see NEP 13."""
    outputs = kwargs.pop("out", None)
    if not all(known_operand(x) for x in inputs):
        return NotImplemented
    if kwargs.get("where", True) is True:
        kwargs.pop("where", None)
    idle = {k for k in IDLE if k in kwargs}
    kwargs = {k: v for k, v in kwargs.items() if k not in idle}
    runner: Any = RUNNERS.get(method)
    if runner is None:
        raise refused(f"{ufunc.__name__}.{method}")
    inputs = tuple(np.asarray(x) if isinstance(x, (list, tuple)) and i == 0 else x for i, x in enumerate(inputs))
    try:
        result = runner(ufunc, *inputs, **kwargs)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise TypeError(f"numpy.{ufunc.__name__} of fastgrad tensors does not take all of these arguments: "
                        f"{', '.join(map(repr, kwargs))}") from error
    return result if outputs is None else written(ufunc.__name__, result, outputs)


def call(ufunc: Any, *inputs: Any, dtype: Any = None) -> Any:
    inputs = tuple(np.asarray(x) if isinstance(x, (list, tuple)) else x for x in inputs)
    if dtype is not None:
        inputs = tuple(x.to(dtype) if isinstance(x, Tensor) else np.asarray(x, dtype) for x in inputs)
    found = operator_of(ufunc)
    if ufunc in COMPOSED and found is COMPOSED[ufunc]:
        inputs = tuple(as_tensor(x) for x in inputs)
    return found(*inputs)


def reduce(ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False,
           initial: Any = ABSENT) -> Any:
    """``ufunc.reduce``: along the first axis unless told otherwise, as NumPy's."""
    if ufunc not in REDUCTIONS:
        raise refused(f"{ufunc.__name__}.reduce")
    t = as_tensor(array)
    t = t if dtype is None else t.to(dtype)
    axes = range(t.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    dims = sorted((a % max(t.ndim, 1) for a in axes), reverse=True) if t.ndim else []
    name = REDUCTIONS[ufunc]
    if name in ("sum", "amax", "amin", "logsumexp"):
        t = functions[name](t, tuple(dims), keepdims) if dims else t
    else:
        for dim in dims:
            t = functions[name](t, dim, keepdims)
    return t if initial is ABSENT or initial is None else operator_of(ufunc)(t, initial)


def accumulate(ufunc: Any, array: Any, axis: int = 0, dtype: Any = None) -> Any:
    """``ufunc.accumulate``."""
    if ufunc not in ACCUMULATIONS:
        raise refused(f"{ufunc.__name__}.accumulate")
    t = as_tensor(array)
    result = functions[ACCUMULATIONS[ufunc]](t if dtype is None else t.to(dtype), axis)
    return result[0] if isinstance(result, tuple) else result


def outer(ufunc: Any, a: Any, b: Any, dtype: Any = None) -> Any:
    """``ufunc.outer``: the ufunc of every element of a with every element of b."""
    a, b = as_tensor(a), as_tensor(b)
    return call(ufunc, a.reshape((*a.shape, *[1] * b.ndim)), b, dtype=dtype)


def at(ufunc: Any, target: Any, indices: Any, values: Any = None) -> None:
    """``np.add.at`` and ``np.subtract.at``: repeated indices add up; written in place and recorded."""
    if ufunc not in (np.add, np.subtract):
        raise refused(f"{ufunc.__name__}.at")
    if not isinstance(target, Tensor):
        if as_tensor(values).requires_grad:
            raise RuntimeError(f"numpy.{ufunc.__name__}.at: the values require grad, which an ndarray cannot record: "
                               "make the target a tensor, or give values.detach()")
        return ufunc.at(target, indices, as_tensor(values).numpy())  # type: ignore[no-any-return]
    index = indices if isinstance(indices, tuple) else (indices,)
    values = as_tensor(values)
    values = values if values.dtype == target.dtype else values.to(target.dtype)
    target.index_put_(tuple(as_tensor(i) for i in index), values if ufunc is np.add else -values, accumulate=True)
    return None


RUNNERS = {"__call__": call, "reduce": reduce, "accumulate": accumulate, "outer": outer, "at": at}


# --- Where results are written ---------------------------------------------------------------------------------------


def written(name: str, result: Any, outputs: Any) -> Any:
    """Copy into what ``out=`` named: recorded into tensors, refused for ndarrays that would lose the history."""
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    results = result if isinstance(result, tuple) else (result,)
    done = []
    for source, target in zip(results, outputs):
        if target is None:
            done.append(source)
            continue
        source = as_tensor(source)
        if tuple(target.shape) != tuple(source.shape):
            raise ValueError(f"numpy.{name}: non-broadcastable output operand with shape {tuple(target.shape)} doesn't "
                             f"match the broadcast shape {tuple(source.shape)}")
        if isinstance(target, Tensor):
            target.copy_(source)
        elif source.requires_grad:
            raise RuntimeError(
                f"numpy.{name}: the result requires grad, which an ndarray cannot record; write a = a + t in place of "
                "a += t, or use t.detach()"
            )
        else:
            np.copyto(target, source.numpy(), casting="same_kind")
        done.append(target)
    return done[0] if not isinstance(result, tuple) else tuple(done)


# --- All other functions ---------------------------------------------------------------------------------------------


@lru_cache(1)
def load_handlers() -> Any:
    """The modules that fill `handlers`, imported when first needed; returns how declared functions are called."""
    from . import _numpy_functions, _numpy_linalg, _numpy_shapes  # noqa: F401

    return _numpy_functions.call_declared


def array_function(self: Tensor, func: Any, types: Iterable[type], args: Any, kwargs: Any) -> Any:
    """NumPy's protocol for its other functions: see NEP 18."""
    if not all(issubclass(t, (Tensor, np.ndarray)) for t in types):
        return NotImplemented
    call_declared = load_handlers()
    kwargs = dict(kwargs)
    target = kwargs.pop("out", None)
    if func in handlers:
        result = handlers[func](*args, **kwargs)
    elif func in numpy_functions:
        result = call_declared(numpy_functions[func], func, args, kwargs)
    else:
        module = getattr(func, "__module__", "numpy").removeprefix("numpy").lstrip(".")
        raise refused(f"{module}.{func.__name__}" if module in ("linalg", "fft") else func.__name__)
    return result if target is None else written(func.__name__, result, target)


attach("__array_ufunc__", array_ufunc)
attach("__array_function__", array_function)
attach("__array_priority__", 1000)      # for classes that know neither protocol, such as scipy.sparse's
