"""Calls of reductions, scans, statistics and norms, for fastgrad and PyTorch alike; see test_ops_reductions.py.

`L` is the library, `T` its `tensor`, `x` a tensor that requires grad.
"""
import math

VALUES = """
T([True, True]).sum()
T([1, 2], dtype=L.uint8).sum()
T([1, 2], dtype=L.int8).sum(0)
T([1., 2]).sum(dtype=L.int32)
T([1.5, 2.7]).sum(dtype=L.int64)
T([1, 2]).sum(dtype=L.bool)
T([1, 2]).sum(dtype=L.float16)
T([1 + 1j, 2]).sum()
L.ones(2, 3).sum(())
L.ones(2, 3).sum([], keepdim=True)
L.ones(2, 3).sum(dim=None, keepdim=True)
L.ones(2, 3).sum((0, -1))
L.ones(2, 3).sum(axis=1, keepdims=True)
L.ones(2, 3).sum(0, True)
L.ones(2, 0).sum(1)
L.ones(0).sum()
T(3.).sum(-1)
L.ones(4000, 3, dtype=L.float16).sum(0)
L.ones(0).mean()
L.ones(2, 0).mean(1)
L.ones(2, 0).mean(0)
L.ones(2, 3).mean(())
T([1, 2]).mean(dtype=L.float64)
T([1.5, 2.5]).mean(dtype=L.complex64)
T([1 + 1j, 2]).mean(0)
L.full((100000,), 3., dtype=L.float16).mean()
L.full((3, 70000), 3., dtype=L.float16).mean(1)
T([True, False]).prod()
T([2, 3], dtype=L.int8).prod()
L.ones(0).prod()
L.ones(2, 0).prod(1)
L.ones(2, 0).prod(0)
T([2., 3]).prod(0, True, dtype=L.float64)
T([1j, 2]).prod()
T([1, 0]).all()
T([1, 0], dtype=L.uint8).all()
T([1, 0], dtype=L.uint8).any(0)
T([1., nan]).all()
T([1j, 0]).any()
L.zeros(2, 3).all((0, 1))
L.ones(2, 3).all(())
L.ones(0).all()
L.ones(0).any()
L.ones(2, 3).any(0, keepdim=True)
L.ones(2, 3).all(dim=None, keepdim=True)
L.ones(2, 3).count_nonzero()
L.ones(2, 3).count_nonzero(())
L.count_nonzero(L.ones(2, 3), dim=(0, 1))
T([[1, 0], [0, 0]]).count_nonzero(1)
T([1j, nan]).count_nonzero()
T([nan, 1]).nansum()
T([1, 2]).nansum()
T([[nan, 1], [2, nan]]).nansum(0, True)
T([nan, 1]).nanmean()
T([nan]).nanmean()
T([[nan, 1], [2, nan]]).nanmean(1)
L.max(T([3., 5, 5, 1]))
L.max(T([[3., 5], [5, 5]]), 1)
L.max(T([[3., 5], [5, 5]]), axis=0, keepdims=True)
L.min(T([[3., 5], [5, 5]]), -2, keepdim=True)
T([True, False]).max()
T([True, False]).min(0)
T([1, 2], dtype=L.uint8).max(0)
T([nan, 1., nan]).max(0)
T([1., nan]).max()
T([1., nan, 0]).min()
T(3.).max(0)
T(3.).min(-1)
L.ones(2, 0).max(0)
L.max(T([1., 2]), T([2, 1]))
T([2, 1]).max(other=T([1, 5]))
L.min(T([1., 2]), T([2., 1]))
L.ones(2, 3).amax(())
L.ones(2, 3).amax(keepdim=True)
T([[1., 4], [3, 2]]).amin((0, 1))
T([[1., nan], [3, 2]]).amin(1)
T([True, False]).amax()
L.ones(2, 0).amax(0)
T([2, 1, 3]).aminmax()
T([[2., 1, 3]]).aminmax(dim=1, keepdim=True)
T([True, False]).aminmax()
T([1., nan]).aminmax()
T([[1, 3, 3], [0, 5, 2]]).argmax()
T([[1, 3, 3], [0, 5, 2]]).argmax(1)
T([[1, 3, 3], [0, 5, 2]]).argmin(0, True)
L.ones(2, 3).argmax(keepdim=True)
L.ones(2, 3).argmin(None, True)
T([nan, 1.]).argmax()
T([1, nan, 2.]).argmin()
L.ones(2, 0).argmax(0)
T(3).argmax(0)
T([4., 1, 3, 2]).median()
T([[4., 1, 3], [5, 6, 7]]).median(1)
T([[4, 1, 3], [5, 6, 7]]).median(0, True)
T([2., nan, 1]).median()
T([2., nan, 1]).median(0)
T([2., nan, 1]).nanmedian()
T([[2., nan, 1], [nan, nan, nan]]).nanmedian(1)
L.ones(0).median()
L.ones(0, dtype=L.int64).median()
T([1, 2]).nanmedian(0)
T(3.).median(0)
T([2., 2, 1, 1, 3]).mode()
T([3., 3, 2, 1]).mode()
T([3, 1, 2]).mode()
T([True, False]).mode()
T([[3., 1], [3, 2]]).mode(0, True)
T(3.).mode()
L.ones(0, 3).mode()
L.quantile(T([1., 2, 3]), .4)
L.quantile(T([1., 2, 4]), T([0., .4, 1]))
L.quantile(T([[1., 2, 3], [4, 5, 6]]), T([0., .4]), dim=0, keepdim=True)
L.quantile(T([[1., 2, 3], [4, 5, 6]]), T([0., .4]), dim=1)
L.quantile(T([[1., 2, 3], [4, 5, 6]]), T([0., .4]), keepdim=True)
L.quantile(T([1., 2, 4]), .6, interpolation='nearest')
L.quantile(T([1., 2, 4]), .25, interpolation='nearest')
L.quantile(T([1., 2, 4]), .75, interpolation='nearest')
L.quantile(T([1., 2, 4]), .6, interpolation='midpoint')
L.quantile(T([1., 2, 4]), .6, interpolation='lower')
L.quantile(T([1., 2, 4]), .6, interpolation='higher')
L.quantile(T([1., nan, 4]), .6)
L.quantile(T([1., 2, inf]), .6)
L.quantile(T(2.), .2)
L.quantile(T([1., 2, 4]), T(.3), 0, True)
L.nanquantile(T([1., nan, 4]), .6)
L.nanquantile(T([[1., nan, 4], [nan, nan, nan]]), T([.3, .7]), 1)
T([1., 2]).softmax(0)
T([[1., 2], [3, 5]]).softmax(0)
L.softmax(T([[1., 2], [3, 5]]), dim=-1, dtype=L.float64)
T([1, 2]).softmax(0, dtype=L.float32)
T([-inf, -inf]).softmax(0)
T([inf, 0]).softmax(0)
T(1.).softmax(0)
L.ones(0).softmax(0)
L.ones(2, 0).log_softmax(1)
T([1000., 0]).log_softmax(0)
T([-inf, 1]).log_softmax(0)
T([1, 2], dtype=L.float16).softmax(0)
T([1, 2]).logsumexp(0)
T([True]).logsumexp(0)
L.ones(2, 3).logsumexp((0, 1))
L.ones(2, 3).logsumexp((0, 1), keepdim=True)
L.ones(0).logsumexp(0)
L.ones(2, 0).logsumexp(0)
L.ones(2, 0).logsumexp(1)
T([inf, 1.]).logsumexp(0)
T([inf, -inf]).logsumexp(0)
T([[-inf, -inf], [0, 1]]).logsumexp(1)
T([1 + 1j, 2]).logsumexp(0)
T([1, 2], dtype=L.float16).logsumexp(0)
T([1., 2]).var()
T([1., 2]).var(False)
T([1., 2]).var(0, False)
T([1., 2]).var(0, True, True)
T([1., 2]).var(dim=0, correction=0)
T([1., 2]).var(correction=.5)
T([1., 2]).var(correction=3)
T([1., 2]).std(axis=0, keepdims=True)
L.ones(2, 3).var(())
L.ones(0).var()
L.ones(1).std()
T([1. + 1j, 2]).var()
T([1. + 1j, 2]).std()
T([1, 3], dtype=L.float16).var()
L.var(T([[1., 2], [3, 5]]), 1, keepdim=True)
L.var_mean(T([1., 2]))
L.var_mean(T([1., 2]), False)
L.std_mean(T([1., 2]), 0, True)
L.var_mean(T([[1. + 1j, 2]]), dim=1, correction=0, keepdim=True)
T([1, 2], dtype=L.int8).cumsum(0)
T([True, False]).cumsum(0)
T([1, 2], dtype=L.int8).cumsum(0, dtype=L.float32)
T([[1., 2], [3, 4]]).cumsum(-1)
T(1).cumsum(0)
L.full((3000,), .5, dtype=L.float16).cumsum(0)
T([1, 2]).cumsum_(0)
T([1, 2], dtype=L.int32).cumsum_(0)
T([True, False]).cumprod(0)
T([[1., 2], [3, 4]]).cumprod(0)
L.ones(2, 0).cumprod(1)
T([1., 2, 4]).cumprod_(0)
T([1., 1, 0, 2]).cummax(0)
T([[1., 1, 0, 2]]).cummin(1)
T([1., nan, 0, nan]).cummax(0)
T([True, False]).cummax(0)
T(1).cummin(0)
L.ones(2, 0).cummax(1)
T([1., -inf, 0, 2]).logcumsumexp(0)
T([[1., 2], [1000, 1000]]).logcumsumexp(1)
T([1, 2], dtype=L.float16).logcumsumexp(0)
T([1. + 1j, 2, -inf]).logcumsumexp(0)
T([1., 4, 9]).diff()
T([1, 4, 9]).diff(2)
T([True, False, True]).diff()
L.ones(3).diff(n=5)
L.ones(3).diff(n=0)
L.ones(3).diff(prepend=L.ones(2), append=T([3.]))
L.diff(L.ones(2, 3).cumsum(1), dim=0)
L.trapezoid(T([1, 2, 4]))
L.trapezoid(T([1., 2, 3]), dx=2)
L.trapz(T([1., 2, 3]))
L.trapezoid(T([1., 2, 3]), T([0., 1, 3]))
L.trapezoid(L.ones(2, 3), T([0., 3]), dim=0)
L.trapezoid(L.ones(2, 3), T([[0.], [3]]), dim=0)
L.trapezoid(L.ones(0))
L.trapezoid(T([1.]))
L.cumulative_trapezoid(T([1., 2, 3]))
L.cumulative_trapezoid(L.ones(2, 3), T([0., 3]), dim=0)
T([3., 4]).norm()
T([3 + 4j]).norm()
T([[1., 2], [3, 4]]).norm(1)
T([[1., 2], [3, 4]]).norm(3, 0)
T([[1., 2], [3, 4]]).norm(inf, dim=1, keepdim=True)
T([[1., 2], [3, 4]]).norm(-inf)
T([[1., 2], [3, 0]]).norm(0, 1)
T([[1., 2], [3, 4]]).norm(dim=())
T([[1., 2], [3, 4]]).norm('fro', (0, 1))
T([[1., 2], [3, 4]]).norm(keepdim=True, p=2, dim=None)
T([3., 4]).norm(dtype=L.float64)
T([300., 300], dtype=L.float16).norm()
L.ones(0).norm()
L.ones(2, 0).norm(inf, dim=0)
T(3.).norm(dim=0)
L.dist(T([1., 2]), T([3., 5]))
T([1., 2]).dist(T(3.), p=1)
L.cdist(T([[1., 2]]), T([[3., 4], [5, 6]]))
L.cdist(T([[1., 2]]), T([[3., 4], [5, 6]]), p=1)
L.cdist(T([[1., 2]]), T([[3., 4], [5, 6]]), p=inf)
L.cdist(T([[1., 2]]), T([[3., 2], [5, 6]]), p=0)
L.cdist(L.ones(2, 0), L.ones(3, 0))
L.cdist(L.ones(2, 1, 4, 2), L.zeros(3, 5, 2))
L.cov(T([[1., 2, 3], [4, 5, 7]]))
L.cov(T([1, 2, 3]))
L.cov(T(1.))
L.cov(T([[1., 2, 3]]))
L.cov(T([[1., 2, 3], [4, 5, 7]]), correction=0, fweights=T([1, 2, 1]), aweights=T([.1, .2, .3]))
L.cov(T([[1., 2, 3], [4, 5, 7]]), fweights=T([1, 2, 1]))
L.cov(T([[1., 2, 3], [4, 5, 7]]), aweights=T([.1, .2, .3]))
L.cov(T([[1., 2, 3], [4, 5, 7]]), fweights=T([1, 2, 1]), aweights=T([.1, .2, .3]))
L.cov(T([[1., 2 + 1j, 3], [4, 5j, 7]]))
L.corrcoef(T([[1., 2, 3], [4, 5, 7]]))
L.corrcoef(T([1., 2, 3]))
L.corrcoef(T([[1., 2 + 1j, 3], [4, 5j, 7]]))
L.histc(T([1., 2, 1]), 4, 0, 3)
L.histc(T([1., 2, 1]), 4)
L.histc(T([1., 1]), 3)
L.histc(T([5., -1, 3]), 3, 0, 3)
L.histc(T([1., nan, 1]), 4, 0, 3)
L.bincount(T([1, 2, 1]))
L.bincount(T([1, 2, 1]), weights=T([.5, 1, 2]))
L.bincount(T([1, 2]), weights=T([1, 2]))
L.bincount(T([1, 2, 1]), minlength=5)
L.bincount(T([], dtype=L.int64))
""".strip().splitlines()

