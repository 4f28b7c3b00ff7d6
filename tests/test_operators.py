"""One test per property, over all declarations: an operator that is declared is tested.

A declaration's samples give the arguments; where it has none, its domain does. References are central differences,
NumPy and, where it is installed, PyTorch. Whatever an operator is excused from stands in a table with the reason.
"""
import inspect
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import fastgrad as fg
from fastgrad import _kernels
from fastgrad.autograd.gradcheck import gradcheck, gradgradcheck
from fastgrad.ops import declarations

# What random arguments cannot serve (matrices that must be symmetric, factors of others), with the test of its own.
TESTED_IN = {
    "_cholesky": "test_ops_linalg.py: cholesky", "_cofactor": "test_ops_linalg.py: det",
    "_cofactor_vjp": "test_ops_linalg.py: det", "_eigvals": "test_ops_linalg.py: eigvals",
    "_eigvalsh": "test_ops_linalg.py: eigvalsh", "_solve_again": "test_ops_linalg.py: solve",
    "broadcast_shapes": "test_ops_shape.py: broadcast_shapes", "cholesky": "test_ops_linalg.py: cholesky",
    "cholesky_inverse": "test_ops_linalg.py: cholesky_inverse", "cholesky_solve": "test_ops_linalg.py: cholesky_solve",
    "linalg_cholesky": "test_ops_linalg.py: cholesky", "linalg_cholesky_ex": "test_ops_linalg.py: cholesky_ex",
    "linalg_eig": "test_ops_linalg.py: eig", "linalg_eigh": "test_ops_linalg.py: eigh",
    "linalg_eigvals": "test_ops_linalg.py: eigvals", "linalg_eigvalsh": "test_ops_linalg.py: eigvalsh",
    "linalg_lstsq": "test_ops_linalg.py: lstsq", "linalg_lu_solve": "test_ops_linalg.py: lu_solve",
    "linalg_svd": "test_ops_linalg.py: svd", "lu_solve": "test_ops_linalg.py: lu_solve",
    "svd": "test_ops_linalg.py: svd", "vander": "test_ops_linalg.py: vander",
}
ALL = [d for d in declarations.values() if d.name not in TESTED_IN]
DIFFERENTIABLE = [d for d in ALL if d.facts["differentiable"]]
OPERATORS = [d for d in DIFFERENTIABLE if not d.facts["composite"]]
ELEMENTWISE = [d for d in ALL if d.samples is None and not d.facts["composite"] and d.facts["public"]]
INPLACE = [d for d in ALL if d.facts["inplace"]]
NO_STEP_AT_ZERO = 0.2      # "nonzero" domains stay this far away from 0

WIDENS = {"float_power": "always float64", "_to_copy": "casts"}
LAYOUT_MATTERS = {
    "view": "refuses what needs a copy", "view_as_complex": "refuses a last dimension that is not contiguous",
    "as_strided": "means the memory", "_as_strided": "means the memory", "as_strided_scatter": "means the memory",
}
NOT_AS_PYTORCH = {
    "as_strided_scatter": "PyTorch's gradient of input is that of the overwritten elements",
    "bincount": "PyTorch's result claims to require grad, and fails in backward",
    "floor_divide": "PyTorch's has no derivative, here it is zero",
    "heaviside": "PyTorch's result claims to require grad, and fails in backward",
    "nextafter": "PyTorch's result claims to require grad, and fails in backward",
    "unique": "PyTorch's result claims to require grad, and fails in backward", "unique_consecutive": "as unique",
}
TORCH_REFUSES = {
    "index_fill": "an index counted from the end, in backward", "scatter": "an index smaller than src, in backward",
    "scatter_add": "an index smaller than src, in backward",
}
LESS_EXACT = {"polygamma": 1e-8}
NEAR_ZEROS = {"lgamma": 4}     # units in the last place of 1 that may be missing where the value is a difference


def named(items):
    return pytest.mark.parametrize("declaration", items, ids=lambda d: d.name)


# --- Arguments -------------------------------------------------------------------------------------------------------


