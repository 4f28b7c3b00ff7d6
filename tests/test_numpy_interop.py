"""NumPy's functions, ufuncs and arithmetic over tensors: the results are NumPy's, and part of the graph."""
import math

import numpy as np
import pytest

import fastgrad as fg

rng = np.random.default_rng(0)
X, Y = rng.random((3, 4)) + 0.2, rng.random((3, 4)) + 0.2
S = rng.random((3, 3)) + 3 * np.eye(3)
NAMES = {
    "X": X, "Y": Y, "S": S, "V": X[0], "M": X > 0.6, "Z": X + 1j * Y, "S3": np.stack([S, S + 1]),
    "I": np.array([[0, 2], [1, 0]]),
}

NEEDED = {"np.fft": "fft_fft", "np.i0": "special_i0"}

# The ufuncs whose arguments must be other than two arrays of positive numbers.
UFUNC_ARGUMENTS = {
    "arccosh": "X + 1", "acosh": "X + 1", "arcsin": "X / 2", "asin": "X / 2", "arccos": "X / 2", "acos": "X / 2",
    "arctanh": "X / 2", "atanh": "X / 2", "ldexp": "X, 2",
}
OTHER_UFUNCS = {"isnat", "bitwise_count", "spacing", "matmul", "matvec", "vecmat", "vecdot"}    # refused, or in lists

REDUCTIONS = [
    "np.sum(X)", "np.sum(X, axis=0)", "np.sum(X, axis=(0, 1), keepdims=True)", "np.sum(X, 0)", "np.prod(X)",
    "np.prod(X, axis=-1, keepdims=True)", "np.prod(X, axis=(0, 1))", "np.mean(X)", "np.mean(X, axis=1)", "np.var(X)",
    "np.var(X, axis=0, ddof=1)", "np.std(X, axis=0)", "np.std(X)", "np.max(X)", "np.max(X, axis=1)",
    "np.amin(X, axis=(0, 1))", "np.min(X, axis=0, keepdims=True)", "np.argmax(X)", "np.argmin(X, axis=1)", "np.all(M)",
    "np.any(M, axis=0)", "np.all(M, axis=(0, 1))", "np.ptp(X)", "np.ptp(X, axis=0)", "np.nansum(X)",
    "np.nansum(X, axis=0)", "np.nanmean(X, axis=1)", "np.cumsum(X)", "np.cumsum(X, axis=1)", "np.cumprod(X, axis=0)",
    "np.quantile(X, 0.3)", "np.quantile(X, [0.3, 0.5], axis=1)", "np.percentile(X, 30)",
    "np.percentile(X, [30, 50], axis=0)", "np.median(X)", "np.median(X, axis=1)", "np.nanmedian(X, axis=1)",
    "np.average(X)", "np.average(X, axis=1, weights=V)", "np.count_nonzero(M)", "np.count_nonzero(X, axis=0)",
    "np.trapezoid(X)", "np.trapezoid(X, dx=0.5, axis=0)", "np.trapezoid(X, Y)", "np.diff(X)", "np.diff(X, 2, axis=0)",
    "np.cov(X)", "np.corrcoef(X)", "np.cumulative_sum(V)", "np.cumulative_sum(X, axis=0)", "np.nanmax(X)",
    "np.nanmin(X, axis=0)", "np.nanstd(X)", "np.nanvar(X, axis=0)", "np.nanprod(X)", "np.nancumsum(X)",
]

