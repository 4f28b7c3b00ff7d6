"""Indexing, gathering, scattering, masks and sorting: against PyTorch where it is installed, and NumPy."""
import numpy as np
import pytest
from against_torch import check, check_error
from hypothesis import assume, given, settings, strategies as st

import fastgrad as fg


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


A, B, V, S, E = (2, 3), (2, 3, 4), (5,), (), (0, 3)

BASIC = [
    ("x[0]", V), ("x[-1]", A), ("x[1, 2]", A), ("x[1, ..., 2]", B), ("x[1:]", V), ("x[:, 1:]", A), ("x[::2]", V),
    ("x[1:-1]", V), ("x[3:1]", V), ("x[:]", A), ("x[...]", A), ("x[()]", A), ("x[None]", A), ("x[:, None]", A),
    ("x[..., None]", S), ("x[0, None, :2]", A), ("x[..., 0]", B), ("x[0, :, ::3]", B), ("x[T(1)]", A),
    ("x[np.int64(1)]", A), ("x[np.array(1)]", A), ("x[T(0):T(2)]", V), ("x[:, :0]", A),
    ("x[...]", S), ("x[None, None]", S), ("x[1:, ..., None, 1]", B), ("x[100:]", V), ("x[-100:2]", V), ("x[:, 1]", E),
    ("list(x)", A), ("list(x)", V),
]

ADVANCED = [
    ("x[[0, 2, 0]]", V), ("x[T([0, 2, 0])]", V), ("x[np.array([-1, 4])]", V), ("x[T([[0, 1], [2, 0]])]", V),
    ("x[:, [0, 0, 1]]", A), ("x[[1, 0]]", A), ("x[[0, 1], [2, 2]]", A), ("x[[[0], [1]], [[0, 2]]]", A),
    ("x[[0, 1], :, [1, 3]]", B), ("x[:, [0, 2], [1, 3]]", B), ("x[..., [0, 1, 1]]", B),
    ("x[0, :, [1, 2]]", B), ("x[0, [1, 2]]", B), ("x[[1, 0], 1:, 0]", B), ("x[None, [1, 0]]", A),
    ("x[[1, 0], None]", A), ("x[[1, 0], None, [0, 1]]", A), ("x[T([True, False, True, False, True])]", V),
    ("x[T([[True, False, True], [False, True, True]])]", A), ("x[:, T([True, False, True])]", A),
    ("x[T([True, False])]", B), ("x[..., T([True, False, False, True])]", B), ("x[[True, False]]", A),
    ("x[x > 0.5]", A), ("x[T([True, True]), [0, 2]]", A), ("x[T([[True, False, True], [False, True, True]]), 1:]", B),
    ("x[0, T([True, False, True])]", B), ("x[True]", A), ("x[False]", A), ("x[:, True]", A),
    ("x[T(True)]", S), ("x[T(False)]", S), ("x[True, [0, 1]]", V), ("x[[]]", A), ("x[T([])]", V), ("x[:, []]", A),
    ("x[range(2)]", A), ("x[T([False] * 5)]", V), ("x[T([0, 1], np.int32)]", V), ("x[T([[0, 1]]), T([[1], [0]])]", A),
    ("x[T([0])]", V), ("x[[0, 1], T(1)]", A), ("x[T([], np.int64)]", E), ("x[1:, ::2, [0, 3, 3]]", B),
    ("x[T([1, 0]), ..., T([3, 0])]", B),
]

