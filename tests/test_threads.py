"""Threads: grad modes are per thread; backward passes may share leaves and parts of graphs."""
import threading

import numpy as np
import pytest

import fastgrad as fg
from fastgrad import _storage

LARGE = 100_000     # elements: above the size from which loops release the GIL


def together(*functions):
    """Run the functions in threads that start at the same moment; the first exception is ours."""
    barrier = threading.Barrier(len(functions))
    errors = []

    def run(function):
        try:
            barrier.wait()
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_grad_mode_is_per_thread():
    inside, may_end = threading.Event(), threading.Event()
    seen = {}

    def without():
        with fg.no_grad():
            inside.set()
            may_end.wait()
            seen["without"] = fg.is_grad_enabled()

    def within():
        inside.wait()
        seen["within"] = fg.is_grad_enabled()
        may_end.set()

    with fg.no_grad():
        together(without, within)
    assert seen == {"without": False, "within": True}, "a new thread records, whatever its maker does"


def test_inference_mode_is_per_thread():
    seen = []
    with fg.inference_mode():
        together(lambda: seen.append(fg.autograd.is_inference_mode_enabled()))
    assert seen == [False]


def test_pack_hooks_are_per_thread():
    x = fg.ones(1, requires_grad=True)
    packed = []
    with fg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda p: p):
        together(lambda: x * x)
    assert packed == []


@pytest.mark.parametrize("n", [1, 100, LARGE])
def test_backward_passes_over_own_graphs_share_a_leaf(n):
    x = fg.ones(n, dtype=fg.float64, requires_grad=True)
    steps, threads = 60, 4

    def work():
        for _ in range(steps):
            (x * 2.0).sum().backward()

    together(*[work] * threads)
    np.testing.assert_array_equal(x.grad.numpy(), np.full(n, 2.0 * steps * threads))


@pytest.mark.parametrize("n", [1, LARGE])
def test_backward_passes_share_a_retained_subgraph(n):
    x = fg.full((n,), 1.5, dtype=fg.float64, requires_grad=True)
    shared = x * x
    for _ in range(5):
        shared = shared * x
    results = []

    def work():
        for k in range(10):
            (g,) = fg.autograd.grad((shared * float(k)).sum(), x, retain_graph=True)
            results.append((k, g.numpy().copy()))

    together(*[work] * 3)
    for k, g in results:
        np.testing.assert_allclose(g, np.full(n, k * 7 * 1.5**6))


def test_backward_passes_interleave_at_python_hooks():
    x = fg.full((3,), 2.0, dtype=fg.float64, requires_grad=True)
    y = x * x
    meeting = threading.Barrier(2, timeout=20)
    y.register_hook(lambda g: None if meeting.wait() >= 0 else g)
    z = y * x
    results = []

    def work(k):
        (g,) = fg.autograd.grad((z * float(k)).sum(), x, retain_graph=True)
        results.append((k, g.tolist()))

    together(lambda: work(1), lambda: work(10))
    assert dict(results) == {1: [12.0] * 3, 10: [120.0] * 3}


def test_freeing_a_graph_that_another_thread_is_using_is_an_error_and_no_crash():
    limit = _storage.set_pool_limit(0)      # freed large blocks are unmapped at once
    x = fg.ones(LARGE * 3, dtype=fg.float64, requires_grad=True)
    messages = []
    try:
        for _ in range(10):
            y = x
            for _ in range(10):
                y = y * x
            y = y.sum()

            def work(y=y):
                try:
                    (g,) = fg.autograd.grad(y, x)
                except RuntimeError as error:
                    messages.append(str(error))
                else:
                    assert (g.numpy() == 11.0).all()

            together(work, work)
            del y
    finally:
        _storage.set_pool_limit(limit)
    assert len(messages) == 10, "one of the two comes second"
    assert all("Trying to backward through the graph a second time" in m for m in messages)


def test_tensor_made_in_one_thread_is_differentiated_in_another():
    x = fg.ones(3, requires_grad=True)
    made = []
    together(lambda: made.append((x * x).sum()))
    together(lambda: made.pop().backward())
    assert x.grad.tolist() == [2.0] * 3


def test_making_and_dropping_graphs_in_threads():
    x = fg.ones(1, requires_grad=True)

    def work():
        for _ in range(200):
            y = x
            for _ in range(100):
                y = y * x
            y.backward()

    together(*[work] * 4)
    assert x.grad.item() == 4 * 200 * 101


def test_writes_during_a_pass_are_noticed_or_come_too_late():
    x = fg.full((LARGE,), 2.0, dtype=fg.float64, requires_grad=True)
    y = x * 1.0
    z = y
    for _ in range(20):
        z = z * y
    outcome = []

    def differentiate():
        try:
            z.sum().backward()
            outcome.append("done")
        except RuntimeError as error:
            assert "modified by an inplace operation" in str(error)
            outcome.append("noticed")

    def write():
        with fg.no_grad():
            y.add_(0.0)

    together(differentiate, write)
    assert outcome in (["done"], ["noticed"])
    if outcome == ["noticed"]:
        assert x.grad is None


def test_threads_end_without_leaving_anything():
    counts = []

    def work():
        with fg.no_grad():
            fg.ones(10) * 2.0
        x = fg.ones(10, requires_grad=True)
        (x * x).sum().backward()

    for _ in range(5):
        together(work, work)
        counts.append(_storage.live_buffers())
    assert len(set(counts)) == 1
