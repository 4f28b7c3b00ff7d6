"""Constructors that share memory: with arrays, with other tensors, with buffers.

A tensor over borrowed memory keeps its owner alive, sees the owner's writes, and never writes to what is read-only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._data import Array, array_of, cast_array, dtype_or_default, leaf
from ._device import Fixed, check_fixed
from ._dtypes import DtypeLike, as_dtype, dtype
from ._tensor import Tensor, from_ndarray

if TYPE_CHECKING:
    from typing_extensions import Unpack  # in typing from Python 3.11

__all__ = ["as_tensor", "asarray", "from_numpy", "frombuffer"]


def as_tensor(data: Any, dtype: DtypeLike | None = None, **fixed: Unpack[Fixed]) -> Tensor:
    """Make a tensor that shares memory with the data if it can.

    Parameters
    ----------
    data : number, nested sequence, array or Tensor
        As for `tensor`.
    dtype : dtype, optional
        The dtype, otherwise as for `tensor`.
    **fixed
        ``device``, in its only value.

    Returns
    -------
    Tensor
        ``data`` itself if it is a tensor of the dtype, and a differentiable conversion if it is one of another. For an
        array of the dtype, a tensor over its memory (read-only if that is). Otherwise a copy.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        As `tensor`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastgrad as fg
    >>> array = np.zeros(2)
    >>> shared = fg.as_tensor(array)
    >>> array[0] = 5.0
    >>> shared
    tensor([5., 0.], dtype=fastgrad.float64)
    """
    check_fixed("as_tensor", **fixed)
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        return _converted(data, wanted, None)
    if isinstance(data, np.ndarray):
        return from_ndarray(cast_array(data, wanted), False)
    return leaf("as_tensor", array_of(data, wanted))


def asarray(
    obj: Any,
    *,
    dtype: DtypeLike | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor from any object, sharing memory or copying as asked.

    Parameters
    ----------
    obj : number, nested sequence, array, Tensor or buffer
        What to convert. ``bytes`` and other buffers are read as raw memory of ``dtype`` (or the default dtype), as
        `frombuffer` does.
    dtype : dtype, optional
        The dtype, otherwise as for `tensor`.
    copy : bool, optional
        True: always copy. False: share, or fail. None: share if possible.
    requires_grad : bool, optional
        Whether the result requires grad. None: what a tensor says, otherwise False.
    **fixed
        ``device``, in its only value.

    Returns
    -------
    Tensor
        As `as_tensor`. A tensor that is shared and whose ``requires_grad`` is to change is changed itself if it is a
        leaf, and detached from its history if not.

    Raises
    ------
    ValueError
        If ``copy=False`` and the dtype differs, or ``obj`` has no memory to share.
    TypeError, RuntimeError
        As `tensor`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastgrad as fg
    >>> fg.asarray(np.arange(3), dtype=fg.float32)
    tensor([0., 1., 2.])
    """
    check_fixed("asarray", **fixed)
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(obj, Tensor):
        result = _converted(obj, wanted, copy)
    elif isinstance(obj, np.ndarray):
        result = _from_array(obj, wanted, copy)
    elif not isinstance(obj, np.generic) and _has_buffer(obj):
        result = frombuffer(obj, dtype=dtype_or_default(wanted))
        result = result if not copy else _converted(result, wanted, copy)
    else:
        if copy is False:
            raise ValueError(f"can't alias arbitrary sequence into a tensor: {type(obj).__name__} with copy=False")
        result = leaf("asarray", array_of(obj, wanted))
    if requires_grad is None or result.requires_grad == requires_grad:
        return result
    return (result if result.is_leaf else result.detach()).requires_grad_(requires_grad)


def _converted(t: Tensor, wanted: dtype | None, copy: bool | None) -> Tensor:
    if wanted is None or wanted is t.dtype:
        return t.clone() if copy else t
    if copy is False:
        raise ValueError(f"can't alias tensor with dtype {t.dtype} into dtype {wanted}: pass copy=None or copy=True")
    cast: Tensor = t.to(wanted)
    return cast


def _from_array(array: Array, wanted: dtype | None, copy: bool | None) -> Tensor:
    shared = cast_array(array, wanted)
    if copy:
        return leaf("asarray", shared)
    if copy is False and (shared.dtype != array.dtype or not array.flags.aligned):  # a foreign byte order differs too
        raise ValueError(f"can't alias tensor with dtype {array.dtype} into dtype {shared.dtype}: pass copy=None")
    return from_ndarray(shared, False)


def _has_buffer(obj: Any) -> bool:
    try:
        memoryview(obj).release()
    except (TypeError, BufferError):
        return False
    return True


def from_numpy(ndarray: Array, /) -> Tensor:
    """Make a tensor over the memory of an array.

    Parameters
    ----------
    ndarray : numpy.ndarray
        An array of any of the fourteen dtypes. In a foreign byte order, or not aligned, it is copied.

    Returns
    -------
    Tensor
        Of the array's shape, strides (negative ones too) and dtype. It sees writes to the array and the array its
        own; the array's memory is kept alive. Over a read-only array it is read-only.

    Raises
    ------
    TypeError
        If ``ndarray`` is not an array, or of another dtype (strings, objects, dates).

    Examples
    --------
    >>> import numpy as np
    >>> import fastgrad as fg
    >>> array = np.arange(4)
    >>> fg.from_numpy(array[::-1])
    tensor([3, 2, 1, 0])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__}); fastgrad.tensor takes other data")
    return from_ndarray(cast_array(ndarray, None), False)


def frombuffer(
    buffer: Any,
    *,
    dtype: DtypeLike,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """Make a 1-D tensor over the memory of an object with Python's buffer protocol.

    Parameters
    ----------
    buffer : bytes-like
        The memory, which is kept alive.
    dtype : dtype
        How to read it.
    count : int
        Elements to read, all that follow if negative.
    offset : int
        Bytes to skip.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.

    Returns
    -------
    Tensor
        1-D, sharing the memory, and read-only if that is (``bytes``).

    Raises
    ------
    ValueError
        If ``buffer`` is no buffer or is empty, ``count`` is 0, or offset, count and element size do not fit its length.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.frombuffer(bytearray(b"abc"), dtype=fg.uint8, offset=1)
    tensor([98, 99], dtype=fastgrad.uint8)
    """
    wanted = as_dtype(dtype)
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError(f"object does not implement Python buffer protocol: {type(buffer).__name__}") from None
    if not view.c_contiguous:
        raise RuntimeError("frombuffer(): could not retrieve buffer from object: it is not contiguous")
    nbytes, size = view.nbytes, wanted.itemsize
    if nbytes == 0 or count == 0:
        raise ValueError(f"both buffer length ({nbytes}) and count ({count}) must not be 0")
    if not 0 <= offset < nbytes:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({nbytes} bytes) minus 1"
        )
    left = nbytes - offset
    if count < 0 and left % size:
        raise ValueError(
            f"buffer length ({left} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})"
        )
    if count * size > left:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({nbytes} bytes)"
        )
    array = np.frombuffer(view, wanted.numpy, max(count, -1), offset)
    return from_ndarray(array, False, requires_grad)
