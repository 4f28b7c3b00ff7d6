"""Constructors: values and errors in tables, the same calls to PyTorch where it is installed, and shared memory."""
import array
import warnings

import numpy as np
import pytest

import fastgrad as fg
from fastgrad._dtypes import DTYPES


@pytest.fixture
def torch():
    return pytest.importorskip("torch")




def same_tensor(ours, theirs):
    """Equal in dtype, shape, requires_grad and every element."""
    assert str(ours.dtype) == str(theirs.dtype).replace("torch.", "fastgrad.")
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.requires_grad == theirs.requires_grad
    np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())


def call(expression, library):
    """Evaluate a case, in which `L` is fastgrad or torch."""
    return eval(expression, {"L": library, "np": np, "array": array})


# --- The same result as PyTorch --------------------------------------------------------------------------------------

SAME = """
L.tensor(1.5)
L.tensor(1)
L.tensor(True)
L.tensor(1j)
L.tensor([1, 2.5])
L.tensor([True, 2])
L.tensor([1, 2j])
L.tensor([])
L.tensor([[], []])
L.tensor([[1, 2], (3, 4), range(5, 7)])
L.tensor(np.float64(1.5))
L.tensor(np.int8(3))
L.tensor([np.float32(1.5)])
L.tensor([1, np.float64(2)])
L.tensor([np.int8(1), np.uint8(2)])
L.tensor([np.float16(1), 2.0])
L.tensor([1j, np.float64(2)])
L.tensor([np.array([1.0, 2]), np.array([3.0, 4])])
L.tensor([[1, 2], np.array([3.0, 4.0])])
L.tensor([L.tensor(1), L.tensor(2)])
L.tensor([L.tensor(1), 2.5])
L.tensor([L.tensor(1.0, dtype=L.float64), L.tensor(2.5)])
L.tensor([L.tensor([1.0]), L.tensor([2.0])])
L.tensor(range(3))
L.tensor(array.array("d", [1, 2]))
L.tensor(bytearray(b"abc"))
L.tensor(np.zeros((0, 3)))
L.tensor(np.arange(3), dtype=L.bool)
L.tensor(np.array([300]), dtype=L.uint8)
L.tensor(-1, dtype=L.uint8)
L.tensor(-255, dtype=L.uint8)
L.tensor([1.7, -1.7], dtype=L.int64)
L.tensor([2.5, 0.0], dtype=L.bool)
L.tensor(1e300, dtype=L.float32)
L.tensor(10**6, dtype=L.float16)
L.tensor(2**63, dtype=L.uint64)
L.tensor([2**63], dtype=L.float64)
L.tensor([1, 2], dtype=L.complex128)
L.tensor([1.0, 2], requires_grad=True)
L.tensor([1.0], device="cpu")
L.tensor([1.0], dtype=float)
L.as_tensor([1, 2], dtype=L.float64)
L.asarray([1, 2])
L.asarray(np.zeros(3), requires_grad=True)
L.asarray(np.zeros(3), dtype=L.float32)
L.asarray(bytearray(b"abcd"), dtype=L.int16)
L.zeros(2, 3)
L.zeros((2, 3))
L.zeros([2, 3])
L.zeros(size=(2, 3))
L.zeros(())
L.zeros(0)
L.zeros(2, L.tensor(3))
L.zeros((np.int64(2), 3))
L.zeros(2, dtype=L.complex64, requires_grad=True)
L.ones(2, dtype=L.int8)
L.full((2, 3), 1)
L.full((2,), 1.5)
L.full((2,), True)
L.full((2,), 1j)
L.full((2,), np.float64(1))
L.full((2,), L.tensor(2.5, dtype=L.float64))
L.full((2,), 1.5, dtype=L.int64)
L.full((2,), -1, dtype=L.uint8)
L.full((2,), 1 + 0j, dtype=L.float32)
L.full((2,), float("inf"))
L.full(size=(2,), fill_value=3)
L.arange(5)
L.arange(2, 5)
L.arange(0, 5, 2)
L.arange(5, 0, -2)
L.arange(5.0)
L.arange(0, 1, 0.1)
L.arange(1, 1.3, 0.1)
L.arange(0, 0.9, 0.3)
L.arange(True)
L.arange(L.tensor(3.0))
L.arange(np.int64(3))
L.arange(1, end=3)
L.arange(start=1, end=7, step=2)
L.arange(1.0, 5.0, dtype=L.int64)
L.arange(0, 5, 1.5, dtype=L.int64)
L.arange(-3, 3, dtype=L.uint8)
L.arange(2.5, dtype=L.float16)
L.arange(2**53, 2**53 + 3)
L.arange(3.0, requires_grad=True)
L.linspace(0, 1, 5)
L.linspace(-10, 10, 7, dtype=L.int32)
L.linspace(0.7, 9.9, 4, dtype=L.int64)
L.linspace(0, 1, 1)
L.linspace(0, 1, 0)
L.linspace(0, 1j, 3)
L.linspace(L.tensor(0.0), L.tensor(1.0), 3)
L.linspace(start=0, end=1, steps=3)
L.logspace(0, 2, 3)
L.logspace(0, 2, 3, base=2)
L.logspace(0, 2, 3, -2)
L.logspace(0, 3, 4, dtype=L.int64)
L.eye(3)
L.eye(2, 3, dtype=L.bool)
L.eye(n=2, m=3)
L.eye(0)
L.zeros_like(L.ones(2, 3))
L.zeros_like(input=L.tensor([1]))
L.ones_like(L.tensor(3), dtype=L.float64, requires_grad=True)
L.full_like(L.tensor([1]), 2.5)
L.scalar_tensor(2)
L.scalar_tensor(True, dtype=L.int64)
L.tril_indices(3, 4)
L.tril_indices(3, 4, -1)
L.triu_indices(3, 4, 1)
L.triu_indices(3, 4, 9)
L.triu_indices(3, 4, dtype=L.int32)
L.frombuffer(bytearray(b"12345678"), dtype=L.float32)
L.frombuffer(bytearray(b"12345678"), dtype=L.uint8, count=2, offset=3)
L.complex(L.tensor([1.0, float("inf")]), L.tensor([2.0, 1.0]))
L.complex(L.tensor([1.0, 2.0], dtype=L.float64), L.tensor(2.0, dtype=L.float64))
L.ones(1).new_tensor([1, 2])
L.tensor([1]).new_tensor([1.5])
L.tensor([1]).new_zeros(2, 3)
L.tensor([1]).new_ones((2,), dtype=L.float32, requires_grad=True)
L.tensor([1]).new_full((2,), 2.5)
L.ones(1).new_empty(2, 0)
""".strip().splitlines()