SHAPES = [
    "np.transpose(X)", "np.transpose(X, (1, 0))", "np.reshape(X, (4, 3))", "np.reshape(X, -1)",
    'np.reshape(X, (4, 3), order="F")', "np.ravel(X)", "np.expand_dims(X, 0)", "np.expand_dims(X, (0, -1))",
    "np.squeeze(np.expand_dims(X, 0))", "np.squeeze(np.expand_dims(X, 0), axis=0)", "np.broadcast_to(V, (3, 4))",
    "np.broadcast_arrays(V, X)", "np.concatenate([X, Y])", "np.concatenate([X, Y], axis=1)",
    "np.concatenate([X, Y], axis=None)", "np.stack([X, Y], axis=-1)", "np.vstack([X, Y])", "np.hstack([X, Y])",
    "np.dstack([X, Y])", "np.column_stack([X, Y])", "np.append(X, Y)", "np.append(X, Y, axis=0)",
    "np.array_split(X, 3, axis=1)", "np.split(X, 2, axis=1)", "np.split(X, [1, 3], axis=1)", "np.hsplit(X, 2)",
    "np.vsplit(X, 3)", "np.flip(X)", "np.flip(X, 0)", "np.fliplr(X)", "np.flipud(X)", "np.roll(X, 2)",
    "np.roll(X, 1, axis=1)", "np.roll(X, (1, 1), axis=(0, 1))", "np.rot90(X)", "np.rot90(X, 2)",
    "np.rot90(X, 1, (1, 0))", "np.tile(X, 2)", "np.tile(X, (2, 1))", "np.repeat(X, 2)", "np.repeat(X, 2, axis=1)",
    "np.repeat(X, [1, 2, 3], axis=0)", "np.diagonal(S)", "np.diagonal(S3, axis1=1, axis2=2)", "np.diag(S)",
    "np.diag(V)", "np.diag(V, 1)", "np.diagflat(V)", "np.trace(S)", "np.trace(S3, axis1=1, axis2=2)", "np.tril(S)",
    "np.triu(S, 1)", "np.triu(S, k=1)", "np.meshgrid(V, V)", 'np.meshgrid(V, X[:, 0], indexing="ij")',
    "np.atleast_1d(X)", "np.atleast_2d(V)", "np.atleast_3d(X)", "np.atleast_1d(X, V)", "np.moveaxis(S3, 0, -1)",
    "np.swapaxes(X, 0, 1)", "np.matrix_transpose(S)", "np.permute_dims(X, (1, 0))", "np.bool_(True) * X",
    "np.pad(X, 1)", "np.pad(X, ((1, 2), (0, 1)), constant_values=3.0)", "np.concat([X, Y])", "np.unstack(X)",
    "np.block([[X, Y], [Y, X]])",
]

CHOICES = [
    "np.where(M, X, Y)", "np.where(M, X, 0.0)", "np.where(M)", "np.nonzero(M)", "np.flatnonzero(M)", "np.argwhere(M)",
    "np.take(X, [0, 2], axis=1)", "np.take(X, I)", "np.take(X, I, axis=0)",
    "np.take_along_axis(X, np.argsort(X, axis=1), axis=1)", "np.compress([True, False, True], X, axis=0)",
    "np.sort(X)", "np.sort(X, axis=0)", "np.sort(X, axis=None)", "np.argsort(X)", "np.clip(X, 0.3, 0.7)",
    "np.clip(X, None, 0.7)", "np.clip(X, min=0.3)", "np.clip(X, Y, 1)", "np.round(X, 1)", "np.round(X)",
    "np.around(X, 2)", "np.fix(X * 3)", "np.angle(Z)", "np.angle(Z, deg=True)", "np.real(Z)", "np.imag(Z)", "np.i0(X)",
    "np.sinc(X)", "np.nan_to_num(X)", "np.searchsorted(np.sort(V), X)", 'np.searchsorted(np.sort(V), X, side="right")',
    "np.unique(I)", "np.argwhere(X)", "np.select([M, ~M], [X, Y])", "np.select([M], [X], 1.0)",
    "np.digitize(X, [0.2, 0.5])", "np.insert(V, 1, 5.0)", "np.delete(X, 1, axis=0)", "np.extract(M, X)",
]

