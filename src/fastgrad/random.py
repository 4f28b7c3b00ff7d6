"""Random numbers: generators, and tensors filled from them.

The numbers come from NumPy's PCG64, not from PyTorch's Mersenne twister: the same seed gives the same numbers in every
run of fastgrad, and other numbers than in PyTorch. Distributions, arguments and errors are PyTorch's. No result has a
history.

Threads may share a generator: NumPy locks it for each call, so that no number is drawn twice; which thread gets which
numbers is then a matter of timing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._data import Array, arguments, cast_array, checked_tensor, dtype_or_default, integer, leaf
from ._device import Fixed, check_fixed
from ._dtypes import CATEGORY_BOOL, DtypeLike, as_dtype, dtype, finfo, iinfo, int64
from ._generator import Generator, default_generator, random_tensor, source_of
from ._size import sizes_of
from ._tensor import Tensor
from .sampling import METHODS as _sampling_methods, bernoulli, multinomial, normal, poisson

if TYPE_CHECKING:
    from typing_extensions import Unpack  # in typing from Python 3.11

__all__ = [
    "Generator", "bernoulli", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed",
    "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "randperm", "seed", "set_rng_state",
]  # fmt: skip


def manual_seed(seed: int) -> Generator:
    """Start the default generator again from a seed.

    Parameters
    ----------
    seed : int
        From ``-2**63`` to ``2**64 - 1``. The numbers that follow are not those of PyTorch for the same seed.

    Returns
    -------
    Generator
        The default generator.

    Raises
    ------
    ValueError
        If the seed is out of range.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.manual_seed(0).initial_seed()
    0
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the default generator again from a seed that the operating system gives, and return that.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.seed() == fg.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed that the default generator was last started from.

    Examples
    --------
    >>> import fastgrad as fg
    >>> generator = fg.manual_seed(3)
    >>> fg.initial_seed()
    3
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the default generator's state as a uint8 tensor.

    Examples
    --------
    >>> import fastgrad as fg
    >>> state = fg.get_rng_state()
    >>> a = fg.rand(2)
    >>> fg.set_rng_state(state)
    >>> fg.rand(2).tolist() == a.tolist()
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Return the default generator to a state that `get_rng_state` gave; see there.

    Raises
    ------
    TypeError, RuntimeError
        If it is no such state, see `Generator.set_state`.
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: object = None, enabled: bool = True) -> Iterator[None]:
    """Restore the default generator's state at the end of a ``with`` block.

    Parameters
    ----------
    devices : object
        Ignored: there is one device.
    enabled : bool
        False does nothing.

    Examples
    --------
    >>> import fastgrad as fg
    >>> generator = fg.manual_seed(0)
    >>> with fg.random.fork_rng():
    ...     a = fg.rand(1)
    >>> fg.rand(1).item() == a.item()
    True
    """
    if not enabled:
        yield
        return
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)


