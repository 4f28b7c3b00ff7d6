"""One test per bug; its docstring tells the story. What could kill the process runs in a child."""
import contextlib
import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest

import fastgrad as fg
from fastgrad import _node, _storage


def child(code):
    """Run code in a process of its own; its output, after asserting that it survived."""
    source = "import gc, sys, threading, weakref\nimport fastgrad as fg\nimport numpy as np\n" + textwrap.dedent(code)
    path = os.path.dirname(os.path.dirname(fg.__file__))
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", source], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_weak_reference_callback_reads_the_saved_tensor_of_the_dying_tensor():
    """A saved input is handed out as the very tensor while that is alive. It was still handed out while it was being
    deallocated: in a weak reference's callback, with a reference count of 0. It was then freed twice."""
    assert child("""
        x = fg.tensor([1.0, 2.0], requires_grad=True)
        y = x.exp()
        node = (y * y).grad_fn
        got = []
        watched = weakref.ref(y, lambda _: got.append(node._saved_self))
        del y
        others = [fg.zeros(2) for _ in range(100)]
        print(np.allclose(got[0].detach().numpy(), np.exp([1.0, 2.0])))
    """) == "True\n"


def test_weak_reference_callback_differentiates_through_the_dying_tensor():
    """As above, by a backward with create_graph in the callback."""
    assert child("""
        x = fg.tensor([1.0, 2.0], requires_grad=True)
        y = x * x
        z = (y * y).sum()
        got = []
        watched = weakref.ref(y, lambda _: got.extend(fg.autograd.grad(z, x, create_graph=True)))
        del y
        others = [fg.zeros(2) for _ in range(100)]
        print(got[0].tolist())
    """) == "[4.0, 32.0]\n"


def test_weak_reference_callback_collects():
    """A subclass's tensor is known to the collector, and was so still, with a reference count of 0, in the callbacks of
    its weak references."""
    child("""
        class Watched(fg.Tensor):
            pass

        for _ in range(20):
            t = Watched([1.0, 2.0])
            watched = weakref.ref(t, lambda _: gc.collect())
            del t
    """)


def test_finalizer_on_a_dying_node_uses_a_leaf_of_the_same_graph():
    """Dead nodes wait in a list for their destruction. A leaf's accumulator that waited there was taken for alive by an
    operation that a finalizer on another node of the list recorded."""
    assert child("""
        x = fg.ones(3, requires_grad=True)
        kept = []

        class Late:
            def __del__(self):
                kept.append((x * x).sum())

        for _ in range(50):
            late = Late()
            y = x * x
            y.register_hook(lambda g, late=late: None)
            del late, y
        for z in kept:
            z.backward()
        print(x.grad.tolist())
    """) == "[100.0, 100.0, 100.0]\n"


def test_garbage_chain_of_gradients_longer_than_the_stack_allows():
    """Destruction that is put off must not be seen by the collector that started it."""
    child("""
        from fastgrad import _storage
        before = _storage.live_buffers()
        for _ in range(10):
            first = last = fg.ones(1)
            for i in range(3000):
                following = fg.ones(1)
                following.grad = last
                if i % 3 == 0:
                    following.first = first
                last = following
            first.grad = last
            del first, last, following
            gc.collect()
        assert _storage.live_buffers() == before
    """)


def test_threads_build_differentiate_and_drop_shared_graphs_at_random():
    """No bug: a search for one, among hooks, retained and freed passes, collections and replaced graphs."""
    child("""
        import random
        from fastgrad import _node
        x = fg.ones(10, requires_grad=True)
        shared = [x * x for _ in range(20)]

        def work(seed):
            r = random.Random(seed)
            for i in range(1000):
                k = r.randrange(len(shared))
                y = shared[k]
                try:
                    choice = r.randrange(6)
                    if choice < 2:
                        shared[k] = y * x if r.random() < 0.8 else x * x
                    elif choice == 2:
                        y.sum().backward()
                    elif choice == 3:
                        y.register_hook(lambda g: None)
                        y.sum().backward(retain_graph=True)
                    elif choice == 4:
                        fg.autograd.grad(y.sum(), x, create_graph=True)
                    elif i % 20 == 0:
                        gc.collect(r.randrange(3))
                except RuntimeError as error:
                    assert "second time" in str(error), error
                    shared[k] = x * x

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        shared.clear()
        x.grad = None
        gc.collect()
        assert _node.node_count() == 0 and fg.memory.saved_bytes() == 0
    """)


