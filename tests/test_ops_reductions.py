"""Reductions, scans, statistics and norms against PyTorch: values, dtypes, gradients, exceptions, and what is saved.

The tables are in reduction_cases.py.
"""
import math
import warnings

import numpy as np
import pytest
from reduction_cases import ERRORS, GRADIENTS, LINALG, SECOND, VALUES

import fastgrad as fg

NAMES = {"np": np, "nan": math.nan, "inf": math.inf, "math": math}


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def no_warning_of_ours():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def ours(expression, **names):
    return eval(expression, {"L": fg, "T": fg.tensor, **NAMES, **names})


def theirs(torch, expression, **names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, {"L": torch, "T": torch.tensor, **NAMES, **names})


def parts(result):
    return list(result) if isinstance(result, tuple) else [result]


def assert_same(ours, theirs, rtol=None):
    assert len(parts(ours)) == len(parts(theirs))
    assert getattr(ours, "_fields", None) == getattr(theirs, "_fields", getattr(ours, "_fields", None))
    for a, b in zip(parts(ours), parts(theirs)):
        assert a.dtype.name == str(b.dtype).removeprefix("torch.")
        assert tuple(a.shape) == tuple(b.shape)
        tolerance = rtol or {2: 2e-3, 4: 2e-6}.get(a.dtype.to_real().itemsize, 1e-12)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance / 10)


# --- Values and dtypes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expression", VALUES)
def test_values_and_dtypes_are_those_of_pytorch(torch, expression):
    assert_same(ours(expression), theirs(torch, expression))


@pytest.mark.parametrize("expression", LINALG)
def test_norms_of_linalg_are_those_of_pytorch(torch, expression):
    assert_same(ours(f"L.linalg.{expression}"), theirs(torch, f"L.linalg.{expression}"))


# --- Gradients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("expression", "values"), GRADIENTS)
def test_gradients_are_those_of_pytorch(torch, expression, values):
    x = fg.tensor(values, dtype=fg.float64, requires_grad=True)
    ours(expression, x=x).sum().backward()
    y = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    theirs(torch, expression, x=y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-6, atol=1e-12)


COMPLEX = ["x.sum()", "x.mean(0)", "x.prod()", "x.cumprod(0)", "x.cumsum(0)", "x.var()", "x.std(0)", "x.norm()",
           "x.norm(1)", "x.norm(3)", "x.logsumexp(0)", "x.logcumsumexp(0)"]


@pytest.mark.parametrize("expression", COMPLEX)
def test_complex_gradients_follow_the_conjugate_convention(torch, expression):
    values = [1 + 2j, -0.5 + 1j, 2 - 1j]
    x = fg.tensor(values, dtype=fg.complex128, requires_grad=True)
    (ours(expression, x=x) * (1 + 0.5j)).sum().real.backward()
    y = torch.tensor(values, dtype=torch.complex128, requires_grad=True)
    (theirs(torch, expression, x=y) * (1 + 0.5j)).sum().real.backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.resolve_conj().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("expression", "values"), SECOND)
def test_second_derivatives_are_those_of_pytorch(torch, expression, values):
    weights = [float(i + 1) for i in range(len(values))]

    def hessian_times_weights(library, evaluate):
        x = library.tensor(values, dtype=library.float64, requires_grad=True)
        (g,) = library.autograd.grad(evaluate(x).sum(), x, create_graph=True)
        (h,) = library.autograd.grad((g * library.tensor(weights, dtype=library.float64)).sum(), x)
        return h.numpy()

    found = hessian_times_weights(fg, lambda x: ours(expression, x=x))
    np.testing.assert_allclose(
        found, hessian_times_weights(torch, lambda x: theirs(torch, expression, x=x)), rtol=1e-8, atol=1e-10)


# --- Exceptions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("expression", "phrase"), ERRORS)
def test_exceptions_have_pytorchs_type_and_phrase(torch, expression, phrase):
    with pytest.raises(Exception) as wanted:
        theirs(torch, expression)
    with pytest.raises(type(wanted.value)) as found:
        ours(expression)
    assert type(wanted.value) is type(found.value)
    assert phrase in str(wanted.value)
    assert phrase in str(found.value)


# --- What is saved, and what is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "mean", "cumsum"])
def test_linear_reductions_save_nothing(name):
    x = fg.ones(3, 2, requires_grad=True)
    y = getattr(x, name)(0).sum()
    y.backward()
    y.backward()
    np.testing.assert_array_equal(getattr(fg, name).saves(), ())


@pytest.mark.parametrize(("expression", "saved"), [
    ("L.softmax", ("result",)), ("L.log_softmax", ("result",)), ("L.prod", ("input", "result")),
    ("L.amax", ("input", "result")), ("L.var", ("input",)), ("L.nansum", ("input",)), ("L.cummax", ("indices",)),
])
def test_formulas_save_what_they_name(expression, saved):
    assert ours(expression).saves() == saved


