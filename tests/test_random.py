"""Random numbers: reproducible, in range, of the right distribution, and refused as PyTorch refuses."""
import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fastgrad as fg
from fastgrad._generator import DEFAULT_SEED

GRAD = "Only Tensors of floating point and complex dtype can require gradients"


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def seeded():
    fg.manual_seed(0)


def call(expression, library):
    """Evaluate a case, in which `L` is fastgrad or torch."""
    return eval(expression, {"L": library, "np": np})


# --- Generators ------------------------------------------------------------------------------------------------------

SAMPLERS = {
    "rand": lambda g: fg.rand(5, generator=g),
    "randn": lambda g: fg.randn(5, generator=g),
    "randint": lambda g: fg.randint(1000, (5,), generator=g),
    "randperm": lambda g: fg.randperm(50, generator=g),
    "normal": lambda g: fg.normal(0.0, 1.0, (5,), generator=g),
    "bernoulli": lambda g: fg.bernoulli(fg.full((50,), 0.5), generator=g),
    "multinomial": lambda g: fg.multinomial(fg.ones(50), 20, generator=g),
    "poisson": lambda g: fg.poisson(fg.full((20,), 50.0), generator=g),
    "rand_like": lambda g: fg.rand_like(fg.ones(5), generator=g),
    "randn_like": lambda g: fg.randn_like(fg.ones(5), generator=g),
    "randint_like": lambda g: fg.randint_like(fg.ones(5), 1000, generator=g),
    "normal_": lambda g: fg.zeros(5).normal_(generator=g),
    "uniform_": lambda g: fg.zeros(5).uniform_(generator=g),
    "exponential_": lambda g: fg.zeros(5).exponential_(generator=g),
    "random_": lambda g: fg.zeros(5).random_(1000, generator=g),
    "bernoulli_": lambda g: fg.zeros(50).bernoulli_(generator=g),
}

each_sampler = pytest.mark.parametrize("sample", SAMPLERS.values(), ids=list(SAMPLERS))


@each_sampler
def test_same_seed_gives_same_numbers(sample):
    g = fg.Generator()
    first = sample(g.manual_seed(3)).tolist()
    second = sample(g).tolist()
    assert first != second
    assert sample(g.manual_seed(3)).tolist() == first


@each_sampler
def test_default_generator_is_used_without_one(sample):
    state = fg.get_rng_state()
    first = sample(None).tolist()
    assert fg.get_rng_state().tolist() != state.tolist()
    fg.manual_seed(0)
    assert sample(None).tolist() == first


def test_state_is_restored():
    g = fg.Generator()
    fg.randint(5, (3,), dtype=fg.int8, generator=g)
    state = g.get_state()
    numbers = fg.rand(4, generator=g).tolist()
    g.set_state(state)
    assert fg.rand(4, generator=g).tolist() == numbers


@pytest.mark.parametrize(
    "clone", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)), lambda g: g.clone_state()],
    ids=["deepcopy", "pickle", "clone_state"],
)
def test_clone_goes_on_with_the_same_numbers(clone):
    g = fg.Generator()
    fg.rand(3, generator=g)
    other = clone(g)
    assert fg.rand(4, generator=other).tolist() == fg.rand(4, generator=g).tolist()


def test_new_generator_has_the_seed_of_torch(torch):
    assert fg.Generator().initial_seed() == torch.Generator().initial_seed() == DEFAULT_SEED


def test_numbers_of_a_seed_are_those_of_numpy():
    expected = np.random.Generator(np.random.PCG64(5)).random(3)
    assert fg.rand(3, dtype=fg.float64, generator=fg.Generator().manual_seed(5)).tolist() == expected.tolist()


def test_manual_seed_returns_the_default_generator():
    assert fg.manual_seed(-1) is fg.default_generator
    assert fg.initial_seed() == 2**64 - 1


def test_seed_is_another_each_time():
    assert fg.seed() != fg.seed()
    assert fg.initial_seed() > 0


def test_fork_rng_restores_the_state():
    with fg.random.fork_rng():
        first = fg.rand(3).tolist()
    assert fg.rand(3).tolist() == first


def test_fork_rng_restores_the_state_after_an_exception():
    state = fg.get_rng_state().tolist()
    with pytest.raises(KeyError), fg.random.fork_rng():
        fg.rand(3)
        raise KeyError
    assert fg.get_rng_state().tolist() == state


