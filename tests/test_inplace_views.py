"""In-place writes and views: values, histories, versions, and what is refused."""
import numpy as np
import pytest

import fastgrad as fg


def leaf(*values):
    return fg.tensor(list(values), dtype=fg.float64, requires_grad=True)


def both(torch, program):
    """Run a program with each library; it returns tensors, which must be equal."""
    ours, theirs = program(fg), program(torch)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        if a is None or b is None:
            assert a is None and b is None
        else:
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)


# --- Values and versions ---------------------------------------------------------------------------------------------


def test_inplace_returns_its_tensor_and_counts_a_version():
    x = fg.ones(3)
    version = x._version
    assert x.add_(1.0) is x
    assert x._version == version + 1
    y = x
    y += 1.0
    assert y is x and x.tolist() == [3.0] * 3


def test_views_share_memory_and_version():
    x = fg.zeros(2, 3)
    v = x.T
    v.add_(1.0)
    assert x.tolist() == [[1.0] * 3] * 2
    assert x._version == v._version == 1
    assert v._base is x and v._is_view()
    assert v.reshape(2, 3)._base is x or not v.reshape(2, 3)._is_view()


def test_view_of_a_view_has_the_first_base():
    x = fg.zeros(2, 3)
    assert x.T.T._base is x


def test_operand_that_overlaps_the_target_is_read_first():
    x = fg.tensor([1.0, 2.0, 3.0, 4.0])
    x.add_(fg.from_numpy(x.numpy()[::-1].copy()))
    assert x.tolist() == [5.0] * 4
    y = fg.tensor([[1.0, 2.0], [3.0, 4.0]])
    y.add_(y.T)
    assert y.tolist() == [[2.0, 5.0], [5.0, 8.0]]
    z = fg.tensor([2.0, 3.0])
    z.mul_(z)
    assert z.tolist() == [4.0, 9.0]


def test_zero_dim_view_of_the_target_is_read_first():
    x = fg.tensor([1.0, 2.0, 3.0])
    x.sub_(x[0])
    assert x.tolist() == [0.0, 1.0, 2.0]
    x = fg.tensor([1.0, 2.0, 3.0])
    x.sub_(x.data[0])
    assert x.tolist() == [0.0, 1.0, 2.0], "also where the view has a version counter of its own"


# --- Histories -------------------------------------------------------------------------------------------------------


def test_inplace_on_an_intermediate_extends_its_history():
    x = leaf(1.0, 2.0)
    y = x * 3.0
    y.mul_(x)
    assert type(y.grad_fn).__name__ == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_constant_becomes_part_of_the_graph_when_written():
    x = leaf(2.0)
    c = fg.ones(1, dtype=fg.float64)
    c.mul_(x)
    assert c.requires_grad and not c.is_leaf
    c.backward()
    assert x.grad.tolist() == [1.0]


def test_write_through_a_view_reaches_the_base():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    y.reshape(2, 1).mul_(5.0)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_write_through_the_base_reaches_the_view():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    v = y.reshape(2, 1)
    y.mul_(5.0)
    v.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_write_through_one_view_reaches_another():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = (x * 1.0).reshape(2, 2)
    first, second = y.T, y.reshape(4)
    first.mul_(y.detach().clone())
    second.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1.0, 3.0, 2.0, 4.0])


def test_part_written_through_an_index():
    x, w = leaf(1.0, 2.0, 3.0), leaf(10.0)
    y = x * 2.0
    y[1:2] = w
    (y * y).sum().backward()
    assert x.grad.tolist() == [8.0, 0.0, 24.0]
    assert w.grad.tolist() == [20.0]


def test_written_constant_view_makes_its_base_require_grad():
    x = leaf(2.0)
    base = fg.zeros(3, dtype=fg.float64)
    base[1:2].add_(x)
    assert base.requires_grad
    (base * fg.tensor([1.0, 7.0, 1.0], dtype=fg.float64)).sum().backward()
    assert x.grad.tolist() == [7.0]


