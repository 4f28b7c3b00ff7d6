"""Saved tensors: what is saved, when it is freed, what reading it checks, and pack hooks."""
import gc
import weakref

import numpy as np
import pytest

import fastgrad as fg


def leaf(*values):
    return fg.tensor(list(values), dtype=fg.float64, requires_grad=True)


def read(node, name):
    return getattr(node, name)


class Growth:
    """Saved bytes since it was made."""

    def __init__(self):
        self.before = fg.memory.saved_bytes()

    def __call__(self):
        return fg.memory.saved_bytes() - self.before


# --- What is saved ---------------------------------------------------------------------------------------------------


def test_mul_saves_the_other_operand_only_if_self_requires_grad():
    saved = Growth()
    x, c = leaf(1.0, 2.0), fg.ones(2, dtype=fg.float64)
    y = x * c
    assert saved() == 16
    with pytest.raises(AttributeError, match="_saved_self"):
        read(y.grad_fn, "_saved_self")
    np.testing.assert_array_equal(y.grad_fn._saved_other.numpy(), c.numpy())


def test_mul_of_two_leaves_saves_both():
    saved = Growth()
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    assert saved() == 32
    assert y.grad_fn._saved_self is x
    assert y.grad_fn._saved_other is w


def test_a_buffer_saved_twice_counts_once():
    saved = Growth()
    x = leaf(1.0, 2.0)
    products = [x * x, x * 2.0, x * x]
    assert saved() == 16
    del products
    assert saved() == 0


@pytest.mark.parametrize("expression", [
    lambda x: x + 2, lambda x: x + x, lambda x: -x, lambda x: x - 1.0, lambda x: x * 3.0, lambda x: x.sum(),
    lambda x: x.reshape(2, 1), lambda x: x.expand(3, 2), lambda x: x.clone(), lambda x: x.unsqueeze(0),
], ids=["+2", "+x", "neg", "-1", "*3", "sum", "reshape", "expand", "clone", "unsqueeze"])
def test_nothing_is_saved_by(expression):
    saved = Growth()
    x = leaf(1.0, 2.0)
    y = expression(x)
    assert saved() == 0
    y.sum().backward(retain_graph=False)
    y.sum().backward()
    assert x.grad is not None


def test_exp_saves_its_result():
    x = leaf(1.0, 2.0)
    y = x.exp()
    assert y.grad_fn._saved_result is not None
    np.testing.assert_array_equal(y.grad_fn._saved_result.detach().numpy(), np.exp([1.0, 2.0]))
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn


def test_saved_result_does_not_keep_the_output_alive_in_a_cycle():
    x = leaf(1.0)
    y = x.exp()
    died = weakref.ref(y)
    del y
    assert died() is None, "without the collector"


def test_nothing_is_saved_under_no_grad():
    saved = Growth()
    x = leaf(1.0)
    with fg.no_grad():
        y = x * x
    assert saved() == 0 and y.grad_fn is None


def test_saved_input_unpacks_to_the_same_object():
    x = leaf(1.0)
    y = x * x
    z = y * x
    assert z.grad_fn._saved_self is y


def test_saved_tensor_outlives_its_tensor():
    x = leaf(2.0)
    y = x * x
    z = y * y
    del y
    gc.collect()
    z.backward()
    assert x.grad.tolist() == [32.0]


# --- Freeing ---------------------------------------------------------------------------------------------------------


def test_backward_frees_and_retain_graph_does_not():
    saved = Growth()
    x = leaf(1.0, 2.0)
    y = (x * x).exp().sum()
    held = saved()
    assert held == 32, "x and the exponential"
    y.backward(retain_graph=True)
    assert saved() == held
    y.backward()
    assert saved() == 0


def test_each_node_frees_as_soon_as_it_has_run():
    x = leaf(*range(10))
    chain = [x]
    for _ in range(5):
        chain.append(chain[-1].exp())
    saved = Growth()
    levels = []
    for y in chain[1:]:
        y.register_hook(lambda g: levels.append(saved()))
    chain[-1].sum().backward()
    assert levels == [0, -80, -160, -240, -320]


def test_freed_buffers_go_back_while_backward_runs():
    x = fg.ones(1000, dtype=fg.float64, requires_grad=True)
    y = x
    for _ in range(20):
        y = y * x
    y = y.sum()
    fg.memory.reset_peak()
    live = fg.memory.live_bytes()
    y.backward()
    assert fg.memory.peak_bytes() - live <= 2 * 8000


