"""Constructors: tensors from data, from NumPy's memory, and filled with values.

Every tensor made here is a leaf with no history. It has contiguous memory of its own, except where a function says
that it shares: `from_numpy`, `as_tensor`, `asarray` and `frombuffer` (`sharing.py`). Ranges and the like are in
`ranges.py`; this module has the names of all of them, and the methods of Tensor that construct (`METHODS`).

The arguments collected in ``**fixed`` (``device``, ``layout``, ``pin_memory``, ``memory_format``, ``out``) are
PyTorch's, each accepted in the one value that fastgrad implements: the CPU, strided, unpinned, contiguous, none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._data import Array, array_of, checked_tensor, dtype_or_default, filled, inferred_dtype, leaf, number, scalar_array
from ._device import Fixed, check_fixed
from ._dtypes import DtypeLike, as_dtype, dtype
from ._size import sizes_of
from ._tensor import Tensor, from_ndarray
from .complexes import complex, polar
from .ranges import arange, eye, linspace, logspace, tril_indices, triu_indices
from .sharing import as_tensor, asarray, from_numpy, frombuffer

if TYPE_CHECKING:
    from typing_extensions import Unpack  # in typing from Python 3.11

__all__ = [
    "arange", "as_tensor", "asarray", "complex", "empty", "empty_like", "empty_strided", "eye", "from_numpy",
    "frombuffer", "full", "full_like", "is_complex", "is_floating_point", "is_tensor", "linspace", "logspace", "numel",
    "ones", "ones_like", "polar", "scalar_tensor", "tensor", "tril_indices", "triu_indices", "zeros", "zeros_like",
]  # fmt: skip


def tensor(data: Any, *, dtype: DtypeLike | None = None, requires_grad: bool = False, **fixed: Unpack[Fixed]) -> Tensor:
    """Make a tensor with a copy of the data.

    Parameters
    ----------
    data : number, nested sequence, array or Tensor
        What to copy. Sequences nest to any depth up to 64, and all of one depth have one length.
    dtype : dtype, optional
        The dtype. Otherwise that of an array or a tensor is kept, Python's floats get the default dtype (float32),
        ints int64, bools bool, complex numbers the default complex dtype, and what a sequence mixes is promoted.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.
    **fixed
        ``device`` and ``pin_memory``, in their only values.

    Returns
    -------
    Tensor
        A leaf with contiguous memory of its own, also if ``data`` is a tensor with a history.

    Raises
    ------
    ValueError
        If sequences of one depth differ in length, nest too deep, or an int does not fit int64.
    TypeError
        If an element or an array is not of numbers (strings, objects), or an item is a sequence and another is not.
    RuntimeError
        If no dtype can be inferred (``None``), a number does not fit ``dtype``, or ``requires_grad`` is set for a
        dtype that is neither floating point nor complex.

    Examples
    --------
    >>> import numpy as np
    >>> import fastgrad as fg
    >>> fg.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    >>> fg.tensor(np.ones(2), requires_grad=True)
    tensor([1., 1.], dtype=fastgrad.float64, requires_grad=True)
    """
    check_fixed("tensor", **fixed)
    return leaf("tensor", array_of(data, None if dtype is None else as_dtype(dtype)), requires_grad)


def zeros(
    *sizes: Any,
    size: Sequence[Any] | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of zeros.

    Parameters
    ----------
    *sizes : int
        The shape, as separate ints or one sequence.
    size : sequence of int, optional
        The shape, if it is given by name.
    dtype : dtype, optional
        The default dtype if not given.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.
    **fixed
        Arguments with one possible value, see the module.

    Returns
    -------
    Tensor
        A leaf of that shape.

    Raises
    ------
    TypeError
        If a size is not an integer.
    RuntimeError
        If a size is negative, or the tensor does not fit memory.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _sized("zeros", sizes, size, 0, dtype_or_default(dtype), requires_grad, fixed)


def ones(
    *sizes: Any,
    size: Sequence[Any] | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of ones; arguments and errors as for `zeros`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.ones((2,), dtype=fg.int64)
    tensor([1, 1])
    """
    return _sized("ones", sizes, size, 1, dtype_or_default(dtype), requires_grad, fixed)