def rand(
    *sizes: Any,
    size: Sequence[Any] | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of random numbers, uniform from 0 up to but not including 1.

    Parameters
    ----------
    *sizes : int
        The shape, as separate ints or one sequence.
    size : sequence of int, optional
        The shape, if it is given by name.
    generator : Generator, optional
        The default generator if not given.
    dtype : dtype, optional
        Floating point or complex (then both parts are uniform); the default dtype if not given.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor.
    **fixed
        Arguments with one possible value, see `fastgrad.creation`.

    Returns
    -------
    Tensor
        A leaf of that shape.

    Raises
    ------
    TypeError
        If a size is no integer.
    RuntimeError
        If a size is negative.
    NotImplementedError
        For integer dtypes and bool.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.rand(2, 3).shape
    fastgrad.Size([2, 3])
    """
    check_fixed("rand", **fixed)
    return random_tensor(
        "rand", sizes_of("rand", sizes, size), dtype_or_default(dtype), generator, requires_grad, normal=False
    )


def randn(
    *sizes: Any,
    size: Sequence[Any] | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of random numbers, normal with mean 0 and variance 1; arguments and errors as for `rand`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.randn(2, 3, requires_grad=True).shape
    fastgrad.Size([2, 3])
    """
    check_fixed("randn", **fixed)
    return random_tensor(
        "randn", sizes_of("randn", sizes, size), dtype_or_default(dtype), generator, requires_grad, normal=True
    )


def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of uniform random numbers with the shape and dtype of another; otherwise as `rand`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.rand_like(fg.zeros(2)).shape
    fastgrad.Size([2])
    """
    check_fixed("rand_like", **fixed)
    sizes, wanted = _like("rand_like", input, dtype)
    return random_tensor("rand_like", sizes, wanted, generator, requires_grad, normal=False)


def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a tensor of normal random numbers with the shape and dtype of another; otherwise as `rand`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.randn_like(fg.zeros(2)).shape
    fastgrad.Size([2])
    """
    check_fixed("randn_like", **fixed)
    sizes, wanted = _like("randn_like", input, dtype)
    return random_tensor("randn_like", sizes, wanted, generator, requires_grad, normal=True)


def _like(function: str, input: Tensor, dtype: DtypeLike | None) -> tuple[tuple[int, ...], dtype]:
    t = checked_tensor(function, "input", input)
    return tuple(t.shape), t.dtype if dtype is None else as_dtype(dtype)


def randint(
    *bounds: Any,
    generator: Generator | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Make a tensor of random integers.

    Called as ``randint(high, size)`` or ``randint(low, high, size)``, also by these names.

    Parameters
    ----------
    *bounds : int, int, sequence of int
        ``low`` (0), which can come, ``high``, which cannot, and ``size``, the shape.
    generator : Generator, optional
        The default generator if not given.
    dtype : dtype, optional
        int64 if not given; not complex.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor, which needs a floating point dtype.
    **named
        ``low``, ``high``, ``size``, and arguments with one possible value, see `fastgrad.creation`.

    Returns
    -------
    Tensor
        A leaf of that shape.

    Raises
    ------
    TypeError
        If a bound or a size is no integer, or arguments are missing.
    RuntimeError
        If there is no integer from ``low`` to ``high``, or one that the dtype does not hold.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.randint(3, 4, (2,))
    tensor([3, 3])
    """
    given = arguments("randint", (("high", "size"), ("low", "high", "size")), bounds, named)
    check_fixed("randint", **named)
    wanted = int64 if dtype is None else as_dtype(dtype)
    sizes = sizes_of("randint", (), given["size"])
    drawn = _integers("randint", given.get("low", 0), given["high"], sizes, wanted, generator)
    return leaf("randint", drawn, requires_grad)


def randint_like(
    input: Tensor,
    *bounds: Any,
    generator: Generator | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Make a tensor of random integers with the shape and dtype of another.

    Called as ``randint_like(input, high)`` or ``randint_like(input, low, high)``; otherwise as `randint`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.randint_like(fg.zeros(2), 1)
    tensor([0., 0.])
    """
    sizes, wanted = _like("randint_like", input, dtype)
    given = arguments("randint_like", (("high",), ("low", "high")), bounds, named)
    check_fixed("randint_like", **named)
    drawn = _integers("randint_like", given.get("low", 0), given["high"], sizes, wanted, generator)
    return leaf("randint_like", drawn, requires_grad)


def _integers(
    function: str, low: Any, high: Any, sizes: tuple[int, ...], wanted: dtype, generator: Generator | None
) -> Array:
    lowest, end = integer(function, "low", low), integer(function, "high", high)
    source = source_of(function, generator)
    if lowest >= end:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={lowest} >= to={end}")
    least, most = _representable(function, wanted)
    for name, value in (("from", lowest), ("to - 1", end - 1)):
        if not least <= value <= most:
            raise RuntimeError(
                f"{function}: {name} is out of bounds for {wanted!r}: {value} is not in [{least}, {most}]"
            )
    width = np.uint64 if end > 2**63 else np.int64
    return cast_array(np.asarray(source.integers(lowest, end, sizes, width)), wanted)


def _representable(function: str, wanted: dtype) -> tuple[int, int]:
    """Return the least and the largest integer such that the dtype holds all from one to the other."""
    if wanted.is_complex:
        raise RuntimeError(f"{function}: check_random_bounds handles only integral, floating-point and bool types")
    if wanted.is_floating_point:
        exact = int(2 / finfo(wanted).eps)
        return -exact, exact
    if wanted.category == CATEGORY_BOOL:
        return 0, 1
    limits = iinfo(wanted)
    return limits.min, limits.max


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DtypeLike = int64,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Make a random permutation of the integers from 0 to ``n - 1``.

    Parameters
    ----------
    n : int
        How many.
    generator : Generator, optional
        The default generator if not given.
    dtype : dtype
        Neither bool nor complex.
    requires_grad : bool
        Whether backward passes compute a gradient for the tensor, which needs a floating point dtype.
    **fixed
        Arguments with one possible value, see `fastgrad.creation`.

    Returns
    -------
    Tensor
        1-D, of ``n`` elements.

    Raises
    ------
    TypeError
        If ``n`` is no integer.
    RuntimeError
        If ``n`` is negative, or the dtype does not hold all integers below it.
    NotImplementedError
        For bool and complex dtypes.

    Examples
    --------
    >>> import fastgrad as fg
    >>> sorted(fg.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    check_fixed("randperm", **fixed)
    (count,) = sizes_of("randperm", (integer("randperm", "n", n),))
    wanted = as_dtype(dtype)
    if wanted.is_complex or wanted.category == CATEGORY_BOOL:
        raise NotImplementedError(f'"randperm" not implemented for {wanted!r}')
    _, most = _representable("randperm", wanted)
    if count - 1 > most:
        raise RuntimeError(f"randperm: value cannot be converted to type {wanted.name} without overflow: {count - 1}")
    order = source_of("randperm", generator).permutation(count)
    return leaf("randperm", cast_array(order, wanted), requires_grad)


def random_(self: Tensor, *bounds: int, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill the tensor with random integers, in place.

    Called as ``random_()``, ``random_(to)`` or ``random_(from, to)``.

    Parameters
    ----------
    *bounds : int
        ``from`` (0), which can come, and ``to``, which cannot; without it, all that the dtype holds can.
    generator : Generator, optional
        The default generator if not given.
    **named
        ``to``.

    Returns
    -------
    Tensor
        The tensor itself.

    Raises
    ------
    RuntimeError
        As for `fastgrad.randint`, or if the tensor is a leaf that requires grad.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(2).random_(5, 6)
    tensor([5., 5.])
    """
    given = arguments("random_", ((), ("to",), ("from", "to")), bounds, named)
    check_fixed("random_", **named)
    end = given["to"] if "to" in given else _representable("random_", self.dtype)[1] + 1
    values = _integers("random_", given.get("from", 0), end, tuple(self.shape), self.dtype, generator)
    self.copy_(leaf("random_", values))
    return self


# What Tensor gets from here, by name.
METHODS = {"random_": random_, **_sampling_methods}