GATHERED = [
    ("x.gather(0, T([2, 0, 2]))", V), ("x.gather(1, T([[0, 2], [1, 1]]))", A), ("x.gather(-2, T([[1, 0]]))", A),
    ("m.gather(x, 1, T([[0]]))", A), ("x.gather(0, T(0))", S), ("x.gather(0, T([0, 0]))", S), ("x.gather(0, T(2))", V),
    ("x.gather(2, T([[[3, 3, 0]]]))", B), ("x.gather(1, T([[], []]))", A),
    ("x.gather(0, T([0], np.int32))", V),
    ("m.take_along_dim(x, T([[0, 2], [1, 1]]), 1)", A), ("x.take_along_dim(T([[0], [2]]), dim=1)", A),
    ("x.take_along_dim(T([5, 1]))", A), ("x.take_along_dim(T([[2, 0]]), 1)", A), ("x.take_along_dim(T([[-1]]), 0)", A),
    ("x.take(T([5, 0, 5]))", A), ("x.take(T([[-1, 2]]))", A), ("m.take(x, T(3))", A), ("x.take(T(0))", S),
    ("x.take(T([]))", A), ("x.index_select(0, T([1, 1, 0]))", A), ("x.index_select(-1, T([2]))", B),
    ("m.index_select(x, 1, T(0))", A), ("x.index_select(0, T([0]))", S),
    ("x.index_select(1, T([]))", A),
    ("x.masked_select(T([[True, False, True], [False, True, True]]))", A),
    ("x.masked_select(T([True, False, True]))", A), ("m.masked_select(x, T([[True], [False]]))", (2, 3)),
    ("x.masked_select(T(True))", S), ("x.masked_select(T([True, False]))", S), ("x.masked_select(x < 0)", A),
    ("x.repeat_interleave(T([1, 0, 2]), 1)", A),
]

WRITTEN = [
    ("x.scatter(0, T([2, 0]), y)", V, (2,)), ("x.scatter(1, T([[0, 2]]), y)", A, (1, 2)),
    ("x.scatter(1, T([[0, 2]]), 1.5)", A), ("m.scatter(x, 0, T([[1, 0, 1]]), src=y)", A, (1, 3)),
    ("x.scatter(0, T([[1]]), value=2)", A), ("x.scatter(0, T([1]), y, reduce='add').detach()", V, (1,)),
    ("x.scatter(0, T([1, 1]), y.detach(), reduce='multiply').detach()", V, (2,)),
    ("x.scatter(0, T(0), y)", S, S), ("x.scatter(0, T([]), y)", V, (0,)),
    ("x.scatter_add(0, T([2, 0, 2]), y)", V, (3,)), ("x.scatter_add(1, T([[0, 0], [1, 2]]), y)", A, (2, 2)),
    ("m.scatter_add(x, -1, T([[1]]), y)", A, (1, 1)), ("x.scatter_add(0, T(0), y)", S, S),
    ("x.index_add(0, T([1, 1]), y)", V, (2,)), ("x.index_add(1, T([0, 2]), y, alpha=2)", A, (2, 2)),
    ("m.index_add(x, -1, T([3, 3, 0]), y)", B, (2, 3, 3)), ("x.index_add(0, T([0]), y)", S, S),
    ("x.index_copy(0, T([1, 0]), y)", A, A), ("x.index_copy(1, T([2]), y)", A, (2, 1)),
    ("m.index_copy(x, 0, T([4, 1]), y)", V, (2,)), ("x.index_fill(0, T([1]), 2.5)", A),
    ("x.index_fill(1, T([0, -1]), 2)", A), ("x.index_fill(0, T([0, 3]), y)", V, S),
    ("m.index_fill(x, 0, T([0]), 1)", S), ("x.index_put((T([0, 1]), T([0, 2])), y)", A, (2,)),
    ("x.index_put((T([1, 1]),), y, accumulate=True)", V, (2,)), ("m.index_put(x, (T([0]),), y)", A, (3,)),
    ("x.index_put((T([True, False]),), y)", A, (1, 3)), ("x.index_put((T(0),), y)", A, (3,)),
    ("x.index_put((T([0, 1]), T([0, 2])), y, True)", A, (1,)),
    ("x.masked_scatter(T([True, False, True]), y)", A, (2, 3)),
    ("m.masked_scatter(x, T([[True, False, True], [False, False, True]]), y)", A, V),
    ("x.masked_scatter(T([True]), y)", S, (2,)), ("x.put(T([5, 0]), y)", A, (2,)),
    ("x.put(T([[1, 1]]), y, accumulate=True)", A, (1, 2)),
]

