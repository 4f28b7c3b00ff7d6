"""Deep and wide graphs: nothing may recurse, neither building, nor backward, nor destruction, nor printing."""
import os
import threading

import numpy as np
import pytest

import fastgrad as fg
from fastgrad import _node, _storage

DEEP = 1_000_000
SMALL_STACK = 256 * 1024    # bytes; a recursion of one C frame per node would need hundreds of megabytes


def on_a_small_stack(function):
    """Run in a thread with a small stack; what it returns or raises is ours."""
    outcome = []

    def run():
        try:
            outcome.append((function(), None))
        except BaseException as error:
            outcome.append((None, error))

    previous = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(previous)
    thread.join()
    result, error = outcome.pop()
    if error is not None:
        raise error
    return result


def chain(x, depth, step):
    y = x
    for _ in range(depth):
        y = step(y)
    return y


def test_forward_backward_and_destruction_of_a_deep_chain():
    def run():
        x = fg.ones(1, dtype=fg.float64, requires_grad=True)
        y = chain(x, DEEP, lambda y: y * x)
        y.backward()
        return x.grad.item()

    assert on_a_small_stack(run) == DEEP + 1


def test_destruction_without_backward():
    def run():
        n = _node.node_count()
        x = fg.ones(1, requires_grad=True)
        y = chain(x, DEEP, lambda y: y * x)
        assert _node.node_count() - n == DEEP + 1
        del y
        return _node.node_count() - n

    assert on_a_small_stack(run) == 0


def test_destruction_of_a_chain_that_branches():
    def run():
        n = _node.node_count()
        x = fg.ones(1, requires_grad=True)
        y = chain(x, DEEP // 4, lambda y: y * y + y)
        del y
        return _node.node_count() - n

    assert on_a_small_stack(run) == 0


def test_retained_then_freed():
    def run():
        x = fg.ones(1, dtype=fg.float64, requires_grad=True)
        y = chain(x, DEEP // 4, lambda y: y * x)
        y.backward(retain_graph=True)
        y.backward()
        return x.grad.item()

    assert on_a_small_stack(run) == 2 * (DEEP // 4 + 1)


def test_second_order_through_a_deep_chain():
    depth = DEEP // 10

    def run():
        x = fg.ones(1, dtype=fg.float64, requires_grad=True)
        (g,) = fg.autograd.grad(chain(x, depth, lambda y: y * x), x, create_graph=True)
        g.backward()
        return x.grad.item()

    assert on_a_small_stack(run) == depth * (depth + 1)


def test_pruned_backward_through_a_deep_chain():
    def run():
        x = fg.ones(1, dtype=fg.float64, requires_grad=True)
        w = fg.ones(1, dtype=fg.float64, requires_grad=True)
        (g,) = fg.autograd.grad(chain(x * w, DEEP // 4, lambda y: y * x), w)
        return g.item()

    assert on_a_small_stack(run) == 1.0


def test_deep_chain_of_views():
    def run():
        x = fg.ones(2, dtype=fg.float64, requires_grad=True)
        y = chain(x * 1.0, DEEP // 40, lambda y: y.reshape(2))
        y.mul_(3.0)
        y.sum().backward()
        return x.grad.tolist()

    assert on_a_small_stack(run) == [3.0, 3.0]


def test_deep_chain_of_inplace_writes():
    def run():
        x = fg.ones(2, dtype=fg.float64, requires_grad=True)
        y = x * 1.0
        for _ in range(DEEP // 10):
            y.add_(x)
        y.sum().backward()
        return x.grad.tolist()

    assert on_a_small_stack(run) == [DEEP // 10 + 1.0] * 2


def test_deep_chain_of_gradients_of_gradients_is_destroyed_by_a_loop():
    def run():
        n = _storage.live_buffers()
        first = fg.ones(1)
        for _ in range(DEEP // 4):
            second = fg.ones(1)
            second.grad = first
            first = second
        del first, second
        return _storage.live_buffers() - n

    assert on_a_small_stack(run) == 0


def test_printing_a_deep_tensor_does_not_walk_the_graph():
    def run():
        x = fg.ones(1, requires_grad=True)
        y = chain(x, DEEP // 4, lambda y: y + 1.0)
        return repr(y), repr(y.grad_fn)

    text, node = on_a_small_stack(run)
    assert "grad_fn=<AddBackward0>" in text and "AddBackward0" in node


def test_wide_graph():
    x = fg.ones(1, dtype=fg.float64, requires_grad=True)
    products = [x * x for _ in range(100_000)]
    fg.autograd.backward(products)
    assert x.grad.item() == 200_000.0


def test_wide_graph_of_distinct_leaves():
    leaves = [fg.ones(1, requires_grad=True) for _ in range(20_000)]
    fg.autograd.backward([t * 2.0 for t in leaves])
    assert all(t.grad.item() == 2.0 for t in leaves)


@pytest.mark.parametrize("n", [300, 65_535, 65_536, 65_537, 70_000])
def test_node_with_many_inputs(n):
    leaves = [fg.ones((), requires_grad=True) for _ in range(n)]
    fg.stack(leaves).sum().backward()
    assert sum(t.grad is not None for t in leaves) == n


@pytest.mark.parametrize("n", [300, 65_535, 65_536, 65_537, 70_000])
def test_node_with_many_outputs(n):
    x = fg.zeros(n, dtype=fg.float64, requires_grad=True)
    parts = x.unbind(0)
    assert len(parts) == n and all(p.requires_grad for p in parts)
    (parts[0] * 2.0 + parts[-1] * 3.0).backward()
    expected = np.zeros(n)
    expected[[0, -1]] = 2.0, 3.0
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_lattice_visits_each_node_once():
    # Fibonacci: the number of paths doubles every other step, the number of nodes does not.
    x = fg.ones(1, dtype=fg.float64, requires_grad=True)
    a, b = x, x * 1.0
    expected = [1, 1]
    for _ in range(60):
        a, b = b, a + b
        expected.append(expected[-1] + expected[-2])
    b.backward()
    assert x.grad.item() == expected[-1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_continues_the_graph():
    x = fg.ones(1, dtype=fg.float64, requires_grad=True)
    y = chain(x, 1000, lambda y: y * x)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            y.backward()
            status = 0 if x.grad.item() == 1001.0 else 2
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    y.backward()
    assert x.grad.item() == 1001.0
