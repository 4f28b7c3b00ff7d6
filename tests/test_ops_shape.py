"""Views, joining, splitting and rearranging: against PyTorch where it is installed, and NumPy."""
import numpy as np
import pytest
from against_torch import check, check_error
from hypothesis import given, settings, strategies as st

import fastgrad as fg


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


A, B, C, V, S, E = (2, 3), (2, 3, 4), (3, 3), (5,), (), (0, 3)

VIEWS = [
    ("x.reshape(3, 2)", A), ("x.reshape((-1,))", B), ("x.reshape(3, 0)", E), ("x.reshape(1)", S),
    ("x.reshape(())", (1,)), ("m.reshape(x, (3, -1))", A), ("x.transpose(0, 1)", A), ("x.transpose(-1, 0)", B),
    ("x.swapaxes(0, 2)", B), ("m.swapdims(x, 0, 1)", A), ("x.transpose(0, 0)", S), ("x.t()", A), ("x.t()", V),
    ("x.T", A), ("x.mT", B), ("x.permute(2, 0, 1)", B), ("x.permute((-1, 0, 1))", B), ("x.permute(())", S),
    ("m.permute(x, (1, 0))", A), ("x.movedim(0, 2)", B), ("x.moveaxis(-1, 0)", B), ("x.movedim((0, 1), (1, 0))", B),
    ("m.movedim(x, (2, 0), (0, 1))", B), ("x.expand(4, 2, 3)", A), ("x.expand(-1, 3)", (2, 1)), ("x.expand((3, 1))", S),
    ("x.expand(2, -1, 3)", (1, 3)), ("x.expand(0, 3)", (1, 3)), ("x.broadcast_to((4, 2, 3))", A),
    ("m.broadcast_to(x, (2,))", S), ("x.squeeze()", (1, 2, 1)), ("x.squeeze(0)", (1, 2, 1)),
    ("x.squeeze(1)", (1, 2, 1)), ("x.squeeze((0, 2))", (1, 2, 1)),
    ("x.squeeze(0)", S), ("x.squeeze(-1)", E), ("x.unsqueeze(0)", A), ("x.unsqueeze(-1)", A), ("x.unsqueeze(-3)", A),
    ("x.unsqueeze(0)", S), ("m.unsqueeze(x, 1)", E), ("x.flatten()", B), ("x.flatten(1)", B), ("x.flatten(0, 1)", B),
    ("x.flatten(-2)", B), ("x.flatten(1, 1)", B), ("x.flatten()", S), ("x.flatten()", E), ("x.ravel()", A),
    ("x.ravel()", V), ("x.unflatten(2, (2, -1))", B), ("x.unflatten(-1, (2, 2))", B), ("m.unflatten(x, 0, (5, 1))", V),
    ("x.view(3, 2)", A), ("x.view(-1)", B), ("x.select(1, 2)", A), ("x.select(-1, -1)", B), ("m.select(x, 0, 0)", V),
    ("x.narrow(0, 1, 1)", A), ("x.narrow(-1, 0, 2)", A), ("x.narrow(1, -2, 2)", A), ("x.narrow(0, 5, 0)", V),
    ("x.unfold(0, 3, 1)", V), ("x.unfold(1, 2, 2)", B), ("x.unfold(-1, 3, 1)", B), ("x.unfold(0, 2, 3)", V),
    ("x.unfold(0, 1, 1)", S), ("x.unfold(0, 5, 2)", V), ("x.diagonal()", C), ("x.diagonal(1)", A),
    ("x.diagonal(-1)", A), ("x.diagonal(0, 1, 2)", B), ("x.diagonal(1, -1, 0)", B), ("x.diagonal(9)", A),
    ("m.diagonal(x, offset=1, dim1=1, dim2=0)", C), ("m.atleast_1d(x)", S), ("m.atleast_2d(x)", S),
    ("m.atleast_2d(x)", V), ("m.atleast_3d(x)", S), ("m.atleast_3d(x)", V),
    ("m.atleast_3d(x)", A), ("m.atleast_2d(x)", B), ("x.as_strided((2, 2), (1, 2))", (4,)),
    ("x.as_strided((3, 2), (1, 1), 1)", V), ("x.as_strided((2, 3), (0, 1))", V), ("m.as_strided(x, (), ())", V),
]