@pytest.mark.parametrize("expression", SAME)
def test_result_is_that_of_torch(expression, torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same_tensor(call(expression, fg), call(expression, torch))


# --- The same exception as PyTorch -----------------------------------------------------------------------------------

GRAD = "Only Tensors of floating point and complex dtype can require gradients"
OVERFLOW = "without overflow"
SIZE = "argument 'size'"

RAISES = [
    ("L.tensor([[1], [2, 3]])", ValueError, r"expected sequence of length 1 at dim 1 \(got 2\)"),
    ("L.tensor([[1], []])", ValueError, "expected sequence of length 1"),
    ("L.tensor([[1, 2], 3])", TypeError, "not a sequence"),
    ("L.tensor([3, [1, 2]])", TypeError, "cannot be interpreted as"),
    ("L.tensor('a')", TypeError, "invalid data type 'str'"),
    ("L.tensor(['a'])", ValueError, "too many dimensions 'str'"),
    ("L.tensor(None)", RuntimeError, "Could not infer dtype of NoneType"),
    ("L.tensor([1, None])", RuntimeError, "Could not infer dtype of NoneType"),
    ("L.tensor({1, 2})", RuntimeError, "Could not infer dtype of set"),
    ("L.tensor({1: 2})", RuntimeError, "Could not infer dtype of dict"),
    ("L.tensor(object())", RuntimeError, "Could not infer dtype of object"),
    ("L.tensor(np.array(['a']))", TypeError, "can't convert np.ndarray of type numpy.str_"),
    ("L.tensor(np.array([None]))", TypeError, "can't convert np.ndarray of type numpy.object_"),
    ("L.tensor(np.zeros(2, 'M8[s]'))", TypeError, "The only supported types are"),
    ("L.tensor(np.zeros(2, 'g'))", TypeError, "The only supported types are"),
    ("L.tensor([L.tensor([1.0, 2.0]), L.tensor([2.0, 3.0])])", ValueError, "only one element tensors can be converted"),
    ("L.tensor(2**63)", ValueError, "Overflow when unpacking long long"),
    ("L.tensor(300, dtype=L.uint8)", RuntimeError, OVERFLOW),
    ("L.tensor(-256, dtype=L.uint8)", RuntimeError, OVERFLOW),
    ("L.tensor(255.5, dtype=L.uint8)", RuntimeError, OVERFLOW),
    ("L.tensor([-129], dtype=L.int8)", RuntimeError, OVERFLOW),
    ("L.tensor(float('nan'), dtype=L.int64)", RuntimeError, OVERFLOW),
    ("L.tensor(1e19, dtype=L.int64)", RuntimeError, OVERFLOW),
    ("L.tensor(1j, dtype=L.float32)", TypeError, "must be real number, not complex"),
    ("L.tensor([1, 2], requires_grad=True)", RuntimeError, GRAD),
    ("L.tensor([1.0], requires_grad=1)", TypeError, "'requires_grad' must be bool"),
    ("L.tensor([1.0], foo=1)", TypeError, "unexpected keyword argument 'foo'"),
    ("L.tensor([1.0], pin_memory=True)", RuntimeError, "pin_memory=True requires"),
    ("L.tensor([1.0], device='foo')", RuntimeError, "Expected one of cpu"),
    ("L.tensor([1.0], dtype='f4')", TypeError, "dtype"),
    ("L.from_numpy([1])", TypeError, r"expected np.ndarray \(got list\)"),
    ("L.from_numpy(np.array(['a']))", TypeError, "can't convert np.ndarray of type numpy.str_"),
    ("L.asarray(None)", RuntimeError, "Could not infer dtype of NoneType"),
    ("L.asarray([1.0], copy=False)", ValueError, "can't alias arbitrary sequence into a tensor"),
    ("L.asarray(np.zeros(3), copy=False, dtype=L.float32)", ValueError, "can't alias tensor with dtype"),
    ("L.asarray(L.ones(3), copy=False, dtype=L.float64)", ValueError, "can't alias tensor with dtype"),
    ("L.asarray([1, 2], requires_grad=True)", RuntimeError, GRAD),
    ("L.zeros()", TypeError, "missing 1 required positional argument"),
    ("L.zeros(2, size=(2,))", TypeError, "multiple values for argument 'size'"),
    ("L.zeros(-1)", RuntimeError, "negative"),
    ("L.zeros(2.5)", TypeError, SIZE),
    ("L.zeros(True)", TypeError, SIZE),
    ("L.zeros('a')", TypeError, SIZE),
    ("L.zeros(None)", TypeError, SIZE),
    ("L.zeros(2, (3,))", TypeError, SIZE),
    ("L.zeros(np.array([2, 3]))", TypeError, SIZE),
    ("L.zeros(L.tensor([2, 3]))", TypeError, SIZE),
    ("L.zeros(2**70)", TypeError, "Overflow when unpacking long long"),
    ("L.zeros(2**62, 4)", RuntimeError, r"Storage size calculation overflowed with sizes=\[4611686018427387904, 4\]"),
    ("L.zeros(10**17)", RuntimeError, "can't allocate memory: you tried to allocate 400000000000000000 bytes"),
    ("L.zeros(2, dtype=L.int32, requires_grad=True)", RuntimeError, GRAD),
    ("L.full(3, 1)", TypeError, SIZE),
    ("L.full((2,), 'a')", TypeError, "'fill_value'.* must be Number, not str"),
    ("L.full((2,), None)", TypeError, "must be Number, not NoneType"),
    ("L.full((2,), L.tensor([2]))", TypeError, "must be Number, not Tensor"),
    ("L.full((2,), L.tensor(2.5, requires_grad=True))", TypeError, "must be Number, not Tensor"),
    ("L.full((2,), 300, dtype=L.uint8)", RuntimeError, OVERFLOW),
    ("L.full((2,), 1e300)", RuntimeError, OVERFLOW),
    ("L.full((2,), 1j, dtype=L.float32)", RuntimeError, OVERFLOW),
    ("L.full((2,), 1, requires_grad=True)", RuntimeError, GRAD),
    ("L.arange()", TypeError, "invalid combination of arguments"),
    ("L.arange(1, step=3)", TypeError, "invalid combination of arguments"),
    ("L.arange('a')", TypeError, "'end'.* must be Number, not str"),
    ("L.arange(0, 5, 0)", RuntimeError, "step must be nonzero"),
    ("L.arange(0, 5, float('nan'))", RuntimeError, "step must be nonzero"),
    ("L.arange(5, 0)", RuntimeError, "upper bound and lower bound inconsistent with step sign"),
    ("L.arange(0, 5, -1)", RuntimeError, "upper bound and lower bound inconsistent with step sign"),
    ("L.arange(float('inf'))", RuntimeError, "unsupported range: 0 -> inf"),
    ("L.arange(0, 1j)", RuntimeError, OVERFLOW),
    ("L.arange(0, 10**19)", RuntimeError, OVERFLOW),
    ("L.arange(3, dtype=L.bool)", NotImplementedError, '"arange_cpu" not implemented for'),
    ("L.arange(3, requires_grad=True)", RuntimeError, GRAD),
    ("L.linspace(0, 1, -1)", RuntimeError, "number of steps must be non-negative"),
    ("L.linspace(0, 1, 2.5)", TypeError, "'steps'.* must be int, not float"),
    ("L.linspace(0, 1)", TypeError, "missing 1 required positional argument"),
    ("L.linspace(L.tensor([0.0]), 1, 3)", RuntimeError, "only supports 0-dimensional start and end tensors"),
    ("L.linspace(0, 1j, 3, dtype=L.float32)", RuntimeError, "can't be safely cast to passed dtype"),
    ("L.linspace(0, 1, 3, dtype=L.bool)", NotImplementedError, '"linspace_cpu" not implemented for'),
    ("L.linspace(0, 1e300, 4)", RuntimeError, OVERFLOW),
    ("L.eye(-1)", RuntimeError, "n must be greater or equal to 0, got -1"),
    ("L.eye(2, -1)", RuntimeError, "m must be greater or equal to 0, got -1"),
    ("L.eye(2.5)", TypeError, "'n'.* must be int, not float"),
    ("L.eye(True)", TypeError, "'n'.* must be int, not bool"),
    ("L.zeros_like(np.zeros(2))", TypeError, "'input'.* must be Tensor, not"),
    ("L.zeros_like(L.tensor([1]), requires_grad=True)", RuntimeError, GRAD),
    ("L.full_like(L.tensor([1]), 2j)", RuntimeError, OVERFLOW),
    ("L.scalar_tensor(1j)", RuntimeError, OVERFLOW),
    ("L.scalar_tensor([1])", TypeError, "'s'.* must be Number, not list"),
    ("L.empty_strided((2, 3), (1,))", RuntimeError, "dimensionality of sizes .* must match dimensionality of strides"),
    ("L.tril_indices(-1, 4)", RuntimeError, "row must be non-negative"),
    ("L.tril_indices(2.0, 2)", TypeError, "'row'.* must be int, not float"),
    ("L.triu_indices(3, 4, dtype=L.float32)", NotImplementedError, "not implemented for"),
    ("L.frombuffer([1], dtype=L.int8)", ValueError, "object does not implement Python buffer protocol"),
    ("L.frombuffer(bytearray(), dtype=L.int8)", ValueError, r"both buffer length \(0\) and count \(-1\) must not be 0"),
    ("L.frombuffer(bytearray(7), dtype=L.float32)", ValueError, "must be a multiple of element size"),
    ("L.frombuffer(bytearray(7), dtype=L.int32, count=2)", ValueError, "must not be greater than actual buffer length"),
    ("L.frombuffer(bytearray(4), dtype=L.int8, offset=4)", ValueError, "must be non-negative and no greater than"),
    ("L.frombuffer(bytearray(4), dtype=L.int32, requires_grad=True)", RuntimeError, GRAD),
    ("L.complex(1.0, 2.0)", TypeError, "'real'.* must be Tensor, not float"),
    ("L.complex(L.tensor([1]), L.tensor([2]))", RuntimeError, "Half, Float or Double tensors"),
    ("L.numel(3)", TypeError, "'input'.* must be Tensor, not int"),
    ("L.is_complex(3)", TypeError, "'input'.* must be Tensor, not int"),
]


@pytest.mark.parametrize(("expression", "kind", "phrase"), RAISES, ids=[case[0] for case in RAISES])
def test_bad_argument_raises(expression, kind, phrase):
    with pytest.raises(kind, match=phrase):
        call(expression, fg)


@pytest.mark.parametrize(("expression", "kind"), [case[:2] for case in RAISES], ids=[case[0] for case in RAISES])
@pytest.mark.filterwarnings("ignore")
def test_torch_raises_the_same_type(expression, kind, torch):
    with pytest.raises(kind):
        call(expression, torch)


def test_complex_of_two_dtypes_raises():
    with pytest.raises(RuntimeError):
        fg.complex(fg.ones(1), fg.ones(1, dtype=fg.float64))


# --- Data ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DTYPES, ids=lambda d: d.name)
def test_tensor_of_an_array_keeps_its_dtype(d):
    assert fg.tensor(np.ones(2, d)).dtype is d


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (True, "bool"),
        (1, "int64"),
        (1.5, "float32"),
        (1j, "complex64"),
        ([], "float32"),
        ([True, 2], "int64"),
        ([1, 2.5], "float32"),
        ([1, np.float64(2)], "float64"),
        ([np.float16(1), np.int64(2)], "float16"),
    ],
    ids=repr,
)
def test_dtype_of_numbers(data, name):
    t = fg.tensor(data)
    assert t.dtype.name == name
    np.testing.assert_array_equal(t.numpy(), np.array(data, name))


