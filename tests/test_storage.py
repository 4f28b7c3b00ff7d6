"""Buffers: alignment, reuse, counters and peaks, borrowed memory, and what is read-only."""
import gc
import weakref

import numpy as np
import pytest

import fastgrad as fg
from fastgrad import _storage

SIZES = [1, 2, 3, 6, 7, 8, 9, 100, 1000, 4096, 4097, 5000, 100_000, 300_000]


class Growth:
    def __init__(self, counter):
        self.counter = counter
        self.before = counter()

    def __call__(self):
        return self.counter() - self.before


# --- The pool --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_alignment_is_64_bytes_from_64_on_and_16_below(n):
    tensors = [fg.empty(n, dtype=fg.float64) for _ in range(5)]
    for t in tensors:
        assert t.data_ptr() % (64 if 8 * n >= 64 else 16) == 0


@pytest.mark.parametrize("n", SIZES)
def test_freed_block_is_reused_by_the_next_tensor_of_its_size(n):
    t = fg.ones(n, dtype=fg.float64)
    address = t.data_ptr()
    del t
    assert fg.ones(n, dtype=fg.float64).data_ptr() == address


def test_live_blocks_never_overlap(rng):
    tensors, spans = [], []
    for n in rng.integers(1, 6000, 300):
        t = fg.full((int(n),), float(n), dtype=fg.float64)
        tensors.append(t)
        spans.append((t.data_ptr(), t.data_ptr() + 8 * int(n)))
        if len(tensors) % 3 == 0:
            del tensors[0], spans[0]
    spans.sort()
    for (_, end), (start, _) in zip(spans, spans[1:]):
        assert end <= start
    for t in tensors:
        assert (t.numpy() == t.numel()).all(), "nobody wrote into it"


def test_freed_small_blocks_are_pooled_and_live_bytes_fall():
    live, pooled = Growth(fg.memory.live_bytes), Growth(fg.memory.pooled_bytes)
    tensors = [fg.ones(100) for _ in range(50)]
    assert live() == 50 * 400
    del tensors
    assert live() == 0
    assert pooled() >= 0


def test_large_blocks_are_given_back_by_empty_pool():
    fg.memory.empty_pool()
    before = fg.memory.pooled_bytes()
    t = fg.empty(1_000_000, dtype=fg.float64)
    del t
    assert fg.memory.pooled_bytes() - before >= 8_000_000
    assert fg.memory.empty_pool() >= 8_000_000
    assert fg.memory.pooled_bytes() <= before


def test_blocks_beyond_the_pools_limit_go_back_to_the_system():
    fg.memory.empty_pool()
    limit = _storage.set_pool_limit(0)
    try:
        before = fg.memory.pooled_bytes()
        t = fg.empty(1_000_000, dtype=fg.float64)
        del t
        assert fg.memory.pooled_bytes() == before
    finally:
        _storage.set_pool_limit(limit)


def test_impossible_size_is_a_memory_error_or_runtime_error():
    live = Growth(fg.memory.live_bytes)
    with pytest.raises((MemoryError, RuntimeError)):
        fg.empty(2**45, dtype=fg.float64)
    assert live() == 0


# --- Counters --------------------------------------------------------------------------------------------------------


def test_live_bytes_count_what_was_asked_for():
    live, buffers = Growth(fg.memory.live_bytes), Growth(_storage.live_buffers)
    a = fg.ones(3, dtype=fg.float32)
    b = fg.ones(1000, dtype=fg.complex128)
    assert live() == 12 + 16_000
    assert buffers() == 2
    del a, b
    assert live() == 0


def test_views_share_one_buffer():
    buffers = Growth(_storage.live_buffers)
    x = fg.ones(4, 5)
    views = [x.reshape(20), x.T, x.expand(2, 4, 5), x.detach()]
    assert buffers() == 1
    del x
    assert buffers() == 1
    del views
    assert buffers() == 0


def test_peak_is_the_highest_since_the_reset():
    x = fg.ones(1000, dtype=fg.float64)
    fg.memory.reset_peak()
    base = fg.memory.live_bytes()
    assert fg.memory.peak_bytes() == base
    y = fg.ones(2000, dtype=fg.float64)
    del y
    assert fg.memory.peak_bytes() - base == 16_000
    fg.memory.reset_peak()
    assert fg.memory.peak_bytes() == base
    del x


def test_borrowed_memory_is_not_counted():
    array = np.ones(1000)
    live = Growth(fg.memory.live_bytes)
    t = fg.from_numpy(array)
    assert live() == 0
    u = t + 1.0
    assert live() == 8000
    del u


def test_training_steps_leave_nothing():
    w = fg.ones(10, dtype=fg.float64, requires_grad=True)
    x = fg.ones(10, dtype=fg.float64)

    def step():
        loss = ((w * x).exp() * x).sum()
        loss.backward()
        with fg.no_grad():
            w.sub_(w.grad * 1e-6)
        w.grad = None

    step()
    live, buffers, objects = Growth(fg.memory.live_bytes), Growth(_storage.live_buffers), len(gc.get_objects())
    for _ in range(2000):
        step()
    assert live() == 0 and buffers() == 0
    assert len(gc.get_objects()) - objects < 50