REDUCED = [
    (f"x.scatter_reduce({place}, y, '{reduce}', include_self={own})", A if "[[" in place else V, s)
    for reduce in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)
    for place, s in [("0, T([2, 0, 2])", (3,)), ("1, T([[0, 0], [2, 1]])", (2, 2)), ("0, T([1, 1])", (2,))]
]

SORTED = [
    ("x.sort()", V), ("x.sort(descending=True)", A), ("x.sort(0)", A),
    ("m.sort(x, dim=1, descending=True, stable=True)", A), ("x.sort()", S), ("x.sort(0)", E), ("x.argsort()", A),
    ("x.argsort(0, True)", A), ("x.msort()", A), ("x.topk(2)", V), ("x.topk(2, 0, False)", B[:2]),
    ("m.topk(x, 3, dim=-1, largest=False)", B), ("x.topk(0)", V), ("x.topk(1)", S), ("x.kthvalue(2)", V),
    ("x.kthvalue(1, 0)", A), ("x.kthvalue(3, 1, True)", A), ("m.kthvalue(x, 1)", S),
    ("m.searchsorted(T([1, 3, 5, 7]), T([[3, 4], [0, 9]]))", S),
    ("m.searchsorted(T([1, 3, 5]), T([3, 4]), right=True)", S),
    ("m.searchsorted(T([1, 3, 5]), 3, side='right')", S), ("m.searchsorted(T([[1, 3], [2, 4]]), T([[3], [3]]))", S),
    ("m.searchsorted(T([5, 1, 3]), T([2]), sorter=T([1, 2, 0]))", S),
    ("m.searchsorted(T([1, 3]), T([2]), out_int32=True)", S), ("m.bucketize(x, F([0.5, 1.0, 2.0]))", V),
    ("m.bucketize(x, F([0.5, 1.0, 2.0]), right=True)", V), ("m.unique(T([3, 1, 3, 2]))", S),
    ("m.unique(T([[3, 1], [3, 2]]), return_inverse=True, return_counts=True)", S),
    ("m.unique(T([[3, 1], [3, 1], [0, 2]]), dim=0, return_inverse=True, return_counts=True)", S),
    ("m.unique_consecutive(T([1, 1, 2, 2, 1]), return_inverse=True, return_counts=True)", S),
    ("m.unique_consecutive(T([[1, 1], [1, 1], [2, 1]]), dim=0)", S),
    ("T([[0, 5], [7, 0]]).nonzero()", S), ("T([[0, 5], [7, 0]]).nonzero(as_tuple=True)", S), ("T(0).nonzero()", S),
    ("T(3).nonzero()", S), ("T(3).nonzero(as_tuple=True)", S), ("m.argwhere(T([0, 1, 1]))", S),
    ("m.where(T([[0, 1], [1, 0]]))", S),
]

