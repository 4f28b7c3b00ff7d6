"""Elementwise operators: values, dtypes, derivatives and exceptions against PyTorch, and closed forms without it."""
import itertools
import math
import warnings

import numpy as np
import pytest

import fastgrad as fg
from fastgrad.ops import gamma

inf, nan = math.inf, math.nan

# Values at which kinks, poles, overflow and rounding show.
SPECIAL = np.array([
    -inf, -1000.0, -2.5, -1.5, -1.0, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 20.0, 1000.0, inf, nan,
])
MIDDLE = np.array([-2.3, -0.7, -0.2, 0.2, 0.6, 1.3, 2.1])
COMPLEX = np.array([0.3 + 0.4j, -1.2 + 0.7j, 1.5 - 0.3j, -0.4 - 1.1j])

UNARY = (
    "exp exp2 expm1 log log10 log1p log2 rsqrt sqrt sigmoid logit cos sin sinc tan acos asin atan cosh sinh tanh acosh "
    "asinh atanh abs neg reciprocal square sgn sign ceil floor frac round trunc relu nan_to_num angle deg2rad rad2deg "
    "arccos arcsin arctan arccosh arcsinh arctanh absolute negative fix positive erf erfc erfinv lgamma digamma"
).split()
BINARY = (
    "add sub mul div pow fmod remainder maximum minimum fmax fmin atan2 hypot logaddexp logaddexp2 xlogy copysign"
).split()
TAKES_NUMBER = "add sub mul div pow fmod remainder xlogy".split()


# --- The two libraries side by side ----------------------------------------------------------------------------------


def values(t):
    """A tensor's values as an ndarray, whichever library it is of."""
    return t.detach().numpy() if isinstance(t, fg.Tensor) else t.detach().resolve_conj().numpy(force=True)


def outcome(function, module, arrays, second):
    """The result, first derivatives of a weighted sum, and derivatives of their squares; or the exception."""
    try:
        leaves = [module.from_numpy(a.copy()).requires_grad_() for a in arrays]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(module, *leaves)
        if not result.requires_grad:
            return result, [None] * len(leaves), []
        weights = module.from_numpy(np.random.default_rng(1).normal(size=tuple(result.shape)))
        if result.dtype == module.complex128:
            loss = (result * weights).real.sum() + (result * weights * weights).imag.sum()
        else:
            loss = (result * weights).sum()
        first = module.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        again = [((g * g).real if g.dtype == module.complex128 else g * g).sum()
                 for g in first if g is not None and g.requires_grad]
        if not second or not again:
            return result, first, []
        return result, first, module.autograd.grad(sum(again), leaves, allow_unused=True)
    except Exception as error:
        return error


def check(torch, function, *arrays, second=False, rtol=1e-9):
    """The function of (module, *tensors) means the same in both libraries."""
    theirs, ours = outcome(function, torch, arrays, second), outcome(function, fg, arrays, second)
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), f"{ours!r} is not {theirs!r}"
        return
    if isinstance(ours, Exception):
        raise ours
    assert_equal(ours[0], theirs[0], rtol)
    for g, h in itertools.chain(zip(ours[1], theirs[1]), zip(ours[2], theirs[2])):
        if g is None or h is None:
            assert all(t is None or not values(t).any() for t in (g, h))
        else:
            assert_equal(g, h, max(rtol, 1e-8))


def assert_equal(ours, theirs, rtol):
    a, b = values(ours), values(theirs)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)


def pairs(a, b):
    return [x.ravel() for x in np.meshgrid(a, b)]


# --- One tensor ------------------------------------------------------------------------------------------------------

# At negative whole numbers PyTorch's trigamma is about 1e33, not infinite, and elsewhere it has ten digits.
DIFFERENT_AT_SPECIAL = {"digamma"}
# PyTorch cannot differentiate these on complex tensors, or refuses them there; here they work.
DIFFERENT_ON_COMPLEX = {"nan_to_num"}


@pytest.mark.parametrize("name", UNARY)
def test_unary_at_special_values(torch, name):
    if name in DIFFERENT_AT_SPECIAL:
        pytest.skip("PyTorch's derivative is off at the poles")
    check(torch, lambda m, x: getattr(m, name)(x), SPECIAL)


