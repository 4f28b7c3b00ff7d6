"""The generator of random numbers: NumPy's PCG64 with PyTorch's methods, and tensors filled from it."""

from __future__ import annotations

import os
import struct
import threading
from typing import Any

import numpy as np

from ._data import filled, leaf
from ._device import check_fixed, device as Device
from ._dtypes import CATEGORY_INTEGER, dtype, float16, uint8
from ._tensor import Tensor

DEFAULT_SEED = 67280421310721  # of a new Generator, the same as PyTorch's
# A state as bytes: PCG64's state and increment (16 each), whether half a draw is left, that half, the seed.
_STATE = struct.Struct("<16s16sIIQ")


class Generator:
    """A source of random numbers with a state of its own: NumPy's PCG64.

    Parameters
    ----------
    device : str or device
        The CPU.

    Notes
    -----
    A new generator has a fixed seed, as PyTorch's. NumPy's generator is made with the first number: importing
    ``numpy.random`` takes as long as all of fastgrad.

    Examples
    --------
    >>> import fastgrad as fg
    >>> g = fg.Generator().manual_seed(7)
    >>> a = fg.rand(3, generator=g)
    >>> a.tolist() == fg.rand(3, generator=g.manual_seed(7)).tolist()
    True
    """

    __slots__ = ("_lock", "_numpy", "_seed")

    _numpy: np.random.Generator | None  # None: to be made from the seed

    def __init__(self, device: str | Device = "cpu") -> None:
        check_fixed("Generator", device=device)
        self._lock = threading.Lock()
        self._seed = DEFAULT_SEED
        self._numpy = None

    @property
    def device(self) -> Device:
        """The CPU."""
        return Device("cpu")

    @property
    def numpy(self) -> np.random.Generator:
        """NumPy's generator that the numbers are drawn from."""
        made = self._numpy
        if made is None:
            with self._lock:  # or two threads would begin with two generators of one seed
                made = self._numpy
                if made is None:
                    made = self._numpy = np.random.Generator(np.random.PCG64(self._seed))
        return made

    def manual_seed(self, seed: int) -> Generator:
        """Start again from a seed, an integer from ``-2**63`` to ``2**64 - 1``, and return the generator."""
        value = int(seed)
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"manual_seed: Overflow when unpacking long long: seed {value} is not in [-2**63, 2**64)")
        with self._lock:
            self._seed = value % 2**64
            self._numpy = None
        return self

    def seed(self) -> int:
        """Start again from a seed that the operating system gives, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """Return the seed that the generator was last started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state as a uint8 tensor, for `set_state`."""
        return leaf("get_state", np.frombuffer(self._pack(), np.uint8))

    def set_state(self, new_state: Tensor) -> None:
        """Return to a state that `get_state` gave.

        Parameters
        ----------
        new_state : Tensor
            Of this generator or another one of fastgrad.

        Raises
        ------
        TypeError
            If it is not a tensor of uint8.
        RuntimeError
            If its size is wrong.
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor (a uint8 tensor), but got {type(new_state).__name__}")
        if new_state.dtype is not uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor (uint8), but its dtype is {new_state.dtype}")
        if new_state.numel() != _STATE.size:
            raise RuntimeError(f"Expected an RNG state of size {_STATE.size} but found one of size {new_state.numel()}")
        self._unpack(new_state.numpy().tobytes())

    def clone_state(self) -> Generator:
        """Return a generator of the same state, independent from now on."""
        clone = Generator()
        clone._unpack(self._pack())
        return clone

    def _pack(self) -> bytes:
        state: Any = self.numpy.bit_generator.state
        parts = (state["state"][name].to_bytes(16, "little") for name in ("state", "inc"))
        return _STATE.pack(*parts, state["has_uint32"], state["uinteger"], self._seed)

    def _unpack(self, packed: bytes) -> None:
        state, inc, has_uint32, uinteger, self._seed = _STATE.unpack(packed)
        bits = np.random.PCG64(0)
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": int.from_bytes(state, "little"), "inc": int.from_bytes(inc, "little")},
            "has_uint32": has_uint32,
            "uinteger": uinteger,
        }
        self._numpy = np.random.Generator(bits)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._pack(),)

    def __repr__(self) -> str:
        return f"<fastgrad.Generator initial_seed={self._seed}>"


def _restored(packed: bytes) -> Generator:
    generator = Generator()
    generator._unpack(packed)
    return generator


default_generator = Generator()
default_generator.seed()


def source_of(function: str, generator: Generator | None) -> np.random.Generator:
    if generator is None:
        return default_generator.numpy
    if not isinstance(generator, Generator):
        raise TypeError(f"{function}(): argument 'generator' must be Generator, not {type(generator).__name__}")
    return generator.numpy


def random_tensor(
    function: str,
    sizes: tuple[int, ...],
    dtype: dtype,
    generator: Generator | None,
    requires_grad: bool,
    *,
    normal: bool,
) -> Tensor:
    """Make a tensor of normal or uniform numbers, drawn straight into its memory where NumPy can."""
    source = source_of(function, generator)
    if dtype.category <= CATEGORY_INTEGER:
        raise NotImplementedError(f'"{function}" not implemented for {dtype!r}, only for floating point and complex')
    result = filled(function, sizes, np.zeros((), dtype.numpy))
    flat = result.numpy().reshape(-1)
    if dtype is float16:
        # 11 bits are exact in float16, so that rounding never gives 1.
        flat[...] = source.standard_normal(flat.shape) if normal else source.integers(0, 2**11, flat.shape) / 2.0**11
    else:
        parts = flat.view(dtype.to_real().numpy)
        draw: Any = source.standard_normal if normal else source.random
        draw(out=parts, dtype=parts.dtype)
        if dtype.is_complex and normal:
            flat *= np.sqrt(0.5)  # so that the complex number has variance 1
    return result.requires_grad_(requires_grad) if requires_grad else result