ERRORS = [
    ("x[5]", V, "index 5 is out of bounds for dimension 0 with size 5"),
    ("x[-6]", V, "index -6 is out of bounds for dimension 0 with size 5"),
    ("x[0, 3]", A, "out of bounds for dimension"), ("x[0, 0]", V, "too many indices for tensor of dimension 1"),
    ("x[[5]]", V, "index 5 is out of bounds for dimension 0 with size 5"),
    ("x[:, [0, 7]]", A, "index 7 is out of bounds for dimension"),
    ("x[T([0]), T([0])]", V, "too many indices for tensor of dimension 1"),
    ("x[0]", S, "invalid index of a 0-dim tensor"),
    ("x[T([True, False])]", V,
     "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [5] at index 0"),
     ("x[:, T([True, False])]", A,
      "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [2, 3] at index 1"),
    ("x[T([[True], [False]])]", A,
     "The shape of the mask [2, 1] at index 1 does not match the shape of the indexed tensor [2, 3] at index 1"),
     ("x[T([0, 1]), T([0, 1, 1])]", A,
      "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"),
    ("x[F([0.0])]", V, "tensors used as indices must be long, int, byte or bool tensors"),
    ("x[0.5]", V, "only integers, slices"), ("x[::0]", V, "step"), ("x[0.5:1]", V, None),
    ("x[0, 0, 0, 0]", B, "too many indices for tensor of dimension 3"),
    ("x.gather(0, T([5]))", V, "index 5 is out of bounds for dimension 0 with size 5"),
    ("x.gather(0, T([-1]))", V, "index -1 is out of bounds"),
    ("x.gather(0, T([0]))", A, "must have the same number of dimensions as input tensor"),
    ("x.gather(1, T([[0], [0], [0]]))", A, "to be no larger than self"),
    ("x.gather(0, F([0.0]))", V, "Expected dtype int"), ("x.gather(2, T([[0]]))", A, "Dimension out of range"),
    ("x.gather(0, 1)", V, "must be Tensor, not int"), ("x.scatter(0, T([9]), 1.0)", V, "index 9 is out of bounds"),
    ("x.scatter(0, T([0, 1]), F([1.0]))", V, "to be no larger size than src"),
    ("x.scatter(0, T([0]), T([1]))", V, "Expected self.dtype to be equal to src.dtype"),
    ("x.scatter_add(0, T([0]), 1.0)", V, "must be Tensor, not float"),
    ("x.take(T([6]))", A, "tried to access index 6 on a tensor of 6 elements"),
    ("x.take_along_dim(T([0]), 1)", A, "should have the same number of dimensions"),
    ("x.index_select(0, T([5]))", V, "out of"), ("x.index_select(1, T([5]))", A, "out of"),
    ("x.index_select(0, T([[0]]))", V, "Index is supposed to be a vector"),
    ("x.index_select(0, F([0.0]))", V, "Expected dtype int"),
    ("x.index_select(0, T([0, 0]))", S, "Index to scalar can have only 1 value"),
    ("x.index_add(0, T([0]), x)", V, "Number of indices (1) should be equal to source.size(dim): (5)"),
    ("x.index_add(1, T([0, 0]), F([[1.0, 2.0]]))", A, "source tensor shape must match self tensor shape"),
    ("x.index_add(0, T([7]), F([1.0]))", V, None), ("x.index_add(0, T([0]), T([1]))", V, None),
    ("x.index_copy(0, T([7]), F([1.0]))", V, "index 7 is out of bounds"),
    ("x.index_fill(0, T([7]), 1.0)", V, "index 7 is out of bounds"),
    ("x.index_fill(0, T([0]), F([1.0]))", V, "only supports a 0-dimensional value tensor"),
    ("x.index_put((T([0]),), T([1]))", V, "source and destination dtypes match"),
    ("x.masked_select(T([1, 0, 1]))", A, "expected BoolTensor for mask"),
    ("x.masked_select(T([True, False]))", A, "must match the size of tensor b"),
    ("x.masked_scatter(T([True, True, True, True, True]), F([1.0]))", V,
     "Number of elements of source < number of ones in mask"), ("x.topk(6)", V, "selected index k out of range"),
     ("x.topk(-1)", V, "selected index k out of range"),
     ("x.kthvalue(0)", V, "selected number k out of range for dimension 0"),
     ("x.sort(dim=2)", A, "Dimension out of range"),
    ("m.sort(T([1]).to(m.complex64))", V, "does not support complex dtypes"),
    ("m.bucketize(x, x)", A, "must be 1 dimension"),
    ("m.searchsorted(x, x, side='up')", V, "side can only be 'left' or 'right'"),
]

TABLE = [*BASIC, *ADVANCED, *GATHERED, *WRITTEN, *REDUCED, *SORTED]


def named(case):
    return f"{case[0]}-{'-'.join(map(str, case[1:]))}"


@pytest.mark.parametrize("case", TABLE, ids=named)
def test_means_what_pytorch_means(torch, case):
    check(torch, case[0], case[1:])


# PyTorch cannot flatten a strided tensor there.
@pytest.mark.parametrize("case", [c for c in TABLE if "T([5, 1]))" not in c[0]], ids=named)
def test_means_the_same_on_strided_memory(torch, case):
    check(torch, case[0], case[1:], strided=True, sharing=False)


@pytest.mark.parametrize("expression, shape, phrase", ERRORS)
def test_raises_what_pytorch_raises(torch, expression, shape, phrase):
    check_error(torch, expression, [shape], phrase)


