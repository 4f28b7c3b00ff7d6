"""Dtypes, promotion and shapes: against NumPy, and against PyTorch where it is installed."""
import copy
import itertools
import pickle

import numpy as np
import pytest

import fastgrad as fg
from fastgrad._dtypes import DTYPES, PROMOTE, as_dtype, default_complex, number_code
from fastgrad._size import Size, sizes_of

each_dtype = pytest.mark.parametrize("d", DTYPES, ids=lambda d: d.name)
LARGE_UNSIGNED = {"uint16", "uint32", "uint64"}  # PyTorch does not promote these with other integers


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def default_dtype():
    """Sets the default dtype, and restores it."""
    before = fg.get_default_dtype()
    yield fg.set_default_dtype
    fg.set_default_dtype(before)


# --- The dtype object ------------------------------------------------------------------------------------------------


def test_codes_are_positions():
    assert [d.code for d in DTYPES] == list(range(14))


@each_dtype
def test_dtype_equals_numpy_dtype_from_either_side(d):
    native = np.dtype(d.name)
    assert d == native
    assert native == d


@each_dtype
def test_dtype_equals_numpy_scalar_type_from_either_side(d):
    assert d == d.numpy.type
    assert d.numpy.type == d


def test_dtype_differs_from_other_numpy_dtype():
    assert fg.float32 != np.float64
    assert np.dtype(np.float64) != fg.float32


@each_dtype
def test_dtype_hashes_as_numpy_dtype(d):
    assert {np.dtype(d.name): 1}[d] == 1


@each_dtype
@pytest.mark.filterwarnings("error")
def test_numpy_takes_dtype_without_warning(d):
    assert np.zeros(2, dtype=d).astype(d).dtype == d.numpy
    assert np.dtype(d) is d.numpy


@each_dtype
def test_pickle_and_copy_give_the_same_object(d):
    assert pickle.loads(pickle.dumps(d)) is d
    assert copy.deepcopy(d) is d


@each_dtype
def test_attributes_are_those_of_torch(d, torch):
    theirs = getattr(torch, d.name)
    for name in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(d, name) == getattr(theirs, name)
    assert repr(d) == repr(theirs).replace("torch", "fastgrad")
    assert d.to_real().name == str(theirs.to_real()).removeprefix("torch.")


def test_to_complex_of_floats():
    assert [d.to_complex() for d in (fg.float16, fg.float32, fg.float64, fg.complex64)] == [
        fg.complex64,
        fg.complex64,
        fg.complex128,
        fg.complex64,
    ]


def test_to_complex_of_integer_raises():
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType"):
        fg.int64.to_complex()


def test_dtype_cannot_be_made_or_changed():
    with pytest.raises(TypeError, match="cannot create"):
        fg.dtype()
    with pytest.raises(AttributeError, match="immutable"):
        fg.float32.itemsize = 8


def test_short_names_are_the_same_objects():
    assert (fg.half, fg.double, fg.short, fg.long) == (fg.float16, fg.float64, fg.int16, fg.int64)
    assert (fg.cfloat, fg.cdouble) == (fg.complex64, fg.complex128)


# --- What names a dtype ----------------------------------------------------------------------------------------------


@each_dtype
def test_as_dtype_reads_every_spelling(d):
    for spelling in (d, d.name, d.numpy, d.numpy.type, d.numpy.newbyteorder()):
        assert as_dtype(spelling) is d


def test_as_dtype_reads_second_names_of_numpy_types():
    assert as_dtype(np.longlong) is fg.int64
    assert as_dtype(np.dtype("Q")) is fg.uint64


def test_as_dtype_reads_python_types_as_torch(torch):
    for kind in (bool, int, float, complex):
        assert as_dtype(kind).name == str(torch.zeros(1, dtype=kind).dtype).removeprefix("torch.")


@pytest.mark.parametrize(
    "x", [None, 3, [1], object, "foo", "datetime64", np.dtype("O"), np.dtype("U3"), np.longdouble, str], ids=repr
)
def test_as_dtype_refuses_everything_else(x):
    with pytest.raises(TypeError, match="The only supported types are"):
        as_dtype(x)


# --- Promotion -------------------------------------------------------------------------------------------------------


def test_promote_types_is_torch_where_torch_promotes(torch):
    for a, b in itertools.product(DTYPES, DTYPES):
        try:
            expected = torch.promote_types(getattr(torch, a.name), getattr(torch, b.name))
        except RuntimeError:
            continue
        assert fg.promote_types(a, b).name == str(expected).removeprefix("torch."), (a, b)


@pytest.mark.parametrize("name", sorted(LARGE_UNSIGNED))
def test_promote_types_of_large_unsigned_and_integer_is_numpy(name):
    for other in DTYPES[:9]:
        assert fg.promote_types(name, other) == np.promote_types(name, other.numpy)


def test_promotion_table_is_symmetric_and_idempotent():
    table = np.frombuffer(PROMOTE, np.uint8).reshape(14, 14)
    np.testing.assert_array_equal(table, table.T)
    np.testing.assert_array_equal(np.diag(table), np.arange(14))


def test_can_cast_is_torch(torch):
    for a, b in itertools.product(DTYPES, DTYPES):
        assert fg.can_cast(a, b) == torch.can_cast(getattr(torch, a.name), getattr(torch, b.name))