def test_node_made_by_new():
    """`Node.__new__` gave a node without an operator, whose attributes were read through a null pointer, and whose
    memory was given to the slab that it did not come from."""
    child("""
        Node = fg.autograd.graph.Node
        x = fg.ones(1, requires_grad=True)
        for cls in (Node, type((x * x).grad_fn), type("Own", (Node,), {})):
            try:
                node = cls.__new__(cls)
            except TypeError:
                continue
            for name in ("_saved_self", "_saved_other", "_raw_saved_self", "next_functions"):
                try:
                    getattr(node, name)
                except Exception:
                    pass
            node.name(), repr(node), node._sequence_nr()
            del node
        from fastgrad import _node
        gc.collect()
        assert _node.node_count() == 0, _node.node_count()
    """)


def test_operator_made_by_new():
    """Odd ways to make the compiled types must raise, not crash."""
    child("""
        from fastgrad._operator import Operator
        op = Operator.__new__(Operator)
        x = fg.ones(1)
        for use in (lambda: op(x), lambda: op(x, x), lambda: op(), lambda: repr(op), lambda: op.saves(),
                    lambda: op.inplace(x), lambda: op.differentiable_arguments):
            try:
                use()
            except Exception:
                pass
    """)


def test_private_functions_refuse_none():
    """A typed argument of a compiled function accepts None unless told not to, and None has no fields."""
    child("""
        from fastgrad import _record, _engine
        for use in (lambda: _record.drop_history(None), lambda: _record.tensor_hooks(None),
                    lambda: _record.retain_grad(None), lambda: _engine.run_backward([None], [None], 0, 0, None, True)):
            try:
                use()
            except (TypeError, AttributeError):
                continue
            raise SystemExit("accepted None")
    """)


def test_long_chain_of_gradients_is_destroyed_by_a_loop():
    """Each tensor's destruction dropped its `.grad`, whose destruction dropped its own, on the C stack."""
    child("""
        first = fg.ones(1)
        for _ in range(500_000):
            second = fg.ones(1)
            second.grad = first
            first = second
        del first, second
    """)


def test_tensor_whose_init_runs_again_after_it_was_used():
    """`Tensor.__init__` on an empty tensor that is a leaf of a graph changed its shape behind the graph's back."""
    t = fg.Tensor().requires_grad_()
    y = t * t
    with contextlib.suppress(RuntimeError):
        fg.Tensor.__init__(t, [1.0, 2.0, 3.0])
    z = (t * t).sum()
    z.backward()
    assert t.grad is None or t.grad.shape == t.shape
    del y


def subclass_log():
    log = []

    class Watched(fg.Tensor):
        def __del__(self):
            log.append(self)

    return Watched, log


def test_subclass_that_resurrects_itself():
    """A finalizer of a subclass may keep the tensor alive; it must then be whole."""
    Watched, log = subclass_log()
    t = Watched([1.0, 2.0])
    t.requires_grad_()
    (t * t).sum().backward()
    del t
    gc.collect()
    t = log.pop()
    assert t.tolist() == [1.0, 2.0] and t.grad.tolist() == [2.0, 4.0]
    (t * 3.0).sum().backward()
    assert t.grad.tolist() == [5.0, 7.0]
    del t
    gc.collect()
    assert log == [], "a finalizer runs once"