class Maker:
    """Makes the random tensors of a declaration's samples.

    `layout` says how they lie in memory: "plain", "transposed" or "stepped" (not contiguous, not from the start).
    """

    def __init__(self, domain, dtype="float64", layout="plain", requires_grad=True, seed=7):
        self.rng = np.random.default_rng(seed)
        self.domain = domain
        self.dtype = fg.as_dtype(dtype) if hasattr(fg, "as_dtype") else np.dtype(dtype)
        self.layout = layout
        self.requires_grad = requires_grad

    def reals(self, shape):
        if self.domain == "integers":
            return self.rng.integers(0, 7, shape)
        if self.domain == "nonzero":
            return self.rng.uniform(NO_STEP_AT_ZERO, 3.0, shape) * self.rng.choice([-1.0, 1.0], shape)
        low, high = self.domain
        return self.rng.uniform(low, high, shape)

    def values(self, shape):
        kind = np.dtype(str(self.dtype).rpartition(".")[2])
        if self.domain == "integers":
            return np.asarray(self.reals(shape), np.int64)
        values = np.asarray(self.reals(shape))
        if kind.kind == "c":
            values = values + 1j * self.rng.uniform(0.3, 0.9, shape)
        return np.array(values, kind)

    def __call__(self, *shape):
        values = self.values(shape)
        if self.layout == "transposed" and len(shape) > 1:
            values = np.ascontiguousarray(values.T).T
        elif self.layout == "stepped" and shape:
            wide = np.zeros([2 * n + 1 for n in shape], values.dtype)
            view = wide[tuple(slice(1, None, 2) for _ in shape)]
            view[...] = values
            values = view
        t = fg.from_numpy(values)
        return t.requires_grad_() if self.requires_grad and values.dtype.kind in "fc" else t


def samples(declaration, **options):
    """The argument lists of a declaration."""
    make = Maker(declaration.domain, **options)
    if declaration.samples is not None:
        return list(declaration.samples(make))
    names = declaration.facts["tensor_names"] or tensor_parameters(declaration.function)
    one = [((make(3), make(3))[: len(names)], {}), ((make(2, 3), make(2, 3))[: len(names)], {})]
    if len(names) == 2:
        one += [((make(2, 3), make(3)), {}), ((make(2, 1), make(3)), {}), ((make(), make(2)), {})]
    return one


def tensor_parameters(function):
    return [p for p in inspect.signature(function).parameters if p in ("input", "other")]


def is_tensor(value):
    return isinstance(value, fg.Tensor)


def tensors_of(value):
    """The tensors in nested arguments or results, in order."""
    if is_tensor(value):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_of(v)]
    if isinstance(value, dict):
        return tensors_of(list(value.values()))
    return []


def mapped(value, change):
    """Nested arguments with every tensor replaced."""
    if is_tensor(value):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(v, change) for v in value))
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(v, change) for v in value)
    if isinstance(value, dict):
        return {k: mapped(v, change) for k, v in value.items()}
    return value


def leaves_of(args, kwargs):
    """The tensors to differentiate by: each once."""
    seen = {id(t): t for t in tensors_of((args, kwargs)) if t.requires_grad}
    return tuple(seen.values())


def checkable(declaration, args, kwargs):
    """A function of the differentiable tensors alone, for gradcheck, and these tensors."""
    leaves = tuple(fg.from_numpy(t.detach().numpy().copy()).requires_grad_() for t in leaves_of(args, kwargs))
    places = {id(t): i for i, t in enumerate(leaves_of(args, kwargs))}

    def function(*given):
        replaced = mapped((args, kwargs), lambda t: given[places[id(t)]] if id(t) in places else t)
        return tuple(tensors_of(declaration.function(*replaced[0], **replaced[1])))

    return function, leaves


def call(declaration, args, kwargs):
    return tensors_of(declaration.function(*args, **kwargs))


def array(t):
    return t.detach().numpy()


def assert_same(found, expected, rtol=1e-12, atol=1e-12):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape
        np.testing.assert_allclose(array(a), array(b), rtol=rtol, atol=atol)


def describe(args, kwargs):
    return f"arguments {mapped(args, lambda t: tuple(t.shape))} {mapped(kwargs, lambda t: tuple(t.shape))}"


def gradients(declaration, args, kwargs, create_graph=False):
    """Outputs and gradients of their sum weighted by 1, 2, 3, ..."""
    outputs = [t for t in call(declaration, args, kwargs) if t.requires_grad]
    if not outputs:
        return [], []
    weights = [fg.from_numpy(weights_like(array(t))) for t in outputs]
    found = fg.autograd.grad(outputs, leaves_of(args, kwargs), weights, allow_unused=True, create_graph=create_graph)
    return outputs, found


def weights_like(values):
    return np.asarray(np.arange(1, values.size + 1).reshape(values.shape) / max(values.size, 1), values.dtype)


