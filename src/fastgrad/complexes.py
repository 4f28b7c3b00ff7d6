"""Complex tensors from two real ones. They are operators: the gradient flows to both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ._tensor import Tensor
from .ops._declare import SAME, composite, operator

__all__ = ["complex", "polar"]

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]
else:
    Array = np.ndarray      # numpy.typing costs 6 ms to import


def complex_forward(real: Array, imag: Array) -> Array:
    for name, part in (("real", real), ("imag", imag)):
        if not isinstance(part, np.ndarray):
            raise TypeError(f"complex(): argument '{name}' must be Tensor, not {type(part).__name__}")
    if real.dtype.kind != "f" or imag.dtype.kind != "f":
        raise RuntimeError(
            f"complex: Expected both inputs to be Half, Float or Double tensors but got {real.dtype} and {imag.dtype}"
        )
    # Not real + 1j * imag, in which an infinite part makes the other one nan.
    result = np.empty(
        np.broadcast_shapes(real.shape, imag.shape), np.complex128 if real.itemsize == 8 else np.complex64
    )
    result.real = real
    result.imag = imag
    return result


complex = operator(
    "complex(real, imag)",
    tensors="real imag",
    forward=complex_forward,
    vjp=dict(real=lambda g: g.real, imag=lambda g: g.imag),
    dtypes=SAME,
    method=False,
    complex=False,
    samples=lambda make: [((make(3), make(3)), {}), ((make(2, 3), make(3)), {})],
    doc="""Join a real and an imaginary part.

    Parameters
    ----------
    real, imag : Tensor
        Floating point, of one dtype; they broadcast.

    Returns
    -------
    Tensor
        complex128 for float64, else complex64 (also for float16, of which NumPy has no complex numbers).

    Raises
    ------
    RuntimeError
        If the dtypes differ or are not floating point.

    Notes
    -----
    With the conjugate convention the gradients are the real and the imaginary part of the cotangent (elementary).

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.complex(fg.tensor([1.0]), fg.tensor([2.0]))
    tensor([1.+2.j])
    """,
)


@composite("polar(abs, angle)", method=False, complex=False, samples=lambda make: [((make(3), make(3)), {})])
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Make complex numbers of given absolute value and angle.

    Parameters
    ----------
    abs, angle : Tensor
        Floating point, of one dtype; they broadcast.

    Returns
    -------
    Tensor
        ``abs * (cos(angle) + 1j * sin(angle))``.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.polar(fg.tensor([2.0]), fg.tensor([0.0]))
    tensor([2.+0.j])
    """
    result: Tensor = complex(abs * angle.cos(), abs * angle.sin())
    return result