def empty(
    *sizes: Any,
    size: Sequence[Any] | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor whose elements mean nothing yet; arguments and errors as for `zeros`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.empty(2, 0).shape
    fastgrad.Size([2, 0])
    """
    return _sized("empty", sizes, size, 0, dtype_or_default(dtype), requires_grad, fixed)


def _sized(
    function: str,
    sizes: tuple[Any, ...],
    size: Sequence[Any] | None,
    value: int,
    dtype: dtype,
    requires_grad: bool,
    fixed: Fixed,
) -> Tensor:
    check_fixed(function, **fixed)
    return filled(function, sizes_of(function, sizes, size), np.array(value, dtype.numpy), requires_grad)


def full(
    size: Sequence[Any],
    fill_value: Any,
    *,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor filled with one value.

    Parameters
    ----------
    size : sequence of int
        The shape.
    fill_value : number
        A number, NumPy scalar, or 0-dim tensor that does not require grad.
    dtype : dtype, optional
        Otherwise that of the number: bool, int64, the default dtype, or the default complex dtype.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.
    **fixed
        Arguments with one possible value, see the module.

    Returns
    -------
    Tensor
        A leaf of that shape.

    Raises
    ------
    TypeError
        If ``size`` is no sequence of integers or ``fill_value`` no number.
    RuntimeError
        If a size is negative, or the value does not fit the dtype.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.full((2, 2), 0.5)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    check_fixed("full", **fixed)
    value = number("full", "fill_value", fill_value)
    wanted = inferred_dtype(value) if dtype is None else as_dtype(dtype)
    return filled("full", sizes_of("full", (), size), scalar_array(value, wanted), requires_grad)


def scalar_tensor(
    s: Any, *, dtype: DtypeLike | None = None, requires_grad: bool = False, **fixed: Unpack[Fixed]
) -> Tensor:
    """Make a 0-dim tensor of one number, in the default dtype unless another is given.

    Parameters
    ----------
    s : number
        A number, NumPy scalar, or 0-dim tensor that does not require grad.
    dtype : dtype, optional
        The default dtype if not given, also for an int.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.
    **fixed
        Arguments with one possible value, see the module.

    Returns
    -------
    Tensor
        A 0-dim leaf.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.scalar_tensor(2)
    tensor(2.)
    """
    check_fixed("scalar_tensor", **fixed)
    value = number("scalar_tensor", "s", s)
    return filled("scalar_tensor", (), scalar_array(value, dtype_or_default(dtype)), requires_grad)


def zeros_like(
    input: Tensor, *, dtype: DtypeLike | None = None, requires_grad: bool = False, **fixed: Unpack[Fixed]
) -> Tensor:
    """Make a tensor of zeros with the shape of another.

    Parameters
    ----------
    input : Tensor
        Whose shape, and dtype unless given, to take; not its ``requires_grad``.
    dtype : dtype, optional
        Otherwise that of ``input``.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.
    **fixed
        Arguments with one possible value, see the module.

    Returns
    -------
    Tensor
        A contiguous leaf.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros_like(fg.tensor([1, 2]))
    tensor([0, 0])
    """
    return _like("zeros_like", input, 0, dtype, requires_grad, fixed)


def ones_like(
    input: Tensor, *, dtype: DtypeLike | None = None, requires_grad: bool = False, **fixed: Unpack[Fixed]
) -> Tensor:
    """Make a tensor of ones with the shape of another; arguments and errors as for `zeros_like`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.ones_like(fg.zeros(2))
    tensor([1., 1.])
    """
    return _like("ones_like", input, 1, dtype, requires_grad, fixed)


def empty_like(
    input: Tensor, *, dtype: DtypeLike | None = None, requires_grad: bool = False, **fixed: Unpack[Fixed]
) -> Tensor:
    """Make a tensor with the shape of another whose elements mean nothing yet; arguments as for `zeros_like`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.empty_like(fg.zeros(2, 3)).shape
    fastgrad.Size([2, 3])
    """
    return _like("empty_like", input, 0, dtype, requires_grad, fixed)


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor with the shape and dtype of another, filled with one value; arguments as for `full`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.full_like(fg.zeros(2), 3)
    tensor([3., 3.])
    """
    return _like("full_like", input, number("full_like", "fill_value", fill_value), dtype, requires_grad, fixed)


def _like(
    function: str, input: Tensor, value: Any, dtype: DtypeLike | None, requires_grad: bool, fixed: Fixed
) -> Tensor:
    check_fixed(function, **fixed)
    shape = checked_tensor(function, "input", input).shape
    wanted = input.dtype if dtype is None else as_dtype(dtype)
    # 0 and 1 are right in any dtype; what a user gives is checked.
    fill = np.array(value, wanted.numpy) if value in (0, 1) else scalar_array(value, wanted)
    return filled(function, shape, fill, requires_grad)


def empty_strided(
    size: Sequence[Any],
    stride: Sequence[Any],
    *,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of given strides whose elements mean nothing yet.

    Parameters
    ----------
    size, stride : sequence of int
        The shape, and for each dimension the distance of neighbours in elements. They may overlap.
    dtype : dtype, optional
        The default dtype if not given.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.
    **fixed
        Arguments with one possible value, see the module.

    Returns
    -------
    Tensor
        A leaf over memory of its own, no larger than the strides need.

    Raises
    ------
    TypeError
        If a size or stride is no integer.
    RuntimeError
        If one is negative, or their numbers differ.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    check_fixed("empty_strided", **fixed)
    sizes, strides = sizes_of("empty_strided", (), size), sizes_of("empty_strided", (), stride)
    if len(sizes) != len(strides):
        raise RuntimeError(
            f"empty_strided: dimensionality of sizes ({len(sizes)}) must match dimensionality of strides "
            f"({len(strides)})"
        )
    kind = dtype_or_default(dtype).numpy
    extent = 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True)) if 0 not in sizes else 0
    memory = filled("empty_strided", (extent,), np.zeros((), kind)).numpy()
    array: Array = np.ndarray(sizes, kind, memory, 0, tuple(step * kind.itemsize for step in strides))
    return from_ndarray(array, False, requires_grad)


