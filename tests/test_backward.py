"""The backward pass, read from top to bottom: what it does, what it frees, and what it leaves alone when it fails."""
import numpy as np
import pytest

import fastgrad as fg
from fastgrad import _node


def leaf(*values, dtype=fg.float64):
    return fg.tensor(list(values), dtype=dtype, requires_grad=True)


def scalar(value, dtype=fg.float64):
    return fg.tensor(value, dtype=dtype, requires_grad=True)


# --- Why does a second backward() without retain_graph sometimes work? -----------------------------------------------


def test_second_backward_works_where_nothing_was_saved():
    x = leaf(1.0, 2.0)
    y = x + 2
    y.backward(fg.ones_like(y))
    y.backward(fg.ones_like(y))
    assert x.grad.tolist() == [2.0, 2.0]


def test_second_backward_fails_where_the_first_freed_something():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time") as error:
        y.backward()
    text = str(error.value)
    assert "MulBackward0" in text
    assert "retain_graph=True" in text
    assert "float64" in text and "(2,)" in text
    assert x.grad.tolist() == [2.0, 4.0], "the failed pass changed nothing"


def test_number_operand_is_not_a_saved_tensor():
    x = leaf(1.0)
    y = x * 3.0
    y.backward()
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_retain_graph_keeps_what_was_saved():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_saved_bytes_fall_to_zero_during_backward():
    x = leaf(*range(100))
    before = fg.memory.saved_bytes()
    y = x
    for _ in range(10):
        y = y * x
    assert fg.memory.saved_bytes() - before == 10 * 800, "x and nine products"
    seen = []
    y.register_hook(lambda g: seen.append(fg.memory.saved_bytes() - before))
    y.sum().backward()
    assert seen == [10 * 800]
    assert fg.memory.saved_bytes() == before


def test_nodes_die_with_the_last_tensor_that_reaches_them():
    n = _node.node_count()
    x = leaf(1.0)
    y = (x * x) * x
    assert _node.node_count() - n == 3, "two products and x's accumulator"
    z = y * 2.0
    del y
    assert _node.node_count() - n == 4
    del z
    assert _node.node_count() == n


# --- Values ----------------------------------------------------------------------------------------------------------


def test_gradient_of_a_polynomial():
    x = leaf(-1.0, 0.5, 2.0)
    (x * x * x - 2.0 * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.array([-1.0, 0.5, 2.0]) ** 2 - 2)


def test_a_tensor_used_several_times_gets_the_sum():
    x = leaf(2.0)
    (x + x * x + x).backward()
    assert x.grad.tolist() == [6.0]


def test_same_tensor_on_both_sides():
    x = leaf(3.0)
    (x + x).backward()
    assert x.grad.tolist() == [2.0]


def test_diamond_visits_each_node_once():
    x = scalar(2.0)
    y = x * x
    a, b = y * 3.0, y.exp()
    calls = []
    y.register_hook(lambda g: calls.append(g.item()))
    (a + b).backward()
    assert len(calls) == 1
    np.testing.assert_allclose(calls[0], 3 + np.exp(4))
    np.testing.assert_allclose(x.grad.item(), (3 + np.exp(4)) * 4)