def test_subclasses_of_every_kind():
    """Slots, no call of the base's `__init__`, `__new__` with other arguments, attributes that refer back."""

    class Slots(fg.Tensor):
        __slots__ = ("other",)

    class Silent(fg.Tensor):
        def __init__(self, *args):
            self.args = args

    class Made(fg.Tensor):
        def __new__(cls, n):
            return fg.Tensor.__new__(cls)

        def __init__(self, n):
            super().__init__([1.0] * n)

    a, b, c = Slots([1.0]), Silent(1, 2, 3), Made(3)
    a.other = a
    b.other = c
    assert (a + a).tolist() == [2.0] and (b + b).tolist() == [] and (c * 2.0).tolist() == [2.0] * 3
    died = [weakref.ref(t) for t in (a, b, c)]
    del a, b, c
    gc.collect()
    assert [r() for r in died] == [None] * 3


def test_class_of_a_tensor_cannot_be_assigned():
    """A slab's tensor with a subclass's deallocation would be freed by the wrong allocator."""

    class Other(fg.Tensor):
        pass

    with pytest.raises(TypeError):
        fg.ones(1).__class__ = Other


# --- Cycles ----------------------------------------------------------------------------------------------------------


def test_cycle_through_an_attribute_is_collected():
    """Tensors are unknown to the collector while nothing hangs on the graph; an attribute hangs, too."""
    before = _storage.live_buffers()
    t = fg.ones(3)
    t.me = t
    del t
    gc.collect()
    assert _storage.live_buffers() == before


def test_cycle_through_an_owner_is_collected():
    """As above, the way it happens: a module owns a weight that knows its module."""

    class Module:
        pass

    module = Module()
    module.weight = fg.ones(3, requires_grad=True)
    module.weight.owner = module
    before, died = _storage.live_buffers(), weakref.ref(module)
    del module
    gc.collect()
    assert died() is None and _storage.live_buffers() == before - 1


def test_cycle_of_gradients_is_collected():
    """`a.grad = b; b.grad = a` has no history and no Python object in it."""
    before = _storage.live_buffers()
    a, b = fg.ones(3), fg.ones(3)
    a.grad, b.grad = b, a
    del a, b
    gc.collect()
    assert _storage.live_buffers() == before


@pytest.mark.parametrize("assign", [True, False], ids=["assigned", "accumulated"])
def test_cycle_through_a_gradient_with_history_is_collected(assign):
    """PyTorch keeps `backward(create_graph=True)` with `.grad` left for ever; assigning `.grad` makes a cycle too."""
    before = _node.node_count()
    w = fg.ones(3, requires_grad=True)
    if assign:
        w.grad = fg.autograd.grad((w * w).sum(), w, create_graph=True)[0]
    else:
        (w * w).sum().backward(create_graph=True)
    del w
    gc.collect()
    assert _node.node_count() == before


def test_cycle_through_a_hook_is_collected():
    """PyTorch never frees a hook on an intermediate that refers to it."""
    before = _node.node_count()
    x = fg.ones(3, requires_grad=True)
    for _ in range(10):
        y = x * x
        y.register_hook(lambda g, y=y: None)
        z = y * y
        z.retain_grad()
        z.sum().backward()
    del y, z
    gc.collect()
    assert _node.node_count() == before


def test_collector_running_at_every_allocation_during_backward():
    """Collections in the middle of hooks, with objects whose finalizers collect again."""

    class Collects:
        def __del__(self):
            gc.collect()

    x = fg.ones(3, requires_grad=True)
    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(10):
            y = x * x
            cyclic = Collects()
            cyclic.me = (cyclic, y)
            y.register_hook(lambda g, c=cyclic: None if gc.collect() >= 0 else g)
            y.hooked = y
            (y * y).sum().backward()
        del y, cyclic
    finally:
        gc.set_threshold(*thresholds)
    assert x.grad.tolist() == [40.0] * 3


# --- Threads ---------------------------------------------------------------------------------------------------------


