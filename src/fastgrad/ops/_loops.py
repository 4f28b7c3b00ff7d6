"""Floor 3: forwards made of NumPy's ufuncs, the dtypes for which their loops are PyTorch's, and docstrings."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._tensor import Tensor, from_ndarray

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]
else:
    Array = np.ndarray      # numpy.typing costs 6 ms to import

# Sets of dtype codes for ``loops=``: where NumPy's loop is PyTorch's operator.
INTEGERS = frozenset(range(1, 9))
FLOATS = frozenset((9, 10, 11))
INEXACT = frozenset(range(9, 14))
NUMBERS = frozenset(range(1, 14))
REAL_NUMBERS = frozenset(range(1, 12))
REALS_AND_BOOL = frozenset(range(12))

# NumPy's kinds of dtype, for `kernel`.
ANY_REAL = "biuf"
ANY_NUMBER = "iufc"

_TORCH_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "float16": "Half", "float32": "Float",
    "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}


def not_implemented(name: str, dtype: Any) -> NotImplementedError:
    """No kernel for a dtype: PyTorch's phrase, to be raised by the caller."""
    return NotImplementedError(
        f"\"{name}\" not implemented for '{_TORCH_NAMES.get(str(dtype), str(dtype))}': convert the tensor to a dtype "
        "that has it, with .to(dtype)"
    )


def check_kind(name: str, array: Array, kinds: str) -> None:
    """NotImplementedError if the dtype's kind is not one of ``kinds``."""
    if array.dtype.kind not in kinds:
        raise not_implemented(name, array.dtype)


def kernel(name: str, ufunc: np.ufunc, kinds: str, forward: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The forward for an operator that is a ufunc on most dtypes.

    Parameters
    ----------
    name : str
        The operator, for the message.
    ufunc : numpy.ufunc
        Whose loops the fast path runs on (see ``loops=``); the attribute ``ufunc`` of what is returned.
    kinds : str
        NumPy kinds that have a kernel. Any other raises NotImplementedError.
    forward : callable, optional
        What runs on whole arrays instead of the ufunc, where dtypes outside ``loops=`` need something else.
    """
    function = ufunc if forward is None else forward

    def checked(*arrays: Array) -> Any:
        check_kind(name, arrays[0], kinds)
        return function(*arrays)

    checked.ufunc = ufunc  # type: ignore[attr-defined]
    return checked


def zeros(g: Tensor) -> Tensor:
    """The gradient of a step function: zeros, so that the leaf has one, and no way back from it."""
    return from_ndarray(np.zeros(g.shape, g.dtype.numpy), False)


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex))


def doc(
    summary: str, derivative: str = "", example: str = "", *, arguments: str = "input : Tensor",
    returns: str = "Of the broadcast shape and the common dtype.", raises: str = "",
) -> str:
    """A NumPy-style docstring from its parts; ``example`` is the lines of a doctest after the import."""
    parts = [summary, "", "Parameters", "----------", arguments, "", "Returns", "-------", "Tensor", f"    {returns}"]
    if raises:
        parts += ["", "Raises", "------", raises]
    if derivative:
        parts += ["", "Notes", "-----", derivative]
    if example:
        parts += ["", "Examples", "--------", ">>> import fastgrad as fg", example]
    return "\n".join(parts)