LINALG = """
vector_norm(T([3., 4]))
vector_norm(T([[1., 2], [3, 4]]), 3, dim=1)
vector_norm(T([3., 4]), dtype=L.float64)
vector_norm(T([3., 0]), 0)
matrix_norm(T([[1., 2], [3, 4]]))
matrix_norm(T([[1., 2], [3, 4]]), 1)
matrix_norm(T([[1., 2], [3, 4]]), -1)
matrix_norm(T([[1., 2], [3, 4]]), inf)
matrix_norm(T([[1., 2], [3, 4]]), 2)
matrix_norm(T([[1., 2], [3, 4]]), -2, keepdim=True)
matrix_norm(T([[1., 2], [3, 4]]), 'nuc')
matrix_norm(L.ones(2, 3, 4), dim=(0, 2), keepdim=True)
matrix_norm(L.ones(2, 3, 4), 'nuc', dim=(0, 2), keepdim=True)
matrix_norm(L.ones(2, 3, 4), 1, dim=(2, 0), keepdim=True)
matrix_norm(L.ones(0, 3), 1)
norm(T([1., 2]))
norm(T([[1., 2], [3, 4]]), 2)
norm(T([[1., 2], [3, 4]]), 2, dim=0)
norm(L.ones(2, 2, 2))
norm(T([[1., 2], [3, 4]]), -1)
norm(T([1., 2]), 0)
norm(T([[1., 2], [3, 4]]), 1, (0, 1))
""".strip().splitlines()

