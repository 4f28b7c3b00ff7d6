"""Decompositions and systems: against PyTorch where it is installed, closed forms, and NumPy."""
import itertools
import math

import numpy as np
import pytest
from linear_against_torch import KINDS, adjoint, array, compare, hermitian, linalg, positive, random_array

import fastgrad as fg

SQUARE = [(3, 3), (2, 3, 3), (1, 1)]
RECTANGULAR = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1)]
SYSTEMS = [
    ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3)), ((2, 3, 3), (3, 2)), ((3, 3), (4, 3, 2)), ((2, 3, 3), (3,)),
    ((0, 0), (0, 2)), ((3, 3), (3, 0)),
]
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def arrays(kind, *shapes):
    rng = np.random.default_rng(12)
    return [random_array(rng, kind, shape) for shape in shapes]


def call(name, *args, **kwargs):
    """A function of either library's linalg, as `compare` wants it."""
    return lambda m, *given: linalg(m, name)(*given, *args, **kwargs)


def squared(v):
    """The squared absolute values: they do not depend on the phases of vectors."""
    return (v * v.conj()).real if array(v).dtype.kind == "c" else v * v


# --- Determinants ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("name", ["det", "slogdet", "inv"])
def test_function_of_a_square_matrix_equals_that_of_pytorch(torch, name, shape, kind):
    compare(torch, call(name), arrays(kind, shape))


def leibniz(x):
    """The determinant by its definition: sums of products, which any library differentiates exactly."""
    n = x.shape[-1]
    total = 0
    for permutation in itertools.permutations(range(n)):
        inversions = sum(permutation[j] > permutation[i] for i in range(n) for j in range(i))
        term = (-1) ** inversions
        for row, column in enumerate(permutation):
            term = term * x[..., row, column]
        total = total + term
    return total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, rank", [(n, r) for n in (1, 2, 3, 4) for r in range(n + 1)])
def test_det_has_its_cofactors_at_every_rank(torch, n, rank, kind):
    left, right, other = arrays(kind, (n, rank), (rank, n), (n, n))
    for given in (left @ right, np.stack([left @ right, other])):
        compare(torch, lambda m, x: leibniz(x) if m is torch else fg.linalg.det(x), [given])


def test_third_derivative_of_det_at_a_singular_matrix_is_refused():
    a = fg.tensor(SINGULAR, requires_grad=True)
    (g,) = fg.autograd.grad(fg.linalg.det(a), a, create_graph=True)
    (h,) = fg.autograd.grad(g[0, 0], a, create_graph=True)
    with pytest.raises(NotImplementedError, match="third and higher derivatives"):
        fg.autograd.grad(h.sum(), a)


def test_slogdet_of_a_singular_matrix():
    sign, logabsdet = fg.linalg.slogdet(fg.tensor(SINGULAR))
    assert sign.item() == 0 and logabsdet.item() == -math.inf


def test_logdet_of_a_negative_determinant_is_nan():
    assert math.isnan(fg.logdet(fg.tensor([[0.0, 1.0], [1.0, 0.0]])).item())


# --- Systems ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a, b", SYSTEMS)
def test_solve_equals_that_of_pytorch(torch, kind, a, b):
    compare(torch, call("solve"), arrays(kind, a, b))


