"""One function of tensors, evaluated with fastgrad and with PyTorch: values, first and second derivatives."""
import numpy as np

import fastgrad as fg

KINDS = ("real", "complex")


def random_array(rng, kind, shape):
    values = rng.standard_normal(shape)
    return np.asarray(values + 1j * rng.standard_normal(shape) if kind == "complex" else values)


def array(t):
    return t.detach().numpy() if isinstance(t, fg.Tensor) else t.detach().resolve_conj().numpy()


def real_part(t):
    return t.real if array(t).dtype.kind == "c" else t


def weighted(module, tensors, seed, squared):
    """A real number that depends on every element of the tensors, in a way of its own."""
    rng = np.random.default_rng(seed)
    total = None
    for t in tensors:
        kind = "complex" if array(t).dtype.kind == "c" else "real"
        z = real_part(t * module.from_numpy(random_array(rng, kind, tuple(t.shape))))
        term = (z * z).sum() + z.sum() if squared else z.sum()
        total = term if total is None else total + term
    return total


def outputs_of(function, module, leaves):
    out = function(module, *leaves)
    return list(out) if isinstance(out, (tuple, list)) else [out]


def evaluate(module, function, arrays, second):
    """Outputs, gradients, and gradients of a function of the gradients; None stands for zeros."""
    leaves = [module.from_numpy(np.array(a)).requires_grad_() for a in arrays]
    outputs = outputs_of(function, module, leaves)
    first = module.autograd.grad(weighted(module, outputs, 3, True), leaves, create_graph=second, allow_unused=True)
    again = [None] * len(leaves)
    filled = [module.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, first)]
    if second and any(g.requires_grad for g in filled):
        again = module.autograd.grad(weighted(module, filled, 5, False), leaves, allow_unused=True)
    return outputs, first, again


def compare(torch, function, arrays, second=True, tolerance=1e-8):
    """The same values and derivatives in both libraries; `function(module, *tensors)` returns one or several."""
    mine, theirs = (evaluate(module, function, arrays, second) for module in (fg, torch))
    for what, ours, others in zip(("values", "gradients", "second derivatives"), mine, theirs):
        assert len(ours) == len(others)
        for a, b in zip(ours, others):
            if a is None or b is None:       # no gradient is as good as zeros
                assert all(t is None or not array(t).any() for t in (a, b)), what
                continue
            assert tuple(a.shape) == tuple(b.shape), what
            assert array(a).dtype == array(b).dtype, what
            scale = max(1.0, np.abs(array(b)[np.isfinite(array(b))]).max(initial=0.0))
            np.testing.assert_allclose(array(a), array(b), rtol=tolerance, atol=tolerance * scale, err_msg=what)


def linalg(module, name):
    return getattr(module.linalg, name)


def adjoint(t):
    return t.conj().transpose(-2, -1)


def positive(module, a):
    """A positive-definite matrix made of a."""
    eye = module.from_numpy(np.eye(a.shape[-1], dtype=array(a).dtype))
    return a @ adjoint(a) + eye


def hermitian(a):
    return a + adjoint(a)