def test_wide_fan_out_and_in():
    x = scalar(1.5)
    parts = [x * float(k) for k in range(500)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total.backward()
    assert x.grad.item() == sum(range(500))


def test_gradient_keeps_shape_and_dtype_of_its_leaf():
    x = fg.ones(3, dtype=fg.float32, requires_grad=True)
    y = fg.ones(2, 3, dtype=fg.float64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.dtype == fg.float32 and tuple(x.grad.shape) == (3,)
    assert y.grad.dtype == fg.float64 and tuple(y.grad.shape) == (2, 3)
    assert x.grad.tolist() == [2.0] * 3


def test_gradient_through_a_cast_comes_back_in_the_input_dtype():
    x = fg.ones(2, dtype=fg.float32, requires_grad=True)
    x.double().exp().sum().backward()
    assert x.grad.dtype == fg.float32


def test_complex_gradient_follows_the_conjugate_convention():
    z = fg.tensor([1 + 2j], dtype=fg.complex128, requires_grad=True)
    (z * z).backward(fg.ones(1, dtype=fg.complex128))
    assert z.grad.tolist() == [2 - 4j], "conj(2 z)"


def test_real_leaf_of_a_complex_graph_gets_a_real_gradient():
    x = leaf(2.0)
    z = fg.tensor([1 + 3j], dtype=fg.complex128)
    (x * z).backward(fg.ones(1, dtype=fg.complex128))
    assert x.grad.dtype == fg.float64
    assert x.grad.tolist() == [1.0]


def test_nan_and_inf_pass_through():
    x = leaf(float("nan"), float("inf"), -float("inf"))
    (x * x).backward(fg.ones(3, dtype=fg.float64))
    np.testing.assert_array_equal(x.grad.numpy(), [np.nan, np.inf, -np.inf])


def test_empty_tensors_have_empty_gradients():
    x = fg.zeros(0, 3, requires_grad=True)
    (x * x).sum().backward()
    assert tuple(x.grad.shape) == (0, 3)


# --- Accumulation ----------------------------------------------------------------------------------------------------


def test_gradients_accumulate_in_grad():
    x = leaf(1.0, 2.0)
    for k in range(1, 4):
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0 * k, 4.0 * k]


def test_accumulation_writes_into_the_same_tensor():
    x = leaf(1.0)
    (x * x).backward()
    first = x.grad
    (x * x).backward()
    assert x.grad is first
    assert first.tolist() == [4.0]


def test_accumulation_does_not_write_into_the_users_cotangent():
    x = leaf(1.0, 1.0)
    g = fg.ones(2, dtype=fg.float64)
    for _ in range(3):
        (x + 1).backward(g)
    assert g.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [3.0, 3.0]


def test_two_leaves_do_not_share_their_gradients_memory():
    x, y = leaf(1.0), leaf(2.0)
    (x + y).backward()
    with fg.no_grad():
        x.grad.mul_(10.0)
    assert y.grad.tolist() == [1.0]


def test_grad_can_be_reset_and_deleted():
    x = leaf(1.0)
    (x * x).backward()
    x.grad = None
    assert x.grad is None
    (x * x).backward()
    assert x.grad.tolist() == [2.0]
    del x.grad
    assert x.grad is None


def test_accumulating_onto_an_array_sees_the_users_buffer():
    x = leaf(1.0)
    buffer = np.zeros(1)
    x.grad = fg.from_numpy(buffer)
    (x * x).backward()
    assert buffer.tolist() == [2.0]


# --- Roots and cotangents --------------------------------------------------------------------------------------------


def test_several_roots_share_one_pass():
    x = leaf(2.0)
    y = x * x
    calls = []
    y.register_hook(lambda g: calls.append(g.item()))
    fg.autograd.backward([y * 3.0, y.exp()])
    assert len(calls) == 1
    np.testing.assert_allclose(x.grad.item(), (3 + np.exp(4)) * 4)


def test_same_root_twice_counts_twice():
    x = leaf(2.0)
    y = x * 3.0
    fg.autograd.backward([y, y])
    assert x.grad.tolist() == [6.0]


def test_root_that_leads_to_another_root():
    x = leaf(2.0)
    y = x * x
    z = y * 5.0
    fg.autograd.backward([z, y])
    assert x.grad.tolist() == [4.0 * 5 + 4.0]


def test_leaf_as_root():
    x = scalar(2.0)
    x.backward()
    assert x.grad.item() == 1.0


def test_cotangent_weighs_the_outputs():
    x = leaf(1.0, 2.0)
    (x * x).backward(fg.tensor([1.0, 10.0], dtype=fg.float64))
    assert x.grad.tolist() == [2.0, 40.0]


def test_cotangent_is_cast_to_the_roots_dtype():
    x = leaf(1.0, 2.0)
    (x * x).backward(fg.ones(2, dtype=fg.float32))
    assert x.grad.dtype == fg.float64


def test_root_of_one_element_needs_no_cotangent_whatever_its_shape():
    x = fg.ones(1, 1, requires_grad=True)
    (x * 2.0).backward()
    assert x.grad.tolist() == [[2.0]]


@pytest.mark.parametrize(("gradient", "error", "phrase"), [
    (lambda: None, RuntimeError, "grad can be implicitly created only for scalar outputs"),
    (lambda: fg.ones(3, dtype=fg.float64), RuntimeError, "Mismatch in shape: grad_output"),
    (lambda: fg.ones(2, 1, dtype=fg.float64), RuntimeError, "Mismatch in shape: grad_output"),
    (lambda: fg.ones(2, dtype=fg.complex128), RuntimeError, "For complex Tensors, both grad_output and output"),
    (lambda: 1.0, TypeError, None),
    (lambda: "ones", TypeError, None),
], ids=["None", "size", "rank", "complex", "number", "text"])
def test_wrong_cotangent_is_refused_and_changes_nothing(gradient, error, phrase):
    x = leaf(1.0, 2.0)
    y = x * x
    with pytest.raises(error, match=phrase):
        y.backward(gradient())
    assert x.grad is None
    y.backward(fg.ones(2, dtype=fg.float64))
    assert x.grad.tolist() == [2.0, 4.0]


def test_complex_root_needs_a_cotangent():
    z = fg.tensor(1j, dtype=fg.complex128, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar outputs"):
        (z * z).backward()


def test_number_of_cotangents_must_match():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        fg.autograd.backward([x * 1.0, x * 2.0], [fg.ones(1, dtype=fg.float64)])


def test_root_without_history_says_why():
    x = leaf(1.0)
    with fg.no_grad():
        y = x * x
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn.*under no_grad"):
        y.backward()


# --- inputs= ---------------------------------------------------------------------------------------------------------


def test_inputs_limits_what_accumulates():
    x, w = leaf(2.0), leaf(3.0)
    (x * w).backward(inputs=[x])
    assert x.grad.tolist() == [3.0]
    assert w.grad is None


def test_inputs_may_be_an_intermediate():
    x = leaf(2.0)
    y = x * x
    (y * 5.0).backward(inputs=[y])
    assert x.grad is None
    y.retain_grad()
    assert y.grad.tolist() == [5.0]


def test_inputs_frees_only_what_was_walked():
    x = leaf(2.0)
    y = x * x
    z = (y * y).sum()
    z.backward(inputs=[y])
    (y * 1.0).backward()
    assert x.grad.tolist() == [4.0]


def test_empty_inputs_are_refused():
    x = leaf(2.0)
    with pytest.raises(RuntimeError, match="`inputs` argument to `backward\\(\\)` cannot be empty"):
        (x * x).backward(inputs=[])


# --- autograd.grad ---------------------------------------------------------------------------------------------------


def test_grad_returns_and_leaves_grad_alone():
    x, w = leaf(2.0), leaf(3.0)
    gx, gw = fg.autograd.grad(x * x * w, [x, w])
    assert gx.tolist() == [12.0] and gw.tolist() == [4.0]
    assert x.grad is None and w.grad is None


def test_grad_by_an_intermediate():
    x = leaf(2.0)
    y = x * x
    (g,) = fg.autograd.grad(y * y, y)
    assert g.tolist() == [8.0]


def test_grad_frees_only_what_it_walked():
    x = leaf(2.0)
    y = x * x
    fg.autograd.grad(y * y, y)
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_grad_of_the_root_by_itself_is_the_cotangent():
    x = leaf(2.0)
    y = x * x
    (g,) = fg.autograd.grad(y, y, fg.tensor([7.0], dtype=fg.float64))
    assert g.tolist() == [7.0]
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_grad_with_the_same_input_twice():
    x = leaf(2.0)
    a, b = fg.autograd.grad(x * x, [x, x])
    assert a.tolist() == b.tolist() == [4.0]


def test_unused_input_raises_and_names_its_position():
    x, unused = leaf(2.0), leaf(1.0, 1.0)
    y = x * x
    with pytest.raises(RuntimeError,
                       match=r"appears to not have been used in the graph: inputs\[1\].*allow_unused=True"):
        fg.autograd.grad(y, [x, unused])


def test_unused_input_gives_none_or_zeros():
    x, unused = leaf(2.0), leaf(1.0, 1.0)
    y = x * x
    g, none = fg.autograd.grad(y, [x, unused], allow_unused=True, retain_graph=True)
    assert g.tolist() == [4.0] and none is None
    g, zeros = fg.autograd.grad(y, [x, unused], materialize_grads=True)
    assert g.tolist() == [4.0] and zeros.tolist() == [0.0, 0.0]


def test_materialize_and_refusing_unused_contradict():
    x = leaf(2.0)
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        fg.autograd.grad(x * x, x, allow_unused=False, materialize_grads=True)


def test_input_that_does_not_require_grad_is_refused():
    x, c = leaf(2.0), fg.ones(1, dtype=fg.float64)
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        fg.autograd.grad(x * c, c)


# --- create_graph ----------------------------------------------------------------------------------------------------


def test_derivatives_of_every_order():
    x = scalar(2.0)
    y = x * x * x * x
    for expected in (32.0, 48.0, 48.0, 24.0):
        (y,) = fg.autograd.grad(y, x, create_graph=True)
        assert y.item() == expected


def test_hessian_vector_product():
    x = leaf(1.0, 2.0, 3.0)
    v = fg.tensor([1.0, -1.0, 2.0], dtype=fg.float64)
    (g,) = fg.autograd.grad((x * x * x).sum() + x[0] * x[1] * x[2], x, create_graph=True)
    (hv,) = fg.autograd.grad((g * v).sum(), x)
    a = x.detach().numpy()
    hessian = np.diag(6 * a) + np.array([[0, a[2], a[1]], [a[2], 0, a[0]], [a[1], a[0], 0]])
    np.testing.assert_allclose(hv.numpy(), hessian @ v.numpy())


def test_create_graph_retains_the_graph():
    x = scalar(2.0)
    y = x * x
    fg.autograd.grad(y, x, create_graph=True)
    (g,) = fg.autograd.grad(y, x)
    assert g.item() == 4.0


def test_gradient_without_create_graph_has_no_history():
    x = scalar(2.0)
    (g,) = fg.autograd.grad(x * x, x)
    assert not g.requires_grad and g.grad_fn is None


def test_backward_with_create_graph_leaves_a_differentiable_grad():
    x = scalar(2.0)
    (x * x * x).backward(create_graph=True)
    g = x.grad
    assert g.requires_grad and g.item() == 12.0
    x.grad = None
    g.backward()
    assert x.grad.item() == 12.0
    x.grad = None


def test_double_backward_reaches_the_cotangent():
    x, v = leaf(3.0), leaf(2.0)
    (g,) = fg.autograd.grad(x * x, x, v, create_graph=True)
    (gv,) = fg.autograd.grad(g, v)
    assert gv.tolist() == [6.0]


def test_gradient_penalty_mixes_first_and_second_derivatives():
    x, w = leaf(1.0, 2.0), leaf(0.5, -1.0)
    loss = (x * w).exp().sum()
    (g,) = fg.autograd.grad(loss, x, create_graph=True)
    (loss + (g * g).sum()).backward()
    a, b = x.detach().numpy(), w.detach().numpy()
    e = np.exp(a * b)
    np.testing.assert_allclose(w.grad.numpy(), a * e + 2 * b * e * e * (1 + a * b))
    np.testing.assert_allclose(x.grad.numpy(), b * e + 2 * b ** 3 * e * e)


# --- retain_grad and hooks -------------------------------------------------------------------------------------------


def test_grad_of_an_intermediate_is_kept_on_request_only():
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    assert y.retains_grad
    (y * 3.0).backward()
    assert y.grad.tolist() == [3.0]
    z = x * x
    (z * 3.0).backward()
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert z.grad is None


def test_retained_grad_accumulates():
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    (y * 3.0).backward(retain_graph=True)
    (y * 4.0).backward()
    assert y.grad.tolist() == [7.0]


def test_retain_grad_on_a_leaf_does_nothing():
    x = leaf(2.0)
    x.retain_grad()
    (x * x).backward()
    assert x.grad.tolist() == [4.0]


def test_retained_grad_is_what_the_hooks_returned():
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    y.register_hook(lambda g: g * 10.0)
    (y * 1.0).backward()
    assert y.grad.tolist() == [10.0], "retain_grad comes after all tensor hooks, whatever the order of registration"
    assert x.grad.tolist() == [40.0]


def test_hooks_run_in_order_of_registration_and_see_each_others_results():
    x = leaf(2.0)
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(("first", g.item())))
    y.register_hook(lambda g: g * 10.0)
    y.register_hook(lambda g: seen.append(("third", g.item())))
    y.backward()
    assert seen == [("first", 1.0), ("third", 10.0)]
    assert x.grad.tolist() == [40.0]


def test_hook_on_a_leaf_sees_the_sum_before_it_accumulates():
    x = leaf(2.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * x + x).backward()
    (x * 1.0).backward()
    assert seen == [5.0, 1.0]


def test_removed_hook_does_not_run():
    x = leaf(2.0)
    calls = []
    handle = x.register_hook(lambda g: calls.append(1))
    with x.register_hook(lambda g: calls.append(2)):
        pass
    handle.remove()
    handle.remove()
    (x * x).backward()
    assert calls == []


def test_hook_may_remove_itself_and_add_others_while_it_runs():
    x = leaf(2.0)
    y = x * x
    calls = []

    def once(g):
        calls.append("once")
        handle.remove()
        y.register_hook(lambda g: calls.append("later"))

    handle = y.register_hook(once)
    y.backward(retain_graph=True)
    assert calls == ["once"], "hooks of a run are those at its start"
    y.backward()
    assert calls == ["once", "later"]


@pytest.mark.parametrize("wrong", [lambda g: 1.0, lambda g: g.numpy(), lambda g: fg.ones(3)],
                         ids=["number", "array", "shape"])
def test_wrong_hook_result_is_refused(wrong):
    x = leaf(2.0)
    y = x * x
    handle = y.register_hook(wrong)
    with pytest.raises((TypeError, RuntimeError), match="hook"):
        y.backward(retain_graph=True)
    assert x.grad is None
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_grad_runs_hooks_of_what_it_walks_only():
    x, w = leaf(2.0), leaf(3.0)
    calls = []
    x.register_hook(lambda g: calls.append("x"))
    w.register_hook(lambda g: calls.append("w"))
    fg.autograd.grad(x * w, x)
    assert calls == ["x"]


def test_hook_on_a_tensor_without_grad_is_refused():
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        fg.ones(1).register_hook(print)


# --- When something fails --------------------------------------------------------------------------------------------


class Failure(Exception):
    pass


def failing(g):
    raise Failure


def test_exception_in_a_hook_leaves_every_grad_alone_and_the_graph_usable():
    x, w = leaf(2.0), leaf(3.0)
    y = x * x
    handle = y.register_hook(failing)
    loss = y * w + w
    with pytest.raises(Failure):
        loss.backward(retain_graph=True)
    assert x.grad is None and w.grad is None
    handle.remove()
    loss.backward()
    assert x.grad.tolist() == [12.0] and w.grad.tolist() == [5.0]


def test_exception_leaves_what_was_not_reached_unfreed():
    x = leaf(2.0)
    early = x * x
    late = (early * 1.0).exp()
    handle = early.register_hook(failing)
    with pytest.raises(Failure):
        late.backward()
    handle.remove()
    with pytest.raises(RuntimeError, match="ExpBackward0"):
        late.backward()
    early.backward()
    assert x.grad.tolist() == [4.0]


def test_exception_in_a_formula_leaves_every_grad_alone_and_the_graph_usable():
    x, w = leaf(2.0), leaf(3.0)
    y = x * x
    changed = y * y
    loss = changed + w * w
    with fg.no_grad():
        y.add_(0.0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward(retain_graph=True)
        assert x.grad is None and w.grad is None
    (w * w).backward()
    assert w.grad.tolist() == [6.0]


def test_exception_leaves_the_modes_alone():
    x = leaf(2.0)
    y = x * x
    y.register_hook(failing)
    with pytest.raises(Failure):
        y.backward()
    assert fg.is_grad_enabled()
    with fg.no_grad():
        with pytest.raises(Failure):
            y.backward()
        assert not fg.is_grad_enabled()


def test_backward_works_under_no_grad():
    x = leaf(2.0)
    y = x * x
    with fg.no_grad():
        y.backward()
    assert x.grad.tolist() == [4.0]


# --- A backward within a backward ------------------------------------------------------------------------------------


def test_hook_may_run_a_backward_over_another_graph():
    x, w = leaf(2.0), leaf(5.0)
    inner = w * w
    y = x * x
    y.register_hook(lambda g: inner.backward())
    y.backward()
    assert x.grad.tolist() == [4.0] and w.grad.tolist() == [10.0]


def test_hook_may_run_a_backward_over_the_same_graph():
    x = leaf(2.0)
    y = x * x
    z = y * x
    depth = [0]

    def again(g):
        if depth[0] < 3:
            depth[0] += 1
            z.backward(retain_graph=True)

    y.register_hook(again)
    z.backward(retain_graph=True)
    assert x.grad.tolist() == [4 * 12.0], "the outer pass and three inner ones"


def test_inner_backward_that_frees_the_outer_graph_is_a_precise_error():
    x = leaf(2.0)
    y = x * x
    z = y * x
    calls = []

    def free(g):
        if not calls:
            calls.append(1)
            z.backward()

    z.register_hook(free)
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()
    assert x.grad.tolist() == [12.0], "what the inner pass gave"


def test_endless_recursion_of_hooks_is_a_recursion_error():
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda g: y.backward(retain_graph=True))
    with pytest.raises(RecursionError):
        y.backward(retain_graph=True)
    z = x * x
    z.backward()
    assert x.grad.tolist() == [4.0]


def test_graph_may_lose_its_last_tensor_during_its_backward():
    x = leaf(2.0)
    graph = {"y": x * x}
    graph["z"] = graph["y"] * graph["y"]
    graph["y"].register_hook(lambda g: graph.clear())
    graph["z"].backward()
    assert x.grad.tolist() == [32.0]


# --- Strict mode -----------------------------------------------------------------------------------------------------


def test_strict_mode_refuses_what_would_happen_to_work():
    x = leaf(1.0)
    y = x + 2
    fg.autograd.set_strict(True)
    try:
        y.backward()
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time.*AddBackward0"):
            y.backward()
    finally:
        fg.autograd.set_strict(False)
    y.backward()
    assert x.grad.tolist() == [2.0]


# --- The founding example, as it was asked ---------------------------------------------------------------------------


def test_the_founding_example_runs_with_another_import():
    torch = fg
    Variable = fg.autograd.Variable
    x = Variable(torch.ones(2, 2), requires_grad=True)
    y = x + 2
    y.backward(torch.ones(2, 2))
    y.backward(torch.ones(2, 2))
    assert x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    z = y * y
    z.backward(torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.backward(torch.ones(2, 2))
    assert str(y) == "tensor([[3., 3.],\n        [3., 3.]], grad_fn=<AddBackward0>)"