def test_threads_draw_different_numbers():
    drawn = []

    def draw():
        drawn.append(fg.rand(1000, dtype=fg.float64).tolist())

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({x for numbers in drawn for x in numbers}) == 8000


def test_importing_fastgrad_does_not_import_numpy_random():
    """It takes as long as the rest of fastgrad together."""
    program = "import sys, fastgrad; print('numpy.random' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(fg.__file__).parents[1])}
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout == "False\n"


# --- Distributions ---------------------------------------------------------------------------------------------------

FLOATS = ["float16", "float32", "float64"]


@pytest.mark.parametrize("name", FLOATS)
def test_rand_is_uniform(name):
    x = fg.rand(100_000, dtype=name).numpy().astype(float)
    assert 0 <= x.min() < 0.001
    assert 0.998 < x.max() < 1
    np.testing.assert_allclose([x.mean(), x.var()], [1 / 2, 1 / 12], atol=0.005)


@pytest.mark.parametrize("name", FLOATS)
def test_randn_is_standard_normal(name):
    x = fg.randn(100_000, dtype=name).numpy().astype(float)
    np.testing.assert_allclose([x.mean(), x.var(), (x**4).mean()], [0, 1, 3], atol=0.1)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_randn_has_variance_1(name):
    z = fg.randn(100_000, dtype=name).numpy()
    np.testing.assert_allclose([(z.real**2).mean(), (z.imag**2).mean()], [0.5, 0.5], atol=0.01)
    assert abs((z.real * z.imag).mean()) < 0.01


@pytest.mark.parametrize("name", ["int8", "uint8", "int64", "float16", "bool"])
def test_randint_covers_its_range_without_the_end(name):
    high = 2 if name == "bool" else 7
    assert set(fg.randint(high, (1000,), dtype=name).tolist()) == set(range(high))


def test_randint_reaches_both_ends_of_int64():
    low, high = -(2**63), 2**63 - 1
    assert fg.randint(low, low + 1, (1,)).item() == low
    assert fg.randint(high - 1, high, (1,)).item() == high - 1


def test_randperm_is_a_permutation():
    assert sorted(fg.randperm(100).tolist()) == list(range(100))


def test_normal_broadcasts_mean_and_std():
    x = fg.normal(fg.tensor([0.0, 100.0]), fg.tensor([[0.0], [1.0]]))
    assert tuple(x.shape) == (2, 2)
    assert x.tolist()[0] == [0, 100]


def test_bernoulli_has_its_probability():
    assert abs(fg.bernoulli(fg.full((100_000,), 0.3)).numpy().mean() - 0.3) < 0.01


def test_bernoulli_of_0_and_1_is_certain():
    assert fg.bernoulli(fg.tensor([0.0, 1.0] * 100)).tolist() == [0, 1] * 100


def test_multinomial_with_replacement_has_its_weights():
    drawn = fg.multinomial(fg.tensor([1.0, 0.0, 3.0]), 100_000, replacement=True).numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 100_000, [0.25, 0, 0.75], atol=0.01)


def test_multinomial_without_replacement_draws_each_once_and_zeros_last():
    for _ in range(50):
        drawn = fg.multinomial(fg.tensor([1.0, 0.0, 3.0, 0.0]), 4).tolist()
        assert sorted(drawn) == [0, 1, 2, 3]
        assert set(drawn[:2]) == {0, 2}


def test_multinomial_without_replacement_has_its_weights_first():
    first = fg.multinomial(fg.tensor([1.0, 3.0]).expand(20_000, 2), 1).numpy()
    assert abs(first.mean() - 0.75) < 0.02


def test_multinomial_draws_row_by_row():
    drawn = fg.multinomial(fg.tensor([[0.0, 1.0], [1.0, 0.0]]), 3, replacement=True)
    assert drawn.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_poisson_has_its_rate():
    x = fg.poisson(fg.full((50_000,), 4.0)).numpy()
    np.testing.assert_allclose([x.mean(), x.var()], [4, 4], atol=0.1)


def test_poisson_of_rates_beyond_any_integer():
    """NumPy refuses them, and PyTorch gives -9.2e18."""
    rate = fg.tensor([1e20, 1e30])
    np.testing.assert_allclose(fg.poisson(rate).numpy(), rate.numpy(), rtol=1e-6)