PRODUCTS = [
    "np.matmul(X, Y.T)", "np.dot(X, Y.T)", "np.dot(V, V)", "np.dot(S3, S3)", "np.dot(S3, S[0])", "np.dot(2.0, X)",
    "np.vdot(X, Y)", "np.vdot(Z, Z)", "np.inner(X, Y)", "np.outer(X, Y)", "np.tensordot(X, Y, axes=([0, 1], [0, 1]))",
    'np.einsum("ij,kj->ik", X, Y)', 'np.einsum("ij->", X)', "np.einsum(X, [0, 1], Y, [2, 1], [0, 2])", "np.kron(X, Y)",
    "np.cross(S, S[0])", "np.cross(S, S.T, axis=0)", "np.linalg.norm(X)", "np.linalg.norm(X, axis=1)",
    "np.linalg.norm(X, 1)", 'np.linalg.norm(X, "nuc")', "np.linalg.norm(V, 3)", "np.linalg.norm(S3)",
    "np.linalg.norm(X, ord=2, axis=(0, 1), keepdims=True)", "np.linalg.svd(X, full_matrices=False)",
    "np.linalg.svd(X, compute_uv=False)", "np.linalg.qr(X)", 'np.linalg.qr(X, "r")', "np.linalg.pinv(X)",
    "np.linalg.lstsq(X.T, V)", "np.linalg.lstsq(X.T, Y.T, rcond=None)", "np.linalg.eigh(S + S.T)",
    "np.linalg.eigvalsh(S + S.T)", "np.linalg.cholesky(S @ S.T)", "np.linalg.cholesky(S @ S.T, upper=True)",
    "np.linalg.solve(S, S[0])", "np.linalg.solve(S, S)", "np.linalg.cond(S)", "np.linalg.matrix_rank(S)",
    "np.linalg.multi_dot([X, Y.T, S])", "np.linalg.det(S)", "np.linalg.slogdet(S3)", "np.linalg.inv(S3)",
    "np.linalg.eig(S)", "np.linalg.eigvals(S)", "np.linalg.matrix_power(S, 3)", "np.linalg.vector_norm(X, axis=1)",
    "np.linalg.matrix_norm(X)", "np.linalg.cross(S, S.T)", "np.linalg.vecdot(X, Y)", "np.linalg.svdvals(X)",
    "np.linalg.matrix_transpose(S3)", "np.linalg.diagonal(S3)", "np.linalg.trace(S3)", "np.linalg.matmul(S, S)",
    "np.linalg.outer(V, V)", "np.vecdot(X, Y)", "np.matvec(S, S[0])", "np.vecmat(S[0], S)", "np.vander(V)",
]

TRANSFORMS = [
    "np.fft.fft(X)", "np.fft.rfft(X, axis=0)", "np.fft.irfft(Z)", "np.fft.fft2(X)", "np.fft.fftshift(X)",
    'np.fft.fftn(X, norm="ortho")',
]

METHODS = [
    "np.add.reduce(X)", "np.add.reduce(X, axis=None)", "np.multiply.reduce(X, axis=1)",
    "np.maximum.reduce(X, axis=(0, 1))", "np.minimum.reduce(X)", "np.logical_and.reduce(M)",
    "np.logaddexp.reduce(X, axis=0)", "np.add.reduce(X, initial=3.0)", "np.add.accumulate(X)",
    "np.maximum.accumulate(X, axis=1)", "np.logaddexp.accumulate(X, axis=1)", "np.multiply.outer(X, V)",
    "np.subtract.outer(V, V)", "np.add(X, 1)", "np.add(1.5, X)", "np.add(X, np.float32(1))",
    "np.multiply(X, np.array(2.0))", "np.add(X, [1, 2, 3, 4])", "np.add(X, Y, dtype=np.float32)", "np.float64(2) * X",
    "np.float64(2) ** X", "np.int64(3) - X", "np.float32(3) / X", "X ** np.float64(2)",
]

QUESTIONS = [
    "np.isclose(X, Y)", "np.allclose(X, X)", "np.array_equal(X, X)", "np.array_equal(X, Y)", "np.iscomplexobj(Z)",
    "np.isreal(X)", "np.isin(I, [0, 1])", "np.zeros_like(X)", "np.ones_like(X)", "np.full_like(X, 2.0)", "np.copy(X)",
    "np.shape(X)", "np.ndim(X)", "np.size(X)", "np.size(X, 0)", "np.result_type(X, np.float32)", "np.array2string(I)",
    "np.array_repr(I)", "np.astype(X, np.float32)",
]

REFUSED = [
    "np.histogram(X)", "np.gradient(V)", "np.apply_along_axis(np.sum, 0, X)", "np.spacing(X)",
    "np.multiply.at(X, 0, 2.0)",
    "np.linalg.svd(X, foo=1)", "np.interp(X, V, V)",
]
REFUSED_METHODS = ["np.add.reduceat(X, [0])", "np.subtract.reduce(X)", "np.divide.accumulate(X)"]


def leaf(value):
    if not isinstance(value, np.ndarray):
        return value
    t = fg.from_numpy(value.copy())
    return t.requires_grad_() if value.dtype.kind in "fc" else t


