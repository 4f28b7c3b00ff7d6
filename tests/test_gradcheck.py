"""gradcheck and gradgradcheck: they accept right derivatives and refuse wrong ones, with a message that shows where."""
import warnings

import numpy as np
import pytest

import fastgrad as fg
from fastgrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

REAL = fg.tensor([0.5, -1.5, 2.0], dtype=fg.float64)
COMPLEX = fg.tensor([0.5 + 1j, -1.5 - 0.5j], dtype=fg.complex128)


def leaf(values):
    return values.clone().requires_grad_()


def right(x):
    return x * x * x.exp()


def half(x):
    """Its value is x * x, its recorded derivative half of that."""
    return x * x.detach()


def scaled_gradient(x, factor):
    y = x * 1.0
    y.register_hook(lambda g: g * factor)
    return y


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("values", [REAL, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_right_derivatives_are_accepted(check, values, fast_mode):
    assert check(right, leaf(values), fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("values", [REAL, COMPLEX], ids=["real", "complex"])
def test_wrong_derivative_is_refused(values, fast_mode):
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(half, leaf(values), fast_mode=fast_mode)
    assert not gradcheck(half, leaf(values), fast_mode=fast_mode, raise_exception=False)


def test_wrong_second_derivative_is_refused():
    def first_right_second_wrong(x):
        y = x * x * 1.0

        def hook(g):
            return g * 1.0 if not g.requires_grad else g.detach()

        y.register_hook(hook)
        return y

    x = leaf(REAL)
    assert gradcheck(first_right_second_wrong, x)
    with pytest.raises(GradcheckError):
        gradgradcheck(first_right_second_wrong, x)


def test_message_shows_both_jacobians_and_the_place():
    def wrong_at_one(x, w):
        return x * w.detach() + w * fg.tensor([[1.0, 1.0], [1.0, 0.0]], dtype=fg.float64)

    x, w = leaf(fg.ones(2, 2, dtype=fg.float64)), leaf(fg.full((2, 2), 3.0, dtype=fg.float64))
    with pytest.raises(GradcheckError) as error:
        gradcheck(wrong_at_one, (x, w))
    text = str(error.value)
    assert "output 0 with respect to input 1" in text
    assert "numerical:[[" in text and "analytical:[[" in text
    assert "They differ in 4 of 16 entries" in text
    assert "atol=1e-05" in text


def test_conjugated_gradient_is_refused():
    def conjugates(z):
        y = z * 1.0
        y.register_hook(lambda g: fg.conj(g).clone())
        return y

    with pytest.raises(GradcheckError):
        gradcheck(conjugates, leaf(COMPLEX))


def test_complex_to_real_and_back():
    assert gradcheck(lambda z: fg.abs(z), leaf(COMPLEX))
    assert gradcheck(lambda x: x * 2j, leaf(REAL))


def test_inputs_that_do_not_require_grad_are_passed_through():
    assert gradcheck(lambda x, c, number: x * c * number, (leaf(REAL), REAL, 2.5))


def test_inputs_are_as_before_afterwards():
    x = leaf(REAL)
    gradcheck(right, x)
    np.testing.assert_array_equal(x.detach().numpy(), REAL.numpy())
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda x: right(x) if x[0].item() == 0.5 else 1 / 0, x)
    np.testing.assert_array_equal(x.detach().numpy(), REAL.numpy())
    assert x.grad is None


def test_non_contiguous_and_empty_inputs():
    array = np.arange(1.0, 9.0).reshape(4, 2)[::2].T
    assert gradcheck(right, fg.from_numpy(array).requires_grad_())
    assert gradcheck(right, fg.zeros(0, 3, dtype=fg.float64, requires_grad=True))
    assert gradcheck(right, fg.tensor(2.0, dtype=fg.float64, requires_grad=True))


def test_outputs_that_require_no_grad_are_left_out():
    assert gradcheck(lambda x: (right(x), x.detach() * 2.0), leaf(REAL))


def test_function_without_differentiable_output_must_be_constant():
    assert gradcheck(lambda x: fg.ones(2), leaf(REAL))
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2.0, leaf(REAL))


def test_backward_that_differs_from_run_to_run_is_refused_up_to_nondet_tol():
    factors = iter([1.0 + 1e-9 * k for k in range(10_000)])

    def drifting(x):
        y = x * 1.0
        y.register_hook(lambda g: g * next(factors))
        return y

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(drifting, leaf(REAL))
    assert gradcheck(drifting, leaf(REAL), nondet_tol=1e-6)


def test_gradient_that_is_not_multiplied_by_the_cotangent_is_refused():
    def constant_gradient(x):
        y = x.sum()
        y.register_hook(lambda g: fg.ones_like(g))
        return y

    x = leaf(REAL)
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(constant_gradient, x)
    assert gradcheck(constant_gradient, x, check_undefined_grad=False)


def test_tolerances_count():
    x = leaf(REAL)
    assert gradcheck(lambda x: scaled_gradient(x, 1.0005), x)
    with pytest.raises(GradcheckError):
        gradcheck(lambda x: scaled_gradient(x, 1.0005), x, rtol=1e-5)
    with pytest.raises(GradcheckError):
        gradcheck(lambda x: scaled_gradient(x, 1.005), x)
    assert gradcheck(lambda x: scaled_gradient(x, 1.005), x, atol=1e-2)


def test_single_precision_warns():
    x = fg.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        gradcheck(lambda x: x * 2.0, x, eps=1e-2, atol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradcheck(lambda x: x * 2.0, leaf(REAL))


def test_given_cotangents_of_gradgradcheck_are_used():
    assert gradgradcheck(right, leaf(REAL), fg.ones(3, dtype=fg.float64, requires_grad=True))
    assert gradgradcheck(right, leaf(REAL), gen_non_contig_grad_outputs=True)


@pytest.mark.parametrize(("call", "error", "phrase"), [
    (lambda x: gradcheck(right, REAL), ValueError, "expects at least one input tensor to require gradient"),
    (lambda x: gradcheck(right, x, check_forward_ad=True), NotImplementedError, "check_forward_ad"),
    (lambda x: gradcheck(right, x, check_batched_grad=True), NotImplementedError, "check_batched_grad"),
    (lambda x: gradcheck(right, x, masked=True), NotImplementedError, "masked"),
    (lambda x: gradgradcheck(right, x, check_fwd_over_rev=True), NotImplementedError, "check_fwd_over_rev"),
    (lambda x: gradcheck(right, x, check_backward_ad=False), ValueError, "at least one of"),
    (lambda x: gradcheck(lambda x: x.detach().numpy(), x), ValueError, "must return tensors"),
    (lambda x: gradcheck(right, x[:1].expand(3)), RuntimeError, "dimension with stride 0"),
], ids=["no leaf", "forward", "batched", "masked", "fwd over rev", "nothing", "array", "stride 0"])
def test_what_cannot_be_checked_is_said(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call(leaf(REAL))
