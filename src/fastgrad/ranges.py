"""Constructors of tensors whose elements follow a rule: ranges, the identity, the indices of a triangle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ._data import (
    MAX_BYTES,
    Array,
    arguments,
    cast_array,
    dtype_or_default,
    filled,
    integer,
    leaf,
    number,
    scalar_array,
)
from ._device import Fixed, check_fixed
from ._dtypes import (
    CATEGORY_INTEGER,
    DtypeLike,
    as_dtype,
    complex128,
    default_complex,
    dtype,
    float16,
    float64,
    get_default_dtype,
    int32,
    int64,
)
from ._tensor import Tensor

if TYPE_CHECKING:
    from typing_extensions import Unpack  # in typing from Python 3.11

__all__ = ["arange", "eye", "linspace", "logspace", "tril_indices", "triu_indices"]


def arange(*bounds: Any, dtype: DtypeLike | None = None, requires_grad: bool = False, **named: Any) -> Tensor:
    """Make a 1-D tensor of evenly spaced values from ``start``, leaving out ``end``.

    Called as ``arange(end)``, ``arange(start, end)`` or ``arange(start, end, step)``, also by these names.

    Parameters
    ----------
    *bounds : number
        ``end``; ``start`` (0) and ``end``; or these and ``step`` (1, negative to count down).
    dtype : dtype, optional
        Otherwise int64 if all are integers, else the default dtype.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.
    **named
        ``start``, ``end``, ``step``, and arguments with one possible value, see `fastgrad.creation`.

    Returns
    -------
    Tensor
        Of ``ceil((end - start) / step)`` elements.

    Raises
    ------
    TypeError
        If an argument is no number, or their number is wrong.
    RuntimeError
        If the step is 0, or leads away from ``end``, or a bound is not finite.
    NotImplementedError
        For a complex or bool dtype.

    Notes
    -----
    An integer dtype truncates the bounds and the step first, as in PyTorch.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.arange(2, 8, 3)
    tensor([2, 5])
    """
    given = arguments("arange", (("end",), ("start", "end"), ("start", "end", "step")), bounds, named)
    check_fixed("arange", **named)
    start, end, step = (_bound(name, given.get(name, default)) for name, default in _BOUNDS)
    if dtype is None:
        whole = all(isinstance(x, int) for x in (start, end, step))
        wanted = int64 if whole else get_default_dtype()
    else:
        wanted = as_dtype(dtype)
    if wanted.is_complex or wanted.category < CATEGORY_INTEGER:
        raise NotImplementedError(f'"arange_cpu" not implemented for {wanted!r}')
    try:
        return leaf("arange", _arange(start, end, step, wanted), requires_grad)
    except MemoryError:
        raise RuntimeError(f"arange: can't allocate memory: {start} to {end} by {step}") from None


_BOUNDS = (("start", 0), ("end", None), ("step", 1))


def _bound(name: str, value: Any) -> bool | int | float:
    bound = number("arange", name, value)
    if isinstance(bound, complex):
        raise RuntimeError(f"arange: value cannot be converted to type double without overflow: {name}={bound}")
    return bound


def _arange(start: Any, end: Any, step: Any, wanted: dtype) -> Array:
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"arange: unsupported range: {start} -> {end}")
    if math.isnan(step) or step == 0:
        raise RuntimeError(f"arange: step must be nonzero, got {step}")
    if wanted.category == CATEGORY_INTEGER:
        start, end, step = (int(x) if -(2**53) < x < 2**53 else int(scalar_array(x, int64)) for x in (start, end, step))
        if step == 0:
            raise RuntimeError("arange: step must be nonzero, and the dtype truncates it to 0")
    if (step > 0) != (end >= start) and end != start:
        raise RuntimeError(
            f"arange: upper bound and lower bound inconsistent with step sign: {start} -> {end} by {step}"
        )
    n = math.ceil((end - start) / step)
    if n * wanted.itemsize > MAX_BYTES:
        raise RuntimeError(f"arange: invalid size, possible overflow? {start} to {end} by {step} has {n} elements")
    if wanted.category == CATEGORY_INTEGER:
        return np.arange(start, end, step, dtype=np.int64).astype(wanted.numpy)
    accumulated = np.float32 if wanted is float16 else np.float64  # what PyTorch computes the elements in
    values = accumulated(start) + np.arange(n, dtype=accumulated) * accumulated(step)
    return cast_array(values, wanted)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a 1-D tensor of evenly spaced values from ``start`` to ``end``, both included.

    Parameters
    ----------
    start, end : number
        Numbers, NumPy scalars or 0-dim tensors; complex ones give a complex tensor.
    steps : int
        How many values. One is ``start``.
    dtype : dtype, optional
        Otherwise the default dtype, or its complex partner.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.
    **fixed
        Arguments with one possible value, see `fastgrad.creation`.

    Returns
    -------
    Tensor
        Of ``steps`` elements.

    Raises
    ------
    TypeError
        If a bound is no number or ``steps`` no integer.
    RuntimeError
        If ``steps`` is negative, a bound does not fit the dtype, or is complex and the dtype is not.
    NotImplementedError
        For bool.

    Notes
    -----
    The second half is computed downward from ``end``, so that the range is symmetric. An integer dtype truncates the
    bounds first and each value last, as in PyTorch.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    check_fixed("linspace", **fixed)
    first, last, n, wanted = _read_space("linspace", start, end, steps, dtype)
    return leaf("linspace", cast_array(_linspace(first, last, n, wanted), wanted), requires_grad)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a 1-D tensor of the powers of ``base`` whose exponents are evenly spaced.

    Parameters
    ----------
    start, end : number
        The first and the last exponent.
    steps : int
        How many values.
    base : float
        What is raised to the exponents.
    dtype, requires_grad, **fixed
        As for `linspace`.

    Returns
    -------
    Tensor
        Of ``steps`` elements.

    Raises
    ------
    TypeError, RuntimeError, NotImplementedError
        As `linspace`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.logspace(0, 3, 4, base=2)
    tensor([1., 2., 4., 8.])
    """
    check_fixed("logspace", **fixed)
    first, last, n, wanted = _read_space("logspace", start, end, steps, dtype)
    ground = number("logspace", "base", base)
    exponents = _linspace(first, last, n, complex128 if wanted.is_complex else float64)
    with np.errstate(all="ignore"):
        values = np.power(ground, exponents)
    return leaf("logspace", cast_array(values, wanted), requires_grad)