def test_in_place_samplers_return_the_tensor_and_raise_its_version():
    t = fg.zeros(3)
    assert t.normal_() is t
    assert t.uniform_(2, 3) is t
    assert t._version == 2
    assert all(2 <= x < 3 for x in t.tolist())


def test_in_place_samplers_refuse_a_leaf_that_requires_grad():
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        fg.zeros(3, requires_grad=True).normal_()


def test_nothing_flows_back_to_parameters():
    rate = fg.ones(2, requires_grad=True)
    for sample in (fg.poisson, fg.bernoulli, fg.normal):
        assert not sample(rate).requires_grad


# --- Arguments -------------------------------------------------------------------------------------------------------

SAME = """
L.rand(2, 3)
L.rand((2, 3))
L.rand(size=(2,))
L.rand(())
L.rand(2, dtype=L.complex64)
L.rand(2, requires_grad=True)
L.randn(2, dtype=L.float16)
L.randint(5, (2,))
L.randint(2, 5, (2,))
L.randint(5, size=(2,))
L.randint(low=1, high=3, size=(2,))
L.randint(2, high=3, size=(2,))
L.randint(5, (2,), dtype=L.float32, requires_grad=True)
L.randint(0, 256, (2,), dtype=L.uint8)
L.randperm(5)
L.randperm(0)
L.randperm(5, dtype=L.float32)
L.normal(0, 1, (2, 3))
L.normal(0, 1, size=(2,), requires_grad=True)
L.normal(L.tensor([0.0]), L.tensor([1.0]))
L.normal(L.tensor([0.0, 1.0]), 1.0)
L.normal(0.0, L.tensor([1.0]))
L.normal(mean=L.tensor([0.0], dtype=L.float64), std=L.tensor([2.0]))
L.normal(L.tensor([0.0]))
L.bernoulli(L.tensor([0.0, 1.0], dtype=L.float64))
L.bernoulli(L.tensor([1, 0]), 1.0)
L.multinomial(L.tensor([0.5, 1.0]), 2)
L.multinomial(L.ones(2, 3), 5, True)
L.multinomial(L.ones(0, 3), 1)
L.poisson(L.tensor([1.0], dtype=L.float64))
L.rand_like(L.tensor([1]), dtype=L.float32)
L.randn_like(L.ones(2, 3))
L.randint_like(L.ones(2), 5)
L.randint_like(L.tensor([1]), 2, 5)
""".strip().splitlines()


@pytest.mark.parametrize("expression", SAME)
def test_dtype_and_shape_are_those_of_torch(expression, torch):
    ours, theirs = call(expression, fg), call(expression, torch)
    assert str(ours.dtype) == str(theirs.dtype).replace("torch.", "fastgrad.")
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.requires_grad == theirs.requires_grad


COMBINATION = "invalid combination of arguments"

