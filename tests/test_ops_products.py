"""Products and contractions: against PyTorch where it is installed, and closed forms."""
import numpy as np
import pytest
from linear_against_torch import KINDS, compare, linalg, random_array

import fastgrad as fg

MATMUL = [
    ((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)), ((2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((1, 2, 3), (5, 3, 4)), ((4, 5, 2, 3), (3,)), ((1, 3), (3, 1)), ((5, 0, 3), (3, 2)), ((0, 2, 3), (3, 4)),
    ((3,), (3, 0)),
]

FIXED = {
    "mm": [(2, 3), (3, 4)], "mv": [(2, 3), (3,)], "dot": [(3,), (3,)], "vdot": [(3,), (3,)],
    "bmm": [(4, 2, 3), (4, 3, 4)],
    "inner": [(4, 2, 3), (5, 3)], "outer": [(4,), (3,)], "ger": [(2,), (3,)], "kron": [(2, 3), (4,)],
    "cross": [(3, 4), (3, 4)],
    "chain_matmul": [(2, 3), (3, 4), (4, 2)],
}

ADDED = {
    "addmm": [(4,), (2, 3), (3, 4)], "addmv": [(1,), (2, 3), (3,)], "addr": [(2, 1), (2,), (3,)],
    "baddbmm": [(2, 1), (4, 2, 3), (4, 3, 5)], "addbmm": [(2, 5), (4, 2, 3), (4, 3, 5)],
}

TENSORDOT = [
    ((2, 3, 4), (3, 4, 5), 2), ((2, 3), (3, 4), 1), ((2,), (3,), 0), ((2, 3), (3, 2), ([0, 1], [1, 0])),
    ((2, 1), (4, 3), ([-1], [0])), ((2, 3, 4), (4, 2), ([0, 2], [1, 0])),
]

EQUATIONS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]),
    ("i,j->ij", [(2,), (3,)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]), ("i,i->", [(3,), (3,)]),
    ("ij,j", [(2, 3), (1,)]),
    ("...ij,...jk->...ik", [(4, 2, 3), (3, 2)]), ("bi,bi->b", [(2, 3), (2, 3)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("ijk,il,jm,kn->lmn", [(2, 3, 2), (2, 3), (3, 2), (2, 2)]), ("bij,bij->b", [(1, 2, 3), (4, 2, 3)]),
    ("...ij->...", [(2, 2, 3)]), ("...ij->ij", [(2, 2, 3)]), ("i...j", [(2, 4, 3)]), ("ij,", [(2, 3), ()]),
    ("iij,jkk->ik", [(2, 2, 3), (3, 4, 4)]), ("bA", [(2, 3)]), ("->", [()]),
    ("bn,anm,bm->ba", [(2, 3), (5, 3, 4), (2, 4)]),
    ("ij,ij,ij->j", [(2, 3)] * 3), ("ik,jk->ijk", [(2, 3), (4, 3)]), ("i,ij,j", [(2,), (2, 3), (3,)]),
    ("...a,...b->...ab", [(4, 1, 2), (3, 5)]), ("ijk,jil->kl", [(2, 3, 4), (3, 2, 5)]),
    ("a,b,c->abc", [(2,), (3,), (4,)]),
    ("ab,b->a", [(0, 3), (3,)]), ("ab,bc->ac", [(2, 0), (0, 3)]), (" i j -> j i ", [(2, 3)]),
]

ERRORS = [
    ("m.ones(2, 3) @ m.ones(2, 3)", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    ("m.ones(2, 3) @ m.ones(2)", "size mismatch, got input (2), mat (2x3), vec (2)"),
    ("m.ones(3) @ m.ones(2)", "inconsistent tensor size"),
    ("m.ones(2, 3, 4) @ m.ones(2, 3, 4)", "first two dimensions of batch2 tensor to be: [2, 4] but got"),
    ("m.ones(2, 3, 4) @ m.ones(3, 4, 5)", "must match the size of tensor b (3)"),
    ("m.ones(2, 3) @ m.ones(3, 2, dtype=m.float64)", "expected m1 and m2 to have the same dtype"),
    ("m.ones(()) @ m.ones(3)", "both arguments to matmul need to be at least 1D"),
    ("m.ones(2, 2, dtype=m.bool) @ m.ones(2, 2, dtype=m.bool)", "not implemented for 'Bool'"),
    ("m.matmul(m.ones(2, 2), 3)", "must be Tensor, not int"),
    ("m.mm(m.ones(3), m.ones(3, 3))", "self must be a matrix"),
    ("m.mm(m.ones(2, 3), m.ones(2, 3))", "mat1 and mat2 shapes cannot be multiplied"),
    ("m.bmm(m.ones(2, 3), m.ones(2, 3))", "batch1 must be a 3D tensor"),
    ("m.bmm(m.ones(2, 3, 4), m.ones(1, 4, 4))", "Expected size for first two dimensions of batch2 tensor"),
    ("m.mv(m.ones(2, 3), m.ones(2))", "size mismatch"),
    ("m.mv(m.ones(2, 3), m.ones(2, 3))", "vector + matrix @ vector expected"),
    ("m.dot(m.ones(2), m.ones(2, 2))", "1D tensors expected"),
    ("m.inner(m.ones(2, 3), m.ones(4, 2))", "the last dimension must match on both input tensors"),
    ("m.outer(m.ones(2, 3), m.ones(2))", "Expected 1-D argument self"),
    ("m.addmm(m.ones(4), m.ones(2, 4), m.ones(4, 3))", "must match the existing size"),
    ("m.addmm(m.ones(3, dtype=m.float64), m.ones(2, 4), m.ones(4, 3))", "self and mat2 must have the same dtype"),
    ("m.tensordot(m.ones(2, 3), m.ones(3, 4), 2)", "contracted dimensions need to match"),
    ("m.tensordot(m.ones(2, 3), m.ones(3, 2), ([0, 1], [1]))", "both dimension lists should have same length"),
    ("m.tensordot(m.ones(2, 3), m.ones(3, 2), -1)", "tensordot expects dims >= 0"),
    ("m.tensordot(m.ones(2, 3), m.ones(3, 2), ([5], [0]))", "Dimension out of range"),
    ("m.cross(m.ones(2, 2), m.ones(2, 2))", "no dimension of size 3 in input"),
    ("m.linalg.cross(m.ones(2, 3), m.ones(3))", "inputs must have the same number of dimensions"),
    ("m.linalg.multi_dot([m.ones(2, 3)])", "expected at least 2 tensors but got 1"),
    ("m.linalg.multi_dot([m.ones(2, 3), m.ones(2, 3)])", "cannot be multiplied"),
    ("m.einsum('ij,jk->ik', m.ones(2, 3), m.ones(2, 4))", "does not broadcast with previously seen size"),
    ("m.einsum('ij->ijk', m.ones(2, 3))", "output subscript k does not appear in the equation for any input operand"),
    ("m.einsum('ij,jk->ik', m.ones(2, 3))", "fewer operands were provided than specified in the equation"),
    ("m.einsum('ii->i', m.ones(2, 3))", "is repeated for operand 0 but the sizes don't match"),
    ("m.einsum('ij->ii', m.ones(3, 3))", "appears more than once in the output"),
    ("m.einsum('ijk', m.ones(2, 3))", "subscripts in the equation (3) does not match the number of dimensions (2)"),
    ("m.einsum('i1', m.ones(2, 3))", "invalid subscript given at index 1"),
]


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def arrays(kind, *shapes):
    rng = np.random.default_rng(11)
    return [random_array(rng, kind, shape) for shape in shapes]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a, b", MATMUL)
def test_matmul_equals_that_of_pytorch(torch, kind, a, b):
    compare(torch, lambda m, x, y: x @ y, arrays(kind, a, b))


@pytest.mark.filterwarnings("ignore:.*(deprecated|torch.cross)")     # PyTorch's own, of cross and chain_matmul
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FIXED)
def test_product_of_fixed_rank_equals_that_of_pytorch(torch, kind, name):
    compare(torch, lambda m, *given: getattr(m, name)(*given), arrays(kind, *FIXED[name]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [{}, {"beta": 0.5, "alpha": -2.0}, {"beta": 0}], ids=str)
@pytest.mark.parametrize("name", ADDED)
def test_product_plus_input_equals_that_of_pytorch(torch, kind, name, factors):
    compare(torch, lambda m, *given: getattr(m, name)(*given, **factors), arrays(kind, *ADDED[name]))


def test_beta_zero_ignores_nan():
    nan = fg.full((2, 2), float("nan"))
    assert fg.addmm(nan, fg.ones(2, 3), fg.ones(3, 2), beta=0).tolist() == [[3.0, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a, b, dims", TENSORDOT)
def test_tensordot_equals_that_of_pytorch(torch, kind, a, b, dims):
    compare(torch, lambda m, x, y: m.tensordot(x, y, dims), arrays(kind, a, b))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("equation, shapes", EQUATIONS)
def test_einsum_equals_that_of_pytorch(torch, kind, equation, shapes):
    compare(torch, lambda m, *given: m.einsum(equation, *given), arrays(kind, *shapes))


def test_einsum_takes_lists_of_subscripts(torch):
    compare(torch, lambda m, x, y: m.einsum(x, [0, 1], y, [1, 2], [0, 2]), arrays("real", (2, 3), (3, 4)))
    compare(torch, lambda m, x, y: m.einsum(x, [..., 1], y, [1, 2]), arrays("real", (2, 3), (3, 4)))


def test_einsum_of_a_permutation_is_a_view():
    x = fg.ones(2, 3)
    assert np.shares_memory(fg.einsum("ij->ji", x).numpy(), x.numpy())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shapes", [
    [(2, 3), (3, 4), (4, 2)], [(3,), (3, 4), (4, 5), (5,)], [(2, 3), (3, 4), (4,)],
], ids=str)
def test_multi_dot_equals_that_of_pytorch(torch, kind, shapes):
    compare(torch, lambda m, *given: linalg(m, "multi_dot")(given), arrays(kind, *shapes))


def test_multi_dot_multiplies_in_the_cheapest_order():
    from fastgrad.ops.contractions import chain_order

    assert chain_order([10, 100, 5, 50])[0, 2] == 1          # (A B) C: 7,500 multiplications, the other way 75,000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a, b, options", [
    ((2, 3), (2, 3), {}), ((4, 1, 3), (2, 3), {}), ((3,), (3,), {}), ((3, 2), (3, 2), {"dim": 0}),
], ids=str)
def test_vecdot_equals_that_of_pytorch(torch, kind, a, b, options):
    compare(torch, lambda m, x, y: linalg(m, "vecdot")(x, y, **options), arrays(kind, a, b))