# --- Assignment ------------------------------------------------------------------------------------------------------

# index, shape of the target, shape of the value
ASSIGNMENTS = [
    ("0", V, S), ("-1", A, (3,)), ("1, 2", A, S), ("slice(1, 3)", V, (2,)), ("slice(1, 3)", V, (1,)),
    ("(slice(None), 1)", A, (2,)), ("...", A, A), ("()", A, (3,)), ("None", A, (1, 2, 3)),
    ("(slice(None, None, 2),)", V, S), ("(..., 0)", B, (2, 3)), ("0", A, (1, 1, 3)), ("slice(3, 1)", V, (0,)),
    ("...", S, S), ("slice(3, 1)", V, S), ("[0, 2]", V, (2,)), ("[0, 2]", V, S), ("T([1, 3])", V, (1,)),
    ("(slice(None), [0, 2])", A, (2, 2)), ("([0, 1], [2, 0])", A, (2,)), ("(0, [1, 2])", B, (2, 4)),
    ("(0, slice(None), [1, 2])", B, (3, 2)), ("([1, 0], slice(1, None), 0)", B, (2, 2)),
    ("T([True, False, True, False, True])", V, (3,)), ("T([True, False, True, False, True])", V, S),
    ("T([[True, False, True], [False, True, True]])", A, (4,)), ("(slice(None), T([True, False, True]))", A, (2, 2)),
    ("True", V, V), ("False", V, V), ("[]", V, (0,)), ("T([[0, 1]])", A, (1, 2, 3)),
    ("([[0], [1]], [0, 2])", A, (2, 2)), ("T(1)", A, (3,)), ("(None, [1])", A, (1, 1, 3)),
]


@pytest.mark.parametrize("index, shape, value", ASSIGNMENTS)
def test_assignment_means_what_pytorch_means(torch, index, shape, value):
    results = []
    rng = np.random.default_rng(1)
    start, given_value, weight = (np.asarray(rng.normal(size=s)) for s in (shape, value, shape))
    for m in (fg, torch):
        x, v = (m.from_numpy(a.copy()).requires_grad_() for a in (start, given_value))
        y = x * 2
        place = eval(index, {"T": lambda a, m=m: m.from_numpy(np.array(a)), "slice": slice})
        y[place] = v * 3
        (y * m.from_numpy(weight) * y).sum().backward()
        results.append([y.detach().numpy(), x.grad.numpy(), v.grad.numpy() if v.grad is not None else np.zeros(value)])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b)


def test_assigning_a_number_cuts_the_gradient_of_its_places():
    x = fg.ones(3, requires_grad=True)
    y = x * 2
    y[1] = 5
    y[[2]] = 7.0
    y.sum().backward()
    assert y.tolist() == [2.0, 5.0, 7.0]
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


@pytest.mark.parametrize("value", [[1.0, 2.0], np.array([1.0, 2.0]), (1, 2), np.float32(3), True])
def test_values_may_be_what_numpy_takes(value):
    x = fg.zeros(2)
    x[:] = value
    assert x.tolist() == np.broadcast_to(np.asarray(value, float), 2).tolist()


def test_value_is_cast_to_the_target_and_its_gradient_back():
    v = fg.ones(2, dtype=fg.float32, requires_grad=True)
    x = fg.zeros(3, dtype=fg.float64)
    x[:2] = v
    (x * x).sum().backward()
    assert v.grad.dtype == fg.float32
    whole = fg.zeros(2, dtype=fg.int64)
    whole[0] = fg.tensor(1.9)
    whole[1] = 2.9
    assert whole.tolist() == [1, 2]


def test_complex_value_into_real_tensor_is_refused():
    with pytest.raises(RuntimeError, match="without overflow"):
        fg.zeros(2)[0] = 1j