@pytest.mark.parametrize("name", UNARY)
def test_unary_to_second_order(torch, name):
    check(torch, lambda m, x: getattr(m, name)(x), MIDDLE, second=True, rtol=1e-7 if "gamma" in name else 1e-9)


@pytest.mark.parametrize("name", UNARY)
def test_unary_in_float32_and_float16(torch, name):
    for dtype, rtol in ((np.float32, 2e-4), (np.float16, 2e-2)):
        a = MIDDLE.astype(dtype)
        ours, theirs = getattr(fg, name)(fg.from_numpy(a)), getattr(torch, name)(torch.from_numpy(a))
        assert values(ours).dtype == values(theirs).dtype == dtype
        np.testing.assert_allclose(values(ours), values(theirs), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", UNARY)
def test_unary_on_complex_to_second_order(torch, name):
    if name in DIFFERENT_ON_COMPLEX:
        pytest.skip("PyTorch does not differentiate it on complex tensors")
    check(torch, lambda m, x: getattr(m, name)(x), COMPLEX, second=True)


# --- Two tensors, and a tensor and a number --------------------------------------------------------------------------


@pytest.mark.parametrize("name", BINARY)
def test_binary_at_special_pairs(torch, name):
    if name == "copysign":
        pytest.skip("the derivative at infinity is 1 or -1 here, NaN in PyTorch")
    check(torch, lambda m, x, y: getattr(m, name)(x, y), *pairs(SPECIAL, SPECIAL))


@pytest.mark.parametrize("name", BINARY)
def test_binary_broadcast_to_second_order(torch, name, rng):
    check(torch, lambda m, x, y: getattr(m, name)(x, y), rng.random((2, 3)) + 0.5, rng.random(3) + 0.5, second=True)
    check(torch, lambda m, x, y: getattr(m, name)(x, y), rng.normal(size=(2, 3)), rng.normal(size=(2, 1)), second=True)


@pytest.mark.parametrize("name", "add sub mul div pow".split())
def test_binary_on_complex_and_mixed(torch, name, rng):
    z, w = (rng.normal(size=3) + 1j * rng.normal(size=3) for _ in range(2))
    for a, b in ((z, w), (z, rng.normal(size=(2, 1))), (rng.normal(size=(2, 1)), w)):
        check(torch, lambda m, x, y: getattr(m, name)(x, y), a, b, second=name != "pow")


@pytest.mark.parametrize("number", [0, 1, 2, 3, -1, 1.5, -2.5, True])
@pytest.mark.parametrize("name", TAKES_NUMBER)
def test_binary_with_a_number(torch, name, number):
    if name == "sub" and number is True:
        pytest.skip("PyTorch refuses to subtract a bool")
    check(torch, lambda m, x: getattr(m, name)(x, number), SPECIAL)
    check(torch, lambda m, x: getattr(m, name)(x, number), MIDDLE + 3, second=True)
    if name not in ("remainder", "fmod") and number is not True:
        check(torch, lambda m, x: getattr(m, name)(number, x), SPECIAL)


def test_square_root_by_power():
    """x ** 0.5 at 0 has an infinite derivative, as sqrt has."""
    x = fg.tensor([0.0, 4.0], requires_grad=True)
    (x ** 0.5).sum().backward()
    assert x.grad.tolist() == [inf, 0.25]


def test_zero_to_the_zero_has_no_slope():
    base, exponent = (fg.tensor(0.0, requires_grad=True) for _ in range(2))
    (base ** exponent).backward()
    assert base.grad.item() == 0 and exponent.grad.item() == 0


# --- More arguments --------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "clamp": lambda m, x: m.clamp(x, -0.5, 0.7),
    "clamp below": lambda m, x: m.clamp(x, 0.0),
    "clamp above": lambda m, x: m.clip(x, max=0.5),
    "clamp crossed": lambda m, x: m.clamp(x, 2, 1),
    "clamp nan": lambda m, x: m.clamp(x, nan, 1),
    "clamp_min": lambda m, x: m.clamp_min(x, 0.5),
    "clamp_max": lambda m, x: m.clamp_max(x, 0.5),
    "where number": lambda m, x: m.where(x > 0, x * x, 2.5),
    "where number first": lambda m, x: m.where(x > 0, 1, x * x),
    "where method": lambda m, x: (x * x).where(x > 0, x),
    "masked_fill": lambda m, x: m.masked_fill(x * x, x > 0, 3),
    "logit eps": lambda m, x: m.logit(x, 0.2),
    "nan_to_num": lambda m, x: m.nan_to_num(x, 1.0, 2.0, 3.0),
    "round decimals": lambda m, x: m.round(x, decimals=1),
    "round tens": lambda m, x: m.round(x, decimals=-1),
    "threshold": lambda m, x: m.threshold(x, 0.3, 7.0) if m is fg else m.nn.functional.threshold(x, 0.3, 7.0),
    "softplus": lambda m, x: softplus(m)(x, 2.0, 3.0),
    "polygamma": lambda m, x: m.polygamma(0, x * x + 0.5),
    "frexp": lambda m, x: m.frexp(x)[0],
    "rsub": lambda m, x: m.rsub(x, 2, alpha=3),
}