# --- Sharing memory --------------------------------------------------------------------------------------------------


def test_numpy_shares_memory_both_ways():
    t = fg.zeros(3)
    array = t.numpy()
    array[0] = 5.0
    t.add_(1.0)
    assert t.tolist() == array.tolist() == [6.0, 1.0, 1.0]


def test_exported_array_keeps_the_memory_alive():
    buffers = Growth(_storage.live_buffers)
    t = fg.full((4,), 7.0)
    array = t.numpy()
    del t
    others = [fg.zeros(4) for _ in range(20)]
    assert array.tolist() == [7.0] * 4
    del others
    assert buffers() == 1
    del array
    assert buffers() == 0


class Owner:
    """Owns an array's memory, and can be watched by a weak reference."""

    def __init__(self, *values):
        self.memory = np.array(values)
        self.__array_interface__ = self.memory.__array_interface__


def test_borrowing_keeps_the_owner_alive_and_lets_it_go():
    owner = Owner(0.0, 1.0, 2.0)
    died = weakref.ref(owner)
    t = fg.from_numpy(np.asarray(owner))
    view = t.reshape(3, 1)
    del owner, t
    assert died() is not None
    assert view.tolist() == [[0.0], [1.0], [2.0]]
    del view
    assert died() is None


def test_saved_tensor_keeps_the_owner_alive():
    owner = Owner(0.0, 1.0, 2.0)
    died = weakref.ref(owner)
    x = fg.ones(3, dtype=fg.float64, requires_grad=True)
    y = (x * fg.from_numpy(np.asarray(owner))).sum()
    del owner
    assert died() is not None
    y.backward()
    assert died() is None
    assert x.grad.tolist() == [0.0, 1.0, 2.0]


def test_borrowed_tensor_sees_the_owners_writes():
    array = np.zeros(3)
    t = fg.from_numpy(array)
    array[1] = 4.0
    assert t.tolist() == [0.0, 4.0, 0.0]


@pytest.mark.parametrize("take", [
    lambda a: a[::-1], lambda a: a[1:, ::2], lambda a: a.T, lambda a: np.broadcast_to(a[0], (3, 6)), lambda a: a[:0],
    lambda a: a[2, 3], lambda a: a[::-2, ::-1],
], ids=["reversed", "stepped", "transposed", "broadcast", "empty", "0-dim", "both reversed"])
def test_strided_memory_goes_there_and_back_without_a_copy(take):
    array = np.asarray(take(np.arange(24.0).reshape(4, 6)))
    t = fg.from_numpy(array)
    back = t.numpy()
    assert back.strides == array.strides and back.shape == array.shape
    assert not array.size or np.shares_memory(back, array) or array.ndim == 0
    np.testing.assert_array_equal(back, array)
    np.testing.assert_array_equal((t * 2.0).numpy(), array * 2)


def test_read_only_memory_stays_read_only():
    array = np.zeros(3)
    array.flags.writeable = False
    t = fg.from_numpy(array)
    assert not t.numpy().flags.writeable
    for write in (lambda: t.add_(1.0), lambda: t.zero_(), lambda: t.reshape(3, 1).add_(1.0), lambda: t.data.add_(1.0)):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert array.tolist() == [0.0] * 3
    assert (t + 1.0).numpy().flags.writeable


def test_broadcast_array_is_not_written():
    t = fg.from_numpy(np.broadcast_to(np.zeros(3), (2, 3)))
    with pytest.raises(RuntimeError, match="read-only|single memory location"):
        t.add_(1.0)


def test_gradients_are_not_accumulated_into_read_only_memory():
    x = fg.ones(2, dtype=fg.float64, requires_grad=True)
    array = np.ones(2)
    array.flags.writeable = False
    x.grad = fg.from_numpy(array)
    (x * x).sum().backward()
    assert array.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [3.0, 3.0]


# --- Donated buffers -------------------------------------------------------------------------------------------------


def test_backward_does_not_write_over_anything_the_user_can_see():
    x = fg.full((100,), 1.5, dtype=fg.float64, requires_grad=True)
    g = fg.ones(100, dtype=fg.float64)
    a = x * x
    b = a * x
    kept, seen = [a.detach().numpy(), b.detach().numpy()], []
    copies = [k.copy() for k in kept]
    a.register_hook(lambda g: seen.append((g, g.numpy().copy())))
    a.retain_grad()
    b.backward(g)
    for array, copy in zip(kept, copies):
        np.testing.assert_array_equal(array, copy)
    for t, copy in seen:
        np.testing.assert_array_equal(t.numpy(), copy)
    np.testing.assert_array_equal(a.grad.numpy(), np.full(100, 1.5))
    assert (g.numpy() == 1.0).all()


def test_array_exported_from_a_cotangent_is_not_written_over():
    x = fg.full((100,), 1.5, dtype=fg.float64, requires_grad=True)
    arrays = []
    y = x
    for _ in range(5):
        y = y * 2.0
        y.register_hook(lambda g: arrays.append(g.numpy()))
    y.sum().backward()
    for k, array in enumerate(arrays):
        assert (array == 2.0**k).all()