def flat(value):
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


def both(expression):
    """The expression over arrays and over tensors."""
    tensors = {name: leaf(value) for name, value in NAMES.items()}
    return eval(expression, {"np": np, **NAMES}), eval(expression, {"np": np, **tensors}), tensors


def ufunc_expressions():
    for name in dir(np):
        ufunc = getattr(np, name)
        if not isinstance(ufunc, np.ufunc) or name in OTHER_UFUNCS:
            continue
        floats = any(types.startswith("d" * ufunc.nin) for types in ufunc.types)
        default = ("X, Y" if floats else "I, I") if ufunc.nin == 2 else ("X" if floats else "I")
        yield f"np.{name}({UFUNC_ARGUMENTS.get(name, default)})"


@pytest.mark.parametrize("expression", [
    *ufunc_expressions(), *REDUCTIONS, *SHAPES, *CHOICES, *PRODUCTS, *TRANSFORMS, *METHODS, *QUESTIONS,
])
def test_result_is_that_of_numpy(expression):
    for prefix, needed in NEEDED.items():
        if expression.startswith(prefix) and needed not in fg.ops.declarations:
            pytest.skip(f"{needed} is not declared")
    arrays, tensors, _ = both(expression)
    for expected, found in zip(flat(arrays), flat(tensors), strict=True):
        if isinstance(expected, (bool, str, int, np.dtype)):
            assert found == expected
            continue
        assert isinstance(found, fg.Tensor)
        assert tuple(found.shape) == np.shape(expected)
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("expression", [
    "np.exp(X)", "np.sum(X, axis=0)", "np.mean(X)", "np.std(X, axis=1)", "np.max(X)", "np.median(X)",
    "np.reshape(X, -1)",
    "np.concatenate([X, Y])", "np.where(M, X, Y)", "np.dot(X, Y.T)", "np.einsum('ij,kj->ik', X, Y)",
    "np.linalg.solve(S, S[0])",
    "np.linalg.norm(X)", "np.add.reduce(X)", "np.multiply.outer(V, V)", "np.cumsum(X)", "np.sort(X)",
    "np.take(X, [0, 2], axis=1)",
    "np.clip(X, 0.3, 0.7)", "np.pad(X, 1)", "np.nanmax(X)", "np.cbrt(X)", "np.float64(2.0) ** X", "np.cov(X)",
    "np.percentile(X, 30)",
])
def test_result_is_differentiable(expression):
    _, result, tensors = both(expression)
    result.sum().backward()
    tracked = {name: t for name, t in tensors.items() if getattr(t, "grad", None) is not None}
    assert tracked
    for name, t in tracked.items():
        changed = dict(NAMES)
        numeric = np.zeros_like(NAMES[name])
        for place in np.ndindex(NAMES[name].shape):
            ends = []
            for step in (1e-6, -1e-6):
                changed[name] = NAMES[name].copy()
                changed[name][place] += step
                if name == "X":
                    changed["V"] = NAMES["V"]
                ends.append(np.sum(eval(expression, {"np": np, **changed})))
            numeric[place] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(t.grad.numpy(), numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("expression", REFUSED)
def test_what_is_not_covered_is_refused_by_name(expression):
    tensors = {name: leaf(value) for name, value in NAMES.items()}
    with pytest.raises(TypeError, match="numpy|svd"):
        eval(expression, {"np": np, **tensors})


@pytest.mark.leaves_memory(reason="NumPy 2.4 leaks the array of a ufunc's method whose __array_ufunc__ raises")
@pytest.mark.parametrize("expression", REFUSED_METHODS)
def test_methods_of_ufuncs_without_a_meaning_are_refused(expression):
    with pytest.raises(TypeError, match="numpy"):
        eval(expression, {"np": np, "X": leaf(X)})


# --- Arithmetic ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "**", "//", "%"])
def test_ndarray_and_tensor_in_both_orders(symbol):
    for expression in (f"X {symbol} T", f"T {symbol} X", f"np.float64(3.0) {symbol} T", f"T {symbol} np.int64(3)"):
        found = eval(expression, {"np": np, "X": X, "T": leaf(Y)})
        assert isinstance(found, fg.Tensor) and (found.requires_grad or symbol == "//")
        np.testing.assert_allclose(found.detach().numpy(), eval(expression, {"np": np, "X": X, "T": Y}))


@pytest.mark.parametrize("symbol", ["<", "<=", "==", "!=", ">", ">="])
def test_comparison_with_an_ndarray_is_a_bool_tensor(symbol):
    for expression in (f"X {symbol} T", f"T {symbol} X"):
        found = eval(expression, {"X": X, "T": leaf(Y)})
        assert isinstance(found, fg.Tensor) and found.dtype == fg.bool
        np.testing.assert_array_equal(found.numpy(), eval(expression, {"X": X, "T": Y}))


def test_ndarray_matmul_tensor():
    x = fg.tensor([1.0, 1.0], dtype=fg.float64, requires_grad=True)
    y = np.array([[1.0, 2.0], [3.0, 4.0]]) @ x
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_numpy_number_does_not_widen_the_dtype():
    assert (np.float64(2) * fg.ones(2)).dtype == fg.float32
    assert (np.ones(2) * fg.ones(2)).dtype == fg.float64


def test_array_is_copied_where_a_function_saves_it():
    a = np.array([1.0, 2.0])
    x = fg.ones(2, dtype=fg.float64, requires_grad=True)
    y = np.dot(x, a)
    a[:] = 0.0
    y.backward()
    assert x.grad.tolist() == [1.0, 2.0]


# --- Writing ---------------------------------------------------------------------------------------------------------


def test_inplace_operator_on_an_ndarray_writes_it():
    a = np.ones(2)
    b = a
    a += fg.tensor([1.0, 2.0])
    assert b.tolist() == [2.0, 3.0]


def test_inplace_operator_on_an_ndarray_does_not_drop_a_gradient():
    a = np.ones(2)
    with pytest.raises(RuntimeError, match="requires grad, which an ndarray cannot record"):
        a += fg.ones(2, requires_grad=True)
    assert a.tolist() == [1.0, 1.0]


def test_out_of_a_tensor_is_recorded():
    x, out = fg.tensor([1.0, 2.0], requires_grad=True), fg.zeros(2)
    assert np.multiply(x, 3.0, out=out) is out
    out.sum().backward()
    assert out.tolist() == [3.0, 6.0] and x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="non-broadcastable output operand"):
        np.multiply(x, 3.0, out=fg.zeros(3))


