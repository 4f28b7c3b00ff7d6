"""Floor 3: pad, in all modes. What is read where is known from the numbers alone, so nothing is saved."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._declare import KEEP, LINEAR, composite, operator

Array = np.ndarray[Any, Any]
Pads = tuple[tuple[int, int], ...]      # before and after, for each dimension; negative ones cut off

# --- With a constant -------------------------------------------------------------------------------------------------


def constant_pad_forward(input: Array, pads: Pads, value: Any) -> Array:
    shape = [n + before + after for n, (before, after) in zip(input.shape, pads)]
    if any(n < 0 for n in shape):
        raise RuntimeError(f"pad: narrow(): length must be non-negative. The input size {list(input.shape)}, plus "
                           f"negative padding {pads}, would be negative")
    out = np.full(shape, value, input.dtype)
    source = tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(input.shape, pads))
    target = tuple(slice(max(before, 0), n - max(after, 0)) for n, (before, after) in zip(shape, pads))
    out[target] = input[source]
    return out


constant_pad = operator(
    "_constant_pad(input, pads, value=0)",
    forward=constant_pad_forward,
    vjp=dict(input=lambda g, pads: constant_pad(g, tuple((-before, -after) for before, after in pads))),
    dtypes=KEEP, node="ConstantPadNd", public=False, method=False,
    samples=lambda make: [((make(2, 3), ((1, 0), (-1, 2))), {})],
)

# --- With the tensor's own elements ----------------------------------------------------------------------------------


def positions(n: int, before: int, after: int, mode: str) -> Array:
    """Which of n elements stands at each place of a padded dimension."""
    places = np.arange(-before, n + after)
    if mode == "replicate":
        return places.clip(0, n - 1)
    if mode == "circular":               # what is left after cutting off goes round
        start, stop = max(-before, 0), n - max(-after, 0)
        return start + (places - start) % (stop - start)
    period = max(2 * (n - 1), 1)
    places = places % period
    return np.minimum(places, period - places) if n > 1 else places


def pad_forward(input: Array, pads: Pads, mode: str) -> Array:
    for d, (before, after) in enumerate(pads):
        if before or after:
            input = input.take(positions(input.shape[d], before, after, mode), d)
    return input


def unpad_forward(input: Array, pads: Pads, mode: str) -> Array:
    """Each element's cotangents added up over the places where it stands."""
    for d, (before, after) in enumerate(pads):
        if before or after:
            n = input.shape[d] - before - after
            moved = np.moveaxis(input, d, 0)
            out = np.zeros((n, *moved.shape[1:]), input.dtype)
            for place, k in enumerate(positions(n, before, after, mode)):
                out[k] += moved[place]
            input = np.moveaxis(out, 0, d)
    return input


pad_by_copying = operator(
    "_pad(input, pads, mode)",
    forward=pad_forward,
    vjp=dict(input=lambda g, pads, mode: unpad(g, pads, mode)),
    dtypes=KEEP, jvp=LINEAR, node="Pad", public=False, method=False,
    samples=lambda make: [((make(2, 3), ((0, 0), (1, 2)), mode), {}) for mode in ("reflect", "replicate", "circular")],
)

unpad = operator(
    "_unpad(input, pads, mode)",
    forward=unpad_forward,
    vjp=dict(input=lambda g, pads, mode: pad_by_copying(g, pads, mode)),
    dtypes=KEEP, jvp=LINEAR, public=False, method=False,
    samples=lambda make: [((make(2, 6), ((0, 0), (1, 2)), mode), {}) for mode in ("reflect", "replicate", "circular")],
)

# --- pad -------------------------------------------------------------------------------------------------------------


@composite(
    "pad(input, pad, mode='constant', value=None)", method=False, public=False,
    samples=lambda make: [
        ((make(2, 3), (1, 2)), {}), ((make(2, 3), (1, -1, 0, 2), "constant", 1.5), {}),
        ((make(1, 2, 4), (2, 1), "reflect"), {}), ((make(1, 2, 4), (5, 0), "replicate"), {}),
        ((make(1, 2, 4), (2, 1), "circular"), {}),
    ],
)
def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """The tensor with elements added at the ends of its last dimensions.

    Parameters
    ----------
    pad : tuple of int
        How many before and after: for the last dimension, then for the one before it, and so on. Negative numbers
        cut off.
    mode : {"constant", "reflect", "replicate", "circular"}
        What is added: `value`; the elements in reverse from the edge on, which is not repeated; the edge; the elements
        from the other end. All but the first want one or two dimensions more than are padded.
    value : number, optional
        For "constant"; 0 if not given.
    """
    pad = tuple(pad)
    if len(pad) % 2:
        raise RuntimeError(f"pad: Padding length must be divisible by 2, got {pad}")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError("pad: Padding length should be less than or equal to two times the input dimension but got "
                           f"padding length {len(pad)} and input of dimension {input.ndim}")
    pads: Pads = tuple(pad[i : i + 2] for i in range(0, len(pad), 2))[::-1]
    pads = ((0, 0),) * (input.ndim - len(pads)) + pads
    if mode == "constant":
        return constant_pad(input, pads, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"pad: Unrecognised padding mode {mode}")
    if value is not None:
        raise RuntimeError(f'pad: Padding mode "{mode}" doesn\'t take in value argument')
    if not 0 <= input.ndim - len(pad) // 2 - 1 <= 1 or len(pad) > 6:
        raise NotImplementedError(f"pad: Padding size {len(pad)} is not supported for {input.ndim}D input tensor.")
    check_pads(tuple(input.shape), pads, mode)
    return pad_by_copying(input, pads, mode)


def check_pads(shape: tuple[int, ...], pads: Pads, mode: str) -> None:
    for d, (n, (before, after)) in enumerate(zip(shape, pads)):
        if mode == "reflect" and max(before, after) >= n:
            raise RuntimeError("pad: Padding size should be less than the corresponding input dimension, but got: "
                               f"padding ({before}, {after}) at dimension {d} of input {list(shape)}")
        if mode == "circular" and max(before, after) > n:
            raise RuntimeError(f"pad: Padding value causes wrapping around more than once: padding ({before}, {after}) "
                               f"at dimension {d} of input {list(shape)}")
        if n + before + after < 1 and (before or after):
            raise RuntimeError(f"pad: input size {n} at dimension {d} is too small: negative padding value ({before}, "
                               f"{after}) is resulting in an empty dimension")
