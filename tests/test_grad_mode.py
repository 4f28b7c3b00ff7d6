"""no_grad, enable_grad, set_grad_enabled and inference_mode: as blocks, as decorators, and what they do to tensors."""
import asyncio

import pytest

import fastgrad as fg


def leaf():
    return fg.ones(2, requires_grad=True)


def test_no_grad_records_nothing_and_ends():
    x = leaf()
    with fg.no_grad():
        y = x * x
        assert not fg.is_grad_enabled()
    assert not y.requires_grad and y.grad_fn is None and y.is_leaf
    assert (x * x).requires_grad


def test_modes_nest():
    states = []
    with fg.no_grad():
        with fg.enable_grad():
            states.append(fg.is_grad_enabled())
            with fg.no_grad():
                states.append(fg.is_grad_enabled())
            states.append(fg.is_grad_enabled())
        states.append(fg.is_grad_enabled())
    assert states == [True, False, True, False]


def test_exception_ends_the_mode():
    with pytest.raises(KeyError), fg.no_grad():
        raise KeyError
    assert fg.is_grad_enabled()


def test_one_object_may_be_entered_twice():
    mode = fg.no_grad()
    with mode, mode:
        assert not fg.is_grad_enabled()
    assert fg.is_grad_enabled()


def test_new_tensors_under_no_grad_may_require_grad():
    with fg.no_grad():
        x = fg.ones(1, requires_grad=True)
    (x * x).backward()
    assert x.grad.tolist() == [2.0]


def test_set_grad_enabled_acts_at_once_and_as_a_block():
    fg.set_grad_enabled(False)
    try:
        assert not fg.is_grad_enabled()
    finally:
        fg.set_grad_enabled(True)
    with fg.set_grad_enabled(False):
        assert not fg.is_grad_enabled()
    assert fg.is_grad_enabled()


@pytest.mark.parametrize("decorate", [fg.no_grad(), fg.no_grad], ids=["()", "bare"])
def test_decorator_keeps_name_and_result(decorate):
    @decorate
    def doubler(x, *, factor=2.0):
        """Doubles."""
        return x * factor

    assert doubler.__name__ == "doubler" and doubler.__doc__ == "Doubles."
    assert not doubler(leaf(), factor=3.0).requires_grad
    assert fg.is_grad_enabled()


def test_enable_grad_as_decorator_inside_no_grad():
    @fg.enable_grad()
    def recorded(x):
        return x * x

    with fg.no_grad():
        assert recorded(leaf()).requires_grad
        assert not fg.is_grad_enabled()


def test_decorated_recursion():
    @fg.no_grad()
    def countdown(n):
        assert not fg.is_grad_enabled()
        return n if n == 0 else countdown(n - 1)

    assert countdown(20) == 0
    assert fg.is_grad_enabled()


def test_decorated_generator_has_the_mode_inside_only():
    states = []

    @fg.no_grad()
    def generator():
        for k in range(3):
            states.append(fg.is_grad_enabled())
            sent = yield k
            states.append(sent)
        return "end"

    g = generator()
    assert next(g) == 0 and fg.is_grad_enabled()
    assert g.send("a") == 1 and fg.is_grad_enabled()
    assert g.send("b") == 2
    with pytest.raises(StopIteration) as stop:
        g.send("c")
    assert stop.value.value == "end"
    assert states == [False, "a", False, "b", False, "c"]


def test_decorated_generator_handles_throw_and_close():
    closed = []

    @fg.no_grad()
    def generator():
        try:
            while True:
                try:
                    yield fg.is_grad_enabled()
                except ValueError:
                    yield "caught"
        finally:
            closed.append(fg.is_grad_enabled())

    g = generator()
    assert next(g) is False
    assert g.throw(ValueError) == "caught"
    g.close()
    assert closed == [False] and fg.is_grad_enabled()


def test_mode_of_a_block_in_a_coroutine_ends_with_it():
    async def work():
        with fg.no_grad():
            x = leaf() * 2.0
        await asyncio.sleep(0)
        return x.requires_grad, fg.is_grad_enabled()

    assert asyncio.run(work()) == (False, True)


# --- inference_mode --------------------------------------------------------------------------------------------------


def test_inference_mode_makes_inference_tensors():
    x = leaf()
    with fg.inference_mode():
        y = x * x
        assert fg.autograd.is_inference_mode_enabled() and not fg.is_grad_enabled()
    assert y.is_inference() and not y.requires_grad
    assert not (x * x).is_inference()


def test_inference_tensor_cannot_be_saved_or_require_grad():
    x = leaf()
    with fg.inference_mode():
        c = x * 2.0
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * c
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        c.requires_grad_()
    assert (x + c).requires_grad, "nothing is saved there"
    assert (x * c.clone()).requires_grad


def test_inference_mode_can_be_switched_off_inside():
    with fg.inference_mode():
        with fg.inference_mode(False):
            assert not fg.autograd.is_inference_mode_enabled()
            assert (leaf() * 2.0).requires_grad
        assert fg.autograd.is_inference_mode_enabled()


def test_inference_mode_as_decorator():
    @fg.inference_mode()
    def work(x):
        return x * x

    assert work(leaf()).is_inference()
    assert not fg.autograd.is_inference_mode_enabled()


# --- Why a tensor does not require grad ------------------------------------------------------------------------------


def made_under_no_grad():
    with fg.no_grad():
        return leaf() * 2.0


@pytest.mark.parametrize(("make", "reason"), [
    (lambda: fg.ones(2), "made from data with requires_grad=False"),
    (lambda: fg.ones(2) * 2.0, "computed from tensors none of which requires grad"),
    (made_under_no_grad, "computed under no_grad"),
    (lambda: (leaf() * 2.0).detach(), "made by detach"),
    (lambda: fg.ones(2, dtype=fg.int64), "its dtype cannot carry a gradient"),
], ids=["data", "constants", "no_grad", "detach", "integers"])
def test_error_says_why_there_is_no_gradient(make, reason):
    t = make()
    with pytest.raises(RuntimeError, match=f"does not require grad and does not have a grad_fn.*{reason}"):
        t.backward(fg.ones_like(t))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
def test_integers_cannot_require_grad(dtype):
    t = fg.ones(2, dtype=getattr(fg, dtype))
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        t.requires_grad_()
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        fg.ones(2, dtype=getattr(fg, dtype), requires_grad=True)
