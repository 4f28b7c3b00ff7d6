"""Random numbers whose distribution is given by tensors. `random.py` has their names too, and says what is common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ._data import Array, cast_array, checked_tensor, dtype_or_default, integer, leaf, number
from ._device import Fixed, check_fixed
from ._dtypes import DtypeLike
from ._generator import Generator, random_tensor, source_of
from ._size import sizes_of
from ._tensor import Tensor

if TYPE_CHECKING:
    from typing_extensions import Unpack  # in typing from Python 3.11

__all__ = ["bernoulli", "multinomial", "normal", "poisson"]

POISSON_NORMAL = 2.0**60  # rate above which poisson() draws from the normal distribution


def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: DtypeLike | None = None,
    requires_grad: bool = False,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Draw normal random numbers of given means and standard deviations.

    Parameters
    ----------
    mean, std : Tensor or float
        Floating point (the mean also complex). Two tensors broadcast.
    size : sequence of int
        The shape, if and only if both are numbers.
    generator : Generator, optional
        The default generator if not given.
    dtype : dtype, optional
        With ``size`` only; otherwise the dtype of the tensor, of ``mean`` if both are tensors.
    requires_grad : bool
        With ``size`` only: whether backward passes compute a gradient for the tensor.
    **fixed
        Arguments with one possible value, see `fastgrad.creation`.

    Returns
    -------
    Tensor
        A leaf. Nothing flows back to ``mean`` and ``std``: ``mean + std * randn(...)`` is the same and differentiable.

    Raises
    ------
    TypeError
        If ``size`` is missing, or given with tensors.
    RuntimeError
        If a standard deviation is negative or not a number.
    NotImplementedError
        For integer dtypes and bool.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.normal(fg.tensor([0.0, 10.0]), 0.0)
    tensor([ 0., 10.])
    """
    check_fixed("normal", **fixed)
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    if bool(tensors) == (size is not None) or (tensors and (dtype is not None or requires_grad)):
        raise TypeError(
            "normal() received an invalid combination of arguments: expected (Tensor mean, Tensor std), (Tensor mean, "
            "float std), (float mean, Tensor std) or (float mean, float std, tuple of ints size)"
        )
    center, spread = (
        x.detach().numpy() if isinstance(x, Tensor) else number("normal", name, x)
        for name, x in (("mean", mean), ("std", std))
    )
    if not np.all(np.greater_equal(spread, 0)):
        raise RuntimeError(f"normal expects all elements of std >= 0.0, but found std {np.min(spread)}")
    if size is not None:
        sizes, wanted = sizes_of("normal", (), size), dtype_or_default(dtype)
    else:
        try:
            sizes = np.broadcast_shapes(np.shape(center), np.shape(spread))
        except ValueError:
            raise RuntimeError(
                f"normal: mean of shape {np.shape(center)} and std of shape {np.shape(spread)} do not broadcast"
            ) from None
        wanted = tensors[0].dtype
    result = random_tensor("normal", sizes, wanted, generator, False, normal=True)
    array = result.numpy()
    array *= np.asarray(spread).astype(array.real.dtype)
    array += np.asarray(center).astype(array.dtype)
    return result.requires_grad_(requires_grad) if requires_grad else result


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, **fixed: Unpack[Fixed]
) -> Tensor:
    """Draw 0 or 1, with the elements as probabilities of 1.

    Parameters
    ----------
    input : Tensor
        Probabilities, floating point.
    p : float, optional
        One probability for all; then ``input`` gives only shape and dtype, which may be any.
    generator : Generator, optional
        The default generator if not given.
    **fixed
        Arguments with one possible value, see `fastgrad.creation`.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``input``; nothing flows back to it.

    Raises
    ------
    TypeError
        If ``input`` is no tensor.
    RuntimeError
        If a probability is not from 0 to 1.
    NotImplementedError
        If ``input`` has probabilities and is not floating point.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.bernoulli(fg.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    check_fixed("bernoulli", **fixed)
    t = checked_tensor("bernoulli", "input", input)
    if p is None:
        if not t.dtype.is_floating_point:
            raise NotImplementedError(f'"bernoulli_tensor_cpu_p_" not implemented for {t.dtype!r}')
        probability: Array = t.detach().numpy()
    else:
        probability = np.asarray(number("bernoulli", "p", p))
    inside = (probability >= 0) & (probability <= 1)
    if not inside.all():
        raise RuntimeError(
            f"bernoulli expects p to be in [0, 1], but got p={probability[~inside].flat[0]}: "
            "Expected p_in >= 0 && p_in <= 1 to be true"
        )
    drawn = np.asarray(source_of("bernoulli", generator).random(tuple(t.shape)) < probability)
    return leaf("bernoulli", drawn.astype(t.dtype.numpy))


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    **fixed: Unpack[Fixed],
) -> Tensor:
    """Draw indices, with the elements as their weights.

    Parameters
    ----------
    input : Tensor
        Weights, floating point, not negative, 1-D or one row for each distribution; they need not sum to 1.
    num_samples : int
        Draws from each distribution.
    replacement : bool
        Whether an index may be drawn again.
    generator : Generator, optional
        The default generator if not given.
    **fixed
        Arguments with one possible value, see `fastgrad.creation`.

    Returns
    -------
    Tensor
        int64, of shape ``(num_samples,)`` or ``(rows, num_samples)``.

    Raises
    ------
    RuntimeError
        If the weights are not 1-D or 2-D, not floating point, negative, not finite or all 0, or there are not
        ``num_samples`` of them to draw without replacement.

    Notes
    -----
    Without replacement, the largest of ``weight / E`` with ``E`` exponential are taken (Efraimidis and Spirakis 2006,
    algorithm A, in logarithms), so weights of 0 come last.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.multinomial(fg.tensor([0.0, 1.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    check_fixed("multinomial", **fixed)
    t = checked_tensor("multinomial", "input", input)
    n = integer("multinomial", "num_samples", num_samples)
    _check_weights(t, n, replacement)
    source = source_of("multinomial", generator)
    weights = t.detach().numpy().astype(np.float64)
    rows = np.atleast_2d(weights)
    if replacement:
        drawn = np.empty((len(rows), n), np.int64)
        for row, out in zip(rows, drawn, strict=True):
            total = np.cumsum(row)
            # The first index whose sum exceeds the draw has a weight; rounding may reach the total, hence the minimum.
            last = np.flatnonzero(row)[-1]
            out[...] = np.minimum(np.searchsorted(total, source.random(n) * total[-1], side="right"), last)
    else:
        keys = rows / source.standard_exponential(rows.shape)
        drawn = np.argsort(-keys, axis=-1, kind="stable")[:, :n]
    return leaf("multinomial", drawn if weights.ndim == 2 else drawn[0])


def _check_weights(t: Tensor, n: int, replacement: bool) -> None:
    if not t.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {t.dtype}")
    if t.ndim not in (1, 2):
        raise RuntimeError(f"multinomial: prob_dist must be 1 or 2 dim, got shape {tuple(t.shape)}")
    if n <= 0:
        raise RuntimeError(f"multinomial: cannot sample n_sample <= 0 samples, got {n}")
    categories = t.shape[-1]
    if categories == 0 or (n > categories and not replacement):
        raise RuntimeError(
            "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement: "
            f"{n} from {categories}"
        )
    weights = t.detach().numpy()
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise RuntimeError("multinomial: probability tensor contains either `inf`, `nan` or element < 0")
    if not weights.any(-1).all():
        raise RuntimeError("multinomial: invalid multinomial distribution (sum of probabilities <= 0)")


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw Poisson random numbers, with the elements as rates.

    Parameters
    ----------
    input : Tensor
        Rates, floating point, not negative.
    generator : Generator, optional
        The default generator if not given.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``input``; nothing flows back to it.

    Raises
    ------
    RuntimeError
        If a rate is negative or not a number.
    NotImplementedError
        If ``input`` is not floating point.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.poisson(fg.zeros(2))
    tensor([0., 0.])
    """
    t = checked_tensor("poisson", "input", input)
    if not t.dtype.is_floating_point:
        raise NotImplementedError(f'"poisson_cpu" not implemented for {t.dtype!r}')
    rate = t.detach().numpy().astype(np.float64)
    if not (rate >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    source = source_of("poisson", generator)
    # NumPy refuses rates near 2**63. Above POISSON_NORMAL the distribution is normal to the last bit of a float64.
    drawn = source.poisson(np.minimum(rate, POISSON_NORMAL)).astype(np.float64)
    large = rate > POISSON_NORMAL
    if large.any():
        drawn = np.where(large, np.rint(rate + np.sqrt(rate) * source.standard_normal(rate.shape)), drawn)
    return leaf("poisson", cast_array(drawn, t.dtype))


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with normal random numbers, in place.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation.
    generator : Generator, optional
        The default generator if not given.

    Returns
    -------
    Tensor
        The tensor itself.

    Raises
    ------
    RuntimeError
        If ``std`` is negative, or the tensor is a leaf that requires grad.
    NotImplementedError
        For integer dtypes and bool.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(2).normal_(3.0, 0.0)
    tensor([3., 3.])
    """
    return _written(self, normal(mean, std, self.shape, dtype=self.dtype, generator=generator))


def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with uniform random numbers from ``from_`` up to but not including ``to``, in place.

    Raises
    ------
    RuntimeError
        If ``from_`` is larger than ``to``, or the tensor is a leaf that requires grad.
    NotImplementedError
        For integer dtypes and bool.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(2).uniform_(3.0, 3.0)
    tensor([3., 3.])
    """
    low, high = float(number("uniform_", "from", from_).real), float(number("uniform_", "to", to).real)
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    drawn = random_tensor("uniform_", tuple(self.shape), self.dtype, generator, False, normal=False)
    array = drawn.numpy()
    array *= high - low
    array += low
    if low < high and not self.dtype.is_complex:
        np.minimum(array, np.nextafter(array.dtype.type(high), array.dtype.type(low)), out=array)  # rounded up to `to`
    return _written(self, drawn)


def bernoulli_(self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with 0 and 1, in place; ``p`` is the probability of 1, one for all or a tensor that broadcasts.

    Raises
    ------
    RuntimeError
        If a probability is not from 0 to 1, or the tensor is a leaf that requires grad.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.zeros(2).bernoulli_(fg.tensor([1.0, 0.0]))
    tensor([1., 0.])
    """
    if isinstance(p, Tensor):
        chances = leaf("bernoulli_", np.broadcast_to(p.detach().numpy(), self.shape))
        return _written(self, bernoulli(chances, generator=generator))
    return _written(self, bernoulli(self, p, generator=generator))


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with exponential random numbers of rate ``lambd``, in place.

    Raises
    ------
    RuntimeError
        If the rate is not positive, or the tensor is a leaf that requires grad.
    NotImplementedError
        Unless the dtype is floating point.

    Examples
    --------
    >>> import fastgrad as fg
    >>> min(fg.zeros(3).exponential_().tolist()) >= 0
    True
    """
    rate = float(number("exponential_", "lambd", lambd).real)
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate}")
    if not self.dtype.is_floating_point:
        raise NotImplementedError(f'"exponential_" not implemented for {self.dtype!r}, only for floating point')
    drawn = source_of("exponential_", generator).standard_exponential(tuple(self.shape)) / rate
    return _written(self, leaf("exponential_", cast_array(np.asarray(drawn), self.dtype)))


def _written(t: Tensor, values: Tensor) -> Tensor:
    """Write new values over a tensor, with the checks and the version of every in-place operation."""
    t.copy_(values)
    return t


# What Tensor gets from here, by name.
METHODS: dict[str, Callable[..., Tensor]] = {
    "bernoulli": bernoulli,
    "bernoulli_": bernoulli_,
    "exponential_": exponential_,
    "multinomial": multinomial,
    "normal_": normal_,
    "uniform_": uniform_,
}