def test_every_declaration_has_samples_or_tests_of_its_own():
    without = {d.name for d in declarations.values() if not samples(d)}
    assert without == set(TESTED_IN)
    for name, place in TESTED_IN.items():
        file, _, word = place.partition(": ")
        assert re.search(rf"\b{word}\b", (Path(__file__).parent / file).read_text(encoding="utf-8")), name


# --- Derivatives -----------------------------------------------------------------------------------------------------


@named(DIFFERENTIABLE)
def test_gradient_equals_central_differences(declaration):
    for args, kwargs in samples(declaration):
        function, leaves = checkable(declaration, args, kwargs)
        if leaves:
            assert gradcheck(function, leaves, check_grad_dtypes=True), describe(args, kwargs)


@named(DIFFERENTIABLE)
def test_second_derivative_equals_central_differences(declaration):
    for args, kwargs in samples(declaration):
        function, leaves = checkable(declaration, args, kwargs)
        if leaves and any(t.requires_grad for t in function(*leaves)):
            assert gradgradcheck(function, leaves, atol=1e-4), describe(args, kwargs)


@named([d for d in DIFFERENTIABLE if d.facts["complex"]])
def test_complex_gradient_equals_central_differences(declaration):
    try:
        given = samples(declaration, dtype="complex128")
    except NotImplementedError:
        pytest.skip("the samples compare, which complex numbers cannot")
    for args, kwargs in given:
        function, leaves = checkable(declaration, args, kwargs)
        if not leaves:
            continue
        try:
            function(*leaves)
        except NotImplementedError:
            pytest.skip("no complex kernel, said by an exception")
        assert gradcheck(function, leaves, check_grad_dtypes=True), describe(args, kwargs)
        assert gradgradcheck(function, leaves, atol=1e-4), describe(args, kwargs)


@named(DIFFERENTIABLE)
def test_float32_gives_float32_results_and_gradients(declaration):
    for (args, kwargs), (wide, wide_kwargs) in zip(samples(declaration, dtype="float32"), samples(declaration)):
        outputs, found = gradients(declaration, args, kwargs)
        _, expected = gradients(declaration, wide, wide_kwargs)
        if declaration.name not in WIDENS:
            for t in outputs:
                assert t.dtype in (fg.float32, fg.complex64), describe(args, kwargs)
        for leaf, g, exact in zip(leaves_of(args, kwargs), found, expected):
            assert (g is None) == (exact is None)
            if g is not None:
                assert g.dtype == leaf.dtype
                scale = np.abs(array(exact)).max(initial=1.0)
                np.testing.assert_allclose(array(g), array(exact), rtol=1e-3, atol=1e-3 * scale)


# --- The same as PyTorch ---------------------------------------------------------------------------------------------


def find_in_torch(torch, name):
    """PyTorch's function of that name, or None."""
    for prefix in ("linalg", "special", "fft"):
        if name.startswith(f"{prefix}_"):
            return getattr(getattr(torch, prefix), name.removeprefix(f"{prefix}_"), None)
    return getattr(torch, name, None) or getattr(torch.Tensor, name, None) or getattr(torch.nn.functional, name, None)


@named([d for d in ALL if not d.name.startswith("_") and d.name not in NOT_AS_PYTORCH])
def test_result_and_gradient_equal_those_of_pytorch(declaration, torch):
    function = find_in_torch(torch, declaration.name)
    if function is None:
        pytest.skip(f"PyTorch has no {declaration.name}")
    compared = 0
    given = samples(declaration)
    for args, kwargs in given:
        copies = {}

        def convert(t, copies=copies):
            if id(t) not in copies:
                copies[id(t)] = torch.from_numpy(array(t).copy()).requires_grad_(t.requires_grad)
            return copies[id(t)]

        leaves = leaves_of(args, kwargs)
        other_args, other_kwargs = converted(torch, (args, kwargs), convert)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = call(declaration, args, kwargs)
            try:
                theirs = torch_tensors(torch, function(*other_args, **other_kwargs))
            except (TypeError, RuntimeError, IndexError):
                continue            # what PyTorch's function does not take, such as a dim counted from the end
        compared += 1
        assert len(ours) == len(theirs), describe(args, kwargs)
        for a, b in zip(ours, theirs):
            assert tuple(a.shape) == tuple(b.shape), describe(args, kwargs)
            assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2], describe(args, kwargs)
            assert a.requires_grad == b.requires_grad, describe(args, kwargs)
            rtol = LESS_EXACT.get(declaration.name, 1e-10)
            np.testing.assert_allclose(array(a), b.numpy(force=True), rtol=rtol, atol=1e-12)
        roots = [(a, b) for a, b in zip(ours, theirs) if a.requires_grad]
        if not roots or not leaves:
            continue
        weights = [weights_like(array(a)) for a, _ in roots]
        mine = fg.autograd.grad([a for a, _ in roots], leaves, [fg.from_numpy(w) for w in weights], allow_unused=True)
        try:
            expected = torch.autograd.grad([b for _, b in roots], [convert(t) for t in leaves],
                                           [torch.from_numpy(w) for w in weights], allow_unused=True)
        except RuntimeError:
            assert declaration.name in TORCH_REFUSES, "PyTorch refuses to differentiate"
            continue
        for g, h in zip(mine, expected):
            if h is None or g is None:
                assert not np.any(array(g) if g is not None else 0)
                assert h is None or not h.any()
            else:
                np.testing.assert_allclose(array(g), h.numpy(force=True), rtol=1e-8, atol=1e-10)
    if given and not compared:
        pytest.skip("PyTorch's function takes none of the samples")