def softplus(module):
    return fg.ops.declarations["softplus"].function if module is fg else module.nn.functional.softplus


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_one_tensor(torch, name):
    if name != "polygamma":
        check(torch, FUNCTIONS[name], SPECIAL)
    check(torch, FUNCTIONS[name], MIDDLE, second=True)


SEVERAL = {
    "clamp": lambda m, x, y, z: m.clamp(x, y, z),
    "clamp below": lambda m, x, y, z: m.clamp(x, y) * z,
    "clamp above": lambda m, x, y, z: m.clamp(x, max=y) * z,
    "clamp_min": lambda m, x, y, z: m.clamp_min(x, y) * z,
    "where": lambda m, x, y, z: m.where(x > 0, y * y, z),
    "masked_fill": lambda m, x, y, z: m.masked_fill(x * x, y > 0, (z * z).sum()),
    "lerp": lambda m, x, y, z: m.lerp(x, y, z),
    "lerp number": lambda m, x, y, z: m.lerp(x, y, 0.7) * z,
    "addcmul": lambda m, x, y, z: m.addcmul(x, y, z, value=2.5),
    "addcdiv": lambda m, x, y, z: m.addcdiv(x, y, z, value=2.5),
    "add alpha": lambda m, x, y, z: m.add(x, y, alpha=2.5) * z,
    "sub alpha": lambda m, x, y, z: m.sub(x * x, y, alpha=-3) * z,
    "div floor": lambda m, x, y, z: m.div(x, y, rounding_mode="floor") * z,
    "div trunc": lambda m, x, y, z: m.div(x, y, rounding_mode="trunc") * z,
    "float_power": lambda m, x, y, z: m.float_power(abs(x) + 1, y) * z,
    "ldexp": lambda m, x, y, z: m.ldexp(x, y) * z,
}


@pytest.mark.parametrize("name", SEVERAL)
def test_function_of_several_tensors(torch, name, rng):
    check(torch, SEVERAL[name], rng.normal(size=(2, 3)), rng.normal(size=3), rng.normal(size=(2, 1)), second=True)


@pytest.mark.parametrize("name", ["lerp", "addcmul", "addcdiv"])
def test_function_of_several_complex_tensors(torch, name, rng):
    z = [rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in ((2, 3), (3,), (2, 1))]
    check(torch, SEVERAL[name], *z, second=True)


def test_clamp_with_tensor_bounds_at_special_values(torch, rng):
    x, low = pairs(SPECIAL, SPECIAL)
    check(torch, lambda m, x, y, z: m.clamp(x, y, z), x, low, rng.permutation(low))


# --- Complex parts ---------------------------------------------------------------------------------------------------

PARTS = {
    "real": lambda m, z: (z * z).real, "imag": lambda m, z: m.imag(z * z), "conj": lambda m, z: (z * z).conj() * z,
    "abs": lambda m, z: (z * z).abs(), "angle": lambda m, z: m.angle(z * z), "sgn": lambda m, z: m.sgn(z * z),
    "view_as_real": lambda m, z: m.view_as_real(z * z)[..., 1], "conj_physical": lambda m, z: m.conj_physical(z) * z,
}


