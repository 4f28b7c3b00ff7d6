"""Floor 5: ``fastgrad.autograd.graph``: the graph in the user's hands."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .._node import NodeObject as Node
from .._record import set_pack_hooks
from .._tensor import Tensor

__all__ = ["Node", "disable_saved_tensors_hooks", "saved_tensors_hooks"]


class _Stack(threading.local):
    """The hooks of one thread, innermost last; the compiled side borrows the innermost pair."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any]] = []
        self.refusals: list[str] = []

    def innermost(self) -> None:
        set_pack_hooks(self.pairs[-1] if self.pairs else None)


_stack = _Stack()


class saved_tensors_hooks:
    """Say how saved tensors are kept while the block runs: ``pack`` when saved, ``unpack`` when needed.

    Parameters
    ----------
    pack_hook : callable
        Gets each tensor an operation saves, and returns any object, which is kept instead.
    unpack_hook : callable
        Gets that object and returns a tensor with the same values.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.tensor([1.0, 2.0], requires_grad=True)
    >>> def pack(t):
    ...     print("saved", t.tolist())
    ...     return t.tolist()
    >>> with fg.autograd.graph.saved_tensors_hooks(pack, fg.tensor):
    ...     y = x.reciprocal().sum()
    saved [1.0, 0.5]
    >>> y.backward()
    >>> x.grad
    tensor([-1.0000, -0.2500])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError("saved_tensors_hooks: pack_hook and unpack_hook must be callable")
        self._pair = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        if _stack.refusals:
            raise RuntimeError(_stack.refusals[-1])
        _stack.pairs.append(self._pair)
        _stack.innermost()

    def __exit__(self, *exc: object) -> None:
        _stack.pairs.pop()
        _stack.innermost()


class disable_saved_tensors_hooks:
    """Refuse :class:`saved_tensors_hooks` while the block runs, with the given message.

    Parameters
    ----------
    error_message : str
        The text of the RuntimeError.
    """

    def __init__(self, error_message: str) -> None:
        self._message = error_message

    def __enter__(self) -> None:
        if _stack.pairs:
            raise RuntimeError(self._message)
        _stack.refusals.append(self._message)

    def __exit__(self, *exc: object) -> None:
        _stack.refusals.pop()