def converted(torch, value, convert):
    """Nested arguments for PyTorch: tensors by `convert`, dtypes by name."""
    if isinstance(value, fg.dtype):
        return getattr(torch, str(value).rpartition(".")[2])
    if isinstance(value, (tuple, list)) and not isinstance(value, fg.Size):
        return type(value)(converted(torch, v, convert) for v in value)
    if isinstance(value, dict):
        return {k: converted(torch, v, convert) for k, v in value.items()}
    return convert(value) if is_tensor(value) else value


def torch_tensors(torch, value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in torch_tensors(torch, v)] if isinstance(value, (tuple, list)) else []


# --- Shapes and memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["transposed", "stepped"])
@named([d for d in ALL if d.name not in LAYOUT_MATTERS])
def test_layout_in_memory_makes_no_difference(declaration, layout):
    for (args, kwargs), (odd, odd_kwargs) in zip(samples(declaration), samples(declaration, layout=layout)):
        assert_same(call(declaration, odd, odd_kwargs), call(declaration, args, kwargs))
        if declaration.facts["differentiable"]:
            found, expected = gradients(declaration, odd, odd_kwargs)[1], gradients(declaration, args, kwargs)[1]
            assert_same([g for g in found if g is not None], [g for g in expected if g is not None])


@named(ELEMENTWISE)
def test_expanded_inputs_equal_their_copies(declaration):
    make = Maker(declaration.domain)
    n = len(declaration.facts["tensor_names"])
    rows = [make(3) for _ in range(n)]
    wide = [t.expand(4, 3) for t in rows]
    copies = [fg.from_numpy(array(t).copy()).requires_grad_(t.requires_grad) for t in wide]
    assert_same(call(declaration, wide, {}), call(declaration, copies, {}))
    found, expected = gradients(declaration, wide, {})[1], gradients(declaration, copies, {})[1]
    assert_same([g for g in found if g is not None], [g for g in expected if g is not None])


@named([d for d in ELEMENTWISE if len(d.facts["tensor_names"]) == 2])
@pytest.mark.parametrize("shapes",
                         [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((2, 3), ()), ((1,), (4, 1)), ((0, 3), (1,))],
                         ids=str)
def test_broadcasting_equals_explicit_copies(declaration, shapes):
    make = Maker(declaration.domain)
    given = [make(*shape) for shape in shapes]
    full = np.broadcast_shapes(*shapes)
    copies = [fg.from_numpy(np.broadcast_to(array(t), full).copy()).requires_grad_(t.requires_grad) for t in given]
    assert_same(call(declaration, given, {}), call(declaration, copies, {}))
    for t, g, h in zip(given, gradients(declaration, given, {})[1], gradients(declaration, copies, {})[1]):
        if g is not None:
            assert g.shape == t.shape
            summed = array(h).sum(axis=tuple(range(h.ndim - t.ndim)))
            axes = tuple(i for i, (n, m) in enumerate(zip(t.shape, summed.shape)) if n != m)
            np.testing.assert_allclose(array(g), summed.sum(axis=axes, keepdims=True), rtol=1e-12, atol=1e-12)


