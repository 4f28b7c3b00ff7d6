"""What PyTorch can choose and fastgrad cannot: device, layout, memory format, pinning, `out=`.

Constructors take these arguments so that code written for PyTorch runs, and accept the one value that describes what
happens here. Anything else is refused by `check_fixed`, never ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Unpack  # in typing from Python 3.11

__all__ = ["channels_last", "contiguous_format", "device", "layout", "memory_format", "preserve_format", "strided"]


class device:  # lower case as in PyTorch
    """Where a tensor lives: the CPU.

    Parameters
    ----------
    type : str or device
        ``"cpu"``, ``"cpu:0"``, or a device.
    index : int, optional
        Nothing or 0.

    Raises
    ------
    RuntimeError
        For any other device.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.device("cpu")
    device(type='cpu')
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | device, index: int | None = None) -> None:
        if isinstance(type, device):
            kind, number = type.type, type.index
        elif isinstance(type, str):
            kind, colon, digits = type.partition(":")
            number = int(digits) if colon and digits.isdecimal() else (-1 if colon else None)
            if index is not None:
                number = index if number is None else -1
        else:
            raise _no_device(type)
        if kind != "cpu" or number not in (None, 0):
            raise _no_device(type if index is None else f"{type}:{index}")
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", number)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"fastgrad.device is immutable: cannot set '{name}'")

    def __eq__(self, other: object) -> bool:
        return self.index == other.index if isinstance(other, device) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type='{self.type}'{'' if self.index is None else f', index={self.index}'})"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (str(self),)


def _no_device(given: object) -> RuntimeError:
    return RuntimeError(f"Expected one of cpu device type, got {given!r}: fastgrad computes on the CPU, device='cpu'")


class _Named:
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"fastgrad.{self._name}"

    def __reduce__(self) -> str:  # pickle and copy find the one object of this name again
        return self._name


class layout(_Named):
    """How a tensor's elements lie in memory: always ``fastgrad.strided``."""

    __slots__ = ()


class memory_format(_Named):
    """In which order new elements lie: ``fastgrad.contiguous_format``, or ``fastgrad.preserve_format``."""

    __slots__ = ()


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")


# Under these names where an argument hides the class.
_Device: TypeAlias = device
_Layout: TypeAlias = layout
_MemoryFormat: TypeAlias = memory_format


class Fixed(TypedDict, total=False):
    """The keyword arguments that have one possible value."""

    out: None
    device: str | _Device | None
    layout: _Layout | None
    memory_format: _MemoryFormat | None
    pin_memory: bool


def check_fixed(function: str, **given: Unpack[Fixed]) -> None:
    """Refuse every value of these arguments but the one that fastgrad implements, and every other argument."""
    for name, value in given.items():
        if value is None or value is False:
            continue
        if name == "device":
            _Device(value)  # type: ignore[arg-type]
        elif name == "layout":
            if value is not strided:
                raise RuntimeError(f"{function}(): layout {value!r} is not supported; fastgrad has fastgrad.strided")
        elif name == "memory_format":
            if value is not contiguous_format and value is not preserve_format:
                raise RuntimeError(f"{function}(): unsupported memory format {value!r}; new tensors are contiguous")
        elif name == "pin_memory":
            raise RuntimeError(f"{function}(): pin_memory=True requires an accelerator, and fastgrad has none")
        elif name == "out":
            raise NotImplementedError(f"{function}(): out= is not supported; write out[...] = {function}(...)")
        else:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
