"""Floor 3: norms of vectors and matrices, and distances.

At 0, where a norm has no derivative, the subgradient is 0; a maximum shares its gradient among equal elements.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._dtypes import as_dtype
from .._tensor import Tensor, from_ndarray
from ._declare import KEEP, composite, declarations, operator
from ._helpers import normal_dim, numpy_words, real_product, reduced_axes, unreduced
from ._loops import Array, is_number
from .reductions import ADD, axis_of, nonzero_part
from .views import cast, to_copy

DOT_MAX = 8192      # elements: above 10,000 OpenBLAS divides a dot product among threads, and waits for them

# --- Of vectors ------------------------------------------------------------------------------------------------------


def norm_input(input: Array, dtype: Any) -> Array:
    """The input in the dtype to compute in, after PyTorch's checks."""
    name = "linalg.vector_norm"
    if input.dtype.kind not in "fc":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {input.dtype}; convert "
                           "it with .float()")
    if dtype is None:
        return input
    target = as_dtype(dtype)
    if target.category < 2:
        raise RuntimeError(f"{name}: dtype should be floating point or complex. Got {target.name}")
    if (input.dtype.kind == "c") != target.is_complex:
        wanted = "complex for complex" if input.dtype.kind == "c" else "real for real"
        raise RuntimeError(f"{name}: dtype should be {wanted} inputs, but got {target.name}")
    if target.itemsize < input.dtype.itemsize:
        raise RuntimeError(f"{name}: the dtype of the input ({input.dtype}) should be convertible without narrowing to "
                           f"the specified dtype ({target.name})")
    return cast(input, target)


def vector_norm_forward(x: Array, ord: float, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if not is_number(ord):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' must be Number, not {type(ord).__name__}")
    x = norm_input(x, dtype)
    target = x.real.dtype
    axis = axis_of(dim, x.ndim)
    if x.size == 0 and (ord < 0 or ord == math.inf):
        check_identity(x.shape, ord, dim)
    if target.char == "e":
        x = x.astype(np.float32)
    if ord == 2:
        if axis is None and x.flags.c_contiguous and x.ndim and x.size <= DOT_MAX:
            flat = x.reshape(-1)
            total = np.vdot(flat, flat).real
            result: Any = np.sqrt(total)
            return result.reshape((1,) * x.ndim).astype(target) if keepdim else result.astype(target)
        square = x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x
        result = np.sqrt(ADD(square, axis, None, None, keepdim))
    elif ord == 0:
        result = ADD(x != 0, axis, target, None, keepdim)
    else:
        size = np.abs(x)
        if ord == math.inf:
            result = np.maximum.reduce(size, axis, None, None, keepdim)
        elif ord == -math.inf:
            result = np.minimum.reduce(size, axis, None, None, keepdim)
        elif ord == 1:
            result = ADD(size, axis, None, None, keepdim)
        else:
            result = ADD(size**ord, axis, None, None, keepdim) ** (1 / ord)
    return result.astype(target, copy=False)


def check_identity(shape: tuple[int, ...], ord: float, dim: Any) -> None:
    for axis in reduced_axes(dim, len(shape)):
        if shape[axis] == 0:
            where_empty = "an empty tensor" if dim is None else f"the dimension {axis} because this dimension is empty"
            raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on {where_empty} "
                               f"as the operation does not have an identity; the shape is {shape}")