PROGRAMS = {
    "chain of writes": lambda L, x, w: (lambda y: (y.mul_(w), y.add_(x), y.exp_(), y)[-1])(x * 1.0),
    "view written twice": lambda L, x, w: (lambda y, v: (v.mul_(w[0]), v.add_(x.reshape(2, 2).T), y)[-1])(
        *(lambda y: (y, y.T))((x * 1.0).reshape(2, 2))),
    "base, then view, then base": lambda L, x,
    w: (lambda y: (y.mul_(2.0), y[1:].mul_(w[1:]), y.add_(1.0), y * y)[-1])(x * 1.0),
    "index assignment": lambda L, x, w: (lambda y: (y.__setitem__(slice(0, 2), w[:2] * x[2:]), y)[-1])(x * 3.0),
    "integer index": lambda L, x, w: (lambda y: (y.__setitem__(2, w[0] * x[1]), y * y)[-1])(x * 3.0),
    "constant filled in part": lambda L, x,
    w: (lambda z: (z[1:3].copy_(x[:2]), z[2:].mul_(w[2:]), z)[-1])(L.zeros(4, dtype=L.float64)),
    "view made before, read after": lambda L, x, w: (lambda y: (lambda v: (y.mul_(w), v * v)[-1])(y[1:]))(x * 1.0),
    "two views, one written": lambda L, x,
    w: (lambda y: (lambda a, b: (a.mul_(w[:3]), b * b)[-1])(y[:3], y[1:]))(x * 1.0),
    "zeroed": lambda L, x, w: (lambda y: (y[:2].zero_(), y * w)[-1])(x * x),
    "detached copy written": lambda L, x, w: (lambda y: (y.detach().clone().mul_(5.0), y * w)[-1])(x * x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_with_writes_equals_pytorch(torch, name):
    def program(library):
        x = library.from_numpy(np.array([1.0, 2.0, 3.0, 4.0])).requires_grad_()
        w = library.from_numpy(np.array([0.5, -1.0, 2.0, 3.0])).requires_grad_()
        out = PROGRAMS[name](library, x, w)
        (out * library.from_numpy(np.arange(1.0, 1 + out.numel()).reshape(tuple(out.shape)))).sum().backward()
        return out, x.grad, w.grad

    both(torch, program)


def test_hooks_stay_with_the_old_value_and_retain_grad_follows_the_new_one(torch):
    def program(library):
        x = library.from_numpy(np.array([1.0, 2.0])).requires_grad_()
        y = x * 3.0
        seen = []
        y.register_hook(lambda g: seen.append(g.clone()))
        y.retain_grad()
        y.mul_(5.0)
        (y * 2.0).sum().backward()
        return [*seen, y.grad, x.grad]

    both(torch, program)


# --- Refused ---------------------------------------------------------------------------------------------------------


def refuses(match, write, unchanged=None):
    before = None if unchanged is None else unchanged.tolist()
    with pytest.raises(RuntimeError, match=match):
        write()
    if unchanged is not None:
        assert unchanged.tolist() == before, "a refused write changes nothing"


def test_write_to_a_leaf_that_requires_grad_is_refused():
    x = leaf(1.0)
    refuses("a leaf Variable that requires grad is being used in an in-place operation", lambda: x.mul_(2.0), x)
    refuses("a leaf Variable that requires grad is being used in an in-place operation", lambda: x.zero_(), x)


def test_write_to_a_view_of_such_a_leaf_is_refused():
    x = leaf(1.0, 2.0)
    refuses("a view of a leaf Variable that requires grad is being used", lambda: x.reshape(2, 1).mul_(2.0), x)


def test_write_to_a_leaf_is_allowed_under_no_grad():
    x = leaf(1.0)
    with fg.no_grad():
        x.mul_(2.0)
        x.reshape(1, 1).add_(1.0)
    assert x.tolist() == [3.0] and x.is_leaf and x.requires_grad


def test_write_to_one_of_several_views_is_refused():
    x = leaf(1.0, 2.0)
    first, _ = (x * 1.0).unbind(0)
    refuses("is a view and is being modified inplace", lambda: first.mul_(2.0), first)


def test_write_to_a_view_made_under_no_grad_is_refused():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    with fg.no_grad():
        v = y.reshape(2, 1)
    refuses("A view was created in no_grad mode and is being modified inplace", lambda: v.mul_(x.reshape(2, 1)), y)


def test_write_to_an_expanded_tensor_is_refused():
    x = fg.ones(3).expand(2, 3)
    refuses("more than one element of the written-to tensor refers to a single memory location", lambda: x.add_(1.0), x)


def test_result_of_a_higher_category_is_refused():
    x = fg.ones(2, dtype=fg.int64)
    refuses("can't be cast to the desired output type", lambda: x.add_(1.5), x)
    y = fg.ones(2, dtype=fg.float32)
    refuses("can't be cast to the desired output type", lambda: y.mul_(1j), y)


def test_lower_dtype_takes_the_result_of_a_higher_one_of_its_category():
    x = fg.ones(2, dtype=fg.float32)
    x.add_(fg.ones(2, dtype=fg.float64))
    assert x.dtype == fg.float32 and x.tolist() == [2.0, 2.0]


def test_broadcasting_the_target_is_refused():
    x = fg.ones(3)
    refuses("output with shape .* doesn't match the broadcast shape", lambda: x.add_(fg.ones(2, 3)), x)


def test_inference_tensor_is_refused_outside():
    with fg.inference_mode():
        x = fg.ones(2) * 2.0
        x.add_(1.0)
    refuses("Inplace update to inference tensor outside InferenceMode is not allowed", lambda: x.add_(1.0), x)


def test_overwritten_operand_that_was_needed_is_an_error_in_backward():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    y.mul_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_inplace_of_an_operator_that_saves_its_result_is_fine():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    y.exp_()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0]))


def test_writes_in_a_hook_are_seen_by_the_version_check():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    z = (y * y) * 1.0

    def write(g):
        with fg.no_grad():
            y.mul_(2.0)

    z.register_hook(write)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward(fg.ones(2, dtype=fg.float64))
    assert x.grad is None


# --- detach and data -------------------------------------------------------------------------------------------------


def test_detach_shares_memory_and_version_but_no_history():
    x = leaf(1.0)
    d = x.detach()
    assert not d.requires_grad and d.is_leaf
    d.add_(1.0)
    assert x.tolist() == [2.0] and x._version == 1


def test_data_shares_memory_but_not_the_version():
    x = leaf(1.0)
    x.data.add_(1.0)
    assert x.tolist() == [2.0] and x._version == 0


def test_detach_in_place_makes_a_leaf():
    x = leaf(1.0)
    y = x * 2.0
    y.detach_()
    assert y.is_leaf and not y.requires_grad and y.grad_fn is None


def test_detach_of_a_view_in_place_is_refused():
    y = (leaf(1.0, 2.0) * 2.0).reshape(2, 1)
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        y.detach_()


def test_requires_grad_of_an_intermediate_cannot_be_switched_off():
    y = leaf(1.0) * 2.0
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)