def test_tensor_copies():
    data = np.zeros(2)
    t = fg.tensor(data)
    data[0] = 5
    assert t.tolist() == [0, 0]


def test_tensor_of_a_tensor_has_no_history():
    x = fg.tensor([1.0], requires_grad=True)
    assert not fg.tensor(x * x).requires_grad


def test_tensor_of_an_array_like_object():
    class Celsius:
        def __array__(self, dtype=None, copy=None):
            return np.array([1, 2], np.int16)

    assert fg.tensor(Celsius()).dtype is fg.int16


def test_tensor_of_a_list_that_contains_itself_raises():
    """Flattening it would never end, and with two of itself fill the memory before it is noticed."""
    endless = []
    endless += [endless, endless]
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        fg.tensor(endless)


def test_tensor_refuses_to_drop_items():
    """PyTorch looks at the first item only, and makes an empty tensor of [[], [1]]."""
    with pytest.raises(ValueError, match=r"expected sequence of length 0 at dim 1 \(got 1\)"):
        fg.tensor([[], [1]])


def test_default_dtype_is_used_for_python_floats_only():
    before = fg.get_default_dtype()
    try:
        fg.set_default_dtype(fg.float64)
        assert fg.tensor([0.5]).dtype is fg.float64
        assert fg.tensor([np.float32(0.5)]).dtype is fg.float32
    finally:
        fg.set_default_dtype(before)