# (function of x, x): where derivatives have kinks, ties, zeros, infinities and NaN, and where they have none.
GRADIENTS = [
    ("x.sum((0, 1), keepdim=True)", [[1.0, 2], [3, 4]]),
    ("x.sum(0, dtype=L.float32)", [[1.0, 2], [3, 4]]),
    ("x.mean(1)", [[1.0, 2], [3, 4]]),
    ("x.mean(dtype=L.float32)", [[1.0, 2], [3, 4]]),
    ("x.nansum()", [2.0, math.nan]),
    ("x.nanmean()", [2.0, math.nan, 3]),
    ("x.prod()", [2.0, 3, 4]),
    ("x.prod()", [2.0, 0, 4]),
    ("x.prod()", [0.0, 0, 4]),
    ("x.prod(1)", [[0.0, 2, 4], [1, 2, 3], [0, 1, 0]]),
    ("x.prod(0, keepdim=True)", [[0.0, 2, 4], [1, 2, 3]]),
    ("x.prod()", 3.0),
    ("x.amax(0)", [1.0, math.nan]),
    ("x.amax(1)", [[1.0, 3, 3], [2, 2, 2]]),
    ("x.amin((0, 1), True)", [[1.0, 3, 1], [2, 2, 2]]),
    ("x.max()", [math.nan, math.nan, 1.0]),
    ("x.max()", [2.0, 2, 1]),
    ("x.max(0)[0]", [2.0, 2, 1]),
    ("x.max(1, True)[0]", [[2.0, 2, 1], [0, 1, 1]]),
    ("x.min(0)[0]", [2.0, math.nan, 1]),
    ("x.max(0)[0]", 2.0),
    ("L.max(x, x * 2)", [0.0, 1, -1]),
    ("L.stack(tuple(x.aminmax()))", [2.0, 2, 1]),
    ("L.cat(tuple(x.aminmax(dim=1)))", [[2.0, 2, 1], [5, 5, 5]]),
    ("x.median()", [2.0, 2, 1, 1]),
    ("x.median()", [2.0, math.nan, 1, 1]),
    ("x.median(0)[0]", [2.0, math.nan, 1, 3]),
    ("x.median(1)[0]", [[2.0, 4, 1], [7, 6, 5]]),
    ("x.nanmedian()", [2.0, math.nan, 1, 1]),
    ("x.nanmedian(0)[0]", [2.0, math.nan, 1, 3]),
    ("x.nanmedian()", [math.nan, math.nan]),
    ("x.mode()[0]", [2.0, 2, 1, 1, 3]),
    ("L.quantile(x, .6)", [1.0, 2, 4]),
    ("L.quantile(x, .5)", [1.0, 2, 4]),
    ("L.quantile(x, .6)", [1.0, math.nan, 4]),
    ("L.nanquantile(x, .3)", [1.0, math.nan, 4, 3]),
    ("L.quantile(x, T([.1, .7], dtype=L.float64), dim=1)", [[1.0, 2, 4], [3, 0, 7]]),
    ("x.softmax(0)[:1]", [1.0, 2, 3]),
    ("x.softmax(0)", [-math.inf, -math.inf]),
    ("x.softmax(1)[0]", [[1000.0, 0], [0, 0]]),
    ("x.log_softmax(0)[:1]", [-math.inf, 1.0]),
    ("x.log_softmax(-1)[0]", [[1.0, 2], [0, 0]]),
    ("x.logsumexp(0)", [-math.inf, -math.inf]),
    ("x.logsumexp(0)", [math.inf, 1]),
    ("x.logsumexp(0)", [math.nan, 1]),
    ("x.logsumexp((0, 1), True)", [[1.0, 2], [3, 4]]),
    ("x.var()", [1.0]),
    ("x.std()", [1.0]),
    ("x.var(correction=3)", [1.0, 2]),
    ("-x.var(correction=2)", [1.0, 2]),
    ("x.var(correction=2, dim=0)", [1.0, 2]),
    ("x.var(correction=2.5, dim=0)", [1.0, 2]),
    ("x.std(1)", [[1.0, 1], [1, 2]]),
    ("x.std(0, False)", [[1.0, 1], [1, 2]]),
    ("x.var((0, 1), keepdim=True)", [[1.0, 1], [1, 2]]),
    ("L.std_mean(x)[1]", [1.0, 2]),
    ("L.var_mean(x, 1)[0]", [[1.0, 2], [3, 5]]),
    ("x.cumsum(0)", [1.0, 2, 3]),
    ("x.cumsum(1)[:, 1]", [[1.0, 2, 3], [4, 5, 6]]),
    ("x.cumprod(0)", [1.0, 0, 2]),
    ("x.cumprod(1)", [[1.0, 3, 2], [0, 2, 0]]),
    ("x.cummax(0)[0]", [1.0, 1, 0, 2]),
    ("x.cummin(1)[0]", [[1.0, 1, 0, 2]]),
    ("x.logcumsumexp(0)", [1.0, -math.inf, 0, 2]),
    ("x.logcumsumexp(0)", [-math.inf, -math.inf, 0, 2]),
    ("x.logcumsumexp(0)", [0.0, math.inf, 0, 2]),
    ("x.logcumsumexp(1)[:, 2]", [[1000.0, 1000, 1000]]),
    ("x.diff(2)", [1.0, 4, 9, 16]),
    ("L.trapezoid(x, x * x)", [1.0, 2, 5]),
    ("L.cumulative_trapezoid(x, dx=.5)", [1.0, 2, 5]),
    ("x.norm()", [0.0, 0]),
    ("x.norm(1)", [0.0, 2]),
    ("x.norm(math.inf)", [-2.0, 2]),
    ("x.norm(-math.inf)", [-2.0, 2]),
    ("x.norm(math.inf)", [0.0, 0]),
    ("x.norm(math.inf)", [math.nan, 0]),
    ("x.norm(3)", [0.0, 0]),
    ("x.norm(.5)", [0.0, 0]),
    ("x.norm(.5)", [0.0, 4]),
    ("x.norm(1.5)", [0.0, 4]),
    ("x.norm(1.5)", [0.0, 0]),
    ("x.norm(-1)", [0.0, 4]),
    ("x.norm(-1)", [2.0, 4]),
    ("x.norm(2, dim=1)", [[0.0, 0], [3, 4]]),
    ("x.norm(dtype=L.float64)", [3.0, 4]),
    ("x.norm('nuc')", [[1.0, 2], [3, 4]]),
    ("L.dist(x, x * 2)", [1.0, 2]),
    ("L.cdist(x, x)", [[1.0, 2], [1, 2], [3, 4]]),
    ("L.cdist(x, x, p=1)", [[1.0, 2], [1, 2], [3, 4]]),
    ("L.cdist(x, x, p=math.inf)", [[1.0, 2], [1, 2], [4, 4]]),
    ("L.cdist(x, x, p=3)", [[1.0, 2], [1, 2], [3, 4]]),
    ("L.cov(x)", [[1.0, 2, 3], [4, 5, 7]]),
    ("L.corrcoef(x)[0]", [[1.0, 2, 4], [4, 5, 2]]),
]

