"""Floor 5: what fastgrad's tensors hold, in bytes.

The counters are exact and cost nothing to read. Memory that a tensor borrows from the user's arrays is not counted.

Examples
--------
>>> import fastgrad as fg
>>> x = fg.ones(1000, dtype=fg.float64, requires_grad=True)
>>> before = fg.memory.saved_bytes()
>>> y = x * x
>>> fg.memory.saved_bytes() - before
8000
>>> y.sum().backward()
>>> fg.memory.saved_bytes() - before
0
"""
from __future__ import annotations

from . import _storage

__all__ = ["empty_pool", "live_bytes", "peak_bytes", "pooled_bytes", "reset_peak", "saved_bytes"]


def live_bytes() -> int:
    """Bytes in all buffers that tensors, saved tensors or exported arrays hold.

    Examples
    --------
    >>> import fastgrad as fg
    >>> before = fg.memory.live_bytes()
    >>> x = fg.ones(1000, dtype=fg.float64)
    >>> fg.memory.live_bytes() - before
    8000
    """
    return _storage.live_bytes()


def saved_bytes() -> int:
    """Bytes in buffers that the graph holds for backward; a buffer saved more than once counts once.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.ones(1000, dtype=fg.float64, requires_grad=True)
    >>> before = fg.memory.saved_bytes()
    >>> y = x + 2
    >>> fg.memory.saved_bytes() - before
    0
    """
    return _storage.saved_bytes()


def pooled_bytes() -> int:
    """Bytes of freed blocks that are kept for reuse."""
    return _storage.pooled_bytes()


def peak_bytes() -> int:
    """The highest :func:`live_bytes` since the start or the last :func:`reset_peak`."""
    return _storage.peak_bytes()


def reset_peak() -> None:
    """Let :func:`peak_bytes` start again from what is live now."""
    _storage.reset_peak()


def empty_pool() -> int:
    """Give the freed large blocks back to the system; returns how many bytes that were.

    Blocks up to 32 KiB stay: they share their chunks with live ones.
    """
    return _storage.release_pool()