def test_last_value_wins_where_assigned_places_repeat_and_it_alone_has_a_gradient():
    v = fg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = fg.zeros(2)
    x[[0, 1, 0]] = v
    assert x.tolist() == [3.0, 2.0]
    x.sum().backward()
    assert v.grad.tolist() == [0.0, 1.0, 1.0]
    w = fg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = fg.zeros(2).scatter(0, fg.tensor([0, 1, 0]), w)
    assert out.tolist() == [3.0, 2.0]
    out.sum().backward()
    assert w.grad.tolist() == [0.0, 1.0, 1.0]


def test_chained_assignment_reaches_the_base():
    x = fg.ones(2, 3, requires_grad=True)
    v = fg.tensor(4.0, requires_grad=True)
    y = x * 2
    y[0][1] = v
    y[1][[0, 2]] = v * v
    assert y.tolist() == [[2.0, 4.0, 2.0], [16.0, 2.0, 16.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 0.0, 2.0], [0.0, 2.0, 0.0]]
    assert v.grad.item() == 1.0 + 2 * 8.0


def test_augmented_assignment_through_an_index():
    x = fg.ones(3, requires_grad=True)
    y = x * 2
    y[0] += 10
    y[1:] *= 3
    y[[0, 0]] += 1
    y[1] -= x[0]
    assert y.tolist() == [13.0, 5.0, 6.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 6.0, 6.0]


def test_assigning_a_detached_piece_of_itself_cuts_the_gradient():
    x = fg.ones(2, requires_grad=True)
    y = x * 3
    y[0] = y[0].detach()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 3.0]


def test_overlapping_assignment_reads_before_it_writes():
    x = fg.arange(5.0)
    x[1:] = x[:-1]
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("code", ["x[0] = 1", "x[[0]] = 1", "x[x > 0] = 1", "x[1:][0] = 1", "x[None, [0]] = 1"])
def test_assignment_to_a_leaf_that_requires_grad_is_refused(code):
    x = fg.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        exec(code, {"x": x})
    assert x.tolist() == [1.0, 1.0, 1.0]
    with fg.no_grad():
        exec(code.replace("= 1", "= 2"), {"x": x})
    assert 2.0 in x.tolist()
    assert x.is_leaf
    assert x.requires_grad


def test_assignment_after_saving_is_caught():
    x = fg.ones(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    y[0] = 5
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("code, error, phrase", [
    ("x[0] = F([1.0, 2.0])", RuntimeError, "[2] cannot be broadcast to indexing result of shape []"),
    ("x[[0, 1, 2]] = F([1.0, 2.0])", RuntimeError, "shape mismatch"),
    ("x[9] = 1", IndexError, "index 9 is out of bounds"), ("x[[9]] = 1", IndexError, "index 9 is out of bounds"),
    ("x[F([True])] = 1", IndexError, "The shape of the mask [1]"), ("x[0, 0] = 1", IndexError, "too many indices"),
    ("x['a'] = 1", (IndexError, TypeError), "only integers"), ("x[0] = 'a'", TypeError, "can't assign"),
    ("x[0] = None", TypeError, "can't assign"),
])
def test_assignment_errors_leave_the_target_as_it_was(code, error, phrase):
    x = fg.ones(5)
    with pytest.raises(error) as found:
        exec(code, {"x": x, "F": fg.tensor})
    assert phrase in str(found.value)
    assert x.tolist() == [1.0] * 5
    assert x._version == 0


def test_assignment_to_an_expanded_tensor_is_refused():
    x = fg.ones(1).expand(3)
    with pytest.raises(RuntimeError, match="memory location"):
        x[0] = 2


# --- In-place forms --------------------------------------------------------------------------------------------------

INPLACE = [
    ("scatter_", "0, T([2, 0]), y"), ("scatter_", "0, T([2, 0]), 1.5"), ("scatter_add_", "0, T([2, 2]), y"),
    ("index_add_", "0, T([1, 1]), y"), ("index_add_", "0, T([1, 1]), y, alpha=3"), ("index_copy_", "0, T([3, 1]), y"),
    ("index_fill_", "0, T([3, 1]), 2.5"), ("index_put_", "(T([3, 1]),), y"), ("index_put_", "(T([1, 1]),), y, True"),
    ("masked_scatter_", "T([True, False, True, False, False]), y"),
]


@pytest.mark.parametrize("name, arguments", INPLACE)
@pytest.mark.parametrize("strided", [False, True])
def test_in_place_form_means_what_pytorch_means(torch, name, arguments, strided):
    results = []
    for m in (fg, torch):
        x = m.arange(1.0, 11.0, dtype=m.float64).requires_grad_()
        y = m.tensor([20.0, 30.0], dtype=m.float64).requires_grad_()
        z = x * 2
        target = z[::2] if strided else z[:5].clone()
        out = eval(f"t.{name}({arguments})", {"t": target, "y": y, "T": lambda a, m=m: m.from_numpy(np.array(a))})
        assert out is target
        ((z * z).sum() + (out * out).sum()).backward()
        results.append([t.detach().numpy() for t in (out, z, x.grad)] + ([] if y.grad is None else [y.grad.numpy()]))
    assert len(results[0]) == len(results[1])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b)


