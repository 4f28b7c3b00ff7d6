"""How tensors look: fixed strings for each rule, and PyTorch's strings for random tensors where it is installed."""
import re

import numpy as np
import pytest

import fastgrad as fg
from fastgrad._dtypes import DTYPES
from fastgrad._printing import get_printoptions, printoptions, set_printoptions

nan, inf = np.nan, np.inf


@pytest.fixture(autouse=True)
def default_options():
    yield
    set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (1.5, "tensor(1.5000)"),
        (2.0, "tensor(2.)"),
        (-0.0, "tensor(-0.)"),
        (3, "tensor(3)"),
        (True, "tensor(True)"),
        (1 - 2j, "tensor(1.-2.j)"),
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([1.0, 2.5], "tensor([1.0000, 2.5000])"),
        ([1, -20], "tensor([  1, -20])"),
        ([True, False], "tensor([ True, False])"),
        ([0.5 + 1j, -1.0], "tensor([ 0.5000+1.j, -1.0000+0.j])"),
        ([1e10, 1.0], "tensor([1.0000e+10, 1.0000e+00])"),
        ([1e-5], "tensor([1.0000e-05])"),
        ([1000.5, 1.0], "tensor([1.0005e+03, 1.0000e+00])"),
        ([nan, inf, -inf], "tensor([nan, inf, -inf])"),
        ([nan, inf, 1.0], "tensor([nan, inf, 1.])"),
        ([nan, 0.5], "tensor([   nan, 0.5000])"),
        ([[1.0, 2.0], [3.0, 4.0]], "tensor([[1., 2.],\n        [3., 4.]])"),
        ([[[1]], [[2]]], "tensor([[[1]],\n\n        [[2]]])"),
        ([], "tensor([])"),
    ],
    ids=repr,
)
def test_elements(data, expected):
    assert repr(fg.tensor(data)) == expected


@pytest.mark.parametrize("name", ["int64", "bool", "float32", "complex64"])
def test_dtype_that_the_elements_show_is_hidden(name):
    assert "dtype" not in repr(fg.ones(1, dtype=name))


@pytest.mark.parametrize("name", ["uint8", "int32", "float16", "float64", "complex128"])
def test_other_dtype_is_shown(name):
    assert repr(fg.ones(1, dtype=name)).endswith(f", dtype=fastgrad.{name})")


def test_empty_tensor_shows_shape_and_dtype():
    assert repr(fg.zeros(0, 3)) == "tensor([], size=(0, 3))"
    assert repr(fg.zeros(0, dtype=fg.int64)) == "tensor([], dtype=fastgrad.int64)"


def test_default_dtype_is_the_one_hidden():
    before = fg.get_default_dtype()
    try:
        fg.set_default_dtype(fg.float64)
        assert repr(fg.tensor([0.5])) == "tensor([0.5000])"
        assert repr(fg.ones(1, dtype=fg.float32)) == "tensor([1.], dtype=fastgrad.float32)"
    finally:
        fg.set_default_dtype(before)


def test_leaf_shows_requires_grad():
    assert repr(fg.tensor([1.0], requires_grad=True)) == "tensor([1.], requires_grad=True)"


def test_result_shows_its_node():
    x = fg.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x * x) == "tensor([1., 4.], grad_fn=<MulBackward0>)"


def test_str_is_repr():
    assert str(fg.ones(2)) == repr(fg.ones(2))


def test_printing_records_nothing():
    x = fg.tensor([1.0], requires_grad=True)
    y = x * x
    node = y.grad_fn
    repr(y)
    assert y.grad_fn.next_functions == node.next_functions
    assert x._version == 0


def test_edges_of_a_large_vector():
    assert repr(fg.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"


def test_edges_of_a_large_matrix_are_summarized_in_both_dimensions():
    lines = repr(fg.zeros(100, 100)).splitlines()
    assert lines == [
        "tensor([[0., 0., 0.,  ..., 0., 0., 0.],",
        "        [0., 0., 0.,  ..., 0., 0., 0.],",
        "        [0., 0., 0.,  ..., 0., 0., 0.],",
        "        ...,",
        "        [0., 0., 0.,  ..., 0., 0., 0.],",
        "        [0., 0., 0.,  ..., 0., 0., 0.],",
        "        [0., 0., 0.,  ..., 0., 0., 0.]])",
    ]


def test_summary_formats_only_what_it_shows():
    """A tensor over ten billion elements of one number: copying or converting them would be noticed."""
    huge = fg.from_numpy(np.broadcast_to(np.float32(1), (100_000, 100_000)))
    assert repr(huge).count("1.") == 36


def test_lines_are_broken_at_80_characters():
    lines = repr(fg.arange(100)).splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line.startswith("        ") for line in lines[1:])


def test_a_fact_that_does_not_fit_goes_to_a_line_of_its_own():
    x = fg.tensor([1.5] * 8, requires_grad=True)
    assert repr(x).splitlines()[1:] == ["       requires_grad=True)"]


def test_64_dimensions():
    assert repr(fg.zeros((1,) * 64)) == "tensor(" + "[" * 64 + "0." + "]" * 64 + ")"