COPIES = [
    ("x.clone()", A), ("x.flip(0)", V), ("x.flip(0, 1)", A), ("x.flip((-1,))", B), ("x.flip(())", A), ("x.flip(0)", E),
    ("x.flip(0)", S), ("x.fliplr()", A), ("x.flipud()", V), ("x.roll(1)", V), ("x.roll(2)", A), ("x.roll(-1, 0)", A),
    ("x.roll((1, 2), (0, -1))", A), ("x.roll((1, 1), (0, 0))", A), ("x.roll(7, 0)", V), ("x.roll(1)", S),
    ("x.roll(1, 0)", E), ("x.rot90()", A), ("x.rot90(2)", A), ("x.rot90(-1, (1, 2))", B), ("m.rot90(x, 5, [0, 1])", A),
    ("x.repeat(2)", V), ("x.repeat(2, 3)", V), ("x.repeat((1, 2))", A), ("x.repeat(2, 1, 1)", A), ("x.repeat(0)", V),
    ("x.repeat(2)", S), ("x.repeat(2, 2)", E), ("x.tile((2,))", A), ("m.tile(x, (2, 1, 2))", A), ("x.tile(2, 2)", V),
    ("x.repeat_interleave(2)", A), ("x.repeat_interleave(2, 1)", A), ("x.repeat_interleave(T([1, 2]), 0)", A),
    ("x.repeat_interleave(T([2, 0, 1]), dim=-1)", A), ("x.repeat_interleave(T([3]), 0)", A),
    ("x.repeat_interleave(3)", S), ("x.repeat_interleave(0, 0)", A), ("m.repeat_interleave(T([2, 0, 1]))", S),
    ("x.tril()", C), ("x.tril(-1)", A), ("x.tril(1)", B), ("x.triu()", C), ("x.triu(1)", A), ("x.triu(-1)", B),
    ("x.tril()", E), ("x.trace()", C), ("m.trace(x)", A), ("x.trace()", E), ("x.diag()", V), ("x.diag(1)", V),
    ("x.diag(-2)", V), ("x.diag()", C), ("m.diag(x, 1)", A), ("m.diag_embed(x)", A), ("m.diag_embed(x, 1)", A),
    ("m.diag_embed(x, -1, 0, 2)", A), ("m.diag_embed(x, offset=2, dim1=1, dim2=0)", V), ("m.diagflat(x)", A),
    ("m.diagflat(x, -1)", S),
]

JOINS = [
    ("m.cat([x, y])", A, (1, 3)), ("m.cat((x, y), 1)", A, (2, 1)), ("m.cat([x, y], dim=-1)", B, B),
    ("m.concat([x, y])", V, V), ("m.concatenate([x, y, x], axis=0)", V, V), ("m.cat([x])", A), ("m.cat([x, x])", A),
    ("m.cat([x, y])", (0,), A), ("m.cat([x, y])", A, (0,)), ("m.cat([x, y])", (0,), (0,)),
    ("m.cat([x, y], 0)", E, (2, 3)), ("m.cat([x, y.detach()])", V, V), ("m.cat([x.detach(), y, x.detach()], 1)", A, A),
    ("m.stack([x, y])", A, A), ("m.stack((x, y), 1)", A, A), ("m.stack([x, y], dim=-1)", A, A),
    ("m.stack([x, y])", S, S), ("m.stack([x, y], -2)", A, A), ("m.stack([x, y], 1)", E, E),
    ("m.stack([x, y.detach()])", S, S), ("m.stack([x, x, y], 2)", A, A),
    ("m.hstack([x, y])", V, V), ("m.hstack([x, y])", S, S), ("m.hstack([x, y])", A, A), ("m.vstack([x, y])", V, V),
    ("m.vstack([x, y])", A, A), ("m.vstack([x, y])", S, S), ("m.row_stack([x, y])", V, V), ("m.dstack([x, y])", V, V),
    ("m.dstack([x, y])", S, S), ("m.dstack([x, y])", A, A), ("m.column_stack([x, y])", V, V),
    ("m.column_stack([x, y])", (3,), C), ("m.column_stack([x, y])", S, S),
    ("m.block_diag(x, y)", A, C), ("m.block_diag(x, y, z)", V, S, A), ("m.meshgrid(x, y, indexing='ij')", V, (2,)),
    ("m.meshgrid([x, y, z], indexing='xy')", V, (2,), S), ("m.cartesian_prod(x, y)", V, (2,)),
    ("m.cartesian_prod(x)", V), ("m.broadcast_tensors(x, y)", (3, 1), (2,)),
    ("m.broadcast_tensors(x, y, z)", S, A, (1, 3)), ("m.atleast_2d(x, y)", S, V),
]