# --- What is saved ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["x[0]", "x[:, 1:]", "x[..., None]", "x[1, ::2]"])
def test_basic_index_saves_nothing(code):
    x = fg.ones(2, 3, requires_grad=True)
    y = eval(code, {"x": x}).sum()
    assert fg.memory.saved_bytes() == 0
    y.backward()
    y.backward()
    assert x.grad.numpy().max() == 2.0


@pytest.mark.parametrize("code", [
    "x[[0, 1, 0]]", "x[T([True, False])]", "x.gather(1, T([[0], [1]]))", "x.index_select(0, T([1]))", "x.take(T([2]))",
    "x.masked_select(T([True, False, True]))", "x.sort().values", "x.topk(1).values",
    "x.scatter_add(0, T([[0]]), x)", "x.index_copy(0, T([1]), x[:1])", "x.index_fill(0, T([1]), 0)",
    "x.take_along_dim(T([0]))",
])
def test_index_tensors_are_saved_and_freed(code):
    x = fg.ones(2, 3, requires_grad=True)
    y = eval(code, {"x": x, "T": lambda a: fg.tensor(a)}).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_additions_at_an_index_save_nothing_for_their_target():
    x = fg.ones(3, requires_grad=True)
    y = x.index_add(0, fg.tensor([0, 0]), fg.ones(2)).scatter_add(0, fg.tensor([1]), fg.ones(1)).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_index_array_may_change_after_indexing():
    x, index = fg.tensor([1.0, 2.0, 3.0], requires_grad=True), np.array([0, 0])
    y = x[index].sum()
    index[:] = 2
    y.backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