@pytest.mark.parametrize("name", PARTS)
def test_complex_parts(torch, name):
    check(torch, PARTS[name], COMPLEX, second=True)
    check(torch, PARTS[name], np.array([0j, 1 + 1j]))


def test_view_as_complex(torch, rng):
    check(torch, lambda m, x: m.view_as_complex(x * x), rng.normal(size=(3, 2)), second=True)


def test_parts_share_memory_and_real_tensors_are_their_own_real_part():
    z = fg.tensor([1 + 2j, 3 + 4j])
    z.imag.fill_(0.0)
    z.real = fg.tensor([5.0, 6.0])
    assert z.tolist() == [5, 6]
    x = fg.ones(2)
    assert x.real is x and x.conj() is x
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        x.imag  # noqa: B018


# --- Dtypes and exceptions -------------------------------------------------------------------------------------------

# Each is evaluated with both libraries: same value and dtype, or same type of exception.
EXPRESSIONS = """
B+B; B-B; B*B; B/B; -B; B.abs(); B.sign(); B.sgn(); B.square(); B**2; B**B; B//B; B%B; m.fmod(B,B); +B; B.exp()
m.add(B,B,alpha=True); m.add(B,B,alpha=2); m.add(I,I,alpha=1.5); m.add(F,I,alpha=1.5); m.add(F,F,alpha=2j)
m.sub(I,I,alpha=2); m.add(2,F); m.add(F,2,alpha=3); m.add(I,2,alpha=3.5); m.sub(B,True); m.rsub(F,2)
m.rsub(I,2,alpha=2); m.sub(F,F,alpha='a'); m.sub(2,F); m.add(F,'a'); m.add(F); m.add(F,F,F); F+None; m.exp(1)
m.exp('a'); m.mul(F,F,alpha=2); m.div(I,I,rounding_mode='floor'); m.div(I,-I,rounding_mode='trunc')
m.div(I,I,rounding_mode='x'); m.div(C,C,rounding_mode='trunc'); m.div(I,Z,rounding_mode='floor')
m.div(F,0.,rounding_mode='floor'); m.div(F,2,rounding_mode='trunc'); m.divide(I,2); m.true_divide(I,2); F//0; F%0
F%inf; (-F)%inf; (-F)//inf; m.fmod(F,0); m.fmod(F,inf); I//Z; I%Z; m.fmod(I,Z); I//-2; I%3; m.fmod(I,3); C//C; C%C
1//F; 1%F; 1%I; m.remainder(5,I); m.floor_divide(I,2.0); I**-1; I**2; I**Z; m.pow(m.tensor(2),m.tensor(-1))
m.pow(m.tensor([1,-1,2]),m.tensor([-1,-1,-1])); I**0.5; I**-1.0; 2**I; 2.0**I; m.pow(2,3); 2**U; U**2; (-2.0)**F; C**2
m.float_power(I,2); m.float_power(C,2); m.float_power(2,I); U+300; U<300; U==300; U>-1; U==257; I==1.5; I<1.5; I<I
C<C; C==C; C>=1; B<B; B<True; F<1j; F==1j; m.eq(F,1); m.not_equal(F,I); N.sign(); N.sgn(); C.sign(); C.sgn(); C.abs()
I.abs(); -U; I.reciprocal(); I.square(); I.sqrt(); I.rsqrt(); H.exp(); I.sigmoid(); m.atan2(I,I); m.atan2(C,C)
m.atan2(B,B); m.arctan2(F,F); m.relu(I); m.relu(B); m.relu(C); m.relu(N); m.clamp(I,0,1); m.clamp(I,0.5); m.clamp(I)
m.clamp(F,m.tensor(0.),m.tensor([1.,0.])); m.clamp(I,m.tensor(0.5)); m.clamp(F,2,1); m.clamp(N,0,1); m.clamp(F,nan)
m.clamp(B,0,1); m.clamp(B,False,True); m.clamp(C,0,1); m.clamp(U,0,300); m.clamp_max(F,m.tensor([1.,2.]))
m.maximum(I,F); m.maximum(N,F[:1]); m.fmax(N,F[:1]); m.fmax(I,I); m.fmin(B,B); m.maximum(C,C); m.fmin(C,C)
m.where(B,1,2.5); m.where(B,F,1); m.where(B,F,I); m.where(B,1,2); m.where(B,True,1)
m.where(B,F,m.tensor(1.,dtype=m.float64)); m.where(I,F,F); m.where(U,F,F); m.where(F>0,F,C); F.where(B,0)
m.masked_fill(F,B,1); m.masked_fill(F,B,m.tensor(2.)); m.masked_fill(F,B,m.tensor([2.])); m.masked_fill(F,B,1j)
m.masked_fill(I,B,1.5); m.masked_fill(F,I,1); m.masked_fill(F[:1],B,1); m.floor(I); m.floor(B); m.floor(C); m.ceil(U)
m.trunc(I); m.trunc(B); m.round(I); m.round(B); m.round(C); m.round(F); m.frac(F); m.frac(I)
m.round(m.tensor([1.2345,15.55]),decimals=2); m.round(m.tensor([125.,15.55]),decimals=-1)
m.round(m.tensor([125]),decimals=-1); m.isnan(N); m.isnan(I); m.isinf(C); m.isfinite(C); m.isposinf(C)
m.isneginf(m.tensor([-inf,inf])); m.isreal(C); m.signbit(N); m.signbit(I); m.signbit(C); m.signbit(B)
m.logical_not(F); m.logical_and(F,F[:1]); m.logical_xor(I,F); m.logical_or(C,C); ~B; ~I; ~U; m.bitwise_not(F); I&1
I&B; I&F; F&F; B|B; B^True; m.bitwise_and(2,I); I<<1; 1<<I; U<<2; I>>1; F<<1; B<<1; F<<F
m.bitwise_left_shift(m.tensor([1,1]),m.tensor([64,-1])); m.bitwise_right_shift(m.tensor([-1,1]),m.tensor([64,-1]))
C.conj(); F.imag; m.real(F); m.angle(C); m.angle(F); m.angle(N); m.angle(I); m.angle(B); m.is_conj(F)
m.logaddexp(I,I); m.xlogy(I,I); m.xlogy(F,0); m.xlogy(0,F); m.xlogy(C,C); m.hypot(I,I); m.hypot(F,I); m.sinc(I)
m.sinc(C); m.logit(I); m.lerp(F,F,0.5); m.lerp(F,F.double(),0.5); m.lerp(I,I,0.5); m.lerp(F,F,I)
m.lerp(F,F,m.tensor(0.5,dtype=m.float64)); m.addcmul(F,F,I,value=2); m.addcmul(I,I,I,value=2)
m.addcmul(I,I,I,value=2.5); m.addcdiv(I,I,I); m.addcdiv(F,F,I); m.nan_to_num(m.tensor([inf,-inf,nan]))
m.nan_to_num(I); m.nan_to_num(m.tensor([complex(nan,inf)])); m.nan_to_num(N,1,2); m.copysign(F,-1); m.copysign(I,F)
m.copysign(I,-1); m.copysign(C,F); m.heaviside(F,F); m.heaviside(F,I); m.heaviside(I,I); m.heaviside(N,F[:1])
m.heaviside(F,1.); m.ldexp(F,I); m.ldexp(I,I); m.frexp(F)[1]; m.frexp(m.tensor([0.,inf,nan]))[0]; m.frexp(I)
m.isclose(F,F); m.isclose(F,I); m.isclose(I,I); m.isclose(C,C); m.isclose(N,N,equal_nan=True); m.isclose(F,F,rtol=-1)
m.allclose(F,F); m.allclose(F,F.double()); m.equal(F,F.double()); m.equal(I,F); m.equal(F,F[:1])
m.isin(I,m.tensor([1])); m.isin(I,1); m.gcd(I,I); m.lcm(I,I); m.gcd(F,F); m.nextafter(F,F); m.nextafter(I,I)
m.deg2rad(I); m.deg2rad(C); m.rad2deg(F); m.erf(I); m.erf(C); m.erfinv(m.tensor([1.,-1.,2.,0.5]))
m.lgamma(m.tensor([0.,-1.,inf,0.5])); m.digamma(m.tensor([0.,-0.,-1.,0.5])); m.polygamma(1,F); m.polygamma(-1,F)
m.polygamma(0,m.tensor([1.])); m.mvlgamma(m.tensor([3.]),2); m.mvlgamma(F,0); m.view_as_real(C); m.view_as_real(F)
m.view_as_complex(m.ones(2,2)); m.view_as_complex(m.ones(2,3)); m.view_as_complex(m.ones(3,2).T); I.add_(1.5)
F.clone().add_(1j); I.clone().mul_(F); B.clone().add_(1); I.clone().div_(2); F.clone().lt_(1); I.clone().lt_(1)
F.clone().floor_divide_(2); F.clone().add_(F.double()); F.clone().add_(F.reshape(2,1)); F.clone().pow_(I)
I.clone().pow_(F); C.clone().abs_(); I.clone().exp_(); F.clone().clip_(0,1); F.clone().sub_(F,alpha=2)
F.clone().div_(2,rounding_mode='floor'); F.clone().round_(); F.clone().clamp_min_(0); I.clone().bitwise_and_(1)
F.clone().masked_fill_(B,2.); F+1.5; F+F.double(); F+m.tensor(1.,dtype=m.float64); I+m.tensor(1.5); I+1.5
m.tensor(1)+F; H+F; H*2.5; F*1j; I*True; B+1; B+1.5; U+I
"""
CASES = [e.strip() for e in EXPRESSIONS.replace("\n", ";").split(";") if e.strip()]