def vector_norm_jvp_x(t: Any, x: Any, result: Any, ord: float, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        x, t = to_copy(x, dtype), to_copy(t, dtype)
    gradient = vector_norm_vjp_x(ones_like(result), x, result, ord, dim, keepdim, None)
    return None if gradient is None else real_product(gradient, t).sum(dim, keepdim)


def ones_like(x: Any) -> Any:
    return from_ndarray(np.ones(x.shape, x.dtype.numpy), False)


def vector_norm_vjp_x(g: Any, x: Any, result: Any, ord: float, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        x = to_copy(x, dtype)
    shape = tuple(x.shape)
    g, norm = unreduced(g, shape, dim, keepdim), unreduced(result, shape, dim, keepdim)
    if ord == 0:
        return None
    if ord == 1:
        return x.sgn() * g
    if ord == 2:
        return x * nonzero_part(lambda n: g / n, norm)
    if math.isinf(ord):
        size = x.detach().abs()
        chosen = (size == norm.detach()).logical_or(size.isnan())
        return x.sgn() * (g / chosen.sum(dim, True) * chosen)
    scale = nonzero_part(lambda n: g * n ** (1 - ord), norm)
    if ord >= 2:
        return x * (x.abs() ** (ord - 2) * scale)
    return x.sgn() * (nonzero_part(lambda size: size ** (ord - 1), x.abs()) * scale)


def norm_samples(make: Any) -> list[Any]:
    return [
        ((make(3),), {}), ((make(2, 3), 1), {}), ((make(2, 3), 3, 1, True), {}), ((make(2, 3), math.inf, 0), {}),
        ((make(2, 3), -math.inf), {}), ((make(2, 3), 1.5, (0, 1)), {}), ((make(2, 3), 0.5, -1), {}), ((make(),), {}),
        ((make(0, 2), 2, 0), {}), ((make(2, 3), -1), {}), ((make(2, 3, 2), 2, (0, 2)), {}),
    ]


vector_norm = operator(
    "linalg_vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None)",
    forward=vector_norm_forward,
    vjp=dict(x=vector_norm_vjp_x), jvp=dict(x=vector_norm_jvp_x),
    tensors="x", dtypes=KEEP, public=False, method=False, samples=norm_samples,
    doc="""``sum(abs(x)**ord)**(1/ord)`` over dimensions.

    Parameters
    ----------
    x : Tensor
    ord : number
        Also inf (the largest absolute value), -inf (the smallest), and 0 (how many are not 0).
    dim : int or tuple of int, optional
        What to reduce; all dimensions if not given.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    dtype : dtype, optional
        What the input is cast to first.

    Returns
    -------
    Tensor
        Real.

    Raises
    ------
    RuntimeError
        For integers and bool, and where the norm of nothing is asked for that has no meaning.

    Notes
    -----
    For ``ord=2`` the derivative is ``g * x / result``, and 0 at 0 (elementary).
    """,
)

# --- Of matrices -----------------------------------------------------------------------------------------------------


def largest_or_smallest(x: Any, ord: float, dim: int, keepdim: bool) -> Any:
    return (x.amax if ord > 0 else x.amin)(dim, keepdim)


@composite(
    "linalg_matrix_norm(A, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None)", public=False, method=False,
    samples=lambda make: [
        ((make(2, 3),), {}), ((make(2, 3), 1), {}), ((make(2, 3), -math.inf), {}), ((make(2, 3, 2), "nuc", (0, 2)), {}),
        ((make(2, 3), 2), {}), ((make(2, 3, 2), "fro", (0, 1), True), {}),
    ],
)
def linalg_matrix_norm(
    A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The norm of matrices: Frobenius, nuclear, of rows, of columns, or of singular values.

    Parameters
    ----------
    A : Tensor
    ord : {"fro", "nuc", inf, -inf, 1, -1, 2, -2}
        Largest (with a minus: smallest) sum of absolute values of a row for inf, of a column for 1; largest singular
        value for 2.
    dim : tuple of int
        The two dimensions of the matrices.
    keepdim : bool
        Whether these stay, with size 1.
    dtype : dtype, optional
        What `A` is cast to first.
    """
    name = "linalg.matrix_norm"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if A.dtype.category < 2:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype.name}")
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {dim}")
    row, column = (normal_dim(d, A.ndim) for d in dim)
    if row == column:
        raise RuntimeError(f"{name}: dims must be different. Got {tuple(dim)}")
    if ord == "fro":
        return vector_norm(A, 2, (row, column), keepdim, dtype=dtype)
    if ord == "nuc" or ord in (2, -2):
        A = A if dtype is None else A.to(dtype)
        values = declarations["linalg_svdvals"].function(A.movedim((row, column), (-2, -1)))
        result = values.sum(-1) if ord == "nuc" else largest_or_smallest(values, ord, -1, False)
        if keepdim:
            for d in sorted((row, column)):
                result = result.unsqueeze(d)
        return result
    if isinstance(ord, str) or abs(ord) not in (1, math.inf):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    if abs(ord) == math.inf:
        row, column = column, row
    sums = vector_norm(A, 1, row, True, dtype=dtype)
    result = largest_or_smallest(sums, ord, column, True)
    return result if keepdim else result.squeeze((row, column))


@composite(
    "linalg_norm(A, ord=None, dim=None, keepdim=False, *, dtype=None)", public=False, method=False,
    samples=lambda make: [((make(3),), {}), ((make(2, 3), 1), {}), ((make(2, 3), None, 0), {}), ((make(2, 2, 2),), {})],
)
def linalg_norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The norm of a vector or matrix, as the number of dimensions says.

    Parameters
    ----------
    A : Tensor
    ord : number or {"fro", "nuc"}, optional
        As in ``vector_norm`` and ``matrix_norm``. Not given: the 2-norm of all elements.
    dim : int or tuple of int, optional
        One dimension for vectors, two for matrices.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    dtype : dtype, optional
        What `A` is cast to first.
    """
    if dim is not None:
        dim = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
        if len(dim) not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    elif ord is not None and A.ndim not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                           f"{A.ndim}D.")
    if ord is not None and (isinstance(ord, str) or (A.ndim if dim is None else len(dim)) == 2):
        return linalg_matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@composite(
    "norm(input, p='fro', dim=None, keepdim=False, dtype=None)",
    samples=lambda make: [*norm_samples(make)[:8], ((make(2, 3), "fro", 0), {}), ((make(2, 3), "nuc"), {})],
)
@numpy_words
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The norm of all elements, or over dimensions.

    Parameters
    ----------
    input : Tensor
    p : number or {"fro", "nuc"}
        As `ord` of ``linalg.vector_norm``; "fro" is 2, "nuc" the sum of the singular values of matrices.
    dim : int or tuple of int, optional
        What to reduce; all dimensions if not given.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    dtype : dtype, optional
        What the input is cast to first.

    Returns
    -------
    Tensor
        Real.

    Raises
    ------
    RuntimeError
        For integers and bool.

    Notes
    -----
    For 2 the derivative is ``g * input / result``, and 0 at 0 (elementary).

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensor([3., 4.]).norm()
    tensor(5.)
    """
    if p is None or p == "fro":
        return vector_norm(input, 2, dim, keepdim, dtype=dtype)
    if isinstance(p, str):
        return linalg_matrix_norm(input, p, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, p, dim, keepdim, dtype=dtype)


# --- Distances -------------------------------------------------------------------------------------------------------


@composite(
    "dist(input, other, p=2)",
    samples=lambda make: [((make(2, 3), make(3)), {}), ((make(3), make(3), 1), {}), ((make(), make()), {})],
)
def dist(input: Any, other: Any, p: float = 2) -> Any:
    """The norm of the difference.

    Parameters
    ----------
    input, other : Tensor
        They broadcast.
    p : number
        As `ord` of ``linalg.vector_norm``.
    """
    return vector_norm(input - other, p)


def cdist_forward(x1: Array, x2: Array, p: float) -> Any:
    """Distances of all pairs, a block of rows at a time, so that the differences stay in the cache."""
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    n, m, width = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    x1 = np.broadcast_to(x1, (*batch, n, width))
    x2 = np.broadcast_to(x2, (*batch, m, width))
    out = np.zeros((*batch, n, m), x1.dtype)
    if out.size == 0 or width == 0:
        return out
    block = max(1, CDIST_BLOCK // (m * width))
    for i in np.ndindex(*batch):
        for start in range(0, n, block):
            difference = x1[i][start : start + block, None, :] - x2[i][None, :, :]
            out[i][start : start + block] = vector_norm_forward(difference, p, -1, False, None)
    return out


CDIST_BLOCK = 65536        # differences at a time: half a megabyte of float64, which a second-level cache holds


def cdist_vjp(g: Any, own: Any, other: Any, result: Any, p: float) -> Any:
    """The cotangent of the points `own`, which are the rows of `g` and of `result`."""
    if p == 2:
        weight = nonzero_part(lambda n: g / n, result)
        return own * weight.sum(-1, True) - weight @ other
    difference = own.unsqueeze(-2) - other.unsqueeze(-3)
    cotangent = vector_norm_vjp_x(g, difference, result, p, -1, False, None)
    return None if cotangent is None else cotangent.sum(-2)


def cdist_jvp(t: Any, own: Any, other: Any, result: Any, p: float) -> Any:
    difference = own.unsqueeze(-2) - other.unsqueeze(-3)
    return vector_norm_jvp_x(t.unsqueeze(-2).expand(difference.shape), difference, result, p, -1, False, None)


def cdist_jvp_x1(t: Any, x1: Any, x2: Any, result: Any, p: float) -> Any:
    return cdist_jvp(t, x1, x2, result, p)


def cdist_jvp_x2(t: Any, x1: Any, x2: Any, result: Any, p: float) -> Any:
    tangent = cdist_jvp(t, x2, x1, result.transpose(-1, -2), p)
    return None if tangent is None else tangent.transpose(-1, -2)


def cdist_vjp_x1(g: Any, x1: Any, x2: Any, result: Any, p: float) -> Any:
    return cdist_vjp(g, x1, x2, result, p)


def cdist_vjp_x2(g: Any, x1: Any, x2: Any, result: Any, p: float) -> Any:
    return cdist_vjp(g.transpose(-1, -2), x2, x1, result.transpose(-1, -2), p)


pairwise = operator(
    "_cdist(x1, x2, p)",
    forward=cdist_forward,
    vjp=dict(x1=cdist_vjp_x1, x2=cdist_vjp_x2), jvp=dict(x1=cdist_jvp_x1, x2=cdist_jvp_x2),
    tensors="x1 x2", node="Cdist", public=False, method=False, complex=False,
    samples=lambda make: [((make(3, 2), make(4, 2), 2.0), {}), ((make(3, 2), make(4, 2), 1.5), {})],
)


@composite(
    "cdist(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary')", method=False, complex=False,
    samples=lambda make: [
        ((make(3, 2), make(4, 2)), {}), ((make(3, 2), make(4, 2), 1.0), {}),
        ((make(2, 1, 3, 2), make(3, 2, 2), 3.0), {}), ((make(3, 2), make(2, 2), math.inf), {}),
        ((make(3, 0), make(2, 0)), {}),
    ],
)
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Any:
    """The distances between each of some points and each of others.

    Parameters
    ----------
    x1 : Tensor, shape (..., n, d)
    x2 : Tensor, shape (..., m, d)
        The dimensions before the last two broadcast.
    p : float
        Which norm; not negative.
    compute_mode : str
        Accepted and ignored: differences are always taken, never products, which would cancel for near points.

    Returns
    -------
    Tensor, shape (..., n, m)

    Raises
    ------
    RuntimeError
        For other dtypes than real floating point ones, fewer than two dimensions, and different widths.
    """
    for name, x in (("X1", x1), ("X2", x2)):
        if not isinstance(x, Tensor):
            raise TypeError(f"cdist(): argument '{name.lower()}' must be Tensor, not {type(x).__name__}")
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.name}")
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if compute_mode not in CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return pairwise(x1, x2, p)


CDIST_MODES = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)