@pytest.mark.parametrize(("ndim", "other_ndim"), list(itertools.product((0, 1), (0, 1))))
def test_result_type_of_tensors_is_torch(ndim, other_ndim, torch):
    for a, b in itertools.product(DTYPES, DTYPES):
        theirs = [torch.zeros((2,) * n, dtype=getattr(torch, d.name)) for d, n in ((a, ndim), (b, other_ndim))]
        try:
            expected = torch.result_type(*theirs)
        except RuntimeError:
            continue
        if expected is torch.complex32:  # NumPy has none: complex64
            expected = torch.complex64
        ours = [fg.zeros((2,) * n, dtype=d) for d, n in ((a, ndim), (b, other_ndim))]
        assert fg.result_type(*ours).name == str(expected).removeprefix("torch."), (a, b)


@pytest.mark.parametrize("number", [True, 2, 2.5, 1j], ids=repr)
@pytest.mark.parametrize("default", ["float16", "float32", "float64"])
def test_result_type_with_a_number_is_torch(number, default, torch, default_dtype):
    default_dtype(default)
    torch.set_default_dtype(getattr(torch, default))
    try:
        for d, ndim in itertools.product(DTYPES, (0, 1)):
            if d.name in LARGE_UNSIGNED:
                continue
            expected = torch.result_type(torch.zeros((2,) * ndim, dtype=getattr(torch, d.name)), number)
            if expected is torch.complex32:
                expected = torch.complex64
            ours = fg.result_type(fg.zeros((2,) * ndim, dtype=d), number)
            assert ours.name == str(expected).removeprefix("torch."), (d, ndim)
    finally:
        torch.set_default_dtype(torch.float32)


def test_result_type_of_three_levels():
    assert fg.result_type(fg.ones(2, dtype=fg.int8), fg.tensor(1), 2) is fg.int8
    assert fg.result_type(fg.ones(2, dtype=fg.int8), fg.tensor(1), 2.5) is fg.float32
    assert fg.result_type(fg.ones(2), fg.tensor(1.0, dtype=fg.float64), 1j) is fg.complex64


def test_numpy_scalars_count_as_numbers():
    assert number_code(np.float64(1)) == number_code(1.0)
    assert fg.result_type(fg.ones(2, dtype=fg.float16), np.float64(2)) is fg.float16


def test_result_type_refuses_what_is_no_operand():
    with pytest.raises(TypeError, match="expected a tensor or a number, not str"):
        fg.result_type(fg.ones(2), "a")
    with pytest.raises(TypeError, match="at least one"):
        fg.result_type()


# --- The default dtype -----------------------------------------------------------------------------------------------


def test_default_dtype_is_float32():
    assert fg.get_default_dtype() is fg.float32
    assert default_complex() is fg.complex64


def test_set_default_dtype_changes_python_floats_and_complex_numbers(default_dtype):
    default_dtype(fg.float64)
    assert fg.tensor([0.5]).dtype is fg.float64
    assert fg.tensor([1j]).dtype is fg.complex128
    assert fg.zeros(1).dtype is fg.float64


@pytest.mark.parametrize("d", [fg.int64, fg.complex64, np.dtype(bool), float], ids=repr)
def test_set_default_dtype_refuses_what_torch_refuses(d, default_dtype):
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        default_dtype(d)


# --- Limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_finfo_is_torch(name, torch):
    ours, theirs = fg.finfo(name), torch.finfo(getattr(torch, name))
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(ours, field) == getattr(theirs, field)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("d", DTYPES[1:9], ids=lambda d: d.name)
def test_iinfo_is_numpy(d):
    ours, theirs = fg.iinfo(d), np.iinfo(d.numpy)
    assert (ours.bits, ours.min, ours.max, ours.dtype) == (theirs.bits, theirs.min, theirs.max, d.name)


def test_finfo_of_the_default_dtype():
    assert fg.finfo() == fg.finfo(fg.float32)


def test_limits_of_the_wrong_kind_raise():
    with pytest.raises(TypeError, match="requires a floating point input type"):
        fg.finfo(fg.int32)
    with pytest.raises(TypeError, match="requires an integer input type"):
        fg.iinfo(fg.float32)
    with pytest.raises(TypeError, match="is not supported by"):
        fg.iinfo(bool)


# --- Size ------------------------------------------------------------------------------------------------------------


def test_size_is_a_tuple():
    size = Size([2, 3])
    assert size == (2, 3)
    assert hash(size) == hash((2, 3))
    assert repr(size) == "fastgrad.Size([2, 3])"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda s: s[1:], (3,)),
        (lambda s: s + (4,), (2, 3, 4)),
        (lambda s: (4,) + s, (4, 2, 3)),
        (lambda s: s * 2, (2, 3, 2, 3)),
        (lambda s: 2 * s, (2, 3, 2, 3)),
        (copy.deepcopy, (2, 3)),
        (lambda s: pickle.loads(pickle.dumps(s)), (2, 3)),
    ],
)
def test_operations_on_a_size_give_a_size(make, expected):
    result = make(Size([2, 3]))
    assert type(result) is Size
    assert result == expected


def test_size_numel():
    assert Size([2, 3]).numel() == 6
    assert Size().numel() == 1


def test_size_converts_integers():
    assert [type(n) for n in Size([np.int64(3), fg.tensor(4)])] == [int, int]


def test_size_refuses_what_is_no_integer():
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 1 is 'float'\)"):
        Size([2, 2.5])
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\)"):
        Size([2]) + [3]


@pytest.mark.parametrize("size", [(2, 3), ((2, 3),), ([2, np.int8(3)],), (Size([2, 3]),)], ids=repr)
def test_sizes_of_reads_every_form(size):
    assert sizes_of("f", size) == (2, 3)
    assert sizes_of("f", (), [2, 3]) == (2, 3)