SECOND = [
    ("x.prod()", [2.0, 3, 0, 0]),
    ("x.prod()", [2.0, 3, 4]),
    ("x.prod(0)", [2.0, 0, 4]),
    ("x.cumprod(0)", [0.0, 2, 3]),
    ("x.cumprod(0)", [2.0, 0, 0, 5]),
    ("x.cumprod(0)", [2.0, 3, 4]),
    ("x.softmax(0)[1]", [1.0, 2, 3]),
    ("x.logsumexp(0)", [1.0, 2, 3]),
    ("x.logcumsumexp(0)", [1.0, 2, 3]),
    ("x.std()", [1.0, 2, 4]),
    ("x.var(0)", [1.0, 2, 4]),
    ("x.norm()", [3.0, 4]),
    ("x.norm(3)", [3.0, -4]),
]

# (expression, phrase that PyTorch's message has too)
ERRORS = [
    ("T([1, 2]).mean()", "could not infer output dtype"),
    ("T([1.5]).mean(dtype=L.int64)", "could not infer output dtype"),
    ("T([1.]).sum(1)", "Dimension out of range"),
    ("T([1.]).sum(-2)", "Dimension out of range"),
    ("T(1.).sum(1)", "Dimension out of range"),
    ("T([1.]).sum(dim='a')", ""),
    ("T([1.]).sum(dim=1.0)", ""),
    ("T([1.]).sum(0, L.float64)", ""),
    ("L.sum([1.])", "must be Tensor, not list"),
    ("L.ones(2, 3).sum((0, -2))", "appears multiple times in the list of dims"),
    ("L.ones(2, 3).prod((0, 1))", ""),
    ("L.ones(2).all((0, 0))", "appears multiple times in the list of dims"),
    ("L.ones(2).count_nonzero(2)", "Dimension out of range"),
    ("T([1j]).nansum()", "does not support complex"),
    ("T([1]).nanmean()", "floating point or complex"),
    ("L.ones(0).max()", "Expected reduction dim to be specified for input.numel() == 0"),
    ("L.ones(2, 0).max(1)", "Expected reduction dim 1 to have non-zero size"),
    ("L.ones(0).argmax()", "Expected reduction dim to be specified for input.numel() == 0"),
    ("L.ones(2, 0).argmin(1)", "Expected reduction dim 1 to have non-zero size"),
    ("L.ones(2, 0).amax(1)", "Expected reduction dim 1 to have non-zero size"),
    ("L.ones(0).amin()", "Expected reduction dim to be specified for input.numel() == 0"),
    ("L.ones(0).aminmax()", "cannot compute aminmax over an empty dimension"),
    ("L.ones(2, 0).aminmax(dim=1)", "Expected reduction dim 1 to have non-zero size"),
    ("L.ones(2).aminmax(0)", ""),
    ("L.ones(2, 0).median(1)", "Expected reduction dim 1 to have non-zero size"),
    ("L.ones(2, 0).mode()", "Expected reduction dim 1 to have non-zero size"),
    ("L.ones(2, 3).argmax((0, 1))", "must be int, not tuple"),
    ("T([True]).argmax()", "does not support bool input"),
    ("T([1j]).argmin()", "does not support complex input"),
    ("T([1j]).max()", "not implemented for"),
    ("T([1j]).amax()", "not implemented for"),
    ("T([1j]).aminmax()", "not implemented for"),
    ("T([1j]).median()", "not implemented for"),
    ("T([True]).median(0)", "not implemented for"),
    ("T([1j]).mode()", "not implemented for"),
    ("T([1j]).cummax(0)", "not implemented for"),
    ("T([1.]).max(1)", "Dimension out of range"),
    ("T(1.).max(1)", "Dimension out of range"),
    ("T([1.]).max((0,))", ""),
    ("T([1.]).max(1.0)", ""),
    ("T([1.]).max(keepdim=True)", ""),
    ("T([1.]).max(dim=0, other=T([1.]))", ""),
    ("T([1, 2]).quantile(.5)", "must be either float or double dtype"),
    ("T([1., 2]).quantile(1.5)", "q must be in the range [0, 1]"),
    ("T([1., 2]).quantile(T([.5], dtype=L.float64))", "must be same dtype"),
    ("T([1., 2]).quantile(T([[.5]]))", "must be a scalar or 1D"),
    ("L.ones(0).quantile(.5)", "must be non-empty"),
    ("L.ones(1).quantile(.5, interpolation='bad')", "interpolation must be one of"),
    ("T([1, 2]).softmax(0)", "not implemented for"),
    ("T([1j]).log_softmax(0)", "not implemented for"),
    ("T([1.]).softmax(1)", "Dimension out of range"),
    ("T([1.]).softmax()", ""),
    ("T([1.]).logsumexp()", ""),
    ("T([1, 2]).var()", "only support floating point and complex dtypes"),
    ("L.var_mean(T([1, 2]))", "only support floating point and complex dtypes"),
    ("T([1., 2]).var(dim=0, unbiased=False, correction=0)", ""),
    ("T([1.]).std(1)", "Dimension out of range"),
    ("T([1]).cumsum()", ""),
    ("T([1]).cumsum(1)", "Dimension out of range"),
    ("T([1]).cumprod(-2)", "Dimension out of range"),
    ("T([1, 2]).logcumsumexp(0)", "not implemented for"),
    ("T(1).diff()", "at least one-dimensional"),
    ("L.ones(3).diff(n=-1)", "must be non-negative"),
    ("L.ones(3).diff(prepend=L.ones(2, 1))", "same dimension as input"),
    ("L.trapezoid(T([1., 2, 3]), x=T([0., 1]))", "There must be one `x` value for each sample point"),
    ("L.trapezoid(T(1.))", "tensor has no dimensions"),
    ("L.trapezoid(T([True]))", "bool is not supported"),
    ("T([1, 2]).norm()", "Expected a floating point or complex tensor"),
    ("T([1., 2]).norm('bad', dim=(0, 1))", ""),
    ("L.ones(2, 2).norm('bad')", "Order bad not supported"),
    ("L.ones(0).norm(inf)", "norm on an empty tensor"),
    ("L.ones(2, 0).norm(-1, dim=1)", "does not have an identity"),
    ("L.linalg.vector_norm(T([3.], dtype=L.float64), dtype=L.float32)", "convertible without narrowing"),
    ("L.linalg.vector_norm(T([3j]), dtype=L.float64)", "should be complex for complex inputs"),
    ("L.linalg.vector_norm(T([3.]), dtype=L.complex64)", "should be real for real inputs"),
    ("L.linalg.matrix_norm(L.ones(2, 3), dim=(0, 0))", "dims must be different"),
    ("L.linalg.matrix_norm(L.ones(3))", "at least 2 dimensions"),
    ("L.linalg.matrix_norm(L.ones(3, 3), 3)", "not supported"),
    ("L.linalg.norm(L.ones(2, 2, 2), 2)", "the input must be 1D or 2D"),
    ("L.linalg.norm(L.ones(2, 2, 2), 2, (0, 1, 2))", "it must be of length 1 or 2"),
    ("L.cdist(T([[1., 2]]), T([[3., 4, 1]]))", "must have the same number of columns"),
    ("L.cdist(T([1., 2]), T([[3., 4]]))", "at least 2D"),
    ("L.cdist(T([[1, 2]]), T([[3, 4]]))", "only supports floating-point dtypes"),
    ("L.cdist(L.ones(1, 2), L.ones(1, 2), p=-1)", "non-negative p"),
    ("L.cov(L.ones(1, 2, 3))", "two or fewer dimensions"),
    ("L.cov(L.ones(2, 3), fweights=L.ones(3))", "expected fweights to have integral dtype"),
    ("L.histc(T([1, 2]))", "not implemented for"),
    ("L.histc(T([1., nan]))", "is not finite"),
    ("L.histc(T([1.]), 0)", "bins must be > 0"),
    ("L.histc(T([1.]), 3, 2, 1)", "max must be larger than min"),
    ("L.bincount(T([1, -2]))", "1-d non-negative integral inputs"),
    ("L.bincount(T([[1]]))", "1-d non-negative integral inputs"),
    ("L.bincount(T([1.]))", "not implemented for"),
    ("L.bincount(T([1]), minlength=-1)", "minlength should be >= 0"),
    ("L.bincount(T([1]), weights=T([1., 2]))", "weights should be 1-d and have the same length as input"),
]