SPLITS = [
    ("x.split(2)", V), ("x.split(2, 1)", A), ("x.split(5)", V), ("x.split(9)", V), ("x.split([1, 4])", V),
    ("x.split([2, 0, 1], -1)", A), ("m.split(x, 2, dim=-1)", B), ("x.split(0)", E), ("x.split(2)", E),
    ("x.split_with_sizes([1, 1], 0)", A), ("x.chunk(2)", V), ("x.chunk(3)", V),
    ("x.chunk(4)", V), ("m.chunk(x, 2, -1)", B), ("x.chunk(9)", V), ("x.chunk(2)", E), ("x.unbind()", A),
    ("x.unbind(1)", A), ("m.unbind(x, dim=-1)", B), ("x.unbind(0)", (1, 2)), ("x.tensor_split(3)", V),
    ("x.tensor_split((1, 3))", V), ("x.tensor_split((1, 2), dim=1)", A),
    ("x.tensor_split((-2,))", V), ("x.tensor_split((3, 1))", V), ("x.tensor_split(7)", V),
    ("x.tensor_split(T([1, 4]))", V), ("x.hsplit(3)", A), ("x.hsplit((1, 2))", V), ("x.vsplit(2)", B),
    ("x.dsplit((1,))", B), ("m.dsplit(x, 2)", B),
]

SCATTERS = [
    ("m.select_scatter(x, y, 0, 1)", A, (3,)), ("m.select_scatter(x, y, -1, 0)", A, (2,)),
    ("m.slice_scatter(x, y, 0, 1, 3)", V, (2,)), ("x.slice_scatter(y, 1, 0, 3, 2)", A, (2, 2)),
    ("x.diagonal_scatter(y)", C, (3,)), ("m.diagonal_scatter(x, y, 1)", A, (2,)),
]

PADS = [
    ("pad(x, (1, 2))", A), ("pad(x, (1, 0, 0, 2))", A), ("pad(x, (-1, 1))", A), ("pad(x, (-1, -1, 0, 0, 2, 0))", B),
    ("pad(x, (1, 1), value=7)", A), ("pad(x, (1, 1), 'constant', 2.5)", V),
    ("pad(x, ())", A), ("pad(x, (0, 1))", E), ("pad(x, (2, 1), 'reflect')", B), ("pad(x, (1, 1), 'reflect')", A),
    ("pad(x, (-1, 2), 'reflect')", B), ("pad(x, (5, 1), 'replicate')", B),
    ("pad(x, (1, -1), 'replicate')", A), ("pad(x, (4, 2), 'circular')", B), ("pad(x, (-1, 1), 'circular')", A),
    ("pad(x, (1, 1, 1, 0), 'reflect')", (1, 2, 3, 4)), ("pad(x, (1, 1, 1, 0), 'replicate')", B),
    ("pad(x, (1, 1, 1, 2), 'circular')", (1, 2, 3, 4)), ("pad(x, (1, 1, 1, 0, 0, 1), 'replicate')", (1, 2, 3, 4)),
    ("pad(x, (1, 1, 1, 0, 1, 1), 'reflect')", (1, 2, 3, 4)), ("pad(x, (1, 1, 1, 0, 2, 1), 'circular')", (1, 2, 3, 4)),
]