@pytest.mark.parametrize("kind", KINDS)
def test_cross_broadcasts(torch, kind):
    compare(torch, lambda m, x, y: linalg(m, "cross")(x, y), arrays(kind, (2, 1, 3), (1, 4, 3)))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "float32"])
def test_matmul_keeps_its_dtype(torch, dtype):
    a, b = np.arange(12).reshape(3, 4).astype(dtype), np.arange(8).reshape(4, 2).astype(dtype)
    expected = (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()
    found = (fg.from_numpy(a) @ fg.from_numpy(b)).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_float16_sums_in_float32():
    ones = fg.ones(1, 4096, dtype=fg.float16)
    assert (ones @ ones.mT).item() == 4096.0                 # in float16, 2048 + 1 is 2048


@pytest.mark.parametrize("expression, phrase", ERRORS)
def test_error_is_that_of_pytorch(torch, expression, phrase):
    with pytest.raises(Exception) as expected:
        eval(expression, {"m": torch})
    with pytest.raises(expected.type) as found:
        eval(expression, {"m": fg})
    assert phrase in str(expected.value), "PyTorch says something else"
    assert phrase in str(found.value)


def test_matmul_with_a_number_is_refused():
    for expression in ("t @ 3", "3 @ t"):
        with pytest.raises(TypeError):
            eval(expression, {"t": fg.ones(2, 2)})


def test_matmul_saves_a_factor_only_if_the_other_requires_grad():
    a, b = fg.ones(2, 2, requires_grad=True), fg.ones(2, 2)
    before = fg.memory.saved_bytes()
    y = a @ b
    assert fg.memory.saved_bytes() - before == b.numel() * b.element_size()
    assert y.grad_fn.name() == "MmBackward0"


def test_second_backward_through_matmul_needs_retain_graph():
    a = fg.ones(2, 2, requires_grad=True)
    y = (a @ a).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_matmul_of_an_expanded_matrix():
    x = fg.ones(1, 1, dtype=fg.float64, requires_grad=True)
    (x.expand(3, 4) @ fg.ones(4, 2, dtype=fg.float64)).sum().backward()
    assert x.grad.tolist() == [[24.0]]