# --- Shared memory ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [fg.from_numpy, fg.as_tensor, fg.asarray], ids=lambda f: f.__name__)
def test_writes_to_a_shared_array_are_seen(share):
    data = np.zeros(2)
    t = share(data)
    data[0] = 5
    assert t.tolist() == [5, 0]


@pytest.mark.parametrize("share", [fg.from_numpy, fg.as_tensor, fg.asarray], ids=lambda f: f.__name__)
def test_shared_array_outlives_its_name(share):
    t = share(np.arange(1000.0))
    assert t.tolist() == list(range(1000))


def test_negative_strides_are_shared():
    data = np.arange(3)
    t = fg.from_numpy(data[::-1])
    data[2] = 7
    assert t.tolist() == [7, 1, 0]


@pytest.mark.parametrize("make", [fg.tensor, fg.from_numpy, fg.as_tensor, fg.asarray], ids=lambda f: f.__name__)
def test_foreign_byte_order_is_converted(make):
    t = make(np.array([1.0, 2.0], ">f4"))
    assert t.dtype is fg.float32
    assert t.tolist() == [1, 2]


@pytest.mark.parametrize("make", [fg.tensor, fg.from_numpy, fg.as_tensor, fg.asarray], ids=lambda f: f.__name__)
def test_unaligned_array_is_read(make):
    data = np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float64)
    assert not data.flags.aligned
    assert make(data).tolist() == [0]