ERRORS = [
    ("x.reshape(4)", A, "is invalid for input of size"), ("x.reshape(-1, -1)", A, "only one dimension can be inferred"),
    ("x.transpose(0, 2)", A, "Dimension out of range"), ("x.permute(0)", A, "does not match the length"),
    ("x.permute(0, 0)", A, "duplicate dims"),
    ("x.expand(4)", A, "must be greater or equal to the number of dimensions"),
    ("x.expand(3, 3)", A, "must match the existing size"), ("x.expand(-1, 2, 3)", A, "isn't allowed in a leading"),
    ("x.squeeze(2)", A, "Dimension out of range"), ("x.unsqueeze(3)", A, "Dimension out of range"),
    ("x.flatten(1, 0)", A, "start_dim cannot come after end_dim"), ("x.flatten(2)", A, "Dimension out of range"),
    ("x.unflatten(1, (2, 2))", A, "don't multiply up to the size of dim"),
    ("x.unflatten(1, ())", A, "must be non-empty"), ("x.movedim((0, 0), (0, 1))", A, "repeated dim"),
    ("x.movedim((0, 1), 0)", A, None), ("x.movedim(0, 5)", A, "Dimension out of range"),
    ("x.select(0, 2)", A, "index 2 out of range"), ("x.select(2, 0)", A, "Dimension out of range"),
    ("x.select(0, 0)", S, "select() cannot be applied to a 0-dim tensor"),
    ("x.narrow(0, 1, 2)", A, "exceeds dimension size (2)"), ("x.narrow(0, 0, -1)", A, "length must be non-negative"),
    ("x.narrow(0, 3, 0)", A, "start out of range"), ("x.narrow(0, 0, 1)", S, "cannot be applied to a 0-dim"),
    ("x.unfold(0, 6, 1)", V, "maximum size for tensor at dimension 0 is 5 but size is 6"),
    ("x.unfold(0, 2, 0)", V, "step is 0 but must be > 0"), ("x.unfold(0, -1, 1)", V, "must be >= 0"),
    ("x.diagonal()", V, "Dimension out of range"),
    ("x.diagonal(0, 1, 1)", A, "diagonal dimensions cannot be identical 1, 1"),
    ("x.diag()", B, "Supports 1D or 2D tensors. Got 3D"),
    ("x.trace()", V, "expected a matrix, but got tensor with dim 1"),
    ("x.tril()", V, "must have at least 2 dimensions"), ("m.diag_embed(x, 0, 0, 0)", A, "cannot be identical"),
    ("x.flip((0, 0))", A, "appears multiple times in the list of dims"), ("x.flip(2)", A, "Dimension out of range"),
    ("x.fliplr()", V, "must be >= 2-d"), ("x.flipud()", S, "must be >= 1-d"),
    ("x.roll((1, 2), 0)", A, "shifts and dimensions must align"),
    ("x.roll(1, 0)", S, "Dimension specified as 0 but tensor has no dimensions"),
    ("x.roll(1, 5)", A, "Dimension out of range"), ("x.rot90(1, (0, 0))", A, "expected rotation dims to be different"),
    ("x.rot90()", V, "expected total dims >= 2"), ("x.rot90(1, (0,))", A, "expected total rotation dims == 2"),
    ("x.repeat(2)", A, "can not be smaller than number of dimensions of tensor"),
    ("x.repeat(-1, 1)", A, "negative dimension"),
    ("x.repeat_interleave(T([1, 2, 3]), 0)", A, "repeats must have the same size as input along dim"),
    ("x.repeat_interleave(-1)", A, "must be non-negative"),
    ("x.repeat_interleave(T([[1]]), 0)", A, "repeats must be 0-dim or 1-dim tensor"),
    ("m.cat([])", A, "expected a non-empty list of Tensors"), ("m.stack([])", A, "expects a non-empty TensorList"),
    ("m.cat([x, x[0]])", A, "must have same number of dimensions"),
    ("m.cat([x, x[:, :2]])", A, "must match except in dimension 0"),
    ("m.cat([x])", S, "zero-dimensional tensor"), ("m.cat([x], 2)", A, "Dimension out of range"),
    ("m.cat(x)", A, "must be tuple of Tensors"), ("m.cat([1, x])", A, "expected Tensor as element 0"),
    ("m.stack([x, x[0]])", A, "expects each tensor to be equal size"),
    ("m.stack([x, x], 4)", A, "Dimension out of range"), ("m.stack([x, 1])", A, "expected Tensor as element 1"),
    ("x.split(-1)", V, "be non-negative"), ("x.split(0)", V, "split_size can only be 0"),
    ("x.split([1, 2])", V, "to sum exactly to 5"), ("x.split([-1, 6])", V, "only non-negative"),
    ("x.split(1)", S, "expects at least a 1-dimensional tensor"),
    ("x.chunk(0)", V, "greater than 0"), ("x.chunk(2, 3)", V, "Dimension out of range"),
    ("x.unbind()", S, "has no dimensions"), ("x.unbind(2)", A, "Dimension out of range"),
    ("x.tensor_split(0)", V, "number of sections must be larger than 0"), ("x.hsplit(2)", A, "not divisible by"),
    ("x.vsplit(1)", V, "at least 2 dimension"), ("x.dsplit(1)", A, "at least 3 dimension"),
    ("m.meshgrid(x)", A, "Expected 0D or 1D tensor"), ("m.cartesian_prod(x)", A, "Expect a 1D vector"),
    ("m.block_diag(x)", B, "2 or fewer dimensions"), ("m.broadcast_tensors(x, x[:, :2])", A, None),
    ("m.broadcast_shapes((2,), (3,))", A, None), ("x.view(4)", A, "is invalid for input of size"),
    ("x.t().view(6)", A, "view size is not compatible"), ("x.mT", V, "only supported on matrices"),
    ("x.as_strided((9,), (1,))", V, "out of bounds"), ("x.as_strided((2,), (-1,))", V, "negative strides"),
    ("x.as_strided((2,), (1, 1))", V, "mismatch"), ("pad(x, (1,))", A, "Padding length must be divisible by 2"),
    ("pad(x, (1,) * 6)", A, "less than or equal to two times the input dimension"),
    ("pad(x, (1, 1), 'foo')", A, "Unrecognised padding mode foo"),
    ("pad(x, (1, 1), 'reflect', 7)", A, "doesn't take in value argument"),
    ("pad(x, (3, 1), 'reflect')", A, "Padding size should be less than the corresponding input dimension"),
    ("pad(x, (1, 1, 1, 1), 'reflect')", A, "Padding size 4 is not supported for 2D input tensor"),
    ("pad(x, (4, 0), 'circular')", A, "wrapping around more than once"),
    ("pad(x, (-2, -2))", A, "length must be non-negative"), ("pad(x, (-2, -2), 'replicate')", A, "too small"),
    ("m.select_scatter(x, x, 0, 0)", A, "expected src to have a size equal to the slice of self"),
]