@pytest.mark.parametrize("kind", KINDS)
def test_solve_from_the_right(torch, kind):
    compare(torch, call("solve", left=False), arrays(kind, (3, 3), (2, 3)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize("b, left", [((80,), True), ((80, 3), True), ((3, 80), False)])
def test_large_systems_keep_their_factors(torch, b, left, second, kind):
    a, b = arrays(kind, (80, 80), b)
    compare(torch, call("solve", left=left), [a + 30 * np.eye(80), b], second=second)


def test_large_singular_system():
    with pytest.raises(fg.linalg.LinAlgError, match="input matrix is singular"):
        fg.linalg.solve(fg.zeros(80, 80), fg.ones(80))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("upper, left, unitriangular", list(itertools.product([True, False], repeat=3)))
def test_solve_triangular_equals_that_of_pytorch(torch, kind, upper, left, unitriangular):
    given = arrays(kind, (3, 3), (3, 2) if left else (2, 3))
    compare(torch, call("solve_triangular", upper=upper, left=left, unitriangular=unitriangular), given)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("scipy", [True, False])
def test_large_triangular_systems_with_and_without_scipy(torch, upper, scipy, monkeypatch):
    from fastgrad.ops import _matrices

    if not scipy:
        monkeypatch.setattr(_matrices, "scipy_blas", lambda: None)
    a, b = arrays("real", (70, 70), (70, 2))
    compare(torch, call("solve_triangular", upper=upper), [a + 20 * np.eye(70), b])
    compare(torch, call("solve_triangular", upper=upper), [np.stack([a, a.T]) + 20 * np.eye(70), b])


def test_zero_on_the_diagonal_of_a_triangle_gives_infinities():
    x = fg.linalg.solve_triangular(fg.tensor([[1.0, 2.0], [0.0, 0.0]]), fg.ones(2, 1), upper=True)
    assert x.tolist() == [[-math.inf], [math.inf]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("shape", SQUARE)
def test_cholesky_equals_that_of_pytorch(torch, shape, upper, kind):
    compare(torch, lambda m, a: linalg(m, "cholesky")(positive(m, a), upper=upper), arrays(kind, shape))


def test_gradient_of_cholesky_is_symmetric(torch):
    (a,) = arrays("real", (3, 3))
    compare(torch, call("cholesky"), [a @ a.T + np.eye(3)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("upper", [True, False])
def test_cholesky_solve_and_inverse(torch, upper, kind):
    b, a = arrays(kind, (3, 2), (3, 3))

    def through(m, b, a):
        factor = linalg(m, "cholesky")(positive(m, a), upper=upper)
        return m.cholesky_solve(b, factor, upper=upper), m.cholesky_inverse(factor, upper=upper)

    compare(torch, through, [b, a])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", RECTANGULAR)
def test_lu_equals_that_of_pytorch(torch, shape, kind):
    compare(torch, lambda m, a: list(linalg(m, "lu")(a))[1:], arrays(kind, shape))
    compare(torch, lambda m, a: linalg(m, "lu_factor")(a)[0], arrays(kind, shape))


@pytest.mark.parametrize("scipy", [True, False])
def test_lu_multiplies_to_the_matrix_with_and_without_scipy(scipy, monkeypatch):
    from fastgrad.ops import factorizations

    if not scipy:
        monkeypatch.setattr(factorizations, "scipy_lapack", lambda: None)
    (a,) = arrays("real", (2, 5, 4))
    P, L, U = fg.linalg.lu(fg.from_numpy(a))
    np.testing.assert_allclose((P @ L @ U).numpy(), a, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left, adjoint", list(itertools.product([True, False], repeat=2)))
def test_lu_solve_equals_that_of_pytorch(torch, left, adjoint, kind):
    def through(m, a, b):
        return linalg(m, "lu_solve")(*linalg(m, "lu_factor")(a), b, left=left, adjoint=adjoint)

    compare(torch, through, arrays(kind, (3, 3), (3, 2) if left else (2, 3)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", RECTANGULAR)
def test_qr_equals_that_of_pytorch(torch, shape, kind):
    compare(torch, call("qr"), arrays(kind, shape))
    if shape[-2] <= shape[-1]:
        compare(torch, call("qr", mode="complete"), arrays(kind, shape))


def test_qr_without_a_derivative_says_so():
    a = fg.ones(3, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        fg.linalg.qr(a, "complete")[1].sum().backward()
    with pytest.raises(RuntimeError, match="derivative of linalg.qr depends on Q"):
        fg.linalg.qr(a, "r")[1].sum().backward()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a, tau", [((4, 3), (3,)), ((2, 4, 3), (2, 2))])
def test_householder_product_equals_that_of_pytorch(torch, a, tau, kind):
    compare(torch, call("householder_product"), arrays(kind, a, tau))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a, b", [((3, 2), (3, 2)), ((3, 2), (3,)), ((2, 3), (2, 2)), ((5, 3, 2), (5, 3))])
def test_lstsq_equals_that_of_pytorch(torch, a, b, kind):
    compare(torch, lambda m, x, y: linalg(m, "lstsq")(x, y)[0], arrays(kind, a, b))


def test_lstsq_residuals_are_differentiable(torch):
    compare(torch, lambda m, x, y: linalg(m, "lstsq")(x, y, driver="gelsd")[1], arrays("real", (4, 2), (4, 3)))


@pytest.mark.parametrize("kind", KINDS)
def test_tensorinv_tensorsolve_and_vander(torch, kind):
    compare(torch, call("tensorinv", ind=2), arrays(kind, (2, 3, 6)))
    compare(torch, call("tensorsolve"), arrays(kind, (2, 3, 6), (2, 3)))
    compare(torch, call("tensorsolve", dims=(0,)), arrays(kind, (6, 2, 3), (2, 3)))
    compare(torch, call("vander", N=2), arrays(kind, (2, 3)))


def test_vander_has_numpys_powers():
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(fg.vander(fg.from_numpy(x), 4).numpy(), np.vander(x, 4))
    np.testing.assert_array_equal(fg.vander(fg.from_numpy(x), increasing=True).numpy(), np.vander(x, increasing=True))


# --- Eigenvalues and singular values ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh_equals_that_of_pytorch(torch, uplo, kind):
    def both(m, a):
        values, vectors = linalg(m, "eigh")(a, UPLO=uplo)
        return values, squared(vectors)

    compare(torch, both, arrays(kind, (2, 3, 3)))
    compare(torch, lambda m, a: linalg(m, "eigvalsh")(hermitian(a), UPLO=uplo), arrays(kind, (3, 3)))


@pytest.mark.parametrize("kind", KINDS)
def test_eig_equals_that_of_pytorch(torch, kind):
    compare(torch, lambda m, a: squared(linalg(m, "eig")(a)[1]), arrays(kind, (3, 3)))
    compare(torch, lambda m, a: (linalg(m, "eigvals")(a) ** 3).sum(), arrays(kind, (3, 3)))

    def exponential(m, a):
        values, vectors = linalg(m, "eig")(a)
        return vectors @ (values.unsqueeze(-1).exp() * linalg(m, "inv")(vectors))

    compare(torch, exponential, arrays(kind, (3, 3)))


def test_gradient_of_equal_eigenvalues_is_the_projector():
    a = (2 * fg.eye(2, dtype=fg.float64)).requires_grad_()
    fg.linalg.eigvalsh(a).sum().backward()
    assert a.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_gradient_of_vectors_of_equal_eigenvalues_is_nan(torch):
    a = fg.eye(2, requires_grad=True)
    fg.linalg.eigh(a)[1].sum().backward()
    assert np.isnan(a.grad.numpy()).all()


def test_loss_of_a_phase_is_refused():
    a = fg.from_numpy(arrays("complex", (3, 3))[0]).requires_grad_()
    for name in ("eigh", "eig"):
        vectors = linalg(fg, name)(hermitian(a))[1]
        with pytest.raises(RuntimeError, match="ill-defined"):
            (vectors * fg.tensor([[1j, 2.0, 0.5]])).real.sum().backward()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [*RECTANGULAR, (0, 2)])
def test_singular_values_equal_those_of_pytorch(torch, shape, full, kind):
    compare(torch, lambda m, a: linalg(m, "svd")(a, full_matrices=full)[1], arrays(kind, shape))
    compare(torch, call("svdvals"), arrays(kind, shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", RECTANGULAR)
def test_singular_vectors_equal_those_of_pytorch(torch, shape, kind):
    def free_of_phases(m, a):
        U, S, Vh = linalg(m, "svd")(a, full_matrices=False)
        return squared(U), S, squared(Vh), U @ Vh

    compare(torch, free_of_phases, arrays(kind, shape))


def test_top_level_svd_gives_v():
    (a,) = arrays("complex", (3, 2))
    U, S, V = fg.svd(fg.from_numpy(a))
    np.testing.assert_allclose((U * S @ adjoint(V)).numpy(), a, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", RECTANGULAR)
def test_pinv_equals_that_of_pytorch(torch, shape, kind):
    compare(torch, call("pinv"), arrays(kind, shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{"rtol": 1e-10}, {"atol": 1e-3}, {"atol": 1e-3, "rtol": 1e-3}], ids=str)
def test_pinv_at_lower_rank(torch, options, kind):
    left, right = arrays(kind, (4, 2), (2, 3))
    compare(torch, call("pinv", **options), [left @ right], second=False)


@pytest.mark.parametrize("kind", KINDS)
def test_hermitian_pinv(torch, kind):
    compare(torch, lambda m, a: linalg(m, "pinv")(hermitian(a), hermitian=True), arrays(kind, (3, 3)))


# --- Functions of a matrix -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [-2, 0, 1, 3, 6])
def test_matrix_power_equals_that_of_pytorch(torch, n, kind):
    compare(torch, call("matrix_power", n), arrays(kind, (2, 3, 3)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 4.0])
def test_matrix_exp_equals_that_of_pytorch(torch, scale, kind):
    compare(torch, call("matrix_exp"), [scale * a for a in arrays(kind, (2, 3, 3))], tolerance=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [None, 2, -2])
def test_cond_equals_that_of_pytorch(torch, p, kind):
    compare(torch, call("cond", p), arrays(kind, (3, 3)))


@pytest.mark.parametrize("p", [1, -1, math.inf, -math.inf, "fro", "nuc"])
def test_cond_in_other_norms_is_numpys(p):
    (a,) = arrays("real", (3, 3))
    np.testing.assert_allclose(fg.linalg.cond(fg.from_numpy(a), p).item(), np.linalg.cond(a, p))


def test_matrix_rank():
    two = fg.stack([fg.tensor(SINGULAR), fg.eye(2)])
    assert fg.linalg.matrix_rank(two).tolist() == [1, 2]
    assert fg.linalg.matrix_rank(two, atol=10.0).tolist() == [0, 0]
    assert fg.linalg.matrix_rank(two, hermitian=True).tolist() == [1, 2]


# --- Failure ---------------------------------------------------------------------------------------------------------

BAD = [
    ("m.linalg.inv(singular)", "input matrix is singular"),
    ("m.linalg.inv(m.stack([eye, singular]))", "(Batch element 1): The"),
    ("m.linalg.solve(singular, eye)", "The solver failed because the input matrix is singular"),
    ("m.linalg.cholesky(singular)", "(the leading minor of order 2 is not positive-definite)"),
    ("m.linalg.cholesky(m.stack([eye, -eye]))", "(Batch element 1): The factorization could not be completed"),
    ("m.linalg.lu_factor(singular)", "U[2,2] is zero"),
    ("m.linalg.matrix_power(singular, -1)", "input matrix is singular"),
    ("m.linalg.svd(nan)", "input matrix contained non-finite values"),
    ("m.linalg.eig(nan)", "input tensor should not contain infs or NaNs"),
    ("m.linalg.det(m.ones(2, 3))", "must be batches of square matrices, but they are 2 by 3 matrices"),
    ("m.linalg.det(m.ones(2))", "must have at least 2 dimensions"),
    ("m.linalg.det(m.ones(2, 2, dtype=m.int64))", "Expected a floating point or complex tensor as input"),
    ("m.linalg.det(m.ones(2, 2, dtype=m.float16))", "not implemented for 'Half'"),
    ("m.linalg.solve(eye, eye.double())", "Expected A and B to have the same dtype"),
    ("m.linalg.solve(eye, m.ones(3))", "Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)"),
    ("m.linalg.solve_triangular(eye, m.ones(2), upper=True)", "B must have at least 2 dimensions"),
    ("m.linalg.eigh(eye, UPLO='X')", "Expected UPLO argument to be 'L' or 'U'"),
    ("m.linalg.qr(eye, mode='x')", "qr received unrecognized mode 'x'"),
    ("m.linalg.lstsq(eye, m.ones(3, 1))", "input.size(-2) should match other.size(-2)"),
    ("m.linalg.tensorinv(m.ones(4, 2, 3))", "Expected self to satisfy the requirement"),
]


@pytest.mark.parametrize("expression, phrase", BAD)
def test_failure_is_that_of_pytorch(torch, expression, phrase):
    def given(m):
        return {"m": m, "eye": m.eye(2), "singular": m.tensor(SINGULAR), "nan": m.full((2, 2), math.nan)}

    with pytest.raises(Exception) as expected:
        eval(expression, given(torch))
    with pytest.raises(RuntimeError) as found:
        eval(expression, given(fg))
    assert phrase in str(expected.value), "PyTorch says something else"
    assert phrase in str(found.value)
    if expected.typename == "_LinAlgError":
        assert isinstance(found.value, fg.linalg.LinAlgError)


def test_linalg_error_is_also_numpys():
    with pytest.raises(np.linalg.LinAlgError):
        fg.linalg.inv(fg.tensor(SINGULAR))


def test_forms_that_report_failure():
    singular, eye = fg.tensor(SINGULAR), fg.eye(2)
    assert fg.linalg.inv_ex(singular).info.item() == 2 and fg.linalg.inv_ex(eye).info.item() == 0
    assert fg.linalg.lu_factor_ex(singular).info.item() == 2
    assert fg.linalg.cholesky_ex(fg.stack([eye, singular])).info.tolist() == [0, 2]
    assert np.isnan(fg.linalg.solve_ex(singular, eye).result.numpy()).all()
    with pytest.raises(fg.linalg.LinAlgError):
        fg.linalg.inv_ex(singular, check_errors=True)


def test_not_finite_matrices_have_nan_eigenvalues():
    values = fg.linalg.eigvalsh(fg.stack([fg.eye(2), fg.full((2, 2), math.nan)]))
    assert values[0].tolist() == [1.0, 1.0] and np.isnan(values[1].numpy()).all()