def test_read_only_array_is_never_written():
    data = np.zeros(2)
    data.flags.writeable = False
    t = fg.from_numpy(data)
    with pytest.raises((RuntimeError, ValueError)):
        t.fill_(1)
    assert data.tolist() == [0, 0]
    assert not t.numpy().flags.writeable


def test_bytes_are_shared_read_only():
    assert not fg.frombuffer(b"abcd", dtype=fg.uint8).numpy().flags.writeable


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrix_becomes_a_plain_tensor():
    assert fg.from_numpy(np.matrix([[1.0, 2.0]])).reshape(2).tolist() == [1, 2]


def test_as_tensor_returns_a_tensor_itself():
    x = fg.ones(2)
    assert fg.as_tensor(x) is x
    assert fg.asarray(x) is x


def test_as_tensor_to_another_dtype_is_differentiable():
    x = fg.ones(2, requires_grad=True)
    assert fg.as_tensor(x, dtype=fg.float64).requires_grad


def test_asarray_copies_on_demand():
    data = np.zeros(2)
    t = fg.asarray(data, copy=True)
    data[0] = 5
    assert t.tolist() == [0, 0]


def test_asarray_detaches_what_shall_not_require_grad():
    x = fg.ones(2, requires_grad=True)
    assert not fg.asarray(x * 2, requires_grad=False).requires_grad