TABLE = [*VIEWS, *COPIES, *JOINS, *SPLITS, *SCATTERS, *PADS]


def named(case):
    return f"{case[0]}-{'-'.join(map(str, case[1:]))}"


@pytest.mark.parametrize("case", TABLE, ids=named)
def test_means_what_pytorch_means(torch, case):
    check(torch, case[0], case[1:])


NEEDS_CONTIGUOUS = ("view(", "as_strided(")


@pytest.mark.parametrize("case", [c for c in TABLE if not any(n in c[0] for n in NEEDS_CONTIGUOUS)], ids=named)
def test_means_the_same_on_strided_memory(torch, case):
    check(torch, case[0], case[1:], strided=True, sharing=False)


@pytest.mark.parametrize("expression, shape, phrase", ERRORS)
def test_raises_what_pytorch_raises(torch, expression, shape, phrase):
    check_error(torch, expression, [shape], phrase)


# --- What is saved ---------------------------------------------------------------------------------------------------

SAVING_NOTHING = [c for c in TABLE if "T([" not in c[0] and "detach" not in c[0]]


@pytest.mark.parametrize("case", SAVING_NOTHING, ids=named)
def test_second_backward_works_since_nothing_is_saved(case):
    from against_torch import Side, arrays_of, differentiable

    side = Side(fg, arrays_of(case[1:]), False, True)
    loss = sum((o.sum() for o in differentiable(side.outputs(case[0]))), fg.zeros(()))
    if not loss.requires_grad:
        pytest.skip("nothing differentiable")
    held = fg.memory.saved_bytes()
    loss.backward()
    once = {n: t.grad.clone() for n, t in side.leaves.items() if t.grad is not None}
    loss.backward()
    assert fg.memory.saved_bytes() == held
    for name, g in once.items():
        np.testing.assert_array_equal(side.leaves[name].grad.numpy(), 2 * g.numpy())