def test_threads_do_not_lose_gradients_of_a_large_shared_leaf():
    """Adding into `.grad` released the GIL for large tensors, and two threads read, added and wrote at once."""
    x = fg.ones(200_000, dtype=fg.float64, requires_grad=True)

    def work():
        for _ in range(100):
            (x + 1.0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.numpy().min() == x.grad.numpy().max() == 400.0


# --- Interpreter's end -----------------------------------------------------------------------------------------------


def test_tensors_that_outlive_the_module():
    """Objects that die while the interpreter shuts down may still differentiate, or find that they cannot."""
    child("""
        import builtins

        class Late:
            def __del__(self):
                try:
                    (self.x * self.x).sum().backward()
                except Exception:
                    pass

        late = Late()
        late.x = fg.ones(3, requires_grad=True)
        builtins.late = late
        sys.kept = late.x * late.x
        late.x.exp().register_hook(lambda g: sys.kept)
        fg.kept = sys.kept * 2.0
    """)


def test_leaf_frozen_after_the_forward_gets_no_gradient():
    """A leaf that no longer required grad still accumulated into .grad."""
    x = fg.ones(3, requires_grad=True)
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    assert x.grad is None


def test_view_of_a_leaf_that_is_a_view_is_not_written_to():
    """arange(4).reshape(2, 2).requires_grad_() is a leaf and a view of data. Only the root of a view was asked whether
    it is a leaf, so x[0].mul_(2) passed and made x an intermediate."""
    x = fg.arange(4.0).reshape(2, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].mul_(2)
    assert x.is_leaf and x.tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_view_made_under_no_grad_is_not_written_with_a_constant():
    """The base did not learn of the write, and its gradient was that of the old values (2 instead of 10)."""
    x = fg.ones(2, 3, requires_grad=True)
    y = x * 2
    with fg.no_grad():
        v = y[0]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        v.mul_(5)


def test_array_operand_may_change_after_the_forward():
    """An ndarray operand was borrowed, and a later write to it changed the gradient without a word."""
    a = fg.ones(2, dtype=fg.float64).numpy().copy()
    x = fg.ones(2, dtype=fg.float64, requires_grad=True)
    y = (x * a).sum()
    a[:] = 7.0
    y.backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shape", [(-2,), (-3, 2)])
def test_only_minus_one_is_inferred_in_a_shape(shape):
    """NumPy takes any negative size for -1, and so did reshape and view."""
    with pytest.raises(RuntimeError, match="invalid shape dimension"):
        fg.ones(4).reshape(shape)


def test_write_through_the_real_part_reaches_a_complex_base():
    """The strides of y.real count real numbers; they were replayed on complex cotangents, beyond their memory."""
    x = fg.tensor([1 + 2j, 3 + 4j], dtype=fg.complex128, requires_grad=True)
    y = x * 1
    y.real.mul_(3.0)
    (y.real.sum() + y.imag.sum()).backward()
    assert x.grad.tolist() == [3 + 1j, 3 + 1j]


def test_as_strided_does_not_reach_beyond_an_empty_tensor():
    """The memory of an empty base was taken for one element wide whatever its strides: writes went anywhere."""
    with pytest.raises(RuntimeError, match="out of bounds"):
        fg.zeros(0, 100000).as_strided((99000,), (1,))


@pytest.mark.parametrize("value", [300, float("nan")])
def test_number_that_does_not_fit_is_not_written(value):
    """300 written into int8 became 44."""
    x = fg.ones(3, dtype=fg.int8)
    with pytest.raises(RuntimeError, match="without overflow"):
        x[0] = value
    with pytest.raises(RuntimeError, match="without overflow"):
        x.fill_(value)
    assert x.tolist() == [1, 1, 1]


def test_data_is_assigned():
    """p.data = new is how old code writes parameters; it was refused."""
    p = fg.ones(2, requires_grad=True)
    p.data = fg.zeros(3)
    (p * 2).sum().backward()
    assert p.is_leaf and p.tolist() == [0.0, 0.0, 0.0] and p.grad.tolist() == [2.0, 2.0, 2.0]


def test_determinant_of_a_matrix_with_nan_has_nan_gradients():
    """The singular value decomposition behind the cofactors raised, also for the other matrices of a batch."""
    a = fg.tensor([[[float("nan"), 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]], dtype=fg.float64, requires_grad=True)
    fg.linalg.det(a).sum().backward()
    assert a.grad[0].isnan().all() and a.grad[1].tolist() == [[1.0, 0.0], [0.0, 2.0]]