@named(ELEMENTWISE)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,)], ids=str)
def test_empty_and_zero_dim_keep_their_shape(declaration, shape):
    make = Maker(declaration.domain)
    given = [make(*shape) for _ in declaration.facts["tensor_names"]]
    for t in call(declaration, given, {}):
        assert tuple(t.shape) == shape
    for g in gradients(declaration, given, {})[1]:
        assert g is None or tuple(g.shape) == shape


# --- In place, and what is saved -------------------------------------------------------------------------------------


@named(INPLACE)
def test_inplace_form_equals_the_operator(declaration):
    for args, kwargs in samples(declaration):
        expected = declaration.function(*args, **kwargs)
        if not is_tensor(args[0]) or expected.shape != args[0].shape or expected.dtype != args[0].dtype:
            continue
        outputs, gradients_expected = gradients(declaration, args, kwargs)
        target = args[0].clone()
        version = target._version
        result = getattr(target, f"{declaration.name}_")(*args[1:], **kwargs)
        assert result is target
        assert target._version > version
        np.testing.assert_allclose(array(target), array(expected), rtol=1e-12)
        if outputs:
            found = fg.autograd.grad(target, leaves_of(args, kwargs), fg.from_numpy(weights_like(array(target))),
                                     allow_unused=True, retain_graph=True)
            assert_same([g for g in found if g is not None], [g for g in gradients_expected if g is not None])


@named([d for d in OPERATORS if d.vjp])
def test_second_backward_works_exactly_if_nothing_was_saved(declaration):
    for args, kwargs in samples(declaration):
        outputs = [t for t in call(declaration, args, kwargs) if t.requires_grad]
        wanted = leaves_of(args, kwargs)
        if not outputs or not wanted:
            continue
        node = outputs[0].grad_fn
        saved = saved_by(declaration, args, kwargs)
        ones = [fg.from_numpy(np.ones_like(array(t))) for t in outputs]
        fg.autograd.grad(outputs, wanted, ones, allow_unused=True)
        if saved:
            with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time") as error:
                fg.autograd.grad(outputs, wanted, ones, allow_unused=True)
            assert type(node).__name__ in str(error.value)
        else:
            fg.autograd.grad(outputs, wanted, ones, allow_unused=True)


def saved_by(declaration, args, kwargs):
    """Names of what the operator saves for these arguments."""
    names = declaration.facts["tensor_names"]
    bound = dict(zip(inspect.signature(declaration.function).parameters, args)) | kwargs
    requiring = [n for n in names if any(t.requires_grad for t in tensors_of(bound.get(n)))]
    numbers = [n for n in names if not tensors_of(bound.get(n))]
    return [n for n in declaration.function.saves(*requiring) if n not in numbers]


# --- Fused loops -----------------------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, math.inf, -math.inf, math.nan, 1e-30, -1e30, 700.0, -700.0]
FUSED = sorted({op for op, role, _ in _kernels.fused_roles() if role != "forward" and op in declarations})
ULPS = 4


def special_arguments(n, dtype, layout):
    """All pairs of special values (or random ones after them), as n tensors."""
    rng = np.random.default_rng(3)
    pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL], dtype).T
    random = rng.uniform(-3, 3, (2, 4 * pairs.shape[1] + 4)).astype(dtype)
    both = np.concatenate([pairs, random], axis=1)[:, : 4 * 245].reshape(2, 4, 245)
    result = []
    for values in both[:n]:
        if layout == "strided":
            values = np.repeat(np.ascontiguousarray(values.T), 2, axis=0)[::2].T
        result.append(fg.from_numpy(values).requires_grad_())
    return result


def pulled_back(op, args, leaves, create_graph):
    """Gradients by the fused loops, or (create_graph) by the formulas."""
    out = op(*args)
    g = fg.from_numpy(np.linspace(-2, 2, out.numel()).reshape(tuple(out.shape)).astype(array(out).dtype))
    return [array(t) for t in fg.autograd.grad(out, leaves, g, create_graph=create_graph)]


def assert_within_ulps(found, expected, what, of_one=0):
    """Equal up to a few units in the last place; NaN, infinities and (for zeros) magnitude exactly."""
    assert found.dtype == expected.dtype, what
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), err_msg=what)
    finite = np.isfinite(expected) & np.isfinite(found)
    np.testing.assert_array_equal(found[~finite], expected[~finite], err_msg=what)
    allowed = ULPS * np.maximum(np.spacing(np.abs(expected[finite])), np.finfo(found.dtype).tiny)
    allowed += of_one * np.finfo(found.dtype).eps
    difference = np.abs(found[finite] - expected[finite])
    worst = np.argmax(difference - allowed) if difference.size else 0
    assert (difference <= allowed).all(), f"{what}: {found[finite][worst]!r} and {expected[finite][worst]!r}"


