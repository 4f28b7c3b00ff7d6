"""From Python's data to an array: which dtype numbers and nested sequences get, and what may be converted to what.

Numbers follow PyTorch: a Python float has the default dtype, an int is int64, NumPy's scalars and arrays and 0-dim
tensors have their own dtype, and what a sequence contains is promoted together. A number that does not fit its dtype is
an error; the elements of an array are converted as NumPy converts them. All constructors end in `leaf`, or in
`from_ndarray` where they share memory.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ._dtypes import (
    CATEGORY_BOOL,
    CATEGORY_COMPLEX,
    CATEGORY_INTEGER,
    DTYPES,
    N_DTYPES,
    PROMOTE,
    DtypeLike,
    as_dtype,
    bool_,
    default_complex,
    dtype,
    get_default_dtype,
    iinfo,
    int64,
    uint64,
)
from ._tensor import Tensor, from_ndarray

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]
else:
    Array = np.ndarray      # numpy.typing costs 6 ms to import

MAX_NDIM = 64  # NumPy's limit
MAX_BYTES = 2**63 - 1  # of one tensor: sizes and strides are signed 64-bit integers


def leaf(function: str, array: Array, requires_grad: bool = False) -> Tensor:
    """Make a leaf with a copy of the array in memory of its own."""
    if not isinstance(requires_grad, bool):
        raise TypeError(f"{function}(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    try:
        return from_ndarray(array, True, requires_grad)
    except MemoryError:
        raise RuntimeError(f"{function}(): can't allocate memory: you tried to allocate {array.nbytes} bytes") from None


def filled(function: str, sizes: tuple[int, ...], value: Array, requires_grad: bool = False) -> Tensor:
    """Make a leaf of these sizes, filled with the value of a 0-dim array."""
    # A size of 0 does not excuse the others: strides are their products.
    if math.prod(size or 1 for size in sizes) * value.itemsize > MAX_BYTES:
        raise RuntimeError(f"{function}(): Storage size calculation overflowed with sizes={list(sizes)}")
    # All elements at one address: the copy writes each element of the new memory once, and nothing else is made.
    everywhere: Array = np.ndarray(sizes, value.dtype, value, 0, (0,) * len(sizes))
    return leaf(function, everywhere, requires_grad)


def dtype_or_default(given: DtypeLike | None) -> dtype:
    """Read an optional dtype argument of a constructor of floats."""
    return get_default_dtype() if given is None else as_dtype(given)


def checked_tensor(function: str, argument: str, value: Any) -> Tensor:
    """Return the value if it is a tensor, or say what it is."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{function}(): argument '{argument}' must be Tensor, not {type(value).__name__}")
    return value


def array_of(data: Any, wanted: dtype | None) -> Array:
    """Convert whatever `fastgrad.tensor` takes. An array or a tensor of the wanted dtype comes back sharing memory."""
    kind = type(data)
    if kind is float or kind is int or kind is bool:
        return _numbers([data], wanted).reshape(())
    if isinstance(data, np.ndarray):
        return cast_array(data, wanted)
    if isinstance(data, Tensor):
        return cast_array(data.detach().numpy(), wanted)
    if isinstance(data, np.generic | complex):
        return _numbers([data], wanted).reshape(())
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'; expected numbers")
    if hasattr(data, "__array__"):
        return cast_array(np.asarray(data), wanted)
    if _is_sequence(data):
        return _sequence(data, wanted)
    return _numbers([data], wanted).reshape(())


def cast_array(array: Array, wanted: dtype | None) -> Array:
    """Convert an array to the wanted dtype (None: its own, in native byte order); itself if that is what it has."""
    try:
        own = as_dtype(array.dtype)
    except TypeError:
        kind, supported = array.dtype.type.__name__, ", ".join(d.name for d in DTYPES)
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{kind}. The only supported types are: {supported}"
        ) from None
    array = np.asarray(array)  # the base class: a matrix would come back with two dimensions whatever is done to it
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype((wanted or own).numpy, copy=False)


def scalar_array(value: Any, wanted: dtype) -> Array:
    """Convert one number that is to fill a tensor, more strictly than a datum: a float must not overflow to inf."""
    if isinstance(value, complex) and wanted.category not in (CATEGORY_BOOL, CATEGORY_COMPLEX):
        if value.imag:
            raise _overflow(value, wanted)
        value = value.real
    array = _numbers([value], wanted).reshape(())
    if wanted.category > CATEGORY_INTEGER and not np.isfinite(array) and math.isfinite(abs(value)):
        raise _overflow(value, wanted)
    return array