def test_scatter_reduce_at_zeros_and_ties_is_as_in_pytorch(torch, reduce):
    results = []
    for m in (fg, torch):
        x = m.tensor([1.0, 0.0, 3.0, 2.0], requires_grad=True)
        y = m.tensor([2.0, 0.0, 3.0, 0.0, 2.0], requires_grad=True)
        out = x.scatter_reduce(0, m.tensor([0, 0, 2, 1, 3]), y, reduce)
        (out * m.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
        results.append([out.tolist(), x.grad.tolist(), y.grad.tolist()])
    assert results[0] == results[1]


# --- Ours beyond PyTorch ---------------------------------------------------------------------------------------------


def test_negative_steps_work_as_in_numpy():
    x = fg.arange(5.0).requires_grad_()
    y = x[::-2]
    assert y.tolist() == [4.0, 2.0, 0.0]
    (y * fg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [3.0, 0.0, 2.0, 0.0, 1.0]
    z = fg.zeros(4)
    z[::-1] = fg.arange(4.0)
    assert z.tolist() == [3.0, 2.0, 1.0, 0.0]


def test_list_of_0_dim_tensors_is_an_index_array():
    assert fg.arange(4.0)[[fg.tensor(3), fg.tensor(0)]].tolist() == [3.0, 0.0]


def test_nested_list_is_an_index_array():
    assert fg.arange(4.0)[[[0, 1], [2, 3]]].shape == (2, 2)


def test_uint8_index_is_a_mask_with_a_warning():
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        assert fg.arange(3.0)[fg.tensor([1, 0, 1], dtype=fg.uint8)].tolist() == [0.0, 2.0]


def test_nan_sorts_as_the_greatest():
    x = fg.tensor([float("nan"), 1.0, 2.0])
    assert x.sort().indices.tolist() == [1, 2, 0]
    assert x.sort(descending=True).indices.tolist() == [0, 2, 1]
    assert x.topk(1).indices.tolist() == [0]


def test_sort_is_stable_in_both_directions():
    x = fg.tensor([1.0, 0.0, 1.0, 0.0])
    assert x.sort().indices.tolist() == [1, 3, 0, 2]
    assert x.sort(descending=True).indices.tolist() == [0, 2, 1, 3]


# --- Against NumPy ---------------------------------------------------------------------------------------------------


@st.composite
def indices(draw, shape, arrays):
    """An index of an array of the shape that NumPy and PyTorch understand alike: no int beside an index array."""
    items = []
    left = list(shape)
    broadcast = draw(st.lists(st.integers(1, 3), max_size=2))
    used_array = False
    while left and draw(st.integers(0, 4)):
        kinds = ["slice", "none", "array", "mask"] if arrays else ["int", "slice", "none"]
        kind = draw(st.sampled_from(kinds))
        if kind == "none":
            items.append(None)
            continue
        n = left.pop(0)
        if kind == "slice":
            items.append(draw(st.slices(n)))
        elif kind == "int":
            assume(n > 0)
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "array":
            assume(n > 0)
            size = int(np.prod(broadcast))
            values = draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size))
            items.append(np.array(values, np.int64).reshape(broadcast))
            used_array = True
        elif used_array or draw(st.booleans()):
            items.append(slice(None))
        else:
            items.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool))
            assume(not broadcast or broadcast == [1])
            broadcast, used_array = [1], True
    if draw(st.booleans()):
        at = draw(st.integers(0, len(items)))
        items.insert(at, Ellipsis) if not left else items.append(Ellipsis)
    return tuple(items)


shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@settings(deadline=None, max_examples=300)
@given(st.data(), shapes, st.booleans())
def test_reading_agrees_with_numpy(data, shape, arrays):
    index = data.draw(indices(shape, arrays))
    array = np.arange(float(np.prod(shape))).reshape(shape)
    expected = array[index]
    x = fg.from_numpy(array).requires_grad_()
    y = x[index]
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    assert tuple(y.shape) == np.shape(expected)
    weight = np.arange(1.0, 1 + np.size(expected)).reshape(np.shape(expected))
    (y * fg.from_numpy(np.asarray(weight))).sum().backward()
    gradient = np.zeros(shape)
    np.add.at(gradient, index, weight)
    np.testing.assert_array_equal(x.grad.numpy(), gradient)


@settings(deadline=None, max_examples=300)
@given(st.data(), shapes, st.booleans(), st.booleans())
def test_writing_agrees_with_numpy(data, shape, arrays, whole):
    index = data.draw(indices(shape, arrays))
    array = np.arange(float(np.prod(shape))).reshape(shape)
    target = np.shape(array[index])
    value = np.asarray(-1 - np.arange(float(np.prod(target))).reshape(target)) if whole else np.asarray(-7.0)
    x, v = fg.from_numpy(array.copy()).requires_grad_(), fg.from_numpy(value).requires_grad_()
    y = x * 1
    y[index] = v
    expected = array.copy()
    expected[index] = value
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    weight = np.arange(1.0, 1 + array.size).reshape(shape)
    (y * fg.from_numpy(weight)).sum().backward()
    left = weight.copy()
    left[index] = 0
    np.testing.assert_array_equal(x.grad.numpy(), left)
    # A value's gradient is the weight of the place that holds it: of several values for one place, the last one's.
    places = np.arange(array.size).reshape(shape)[index]
    order = np.arange(places.size).reshape(places.shape)
    last = np.full(array.size, -1)
    last[places] = order
    kept = np.where(last[places] == order, weight.reshape(-1)[places] if array.size else 0.0, 0.0)
    np.testing.assert_allclose(v.grad.numpy(), kept if whole else kept.sum())