# --- In-place through views ------------------------------------------------------------------------------------------

VIEWS_OF_X = [
    ("v = y.t(); v.mul_(3)", A), ("v = y.select(1, 0); v.mul_(3)", A), ("v = y.diagonal(); v.mul_(3)", C),
    ("v = y.unsqueeze(0)[..., 1:]; v.mul_(3)", A), ("v = y.narrow(0, 1, 1); v.add_(2); v.mul_(3)", A),
    ("v = y.permute(1, 0)[1]; v.mul_(3)", A), ("v = y.view(-1)[2:5]; v.mul_(3)", A),
    ("v = y.flatten(); v.mul_(3)", A), ("v = y.unflatten(0, (2, 1)); v.mul_(3)", A),
    ("v = y.movedim(0, 1); v[0].mul_(3)", A), ("v = y.as_strided((2,), (2,), 1); v.mul_(3)", A),
    ("v = y.squeeze(); v.mul_(3)", (1, 3)), ("y.tril_(); v = y", C), ("y.triu_(1); v = y", C),
]


@pytest.mark.parametrize("code, shape", VIEWS_OF_X)
def test_writing_through_a_view_reaches_the_base(torch, code, shape):
    start = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    results = []
    for m in (fg, torch):
        x = m.from_numpy(start.copy()).requires_grad_()
        names = {"y": x * 2}
        exec(code, names)
        y, v = names["y"], names["v"]
        w = m.from_numpy(np.cos(start))
        ((y * w).sum() + v.sum()).backward()
        results.append([y.detach().numpy(), v.detach().numpy(), x.grad.numpy()])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("code", ["y.split(1)", "y.chunk(2)", "y.unbind()", "y.tensor_split(2)"])
def test_writing_to_one_of_several_views_is_refused(code):
    y = fg.ones(2, 3, requires_grad=True) * 2
    part = eval(code, {"y": y})[0]
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        part.mul_(3)


# --- Dtypes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["cat", "stack"])
@pytest.mark.parametrize("left, right",
                         [("float32", "float64"), ("int64", "float32"), ("uint8", "int8"), ("bool", "int32"),
                          ("float32", "complex64")])
def test_joining_promotes_as_pytorch_does(torch, function, left, right):
    dtypes = [str(getattr(m, function)([m.zeros(2, dtype=getattr(m, d)) for d in (left, right)]).dtype).split(".")[1]
              for m in (fg, torch)]
    assert dtypes[0] == dtypes[1]