def names(m):
    return {
        "m": m, "nan": nan, "inf": inf, "complex": complex, "B": m.tensor([True, False]), "I": m.tensor([1, -2]),
        "U": m.tensor([1, 200], dtype=m.uint8), "F": m.tensor([1.5, -2.5]), "C": m.tensor([1 + 2j, 0j]),
        "N": m.tensor([nan, 0.0, -0.0]), "Z": m.tensor([0, 0]), "H": m.tensor([1.5, -2.5], dtype=m.float16),
    }


@pytest.mark.parametrize("expression", CASES)
def test_value_dtype_or_exception(torch, expression):
    try:
        theirs = eval(expression, names(torch))
    except Exception as error:
        with pytest.raises(type(error)):
            eval(expression, names(fg))
        return
    ours = eval(expression, names(fg))
    if isinstance(theirs, bool):
        assert ours is theirs
    else:
        assert_equal(ours, theirs, 1e-3 if theirs.dtype == torch.float16 else 1e-5)


# --- In place --------------------------------------------------------------------------------------------------------

INPLACE_UNARY = (
    "exp exp2 expm1 sqrt rsqrt sigmoid tan tanh neg reciprocal sign ceil floor frac round trunc relu negative"
).split()
INPLACE_BINARY = "add sub mul div subtract multiply divide true_divide lt le gt ge eq ne".split()