def new_tensor(
    self: Tensor, data: Any, *, dtype: DtypeLike | None = None, requires_grad: bool = False, **fixed: Unpack[Fixed]
) -> Tensor:
    """Make a tensor with a copy of the data and, unless given, this tensor's dtype.

    Parameters
    ----------
    data, requires_grad, **fixed
        As for `fastgrad.tensor`.
    dtype : dtype, optional
        Otherwise this tensor's.

    Returns
    -------
    Tensor
        A leaf.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.ones(1).new_tensor([1, 2])
    tensor([1., 2.])
    """
    return tensor(data, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad, **fixed)


def new_zeros(
    self: Tensor,
    *sizes: Any,
    size: Sequence[Any] | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of zeros that has this one's dtype; arguments and errors as for `fastgrad.zeros`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([1]).new_zeros(2)
    tensor([0, 0])
    """
    return _sized("new_zeros", sizes, size, 0, self.dtype if dtype is None else as_dtype(dtype), requires_grad, fixed)


def new_ones(
    self: Tensor,
    *sizes: Any,
    size: Sequence[Any] | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of ones that has this one's dtype; arguments and errors as for `fastgrad.zeros`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([2]).new_ones(2)
    tensor([1, 1])
    """
    return _sized("new_ones", sizes, size, 1, self.dtype if dtype is None else as_dtype(dtype), requires_grad, fixed)


def new_empty(
    self: Tensor,
    *sizes: Any,
    size: Sequence[Any] | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of this one's dtype whose elements mean nothing yet; arguments as for `fastgrad.zeros`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([2]).new_empty(0)
    tensor([], dtype=fastgrad.int64)
    """
    return _sized("new_empty", sizes, size, 0, self.dtype if dtype is None else as_dtype(dtype), requires_grad, fixed)


def new_full(
    self: Tensor,
    size: Sequence[Any],
    fill_value: Any,
    *,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor filled with one value that has this one's dtype; arguments and errors as for `fastgrad.full`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.ones(1).new_full((2,), 3)
    tensor([3., 3.])
    """
    return full(size, fill_value, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad, **fixed)


def new_empty_strided(
    self: Tensor,
    size: Sequence[Any],
    stride: Sequence[Any],
    *,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of given strides that has this one's dtype; arguments as for `fastgrad.empty_strided`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.ones(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    kind = self.dtype if dtype is None else dtype
    return empty_strided(size, stride, dtype=kind, requires_grad=requires_grad, **fixed)


# What Tensor gets from here, by name.
METHODS = {
    "new_tensor": new_tensor,
    "new_zeros": new_zeros,
    "new_ones": new_ones,
    "new_empty": new_empty,
    "new_full": new_full,
    "new_empty_strided": new_empty_strided,
}


def is_tensor(obj: object, /) -> bool:
    """Tell whether an object is a tensor of fastgrad.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.is_tensor(fg.ones(1)), fg.is_tensor(1.0)
    (True, False)
    """
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Tell whether a tensor's dtype is a floating point dtype (a complex one is not).

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.is_floating_point(fg.ones(1))
    True
    """
    return checked_tensor("is_floating_point", "input", input).dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Tell whether a tensor's dtype is complex.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.is_complex(fg.tensor(1j))
    True
    """
    return checked_tensor("is_complex", "input", input).dtype.is_complex


def numel(input: Tensor) -> int:
    """Return the number of elements of a tensor.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.numel(fg.ones(2, 3))
    6
    """
    return checked_tensor("numel", "input", input).numel()
