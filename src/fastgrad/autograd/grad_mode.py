"""Floor 5: switching recording on and off, per thread: context managers that also work as decorators."""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, overload

from .._record import is_grad_enabled, is_inference_mode_enabled, set_grad_mode, set_inference_mode

F = TypeVar("F", bound=Callable[..., Any])
CO_GENERATOR = 0x20     # of a code object's flags; inspect, which names it, is slow to import

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]


class _Mode:
    """A context manager that decorates functions and generator functions as well.

    Entering keeps what was on a stack, so that one object may be entered more than once.
    """

    def __init__(self) -> None:
        self._previous: list[Any] = []

    def _clone(self) -> _Mode:
        return type(self)()

    def _switch(self) -> Any:
        raise NotImplementedError

    def _restore(self, previous: Any) -> None:
        set_grad_mode(previous)

    def __enter__(self) -> None:
        self._previous.append(self._switch())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore(self._previous.pop())

    def __call__(self, function: F) -> F:
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & CO_GENERATOR:
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._clone():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _wrap_generator(self, function: F) -> F:
        """The mode holds while the generator runs, and not while its consumer does."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            with self._clone():
                try:
                    response = generator.send(None)
                except StopIteration as stop:
                    return stop.value
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with self._clone():
                        generator.close()
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)
                else:
                    step = functools.partial(generator.send, request)
                try:
                    with self._clone():
                        response = step()
                except StopIteration as stop:
                    return stop.value

        return wrapped  # type: ignore[return-value]


class _Decorable(_Mode):
    """A mode whose class itself may decorate: ``@no_grad`` as well as ``@no_grad()``."""

    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]

    @overload
    def __new__(cls, function: None = None) -> _Decorable: ...

    def __new__(cls, function: Any = None) -> Any:
        if function is None:
            return super().__new__(cls)
        return cls()(function)


class no_grad(_Decorable):
    """Nothing is recorded in this thread while the mode is on; results do not require grad.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.tensor([1.0], requires_grad=True)
    >>> with fg.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    >>> @fg.no_grad()
    ... def doubler(x):
    ...     return x * 2
    >>> doubler(x).requires_grad
    False
    """

    def _switch(self) -> Any:
        return set_grad_mode(False)


class enable_grad(_Decorable):
    """Recording is on in this thread while the mode is on, inside ``no_grad`` too.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.tensor([1.0], requires_grad=True)
    >>> with fg.no_grad():
    ...     with fg.enable_grad():
    ...         y = x * 2
    >>> y.requires_grad
    True
    """

    def _switch(self) -> Any:
        return set_grad_mode(True)


class set_grad_enabled(_Mode):
    """Switch recording on or off in this thread: as a function for good, as a context manager for a block.

    Parameters
    ----------
    mode : bool
        Whether operations are recorded.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.tensor([1.0], requires_grad=True)
    >>> with fg.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        if type(mode) is not bool:
            raise TypeError(f"set_grad_enabled: enabled must be a bool, got {type(mode).__name__}")
        self.mode = mode
        self._at_call: Any = set_grad_mode(self.mode)

    def __call__(self, function: F) -> F:
        set_grad_mode(self._at_call)       # used as a decorator, it must not stay switched
        return super().__call__(function)

    def _clone(self) -> _Mode:
        previous = is_grad_enabled()
        clone = type(self)(self.mode)
        set_grad_mode(previous)
        return clone

    def _switch(self) -> Any:
        previous, self._at_call = self._at_call, is_grad_enabled()
        set_grad_mode(self.mode)
        return previous


class inference_mode(_Mode):
    """As ``no_grad``, and the tensors made can never take part in recorded operations.

    Parameters
    ----------
    mode : bool, optional
        False switches the mode off inside an outer block.

    Examples
    --------
    >>> import fastgrad as fg
    >>> with fg.inference_mode():
    ...     x = fg.ones(2) * 2
    >>> x.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):
            return cls()(mode)
        return super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = bool(mode)

    def _clone(self) -> _Mode:
        return type(self)(self.mode)

    def _switch(self) -> Any:
        return set_inference_mode(self.mode), set_grad_mode(not self.mode)

    def _restore(self, previous: Any) -> None:
        set_inference_mode(previous[0])
        set_grad_mode(previous[1])