@pytest.mark.parametrize("expression", [
    "x.prod()", "x.max()", "x.max(0)[0]", "x.amax(0)", "x.var()", "x.std()", "x.norm()", "x.logsumexp(0)",
    "x.softmax(0)", "x.cumprod(0)", "x.cummax(0)[0]", "x.median()",
])
def test_a_second_backward_raises_where_something_was_saved(expression):
    x = fg.tensor([1.0, 2.0, 4.0], requires_grad=True)
    y = ours(expression, x=x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_indices_carry_no_gradient():
    x = fg.tensor([1.0, 2.0], requires_grad=True)
    values, indices = x.max(0)
    assert values.requires_grad and not indices.requires_grad
    assert indices.dtype == fg.int64


@pytest.mark.parametrize(("expression", "name"), [
    ("x.sum()", "SumBackward0"), ("x.max()", "MaxBackward1"), ("x.max(0)[0]", "MaxBackward0"),
    ("x.min()", "MinBackward1"), ("x.median()", "MedianBackward0"), ("x.median(0)[0]", "MedianBackward1"),
    ("x.mode()[0]", "ModeBackward0"), ("x.norm()", "LinalgVectorNormBackward0"), ("x.softmax(0)", "SoftmaxBackward0"),
    ("x.log_softmax(0)", "LogSoftmaxBackward0"), ("x.logsumexp(0)", "LogsumexpBackward0"),
    ("L.cdist(x.view(1, 2), x.view(1, 2))", "CdistBackward0"), ("x.cummax(0)[0]", "CummaxBackward0"),
])
def test_nodes_have_pytorchs_names(expression, name):
    x = fg.tensor([1.0, 2.0], requires_grad=True)
    assert type(ours(expression, x=x).grad_fn).__name__ == name


# --- Accuracy --------------------------------------------------------------------------------------------------------


def test_variance_of_numbers_far_from_zero_does_not_cancel():
    x = fg.tensor([1e8, 1e8 + 1, 1e8 + 2], dtype=fg.float64)
    assert x.var().item() == pytest.approx(1.0, rel=1e-12)


def test_distances_of_near_points_do_not_cancel():
    x = fg.tensor([[1e4, 0.0]], dtype=fg.float32)
    y = fg.tensor([[1e4 + 0.5, 0.0]], dtype=fg.float32)
    assert fg.cdist(x.expand(30, 2), y.expand(30, 2))[0, 0].item() == 0.5


def test_cdist_in_blocks_equals_one_broadcast_difference():
    x, y = np.random.default_rng(0).normal(size=(2, 300, 70))
    found = fg.cdist(fg.from_numpy(x), fg.from_numpy(y)).numpy()
    np.testing.assert_allclose(found[:5], np.linalg.norm(x[:5, None] - y, axis=-1), rtol=1e-12)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_reductions_take_any_strides(dim):
    array = np.random.default_rng(0).normal(size=(6, 8))[::-2, ::3].T
    view = fg.tensor(np.random.default_rng(0).normal(size=(6, 9)), dtype=fg.float64)[1::2, ::3].T
    for t in (fg.from_numpy(array), view):
        a = t.numpy()
        np.testing.assert_allclose(t.sum(dim).numpy(), a.sum(dim))
        np.testing.assert_allclose(t.cumsum(dim).numpy(), a.cumsum(dim))
        np.testing.assert_allclose(t.max(dim).values.numpy(), a.max(dim))
        np.testing.assert_allclose(t.norm(dim=dim).numpy(), np.linalg.norm(a, axis=dim))
        np.testing.assert_allclose(t.median(dim).values.numpy(), np.quantile(a, 0.5, axis=dim, method="lower"))


# --- Closed forms, without PyTorch -----------------------------------------------------------------------------------


def test_cdist_is_differentiable_twice():
    x = fg.tensor([[0.0], [3.0]], dtype=fg.float64, requires_grad=True)
    y = fg.tensor([[4.0]], dtype=fg.float64)
    (g,) = fg.autograd.grad((fg.cdist(x, y) ** 2).sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [[-8.0], [-2.0]])
    (h,) = fg.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(h.numpy(), [[2.0], [2.0]])


def test_quantile_has_a_gradient_for_q():
    x = fg.tensor([1.0, 2.0, 4.0], dtype=fg.float64)
    q = fg.tensor(0.75, dtype=fg.float64, requires_grad=True)
    x.quantile(q).backward()
    assert q.grad.item() == pytest.approx(4.0)      # rank 2 q, so from the second element on 2 (4 - 2)


def test_mode_ignores_nan_unless_there_is_nothing_else():
    assert fg.tensor([3.0, math.nan, 2.0, 2.0]).mode().values.item() == 2.0
    assert math.isnan(fg.tensor([math.nan]).mode().values.item())


def test_softmax_and_log_softmax_agree():
    x = fg.tensor(np.random.default_rng(0).normal(size=(3, 4)))
    np.testing.assert_allclose(x.softmax(1).log().numpy(), x.log_softmax(1).numpy(), rtol=1e-12)
    np.testing.assert_allclose(x.softmax(1).sum(1).numpy(), 1.0)


def test_cumprod_of_zeros_has_derivatives_of_every_order():
    """The third mixed derivative of the last running product of [0, 0, 0] is 1."""
    x = fg.zeros(3, dtype=fg.float64, requires_grad=True)
    y = x.cumprod(0)[2]
    for i in range(3):
        (g,) = fg.autograd.grad(y, x, create_graph=True)
        y = g[i]
    assert y.item() == 1.0


def test_trapezoid_integrates_a_line_exactly():
    x = fg.tensor([0.0, 0.5, 3.0], dtype=fg.float64)
    assert fg.trapezoid(2 * x, x).item() == pytest.approx(9.0)
    np.testing.assert_allclose(fg.cumulative_trapezoid(2 * x, x).numpy(), [0.25, 9.0])


def test_max_prints_as_a_named_tuple():
    assert repr(fg.tensor([1.0, 2.0]).max(0)) == "max(values=tensor(2.), indices=tensor(1))"