# --- Arguments with one possible value -------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [None, "cpu", "cpu:0", fg.device("cpu")], ids=repr)
def test_cpu_is_accepted(device):
    assert fg.zeros(1, device=device).tolist() == [0]


@pytest.mark.parametrize("device", ["cuda", "cpu:1", "cpu:x", 0, "meta", ""], ids=repr)
def test_other_device_is_refused(device):
    with pytest.raises(RuntimeError, match="fastgrad computes on the CPU"):
        fg.zeros(1, device=device)


def test_defaults_of_layout_and_memory_format_are_accepted():
    fg.zeros(1, layout=fg.strided, pin_memory=False)
    fg.zeros_like(fg.ones(1), memory_format=fg.preserve_format)


def test_other_layout_and_memory_format_are_refused():
    with pytest.raises(RuntimeError, match="layout"):
        fg.zeros(1, layout="sparse")
    with pytest.raises(RuntimeError, match="unsupported memory format"):
        fg.empty(1, memory_format=fg.channels_last)


def test_out_is_refused():
    with pytest.raises(NotImplementedError, match=r"out= is not supported; write out\[...\] = zeros"):
        fg.zeros(2, out=fg.ones(2))


# --- The rest --------------------------------------------------------------------------------------------------------


def test_ranges_are_numpy():
    np.testing.assert_array_equal(fg.arange(0.0, 1.0, 0.25).numpy(), np.arange(0, 1, 0.25, np.float32))
    np.testing.assert_allclose(fg.linspace(3, -2, 7, dtype=fg.float64).numpy(), np.linspace(3, -2, 7), rtol=1e-15)
    np.testing.assert_allclose(fg.logspace(0, 2, 5, dtype=fg.float64).numpy(), np.logspace(0, 2, 5), rtol=1e-15)


def test_linspace_is_symmetric():
    x = fg.linspace(-0.1, 0.1, 101, dtype=fg.float64).numpy()
    np.testing.assert_array_equal(x, -x[::-1])


def test_empty_strided_has_these_strides():
    t = fg.empty_strided((2, 3), (1, 2))
    assert tuple(t.stride()) == (1, 2)
    assert tuple(t.shape) == (2, 3)


def test_constructed_tensors_are_contiguous_leaves():
    for t in (fg.zeros(2, 3), fg.full((2, 3), 1.0), fg.zeros_like(fg.from_numpy(np.ones((3, 2)).T)), fg.eye(2)):
        assert t.is_contiguous()
        assert t.is_leaf


def test_predicates():
    assert fg.is_tensor(fg.ones(1))
    assert not fg.is_tensor(np.ones(1))
    assert fg.is_floating_point(fg.ones(1))
    assert not fg.is_floating_point(fg.tensor(1j))
    assert fg.is_complex(fg.tensor(1j))
    assert fg.numel(fg.ones(2, 3)) == 6


def test_complex_gradients_are_the_parts_of_the_cotangent():
    real, imag = fg.tensor([1.0], requires_grad=True), fg.tensor([2.0], requires_grad=True)
    fg.complex(real, imag).backward(fg.tensor([3 + 4j]))
    assert (real.grad.tolist(), imag.grad.tolist()) == ([3], [4])


def test_polar():
    z = fg.polar(fg.tensor([2.0]), fg.tensor([np.pi / 2]))
    np.testing.assert_allclose(z.numpy(), [2j], atol=1e-6)