@pytest.mark.parametrize("layout", ["contiguous", "strided"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUSED)
def test_fused_derivative_equals_formula(name, dtype, layout):
    declaration = declarations[name]
    n = len(declaration.facts["tensor_names"])
    tensors = special_arguments(min(n, 2), dtype, layout)
    if n > 2:
        pytest.skip("three tensor arguments: see the samples' tests")
    fused = pulled_back(declaration.function, tensors, tensors, False)
    formula = pulled_back(declaration.function, tensors, tensors, True)
    for argument, a, b in zip(declaration.facts["tensor_names"], fused, formula):
        assert_within_ulps(a, b, f"{name}, derivative by {argument}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [n for n in FUSED if len(declarations[n].facts["tensor_names"]) == 2])
def test_fused_derivative_equals_formula_with_numbers_rows_and_scalars(name, dtype):
    op = declarations[name].function
    wide = special_arguments(1, dtype, "contiguous")[0]
    row = fg.from_numpy(np.linspace(-2, 3, wide.shape[-1]).astype(dtype)).requires_grad_()
    scalar = fg.tensor(1.5, dtype=wide.dtype).requires_grad_()
    for args, leaves in [((wide, 2.5), [wide]), ((2.5, wide), [wide]), ((wide, 0), [wide]),
                         ((wide, scalar.detach()), [wide]),
                         ((row.expand(4, -1), wide), [row, wide]), ((wide, scalar), [wide]), ((scalar, wide), [wide])]:
        try:
            fused = pulled_back(op, args, leaves, False)
        except TypeError:
            continue               # this operator takes no number there
        formula = pulled_back(op, args, leaves, True)
        for a, b in zip(fused, formula):
            if a.shape == wide.shape:       # a summed gradient adds in another order
                assert_within_ulps(a, b, f"{name}{tuple(type(t).__name__ for t in args)}")
            else:
                np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))


FUSED_FORWARD = sorted({op for op, role, _ in _kernels.fused_roles() if role == "forward" and op in declarations})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUSED_FORWARD)
def test_fused_forward_equals_pytorch(name, dtype, torch):
    function = find_in_torch(torch, name)
    n = len(declarations[name].facts["tensor_names"])
    if function is None or n > 2:
        pytest.skip("no function of one or two tensors of this name")
    tensors = [t.detach() for t in special_arguments(n, dtype, "contiguous")]
    expected = function(*(torch.from_numpy(array(t)) for t in tensors)).numpy()
    assert_within_ulps(array(declarations[name].function(*tensors)), expected, name, NEAR_ZEROS.get(name, 0))


# --- Bad input -------------------------------------------------------------------------------------------------------


PUBLIC_OPERATORS = [d for d in ALL if d.facts["public"] and not d.facts["composite"]]


@named(PUBLIC_OPERATORS)
@pytest.mark.parametrize("bad", [None, "text", object(), [1.0, "a"], {}], ids=["None", "str", "object", "list", "dict"])
def test_wrong_type_is_a_type_error_that_names_the_operator(declaration, bad):
    args, kwargs = samples(declaration)[0]
    with pytest.raises(TypeError, match=rf"\b{declaration.name}\b"):
        declaration.function(bad, *args[1:], **kwargs)


@named(PUBLIC_OPERATORS)
def test_wrong_keyword_is_a_type_error(declaration):
    args, kwargs = samples(declaration)[0]
    with pytest.raises(TypeError, match="unexpected keyword argument 'no_such_argument'"):
        declaration.function(*args, **kwargs, no_such_argument=1)


@named([d for d in ELEMENTWISE if len(d.facts["tensor_names"]) == 2])
def test_shapes_that_do_not_broadcast_are_a_runtime_error(declaration):
    make = Maker(declaration.domain)
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(4\) at "
                                           "non-singleton dimension 1"):
        declaration.function(make(2, 3), make(4))


@named(list(declarations.values()))
def test_declaration_says_what_it_is(declaration):
    text = declaration.function.__doc__
    assert declaration.name.startswith("_") or (text and len(text.split()) > 3), "a docstring"
    assert declaration.facts["source"]
    assert declaration.facts["composite"] or not declaration.facts["differentiable"] or declaration.vjp, (
        "either a derivative, or differentiable=False"
    )