@pytest.mark.parametrize("name", INPLACE_UNARY)
def test_inplace_unary(torch, name, rng):
    check(torch, lambda m, x: getattr(x * 1.0, f"{name}_")(), rng.random((2, 3)) + 0.3, second=True)


@pytest.mark.parametrize("name", INPLACE_BINARY)
def test_inplace_binary_with_a_constant(torch, name, rng):
    other = rng.random(3) + 0.3
    check(torch, lambda m, x: getattr(x * 1.0, f"{name}_")(m.from_numpy(other)), rng.random((2, 3)) + 0.3, second=True)
    check(torch, lambda m, x: getattr(x * 1.0, f"{name}_")(2), rng.random((2, 3)) + 0.3, second=True)


def test_inplace_returns_the_tensor_itself():
    x = fg.ones(2)
    assert x.add_(1, alpha=3) is x and x.clamp_(0, 2) is x and x.round_() is x and x.pow_(2) is x
    assert x.tolist() == [4.0, 4.0]


# --- What is saved ---------------------------------------------------------------------------------------------------

CONSTANT = fg.tensor([0.4, 0.6])
SAVES_NOTHING = {
    "x+c": lambda x: x + CONSTANT, "x+2": lambda x: x + 2, "-x": lambda x: -x, "2-x": lambda x: 2 - x,
    "lerp": lambda x: x.lerp(CONSTANT, 0.3), "floor": lambda x: x.floor(), "round": lambda x: x.round(),
    "sign": lambda x: x.sign(), "x*3": lambda x: x * 3.0, "x/3": lambda x: x / 3.0, "frac": lambda x: x.frac(),
    "alpha": lambda x: fg.add(x, x, alpha=3), "x%2": lambda x: x % 2, "deg2rad": lambda x: x.deg2rad(),
}
SAVES = {
    "x*x": lambda x: x * x, "x*c": lambda x: x * CONSTANT, "x/c": lambda x: x / CONSTANT, "x**2": lambda x: x ** 2,
    "exp": lambda x: x.exp(), "log": lambda x: x.log(), "sin": lambda x: x.sin(), "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(), "sqrt": lambda x: x.sqrt(), "abs": lambda x: x.abs(), "relu": lambda x: x.relu(),
    "clamp": lambda x: x.clamp(0, 1), "where": lambda x: fg.where(CONSTANT > 0.5, x, CONSTANT),
    "masked_fill": lambda x: x.masked_fill(CONSTANT > 0.5, 1), "maximum": lambda x: fg.maximum(x, CONSTANT),
}


