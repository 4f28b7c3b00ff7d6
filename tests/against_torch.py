"""One expression, evaluated with fastgrad and with PyTorch: values, dtypes, sharing, derivatives, exceptions."""
import warnings

import numpy as np
import pytest

import fastgrad as fg
from fastgrad.ops.padding import pad as fg_pad

rng = np.random.default_rng(20)


def arrays_of(shapes, dtype=np.float64):
    """Arrays of values that are distinct, also between them, one for each of the names x, y, z."""
    return {
        name: np.asarray(rng.permutation(np.arange(1, 1 + int(np.prod(shape)))).reshape(shape) / 4 + k / 16, dtype)
        for k, (name, shape) in enumerate(zip("xyz", shapes))
    }


def spread(array):
    """The same values in memory that is neither contiguous nor starts at its beginning."""
    wide = np.full([2 * n + 1 for n in array.shape[::-1]], 77, array.dtype)
    view = wide[(*(slice(1, None, 2) for _ in array.shape), ...)].T
    view[...] = array
    return view


class Side:
    """What expressions may name, for one of the two libraries: m, T, x, y, z."""

    def __init__(self, module, arrays, strided, requires_grad):
        self.module = module
        self.names = {"m": module, "pad": fg_pad if module is fg else module.nn.functional.pad, "np": np,
                      "T": self.integers, "F": self.floats}
        self.leaves = {}
        for name, array in arrays.items():
            leaf = module.from_numpy(array.copy())
            if strided:
                leaf = module.from_numpy(spread(array))
            leaf.requires_grad_(requires_grad)
            self.leaves[name] = self.names[name] = leaf

    def integers(self, values, dtype=None):
        array = np.array(values)
        return self.module.from_numpy(array if array.dtype == bool else array.astype(dtype or np.int64))

    def floats(self, values, dtype=np.float64):
        return self.module.from_numpy(np.array(values, dtype))

    def run(self, expression):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(expression, dict(self.names))

    def outputs(self, expression):
        out = self.run(expression)
        return list(out) if isinstance(out, (tuple, list)) else [out]


def memory_of(tensor):
    return tensor.detach().numpy()


def differentiable(outputs):
    return [o for o in outputs if o.requires_grad]


def derivatives(side, outputs, weights, seeds):
    """First derivatives, and the derivative of these with respect to the weights."""
    module = side.module
    weights = [module.from_numpy(w.copy()).requires_grad_() for w in weights]
    if not weights:
        return [], []
    loss = sum(((o * w).sum() for o, w in zip(differentiable(outputs), weights)),
               module.zeros((), dtype=module.float64))
    leaves = list(side.leaves.values())
    first = module.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    again = module.zeros((), dtype=module.float64)
    for g, seed in zip(first, seeds):
        if g is not None and g.requires_grad:
            again = again + (g * module.from_numpy(seed)).sum()
    second = module.autograd.grad(again, weights, allow_unused=True) if again.requires_grad else [None] * len(weights)
    return first, second


def check(torch, expression, shapes, strided=False, sharing=True):
    """The expression means the same in both libraries."""
    arrays = arrays_of(shapes)
    ours, theirs = (Side(m, arrays, strided, True) for m in (fg, torch))
    mine, other = ours.outputs(expression), theirs.outputs(expression)
    assert len(mine) == len(other)
    for a, b in zip(mine, other):
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
        assert a.requires_grad == b.requires_grad
        np.testing.assert_array_equal(memory_of(a), memory_of(b))
        if sharing and memory_of(a).size and a.requires_grad:
            shared = [np.shares_memory(memory_of(s), memory_of(o)) for s,
                      o in ((ours.names["x"], a), (theirs.names["x"], b))]
            assert shared[0] == shared[1], "shares its input's memory" if shared[0] else "copies its input"
    weights = [np.asarray(rng.normal(size=tuple(o.shape))) for o in differentiable(mine)]
    seeds = [np.asarray(rng.normal(size=array.shape)) for array in arrays.values()]
    for a, b in zip(derivatives(ours, mine, weights, seeds), derivatives(theirs, other, weights, seeds)):
        assert len(a) == len(b)
        for g, h in zip(a, b):
            if g is None or h is None:          # no gradient is as good as zeros
                assert all(t is None or not memory_of(t).any() for t in (g, h))
            else:
                np.testing.assert_allclose(memory_of(g), memory_of(h), rtol=1e-12, atol=1e-12)


def check_error(torch, expression, shapes, phrase=None):
    """The expression raises the same type in both libraries, and ours contains the phrase."""
    arrays = arrays_of(shapes)
    ours, theirs = (Side(m, arrays, False, False) for m in (fg, torch))
    with pytest.raises(Exception) as expected:
        theirs.run(expression)
    with pytest.raises(expected.type) as found:
        ours.run(expression)
    if phrase is not None:
        assert phrase.lower() in str(expected.value).lower(), f"PyTorch says: {expected.value}"
        assert phrase.lower() in str(found.value).lower()