RAISES = [
    ("L.manual_seed(2**64)", ValueError, "Overflow when unpacking long long"),
    ("L.manual_seed(-2**63 - 1)", ValueError, "Overflow when unpacking long long"),
    ("L.set_rng_state(3)", TypeError, "expected a torch.ByteTensor"),
    ("L.set_rng_state(L.zeros(3))", TypeError, "RNG state must be a torch.ByteTensor"),
    ("L.set_rng_state(L.zeros(3, dtype=L.uint8))", RuntimeError, "Expected an RNG state of size 48 but found"),
    ("L.Generator('cuda')", RuntimeError, "fastgrad computes on the CPU"),
    ("L.rand()", TypeError, "size"),
    ("L.rand(-1)", RuntimeError, "Trying to create tensor with negative dimension -1"),
    ("L.rand(2, dtype=L.int64)", NotImplementedError, "not implemented for"),
    ("L.rand(2, generator=3)", TypeError, "'generator' must be Generator"),
    ("L.randn(2, dtype=L.bool)", NotImplementedError, "not implemented for"),
    ("L.rand_like(L.tensor([1]))", NotImplementedError, "not implemented for"),
    ("L.randint(5)", TypeError, COMBINATION),
    ("L.randint(5, 2)", TypeError, "'size' must be tuple of ints"),
    ("L.randint(5, 5, (2,))", RuntimeError, "random_ expects 'from' to be less than 'to', but got from=5 >= to=5"),
    ("L.randint(0, 5.5, (2,))", TypeError, "'high' must be int, not float"),
    ("L.randint(0, 257, (2,), dtype=L.uint8)", RuntimeError, "to - 1 is out of bounds for"),
    ("L.randint(-1, 3, (2,), dtype=L.uint8)", RuntimeError, "from is out of bounds for"),
    ("L.randint(0, 3, (2,), dtype=L.complex64)", RuntimeError, "check_random_bounds handles only"),
    ("L.randint(5, (2,), requires_grad=True)", RuntimeError, GRAD),
    ("L.randperm(-1)", RuntimeError, "negative dimension -1"),
    ("L.randperm(2.5)", TypeError, "'n' must be int, not float"),
    ("L.randperm(300, dtype=L.uint8)", RuntimeError, "cannot be converted to type uint8 without overflow"),
    ("L.randperm(3, dtype=L.bool)", NotImplementedError, '"randperm" not implemented'),
    ("L.normal(0.0, 1.0)", TypeError, COMBINATION),
    ("L.normal(L.ones(2), L.ones(2), (2,))", TypeError, COMBINATION),
    ("L.normal(0.0, -1.0, (2,))", RuntimeError, "std >= 0.0"),
    ("L.normal(L.zeros(1), L.tensor([-1.0]))", RuntimeError, "normal expects all elements of std >= 0.0"),
    ("L.normal(L.tensor([0]), 1.0)", NotImplementedError, "not implemented for"),
    ("L.normal(L.ones(2), L.ones(3))", RuntimeError, "do not broadcast"),
    ("L.bernoulli(L.tensor([0, 1]))", NotImplementedError, '"bernoulli_tensor_cpu_p_" not implemented for'),
    ("L.bernoulli(L.tensor([1.5]))", RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
    ("L.bernoulli(L.tensor([float('nan')]))", RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
    ("L.bernoulli(L.ones(1), 1.5)", RuntimeError, "bernoulli expects p to be in"),
    ("L.bernoulli(0.5)", TypeError, "'input' must be Tensor, not float"),
    ("L.multinomial(L.ones(2), 3)", RuntimeError, "cannot sample n_sample > prob_dist.size"),
    ("L.multinomial(L.ones(2), 0)", RuntimeError, "cannot sample n_sample <= 0 samples"),
    ("L.multinomial(L.zeros(2), 1)", RuntimeError, "invalid multinomial distribution"),
    ("L.multinomial(L.tensor([-1.0, 2.0]), 1)", RuntimeError, "`inf`, `nan` or element < 0"),
    ("L.multinomial(L.tensor([float('inf'), 2.0]), 1)", RuntimeError, "`inf`, `nan` or element < 0"),
    ("L.multinomial(L.tensor([1, 2]), 1)", RuntimeError, "only supports floating-point dtypes"),
    ("L.multinomial(L.tensor(1.0), 1)", RuntimeError, "prob_dist must be 1 or 2 dim"),
    ("L.poisson(L.tensor([1]))", NotImplementedError, '"poisson_cpu" not implemented'),
    ("L.poisson(L.tensor([-1.0]))", RuntimeError, "invalid Poisson rate"),
    ("L.poisson(L.tensor([float('nan')]))", RuntimeError, "invalid Poisson rate"),
    ("L.zeros(3).uniform_(2, 1)", RuntimeError, r"uniform_ expects to return a \[from, to\) range"),
    ("L.zeros(3).normal_(0, -1)", RuntimeError, "std >= 0.0"),
    ("L.zeros(3, dtype=L.int64).normal_()", NotImplementedError, "not implemented for"),
    ("L.zeros(3).exponential_(-1)", RuntimeError, "exponential_ expects lambda > 0.0"),
]


@pytest.mark.parametrize(("expression", "kind", "phrase"), RAISES, ids=[case[0] for case in RAISES])
def test_bad_argument_raises(expression, kind, phrase):
    with pytest.raises(kind, match=phrase):
        call(expression, fg)


@pytest.mark.parametrize(("expression", "kind"), [case[:2] for case in RAISES], ids=[case[0] for case in RAISES])
def test_torch_raises_the_same_type(expression, kind, torch):
    with pytest.raises(kind):
        call(expression, torch)