def number(function: str, argument: str, value: Any) -> bool | int | float | complex:
    """Return a Python number for a number, a NumPy scalar, or a 0-dim tensor without history."""
    if isinstance(value, np.generic) or (isinstance(value, Tensor) and value.ndim == 0 and not value.requires_grad):
        value = value.item()
    if not isinstance(value, bool | int | float | complex):
        raise TypeError(f"{function}(): argument '{argument}' must be Number, not {_described(value)}")
    return value


def integer(function: str, argument: str, value: Any) -> int:
    """Return an int for an integer, a NumPy integer, or a 0-dim integer tensor, but not for a bool."""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"{function}(): argument '{argument}' must be int, not {_described(value)}")
    try:
        return int(value.__index__())
    except (TypeError, RuntimeError):  # an array or a tensor that is not one integer
        raise TypeError(f"{function}(): argument '{argument}' must be int, not {_described(value)}") from None


def arguments(
    function: str, forms: tuple[tuple[str, ...], ...], positional: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Match arguments with one of several forms, each a list of names; those given by name are taken from ``named``."""
    by_name = {name: named.pop(name) for name in dict.fromkeys(chain.from_iterable(forms)) if name in named}
    for form in forms:
        given = dict(zip(form, positional))
        if len(positional) + len(by_name) == len(form) and given.keys() | by_name.keys() == set(form):
            return given | by_name
    got = [type(x).__name__ for x in positional] + [f"{name}={type(x).__name__}" for name, x in by_name.items()]
    expected = ", ".join(f"({', '.join(form)})" for form in forms)
    raise TypeError(
        f"{function}() received an invalid combination of arguments - got ({', '.join(got)}), but expected one of: "
        f"{expected}"
    )


def inferred_dtype(value: bool | int | float | complex) -> dtype:
    """Return the dtype of a tensor made of one Python number."""
    return _leaf_dtype(type(value))


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        grad = " that requires grad" if value.requires_grad else ""
        return f"Tensor of shape {tuple(value.shape)} and dtype {value.dtype}{grad}"
    return type(value).__name__


def _is_sequence(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return True
    if isinstance(x, np.ndarray):
        return x.ndim > 0
    if isinstance(x, str | bytes | Tensor | np.generic | Mapping | Set):
        return False
    return hasattr(x, "__len__") and hasattr(x, "__getitem__")


def _sequence(data: Sequence[Any], wanted: dtype | None) -> Array:
    """Flatten level by level; all items of a level must be sequences of one length."""
    shape: list[int] = []
    level: list[Any] = [data]
    for dim in range(_depth(data)):
        kinds = set(map(type, level))
        if not kinds <= {list, tuple}:
            level = [x.detach().numpy() if isinstance(x, Tensor) else x for x in level]
            if all(type(x) is np.ndarray and x.ndim for x in level):
                return _arrays(level, shape, wanted)
            for item in level:
                if not _is_sequence(item):
                    _leaf_dtype(type(item))  # raises for what could not be an element either
                    raise TypeError(f"not a sequence: expected a sequence at dim {dim}, got {type(item).__name__}")
        _check_lengths([len(item) for item in level], dim)
        shape.append(len(level[0]))
        level = list(chain.from_iterable(level))
    if not set(map(type, level)) <= {bool, int, float, complex}:
        for item in level:
            if _is_sequence(item):
                raise TypeError(
                    f"'{type(item).__name__}' object cannot be interpreted as a number: the sequence is ragged, its "
                    f"first item at dim {len(shape)} is not a sequence"
                )
    return _numbers(level, wanted).reshape(shape)


def _depth(data: Any) -> int:
    """Count the dimensions by the first items, before anything is flattened: a list may contain itself."""
    depth = 0
    while _is_sequence(data):
        depth += 1
        if depth > MAX_NDIM:
            raise ValueError(f"too many dimensions '{type(data).__name__}': more than {MAX_NDIM}")
        if len(data) == 0:
            break
        data = data[0]
    return depth


def _check_lengths(lengths: list[int], dim: int) -> None:
    if len(set(lengths)) > 1:
        other = next(length for length in lengths if length != lengths[0])
        raise ValueError(f"expected sequence of length {lengths[0]} at dim {dim} (got {other})")


def _arrays(arrays: list[Array], shape: list[int], wanted: dtype | None) -> Array:
    """Stack arrays at once, by the rules for their elements one by one."""
    for axis in range(max(array.ndim for array in arrays)):
        _check_lengths([array.shape[axis] if axis < array.ndim else -1 for array in arrays], len(shape) + axis)
    own = _promoted([as_dtype(cast_array(array, None).dtype) for array in arrays])
    stacked = np.stack([array.astype(own.numpy, copy=False) for array in arrays])
    return cast_array(stacked, wanted).reshape(*shape, *arrays[0].shape)


def _numbers(leaves: list[Any], wanted: dtype | None) -> Array:
    """Make a 1-D array of numbers, NumPy scalars, and arrays and tensors of one element."""
    kinds = dict.fromkeys(map(type, leaves))  # in order, so that the first offender is reported
    if any(issubclass(kind, np.ndarray | Tensor) for kind in kinds):
        leaves = [_element(x) if isinstance(x, np.ndarray | Tensor) else x for x in leaves]
        kinds = dict.fromkeys(map(type, leaves))
    if str in kinds and isinstance(leaves[0], str):
        raise ValueError("too many dimensions 'str': expected numbers")
    own = _promoted([_leaf_dtype(kind) for kind in kinds])
    if own.is_complex and wanted is not None and not wanted.is_complex and wanted is not bool_:
        raise TypeError(f"must be real number, not complex, for dtype {wanted!r}")
    if wanted is not None and wanted.category == CATEGORY_INTEGER:
        return _integers(leaves, own, wanted)
    try:
        with np.errstate(over="ignore"):
            return np.array(leaves, dtype=(wanted or own).numpy)
    except OverflowError as error:
        if wanted is not None:
            raise
        raise ValueError(f"Overflow when unpacking long long: {error}; int64 holds at most 2**63 - 1") from None


def _element(x: Any) -> Any:
    if isinstance(x, Tensor):
        x = x.detach().numpy()
    if x.size != 1:
        raise ValueError(
            f"only one element tensors can be converted to Python scalars, got one of shape {x.shape}; "
            "fastgrad.stack joins tensors"
        )
    return x.reshape(())[()]


def _leaf_dtype(kind: type) -> dtype:
    if issubclass(kind, np.generic):  # before float, of which numpy.float64 is a subclass
        return as_dtype(kind)
    if issubclass(kind, bool):
        return bool_
    if issubclass(kind, int):
        return int64
    if issubclass(kind, float):
        return get_default_dtype()
    if issubclass(kind, complex):
        return default_complex()
    if issubclass(kind, str | bytes):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'; expected numbers")
    raise RuntimeError(f"Could not infer dtype of {kind.__name__}; expected numbers, sequences of numbers, or an array")


def _promoted(dtypes: list[dtype]) -> dtype:
    if not dtypes:
        return get_default_dtype()
    code = dtypes[0].code
    for other in dtypes[1:]:
        code = PROMOTE[code * N_DTYPES + other.code]
    return DTYPES[code]


def _integers(leaves: list[Any], own: dtype, wanted: dtype) -> Array:
    """Convert numbers to integers: truncated if float, refused if out of range, wrapped if negative and unsigned."""
    limits = iinfo(wanted)
    if own.category > CATEGORY_INTEGER:
        floats = np.array(leaves, dtype=np.float64)
        # float64 has no 2**63 - 1 nor 2**64 - 1; the largest it has below are what an int64 or uint64 can be made of.
        highest = np.nextafter(float(limits.max), 0.0) if limits.bits == 64 else float(limits.max)
        fits = (floats >= limits.min) & (floats <= highest)  # nan fails both
        if not fits.all():
            raise _overflow(float(floats[~fits][0]), wanted)
        return floats.astype(wanted.numpy)
    try:
        integers = np.array(leaves, dtype=np.uint64 if own is uint64 else np.int64)
    except OverflowError:
        if wanted is not uint64:
            raise _overflow(max(leaves, key=abs), wanted) from None
        try:
            return np.array(leaves, dtype=np.uint64)
        except OverflowError:
            raise _overflow(max(leaves, key=abs), wanted) from None
    lowest = limits.min if wanted.is_signed else -limits.max
    fits = (integers >= max(lowest, -(2**63))) & (integers <= min(limits.max, 2**63 - 1))
    if own is uint64:
        fits = integers <= np.uint64(limits.max)
    if not fits.all():
        raise _overflow(int(integers[~fits][0]), wanted)
    return integers.astype(wanted.numpy)


def _overflow(value: Any, wanted: dtype) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {wanted.name} without overflow: {reprlib.repr(value)}")
