"""How a tensor looks: PyTorch's format, made from the array in one pass.

The elements that will be seen are picked first (all of them, or the edges of every axis), so printing a tensor of any
size touches a bounded number of elements. They are formatted as one flat list of *cells*, and the list is then folded
from the last axis to the first: cells to rows, rows to blocks. Nothing recurses.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ._dtypes import as_dtype, bool_, default_complex, get_default_dtype, int64

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]
else:
    Array = np.ndarray      # numpy.typing costs 6 ms to import


class _Options(NamedTuple):
    precision: int = 4  # digits after the point
    threshold: float = 1000  # a tensor of more elements shows only its edges
    edgeitems: int = 3  # elements shown at either end of an axis
    linewidth: int = 80  # characters
    sci_mode: bool | None = None  # None: decided for each tensor


_PROFILES = {"default": _Options(), "short": _Options(precision=2, edgeitems=2), "full": _Options(threshold=math.inf)}

_options = _Options()  # replaced as a whole, so a thread that prints meanwhile sees one state or the other


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed, for all threads.

    Parameters
    ----------
    precision : int, optional
        Digits after the point (4).
    threshold : float, optional
        Tensors with more elements than this show only their edges (1000).
    edgeitems : int, optional
        Elements shown at either end of an axis then (3).
    linewidth : int, optional
        Characters in a line (80).
    profile : {"default", "short", "full"}, optional
        A set of the four above, which the other arguments then change.
    sci_mode : bool, optional
        Scientific notation always or never. None, and so every call without it, leaves that to each tensor's range:
        it is used if the largest magnitude is above 1e8 or 1000 times the smallest, or the smallest is below 1e-4.

    Raises
    ------
    ValueError
        If the profile is unknown, or a number is negative.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.set_printoptions(precision=2)
    >>> fg.tensor([1.12345])
    tensor([1.12])
    >>> fg.set_printoptions(profile="default")
    >>> fg.tensor([1.12345])
    tensor([1.1235])
    """
    global _options
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"set_printoptions(): unknown profile {profile!r}; choose one of {', '.join(_PROFILES)}")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name, value in changes.items():
        if value < 0:
            raise ValueError(f"set_printoptions(): {name} must not be negative, got {value}")
    base = _options if profile is None else _PROFILES[profile]
    _options = base._replace(**changes, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """Return the options of printing as a dictionary of arguments for `set_printoptions`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.get_printoptions()["precision"]
    4
    """
    return _options._asdict()


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Change the options of printing within a ``with`` block.

    Parameters
    ----------
    **kwargs
        As for `set_printoptions`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> with fg.printoptions(precision=1):
    ...     print(fg.tensor([0.25, 1.0]))
    tensor([0.2, 1.0])
    """
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_repr(t: Tensor, prefix: str = "tensor") -> str:
    """Return the representation of a tensor: its elements, then what a reader cannot tell from them."""
    options = _options
    array = t.detach().numpy()
    facts = _facts(t, array, options)
    opening = prefix + "("
    text = opening + (_array_text(array, len(opening), options) if array.size else "[]")
    width = len(text) - (text.rfind("\n") + 1) + 2
    for fact in facts:
        if width + len(fact) + 2 > options.linewidth:
            text += ",\n" + " " * len(opening) + fact
            width = len(opening) + len(fact)
        else:
            text += ", " + fact
            width += len(fact) + 2
    return text + ")"


def tensor_format(t: Tensor, format_spec: str) -> str:
    """Format a 0-dim tensor as the Python number it holds; any other takes no format specification."""
    if t.ndim == 0:
        return format(t.detach().item(), format_spec)
    if format_spec:
        raise TypeError(
            f"unsupported format string passed to Tensor.__format__: {format_spec!r} needs a 0-dim tensor, "
            f"and this one has shape {tuple(t.shape)}"
        )
    return str(t)


def _facts(t: Tensor, array: Array, options: _Options) -> list[str]:
    dtype = as_dtype(array.dtype)
    facts = []
    if array.size == 0:
        # No element shows that it is an integer or a bool, so only the default dtype goes without saying.
        if array.ndim != 1:
            facts.append(f"size={array.shape}")
        if dtype is not get_default_dtype():
            facts.append(f"dtype={dtype!r}")
    else:
        if not options.edgeitems:
            facts.append(f"size={array.shape}")
        if dtype not in (get_default_dtype(), default_complex(), int64, bool_):
            facts.append(f"dtype={dtype!r}")
    grad_fn = t.grad_fn
    if grad_fn is not None:
        facts.append(f"grad_fn=<{grad_fn.name().rpartition('::')[2]}>")
    elif t.requires_grad:
        facts.append("requires_grad=True")
    return facts


def _array_text(array: Array, indent: int, options: _Options) -> str:
    cut = [array.size > options.threshold and n > 2 * options.edgeitems for n in array.shape]
    if any(cut):
        if not options.edgeitems:
            return "[...]"
        ends = np.r_[: options.edgeitems, -options.edgeitems : 0]
        array = array[np.ix_(*(ends if is_cut else np.arange(n) for n, is_cut in zip(array.shape, cut, strict=True)))]
    cells, cell_width = _cells(array.reshape(-1), options)
    if not cut:
        return cells[0]

    ndim = array.ndim
    per_line = max(1, (options.linewidth - indent - (ndim - 1)) // (cell_width + 2))
    line_break = ",\n" + " " * (indent + ndim)
    blocks = []
    for row in _groups(cells, array.shape[-1], " ..." if cut[-1] else None):
        lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
        blocks.append("[" + line_break.join(lines) + "]")
    for axis in reversed(range(ndim - 1)):
        block_break = "," + "\n" * (ndim - axis - 1) + " " * (indent + axis + 1)
        groups = _groups(blocks, array.shape[axis], "..." if cut[axis] else None)
        blocks = ["[" + block_break.join(group) + "]" for group in groups]
    return blocks[0]


def _groups(items: list[str], n: int, dots: str | None) -> Iterator[list[str]]:
    for start in range(0, len(items), n):
        group = items[start : start + n]
        if dots is not None:
            group.insert(n // 2, dots)
        yield group


def _cells(values: Array, options: _Options) -> tuple[list[str], int]:
    """Format each value; the second result is the width that a cell takes, at least 1."""
    if values.dtype.kind == "c":
        real, real_width = _cells(values.real, options)
        imag, imag_width = _cells(values.imag, options)
        return [_complex_cell(a, b) for a, b in zip(real, imag, strict=True)], real_width + imag_width + 1
    if values.dtype.kind != "f":
        texts = [str(value) for value in values.tolist()]
        width = max(map(len, texts))
        return [text.rjust(width) for text in texts], width
    write, width = _float_writer(values[np.isfinite(values) & (values != 0)], options)
    return [write(value).rjust(width) for value in values.tolist()], width


def _complex_cell(real: str, imag: str) -> str:
    imag = imag.lstrip() + "j"
    return real + imag if imag[0] == "-" else f"{real}+{imag}"


def _float_writer(values: Array, options: _Options) -> tuple[Callable[[float], str], int]:
    """Choose a notation by the values that are finite and not zero, which alone decide on the width of all."""

    def scientific(value: float) -> str:
        return f"{value:.{options.precision}e}"

    def decimal(value: float) -> str:
        return f"{value:.{options.precision}f}"

    def whole(value: float) -> str:  # the point says that it is not an integer
        return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"

    if values.size == 0:
        return whole, 1
    magnitudes = np.abs(values)
    largest, smallest = float(magnitudes.max()), float(magnitudes.min())
    sci_mode = options.sci_mode
    if sci_mode is None:
        sci_mode = largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
    if sci_mode:
        write = scientific
    elif np.array_equal(values, np.ceil(values)):
        write = whole
    else:
        write = decimal
    return write, max(len(write(value)) for value in values.tolist())