def test_add_at_accumulates_repeated_indices():
    target, values = fg.zeros(3), fg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    np.add.at(target, fg.tensor([0, 0, 2]), values)
    (target * fg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert target.tolist() == [3.0, 0.0, 3.0] and values.grad.tolist() == [1.0, 1.0, 100.0]
    with pytest.raises(RuntimeError, match="an ndarray cannot record"):
        np.add.at(np.zeros(3), [0, 0, 2], values)


# --- Conversions -----------------------------------------------------------------------------------------------------


def test_asarray_of_a_tracked_tensor_is_refused():
    x = fg.ones(2, requires_grad=True)
    for convert in (np.asarray, np.array, lambda t: np.array([t[0], t[1]])):
        with pytest.raises(RuntimeError, match="requires grad"):
            convert(x)
    assert np.asarray(x.detach()).tolist() == [1.0, 1.0]


def test_unknown_operands_are_left_to_their_own_methods():
    class Other:
        __array_ufunc__ = None

        def __rmul__(self, other):
            return "other's"

    assert fg.ones(2) * Other() == "other's"
    with pytest.raises(TypeError):
        np.multiply(fg.ones(2), object())


def test_ufuncs_of_scipy_dispatch():
    special = pytest.importorskip("scipy.special")
    x = fg.tensor([0.5, 1.5], dtype=fg.float64, requires_grad=True)
    for ufunc in (special.expit, special.gammaln, special.psi, special.erf):
        y = ufunc(x)
        assert y.requires_grad
        np.testing.assert_allclose(y.detach().numpy(), ufunc(x.detach().numpy()))
    with pytest.raises(TypeError, match="voigt_profile"):
        special.voigt_profile(x, 1.0, 1.0)


def test_nan_reduction_of_nothing_but_nan_is_nan():
    a = fg.tensor([[math.nan, math.nan], [1.0, math.nan]])
    found = np.nanmax(a, axis=1)
    assert math.isnan(found[0].item()) and found[1].item() == 1.0