def _read_space(
    function: str, start: Any, end: Any, steps: Any, dtype: DtypeLike | None
) -> tuple[Any, Any, int, dtype]:
    """Return the bounds as numbers that the dtype can hold, the number of values, and the dtype."""
    bounds = []
    for name, bound in (("start", start), ("end", end)):
        if isinstance(bound, Tensor):
            if bound.ndim:
                raise RuntimeError(
                    f"{function} only supports 0-dimensional start and end tensors, but got {name} with {bound.ndim} "
                    "dimension(s)."
                )
            bound = bound.detach()
        bounds.append(number(function, name, bound))
    n = integer(function, "steps", steps)
    if n < 0:
        raise RuntimeError(f"{function}: number of steps must be non-negative, got {n}")
    is_complex = any(isinstance(bound, complex) for bound in bounds)
    wanted = as_dtype(dtype) if dtype is not None else default_complex() if is_complex else get_default_dtype()
    if is_complex and not wanted.is_complex:
        raise RuntimeError(
            f"{function}(): inferred dtype {default_complex()} can't be safely cast to passed dtype {wanted}"
        )
    if wanted.category < CATEGORY_INTEGER:
        raise NotImplementedError(f'"{function}_cpu" not implemented for {wanted!r}')
    first, last = (scalar_array(bound, wanted)[()] for bound in bounds)
    return first, last, n, wanted


def _linspace(start: Any, end: Any, n: int, wanted: dtype) -> Array:
    """Compute in the dtype itself, but for an integer dtype in float64, as PyTorch does."""
    kind = np.dtype(np.float64) if wanted.category == CATEGORY_INTEGER else wanted.numpy
    first, last = kind.type(start), kind.type(end)
    if n < 2:
        return np.full(n, first)
    with np.errstate(all="ignore"):  # bounds of inf
        step = (last - first) / kind.type(n - 1)
        index = np.arange(n)
        upward = first + step * index.astype(kind)
        downward = last - step * (n - 1 - index).astype(kind)
    values: Array = np.where(index < n // 2, upward, downward)
    return values


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a matrix with ones on the diagonal and zeros elsewhere.

    Parameters
    ----------
    n, m : int
        Rows and columns; as many columns as rows if ``m`` is not given.
    dtype : dtype, optional
        The default dtype if not given.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.
    **fixed
        Arguments with one possible value, see `fastgrad.creation`.

    Returns
    -------
    Tensor
        Of shape ``(n, m)``.

    Raises
    ------
    TypeError
        If a size is no integer.
    RuntimeError
        If a size is negative.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.eye(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    check_fixed("eye", **fixed)
    rows = integer("eye", "n", n)
    columns = rows if m is None else integer("eye", "m", m)
    for name, size in (("n", rows), ("m", columns)):
        if size < 0:
            raise RuntimeError(f"eye: {name} must be greater or equal to 0, got {size}")
    result = filled("eye", (rows, columns), np.zeros((), dtype_or_default(dtype).numpy))
    np.fill_diagonal(result.numpy(), 1)
    return result.requires_grad_(requires_grad)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DtypeLike = int64, **fixed: Unpack[Fixed]) -> Tensor:
    """Return the indices of the lower triangle of a matrix.

    Parameters
    ----------
    row, col : int
        Rows and columns of the matrix.
    offset : int
        How many diagonals above the main one (below, if negative) belong to the triangle.
    dtype : dtype
        int64 or int32.
    **fixed
        Arguments with one possible value, see `fastgrad.creation`.

    Returns
    -------
    Tensor
        Of shape ``(2, n)``: row indices, column indices, row by row.

    Raises
    ------
    TypeError
        If a size is no integer.
    RuntimeError
        If a size is negative.
    NotImplementedError
        For another dtype.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    check_fixed("tril_indices", **fixed)
    return _triangle("tril_indices", row, col, offset, dtype)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DtypeLike = int64, **fixed: Unpack[Fixed]) -> Tensor:
    """Return the indices of the upper triangle of a matrix; arguments and errors as for `tril_indices`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.triu_indices(2, 2, 1)
    tensor([[0],
            [1]])
    """
    check_fixed("triu_indices", **fixed)
    return _triangle("triu_indices", row, col, offset, dtype)


def _triangle(function: str, row: Any, col: Any, offset: Any, dtype: DtypeLike) -> Tensor:
    rows, columns = integer(function, "row", row), integer(function, "col", col)
    for name, size in (("row", rows), ("col", columns)):
        if size < 0:
            raise RuntimeError(f"{function}: {name} must be non-negative, got {size}")
    wanted = as_dtype(dtype)
    if wanted not in (int32, int64):
        raise NotImplementedError(f'"{function}" not implemented for {wanted!r}; indices are int64 or int32')
    indices = np.tril_indices if function == "tril_indices" else np.triu_indices
    return leaf(function, cast_array(np.stack(indices(rows, integer(function, "offset", offset), columns)), wanted))