# --- Options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (dict(precision=1), "tensor([0.2, 0.5, 1.0])"),
        (dict(sci_mode=True), "tensor([2.5000e-01, 5.0000e-01, 1.0000e+00])"),
        (dict(threshold=2, edgeitems=1), "tensor([0.2500,  ..., 1.0000])"),
        (dict(linewidth=20), "tensor([0.2500,\n        0.5000,\n        1.0000])"),
        (dict(profile="short"), "tensor([0.25, 0.50, 1.00])"),
    ],
    ids=repr,
)
def test_option(options, expected):
    set_printoptions(**options)
    assert repr(fg.tensor([0.25, 0.5, 1.0])) == expected


def test_options_are_restored_after_a_with_block():
    before = get_printoptions()
    with printoptions(precision=1, sci_mode=True):
        assert get_printoptions()["precision"] == 1
    assert get_printoptions() == before


def test_profile_full_shows_everything():
    set_printoptions(profile="full")
    assert "..." not in repr(fg.arange(2000))


def test_bad_option_raises():
    with pytest.raises(ValueError, match="unknown profile 'x'"):
        set_printoptions(profile="x")
    with pytest.raises(ValueError, match="precision must not be negative"):
        set_printoptions(precision=-1)


# --- format() --------------------------------------------------------------------------------------------------------


def test_format_of_a_0_dim_tensor_is_that_of_its_number():
    assert f"{fg.tensor(3.14159, requires_grad=True):.2f}" == "3.14"
    assert f"{fg.tensor(7):>4d}" == "   7"


def test_format_without_specification_is_str():
    assert f"{fg.tensor([1.0])}" == "tensor([1.])"


def test_format_of_a_vector_with_a_specification_raises():
    with pytest.raises(TypeError, match=r"unsupported format string passed to Tensor.__format__"):
        f"{fg.ones(2):.2f}"


# --- Against PyTorch -------------------------------------------------------------------------------------------------

# fmt: off
SHAPES = [
    (), (1,), (5,), (0,), (0, 3), (30,), (1001,), (2, 3), (3, 1, 4), (7, 7, 7), (50, 50), (11, 11, 11), (2, 600),
    (600, 2), (2, 3, 4, 5, 10), (8, 2, 70), (1,) * 20,
]
OPTIONS = [
    {}, {}, {}, dict(precision=2), dict(threshold=5), dict(threshold=5, edgeitems=1), dict(threshold=5, edgeitems=0),
    dict(linewidth=40), dict(linewidth=1), dict(profile="short"), dict(profile="full"), dict(sci_mode=True),
    dict(sci_mode=False), dict(threshold=0), dict(precision=0), dict(precision=8, edgeitems=5),
]
# fmt: on


def random_array(rng, dtype, shape):
    """Values of every magnitude and kind: whole, tiny, huge, spread, zeros of both signs, and not finite ones."""
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = [(0, 10), (limits.min // 3, limits.max // 3), (0, 100)][rng.integers(3)]
        return np.asarray(rng.integers(low, high, shape)).astype(dtype)
    if dtype.kind == "c":
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        unit = dtype.type(1 if rng.random() < 0.5 else 1j)
        return np.asarray(random_array(rng, part, shape) * unit).astype(dtype)
    values = [
        lambda: rng.standard_normal(shape),
        lambda: rng.standard_normal(shape) * 10.0 ** rng.integers(-12, 12),
        lambda: np.round(rng.standard_normal(shape) * 10.0 ** rng.integers(0, 10)),
        lambda: 10.0 ** rng.uniform(-6, 6, shape),
        lambda: np.zeros(shape),
        lambda: rng.uniform(0.5, 2, shape) * 100,
    ][rng.integers(6)]()
    array = np.array(values)
    if rng.random() < 0.3:
        for special in (nan, inf, -inf, -0.0):
            array[rng.random(shape) < 0.2] = special
    return array.astype(dtype)


def without_breaks(text):
    """PyTorch breaks before a fact where it fits with its own, three letters shorter, name in it."""
    return re.sub(r",\s+(dtype|grad_fn|requires_grad|size)=", r", \1=", text)


@pytest.mark.parametrize("d", DTYPES, ids=lambda d: d.name)
@np.errstate(all="ignore")
def test_repr_is_that_of_torch(d):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(d.code)
    try:
        for _ in range(300):
            array = random_array(rng, d.numpy, SHAPES[rng.integers(len(SHAPES))])
            options = OPTIONS[rng.integers(len(OPTIONS))]
            torch.set_printoptions(profile="default")
            torch.set_printoptions(**options)
            set_printoptions(profile="default")
            set_printoptions(**options)
            ours, theirs = fg.tensor(array), torch.tensor(array)
            if d.category > 1 and rng.random() < 0.3:
                ours.requires_grad_()
                theirs.requires_grad_()
            expected = repr(theirs).replace("torch.", "fastgrad.")
            assert without_breaks(repr(ours)) == without_breaks(expected), (array.shape, options)
    finally:
        torch.set_printoptions(profile="default")