def test_joined_gradients_keep_the_dtype_of_their_tensor():
    a, b = fg.ones(2, dtype=fg.float32, requires_grad=True), fg.ones(1, dtype=fg.float64, requires_grad=True)
    fg.cat([a, b]).sum().backward()
    assert a.grad.dtype == fg.float32
    assert b.grad.dtype == fg.float64


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "complex64"])
@pytest.mark.parametrize("code",
                         ["x.flip(0)", "x.roll(1)", "x.tril()", "m.cat([x, x])", "m.stack([x, x])", "x.repeat(2, 1)",
                          "x.t()", "x.chunk(2)[0]", "x[1]"])
def test_every_dtype_is_kept(dtype, code):
    x = fg.ones(2, 3, dtype=getattr(fg, dtype))
    assert eval(code, {"x": x, "m": fg}).dtype == x.dtype


def test_cat_writes_to_out():
    out = fg.zeros(3)
    assert fg.cat([fg.ones(2), fg.ones(1)], out=out) is out
    assert out.tolist() == [1.0, 1.0, 1.0]


# --- Against NumPy, on any strides -----------------------------------------------------------------------------------


@st.composite
def strided_arrays(draw, max_ndim=4):
    """An array of distinct values over memory with steps, reversals and permuted axes."""
    ndim = draw(st.integers(0, max_ndim))
    shape = tuple(draw(st.integers(0, 4)) for _ in range(ndim))
    steps = tuple(draw(st.sampled_from([1, 2, -1, -2])) for _ in range(ndim))
    order = draw(st.permutations(range(ndim)))
    wide = tuple(shape[d] * abs(steps[d]) for d in order)
    memory = np.arange(float(np.prod(wide))).reshape(wide)
    inverse = np.argsort(order) if ndim else ()
    return memory.transpose(tuple(inverse))[(*(slice(None, None, s) for s in steps), ...)]


@settings(deadline=None, max_examples=150)
@given(strided_arrays(), st.data())
def test_views_agree_with_numpy_in_shape_strides_and_values(array, data):
    t = fg.from_numpy(array)
    for _ in range(3):
        ndim = array.ndim
        kind = data.draw(st.sampled_from(["permute", "unsqueeze", "squeeze", "slice", "expand"]))
        if kind == "permute":
            order = data.draw(st.permutations(range(ndim)))
            array, t = array.transpose(order), t.permute(tuple(order))
        elif kind == "unsqueeze" and ndim < 6:
            at = data.draw(st.integers(0, ndim))
            array, t = np.expand_dims(array, at), t.unsqueeze(at)
        elif kind == "squeeze":
            array, t = np.squeeze(array), t.squeeze()
        elif kind == "slice" and ndim:
            index = (*(data.draw(st.slices(n)) for n in array.shape), ...)
            array, t = array[index], t[index]
        elif kind == "expand":
            n = data.draw(st.integers(1, 3))
            array, t = np.broadcast_to(array, (n, *array.shape)), t.expand(n, *array.shape)
    assert tuple(t.shape) == array.shape
    np.testing.assert_array_equal(t.numpy(), array)
    if array.size > 1:
        moving = [n > 1 for n in array.shape]         # a dimension of size 1 may have any stride
        ours = [s * t.element_size() for s, m in zip(t.stride(), moving) if m]
        assert ours == [s for s, m in zip(array.strides, moving) if m]


@settings(deadline=None, max_examples=100)
@given(strided_arrays(max_ndim=3), st.data())
def test_reshape_and_joins_agree_with_numpy(array, data):
    t = fg.from_numpy(array)
    np.testing.assert_array_equal(t.reshape(-1).numpy(), array.reshape(-1))
    if array.ndim:
        dim = data.draw(st.integers(-array.ndim, array.ndim - 1))
        np.testing.assert_array_equal(fg.cat([t, t], dim).numpy(), np.concatenate([array, array], dim))
        np.testing.assert_array_equal(fg.flip(t, dim).numpy(), np.flip(array, dim))
        np.testing.assert_array_equal(fg.roll(t, 2, dim).numpy(), np.roll(array, 2, dim))
    np.testing.assert_array_equal(fg.stack([t, t], -1).numpy(), np.stack([array, array], -1))