def test_reading_after_freeing_says_so():
    x = leaf(1.0)
    y = x * x
    node = y.grad_fn
    y.backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        read(node, "_saved_self")


def test_dropping_the_graph_frees_it_without_backward():
    saved = Growth()
    x = leaf(*range(100))
    y = x
    for _ in range(50):
        y = y.exp()
    assert saved() == 50 * 800
    del y
    assert saved() == 0


# --- Versions --------------------------------------------------------------------------------------------------------


def test_modified_saved_tensor_is_refused_with_versions_and_operator():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    z = y * y
    with fg.no_grad():
        y.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
        z.sum().backward()
    text = str(error.value)
    assert "is at version 1; expected version 0" in text
    assert "MulBackward0" in text and "float64" in text and "(2,)" in text


def test_freed_is_reported_before_modified():
    x = leaf(1.0)
    y = x * 1.0
    z = y * y
    z.backward()
    with fg.no_grad():
        y.mul_(2.0)
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()


def test_write_through_a_view_counts():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    z = y * y
    with fg.no_grad():
        y.reshape(2, 1).mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_write_through_detach_counts_and_through_data_does_not():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    z = (y * y).sum()
    y.data.mul_(3.0)
    z.backward(retain_graph=True)
    assert x.grad.tolist() == [6.0, 12.0], "data hides the write: the derivative is of the new value"
    y.detach().mul_(3.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_modification_of_what_was_not_saved_is_allowed():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    z = y + 1.0
    with fg.no_grad():
        y.mul_(5.0)
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


# --- Pack hooks ------------------------------------------------------------------------------------------------------


def hooks(pack, unpack):
    return fg.autograd.graph.saved_tensors_hooks(pack, unpack)


def test_pack_hook_replaces_what_is_kept():
    saved = Growth()
    x = leaf(1.0, 2.0)
    packed = []

    def pack(t):
        packed.append(t.tolist())
        return t.tolist()

    with hooks(pack, lambda p: fg.tensor(p, dtype=fg.float64)):
        y = (x * x).exp()
    assert packed == [[1.0, 2.0], [1.0, 2.0], [np.exp(1.0), np.exp(4.0)]]
    assert saved() == 0
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.array([1, 2]) * np.exp([1.0, 4.0]))


def test_packed_tensors_take_part_in_second_derivatives():
    x = leaf(1.0, 2.0)
    with hooks(lambda t: t.numpy().copy(), fg.from_numpy):
        y = (x * x * x).sum()
        (g,) = fg.autograd.grad(y, x, create_graph=True)
    (h,) = fg.autograd.grad(g.sum(), x)
    assert h.tolist() == [6.0, 12.0]


def test_innermost_pack_hooks_win():
    x = leaf(1.0)
    order = []
    with hooks(lambda t: order.append("outer") or t, lambda p: p):
        with hooks(lambda t: order.append("inner") or t, lambda p: p):
            x * x
        x.exp()
    x.exp()
    assert order == ["inner", "inner", "outer"]


def test_exception_in_a_pack_hook_is_the_operations():
    x = leaf(1.0)
    with hooks(lambda t: 1 / 0, lambda p: p):
        with pytest.raises(ZeroDivisionError):
            x * x
    (x * x).backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize(("unpack", "error"), [
    (lambda p: None, TypeError), (lambda p: p.numpy(), TypeError), (lambda p: fg.ones(5), RuntimeError),
    (lambda p: 1 / 0, ZeroDivisionError),
], ids=["None", "array", "shape", "raises"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_wrong_unpack_result_is_refused_and_changes_nothing(unpack, error, create_graph):
    x = leaf(1.0)
    with hooks(lambda t: t, unpack):
        y = x.exp()
    with pytest.raises(error):
        y.backward(create_graph=create_graph)
    assert x.grad is None


def test_pack_hook_operations_are_not_recorded():
    x = leaf(3.0)
    kept = []

    def pack(t):
        kept.append((t * 2.0).requires_grad)
        return t

    with hooks(pack, lambda p: p):
        y = x * x
    y.backward()
    assert kept == [False, False]


def test_cycle_through_a_pack_hook_is_collected():
    x = leaf(1.0)
    holder = []
    died = weakref.ref(x)
    with hooks(lambda t: (holder, t), lambda p: p[1]):      # noqa: F821 - deleted only after the hook has run
        holder.append(x.exp())
    del holder, x
    gc.collect()
    assert died() is None