@pytest.mark.parametrize("name", SAVES_NOTHING)
def test_second_backward_works_where_nothing_is_saved(name):
    x = fg.tensor([0.3, 0.7], requires_grad=True)
    y = SAVES_NOTHING[name](x).sum()
    y.backward()
    once = x.grad.clone()
    y.backward()
    assert fg.equal(x.grad, once + once)


@pytest.mark.parametrize("name", SAVES)
def test_second_backward_raises_where_something_is_saved(name):
    x = fg.tensor([0.3, 0.7], requires_grad=True)
    y = SAVES[name](x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


@pytest.mark.parametrize(("expression", "node"), [
    ("x + 1", "AddBackward0"), ("x - x", "SubBackward0"), ("x * 2", "MulBackward0"), ("x / x", "DivBackward0"),
    ("x ** 2", "PowBackward0"), ("x.pow(x)", "PowBackward1"), ("x.square()", "PowBackward0"),
    ("x.abs()", "AbsBackward0"),
    ("fg.where(x > 0, x, x)", "WhereBackward0"), ("x.masked_fill(x > 0, 1)", "MaskedFillBackward0"),
    ("x.clamp(0, 1)", "ClampBackward0"), ("x.clamp_min(0)", "ClampMinBackward0"), ("x % 2", "RemainderBackward0"),
])
def test_node_is_named_as_in_pytorch(expression, node):
    assert eval(expression, {"fg": fg, "x": fg.tensor([0.5], requires_grad=True)}).grad_fn.name() == node


# --- Without PyTorch -------------------------------------------------------------------------------------------------


def test_sigmoid_and_its_derivative_far_out_raise_no_warning():
    x = fg.tensor([-1000.0, 0.0, 1000.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = x.sigmoid()
        y.sum().backward()
    assert y.tolist() == [0.0, 0.5, 1.0] and x.grad.tolist() == [0.0, 0.25, 0.0]


def test_integers_beyond_float_precision_divide_exactly():
    big = fg.tensor([2 ** 62 + 1, -(2 ** 62) - 1])
    assert fg.div(big, 2, rounding_mode="trunc").tolist() == [2 ** 61, -(2 ** 61)]
    assert (big // 2).tolist() == [2 ** 61, -(2 ** 61) - 1]


def test_gamma_functions_without_scipy_equal_those_of_scipy():
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.linspace(-9.97, 30, 997), [1e-5, -1e-5, -1.0, inf, 1e10, nan]])
    p = np.concatenate([np.linspace(-1.1, 1.1, 1003), 1 - np.logspace(-1, -15, 40), np.logspace(-300, -1, 40)])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(gamma.digamma_array(x), special.digamma(x), rtol=1e-11)
        for s in (2.0, 3.0, 4.0):
            np.testing.assert_allclose(gamma.zeta_array(s, x), special.zeta(s, x), rtol=1e-13)
        np.testing.assert_allclose(gamma.erfinv_array(p), special.erfinv(p), rtol=1e-14)
