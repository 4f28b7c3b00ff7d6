"""Floor 3: matrix products.

`matmul` and the two private operators beside it are closed under differentiation: a derivative of ``a @ b`` is
``g @ b^H`` or ``a^H @ g``, and so are the derivatives of these. Each is one call of NumPy, which passes a transposed
operand to BLAS as a flag, so that no transpose is ever copied.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._errors import cannot_broadcast
from ._declare import BILINEAR, KEEP, PROMOTE, composite, functions, operator
from ._helpers import conj

BLAS_DTYPES = "fdFD"        # float32, float64 and their complex dtypes

# --- The forward -----------------------------------------------------------------------------------------------------


def require_arrays(name: str, **arguments: Any) -> None:
    """TypeError where a number stands for a tensor: only tensors have products."""
    for argument, value in arguments.items():
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(value).__name__}")


def require_same_dtype(name: str, a: Any, b: Any) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(f"{name}: expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}; "
                           "products do not promote: convert one of them, e.g. with .to(other.dtype)")
    if a.dtype.kind == "b":
        raise NotImplementedError(f"{name}: not implemented for 'Bool'; convert to an integer dtype first")


def blas_operand(array: Any) -> Any:
    """A copy of an expanded matrix: BLAS takes strides of whole columns or rows only, and without it is slow."""
    if array.ndim > 1 and (array.strides[-1] == 0 or array.strides[-2] == 0) and array.size:
        return np.ascontiguousarray(array)
    return array


def product(a: Any, b: Any) -> Any:
    """``a @ b`` of ndarrays of one dtype and matching shapes."""
    if a.dtype == np.float16:
        # Sums of more than 2048 ones stand still in float16, and there is no BLAS for it.
        return product(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    a, b = blas_operand(a), blas_operand(b)
    if b.ndim <= 2 < a.ndim and a.flags.c_contiguous:
        # One large product instead of many small ones.
        rows = math.prod(a.shape[:-1])
        return np.matmul(a.reshape(rows, a.shape[-1]), b).reshape(a.shape[:-1] + b.shape[1:])
    return np.matmul(a, b)


def sizes(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def check_shapes(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """RuntimeError with PyTorch's words for what does not fit in ``a @ b``."""
    if not a or not b:
        raise RuntimeError(f"both arguments to {name} need to be at least 1D, but they are {len(a)}D and {len(b)}D")
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] == inner:
        if any(m != n and 1 not in (m, n) for m, n in zip(a[-3::-1], b[-3::-1])) and len(a) > 2 and len(b) > 2:
            raise RuntimeError(f"{cannot_broadcast(name, a[:-2], b[:-2])} of the batches of {a} and {b}")
        return
    needs = f"; {name} needs a.shape[-1] == b.shape[{'-2' if len(b) > 1 else '0'}], the shapes are {a} and {b}"
    if len(b) == 1 and len(a) == 1:
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same "
                           f"number of elements, but got {a[0]} and {b[0]} elements respectively{needs}")
    if len(b) == 1:
        rows = math.prod(a[:-1])
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{a[-1]}), vec ({b[0]}){needs}")
    if len(b) == 2:
        left = a if len(a) == 2 else (math.prod(a[:-1]), a[-1])
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({sizes(left)} and {sizes(b)}){needs}")
    batch = math.prod(b[:-2])
    raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {a[-1]}] but got: "
                       f"[{batch}, {inner}].{needs}")


def is_plain(a: Any, b: Any, inner: int) -> bool:
    """Whether NumPy may multiply matrix a and matrix or vector b as they are; b's dimension `inner` is summed over.

    Tensors of one dtype share the dtype's object. Saves most of the time that a small product takes.
    """
    return (
        a.dtype is b.dtype and a.dtype.char in BLAS_DTYPES and a.ndim == 2 >= b.ndim > 0
        and a.shape[1] == b.shape[inner] and 0 not in a.strides and 0 not in b.strides
    )


def matmul_forward(input: Any, other: Any) -> Any:
    if isinstance(input, np.ndarray) and isinstance(other, np.ndarray) and is_plain(input, other, 0):
        return np.matmul(input, other)
    require_arrays("matmul", input=input, other=other)
    check_shapes("matmul", input.shape, other.shape)
    require_same_dtype("matmul", input, other)
    return product(input, other)


# --- The derivatives -------------------------------------------------------------------------------------------------


def adjoint(array: Any) -> Any:
    """The conjugate transpose of an ndarray of matrices: a view where it is real."""
    return (array.conj() if array.dtype.kind == "c" else array).swapaxes(-2, -1)


def product_adjoint_forward(input: Any, other: Any) -> Any:
    if is_plain(input, other, -1) and other.ndim == 2 and other.dtype.kind == "f":
        return np.matmul(input, other.T)
    return product(input, adjoint(other))


def adjoint_product_forward(input: Any, other: Any) -> Any:
    if input.ndim == 2 and input.dtype.kind == "f" and is_plain(input.T, other, 0):
        return np.matmul(input.T, other)
    return product(adjoint(input), other)


def matmul_vjp_input(g: Any, other: Any, input_shape: tuple[int, ...]) -> Any:
    if other.ndim == 1:
        return g.unsqueeze(-1) * conj(other)
    if len(input_shape) == 1:
        return (conj(other) @ g.unsqueeze(-1)).squeeze(-1)
    return product_adjoint(g, other)


def matmul_vjp_other(g: Any, input: Any, other_shape: tuple[int, ...]) -> Any:
    if len(other_shape) == 1:
        if input.ndim == 1:
            return g * conj(input)
        if input.ndim == 2:
            return g @ conj(input)
        return g.reshape(g.numel()) @ conj(input).reshape(g.numel(), other_shape[0])
    if input.ndim == 1:
        return conj(input).unsqueeze(-1) * g.unsqueeze(-2)
    return adjoint_product_to(input, g, other_shape)


def adjoint_product_to(a: Any, b: Any, shape: tuple[int, ...]) -> Any:
    """``a^H @ b`` as the cotangent of something of that shape."""
    if len(shape) == 2 and a.ndim > 2 and a.shape[:-2] == b.shape[:-2]:
        # The sum over the batch is part of one product, not done by the engine on a stack of them.
        rows = math.prod(a.shape[:-1])
        return adjoint_product(a.reshape(rows, a.shape[-1]), b.reshape(rows, b.shape[-1]))
    return adjoint_product(a, b)


product_adjoint = operator(
    "_product_adjoint(input, other)",              # input @ other^H
    forward=product_adjoint_forward,
    vjp=dict(input=lambda g, other: g @ other,
             other=lambda g, input, other_shape: adjoint_product_to(g, input, other_shape)),
    dtypes=KEEP, jvp=BILINEAR, method=False, public=False, node="Mm",
    samples=lambda make: [((make(2, 3), make(4, 3)), {}), ((make(5, 2, 3), make(4, 3)), {})],
)

adjoint_product = operator(
    "_adjoint_product(input, other)",              # input^H @ other
    forward=adjoint_product_forward,
    vjp=dict(input=lambda g, other: product_adjoint(other, g), other=lambda g, input: input @ g),
    dtypes=KEEP, jvp=BILINEAR, method=False, public=False, node="Mm",
    samples=lambda make: [((make(3, 2), make(3, 4)), {}), ((make(5, 3, 2), make(3, 4)), {})],
)


def matmul_samples(make: Any) -> list[Any]:
    shapes = [
        ((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)), ((2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((0, 3), (3, 2)),
        ((2, 0), (0, 3)), ((1, 2, 3), (5, 3, 4)), ((4, 5, 2, 3), (3,)),
    ]
    return [((make(*a), make(*b)), {}) for a, b in shapes]


matmul = operator(
    "matmul(input, other)",
    forward=matmul_forward,
    vjp=dict(input=matmul_vjp_input, other=matmul_vjp_other),
    dtypes=KEEP, jvp=BILINEAR, numpy=np.matmul, node="Mm", samples=matmul_samples,
    source="Giles, An extended collection of matrix derivative results (2008), 2.2.1",
    doc="""The matrix product, with the meaning of ``@`` for every combination of ranks.

    Two vectors give their inner product; a matrix and a vector a vector; of
    more than two dimensions the leading ones are a batch and broadcast.

    Parameters
    ----------
    input, other : Tensor
        Of one dtype (nothing is promoted), at least 1-D. ``input.shape[-1]``
        must equal ``other.shape[-2]`` (``other.shape[0]`` of a vector).

    Returns
    -------
    Tensor
        Of the same dtype.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, a tensor is 0-D, or the dtypes differ.

    Notes
    -----
    The derivative saves each factor only if the other one requires grad.

    Examples
    --------
    >>> import fastgrad as fg
    >>> a = fg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> a @ fg.tensor([1.0, 1.0])
    tensor([3., 7.])
    """,
)

# --- Products of fixed rank ------------------------------------------------------------------------------------------

GILES = "Giles, An extended collection of matrix derivative results (2008), 2.2.1"


def require_ranks(name: str, a: Any, b: Any, ranks: tuple[int, int], message: str) -> None:
    require_arrays(name, input=a, other=b)
    if (a.ndim, b.ndim) != ranks:
        raise RuntimeError(f"{name}: {message}; the shapes are {a.shape} and {b.shape}")


def bmm_forward(input: Any, mat2: Any) -> Any:
    require_arrays("bmm", input=input, mat2=mat2)
    for i, batch in enumerate((input, mat2)):
        if batch.ndim != 3:
            raise RuntimeError(f"bmm: batch{i + 1} must be a 3D tensor, got shape {batch.shape}")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"bmm: Expected size for first two dimensions of batch2 tensor to be: [{input.shape[0]}, {input.shape[2]}] "
            f"but got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    require_same_dtype("bmm", input, mat2)
    return product(input, mat2)


operator(
    "bmm(input, mat2)",
    forward=bmm_forward,
    vjp=dict(input=lambda g, mat2: product_adjoint(g, mat2), mat2=lambda g, input: adjoint_product(input, g)),
    dtypes=KEEP, tensors="input mat2", jvp=BILINEAR, source=GILES,
    samples=lambda make: [((make(2, 3, 4), make(2, 4, 5)), {}), ((make(0, 2, 3), make(0, 3, 2)), {}),
                          ((make(2, 3, 0), make(2, 0, 4)), {})],
    doc="""The products of the matrices of two batches, one by one.

    Parameters
    ----------
    input : Tensor
        ``(b, n, k)``.
    mat2 : Tensor
        ``(b, k, m)``, of the same dtype. The batches do not broadcast (`matmul`'s do).

    Returns
    -------
    Tensor
        ``(b, n, m)``.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.bmm(fg.ones(2, 1, 3), fg.ones(2, 3, 1)).flatten()
    tensor([3., 3.])
    """,
)


def dot_forward(input: Any, tensor: Any) -> Any:
    require_ranks("dot", input, tensor, (1, 1), "1D tensors expected")
    check_shapes("dot", input.shape, tensor.shape)
    require_same_dtype("dot", input, tensor)
    return product(input, tensor)


operator(
    "dot(input, tensor)",
    forward=dot_forward,
    vjp=dict(input=lambda g, tensor: g * conj(tensor), tensor=lambda g, input: g * conj(input)),
    dtypes=KEEP, tensors="input tensor", jvp=BILINEAR,
    samples=lambda make: [((make(3), make(3)), {}), ((make(0), make(0)), {})],
    doc="""The sum of the products of two vectors' elements.

    Parameters
    ----------
    input, tensor : Tensor
        Vectors of one size and dtype. Complex elements are not conjugated (see `vdot`).

    Returns
    -------
    Tensor
        0-D.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.dot(fg.tensor([1.0, 2.0]), fg.tensor([3.0, 4.0]))
    tensor(11.)
    """,
)


def mm_forward(input: Any, mat2: Any) -> Any:
    require_arrays("mm", input=input, mat2=mat2)
    for name, matrix in (("self", input), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(f"mm: {name} must be a matrix, got shape {matrix.shape}; use matmul for other ranks")
    check_shapes("mm", input.shape, mat2.shape)
    require_same_dtype("mm", input, mat2)
    return product(input, mat2)


operator(
    "mm(input, mat2)",
    forward=mm_forward,
    vjp=dict(input=lambda g, mat2: product_adjoint(g, mat2), mat2=lambda g, input: adjoint_product(input, g)),
    dtypes=KEEP, tensors="input mat2", jvp=BILINEAR, source=GILES,
    samples=lambda make: [((make(2, 3), make(3, 4)), {}), ((make(2, 0), make(0, 3)), {})],
    doc="""The product of two matrices.

    Parameters
    ----------
    input : Tensor
        ``(n, k)``.
    mat2 : Tensor
        ``(k, m)``, of the same dtype.

    Returns
    -------
    Tensor
        ``(n, m)``.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.mm(fg.tensor([[1.0, 2.0]]), fg.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """,
)


def mv_forward(input: Any, vec: Any) -> Any:
    require_ranks("mv", input, vec, (2, 1), "vector + matrix @ vector expected: a matrix and a vector")
    check_shapes("mv", input.shape, vec.shape)
    require_same_dtype("mv", input, vec)
    return product(input, vec)


operator(
    "mv(input, vec)",
    forward=mv_forward,
    vjp=dict(input=lambda g, vec: g.unsqueeze(-1) * conj(vec), vec=lambda g, input: g @ conj(input)),
    dtypes=KEEP, tensors="input vec", jvp=BILINEAR,
    samples=lambda make: [((make(2, 3), make(3)), {}), ((make(2, 0), make(0)), {})],
    doc="""The product of a matrix and a vector.

    Parameters
    ----------
    input : Tensor
        ``(n, k)``.
    vec : Tensor
        ``(k,)``, of the same dtype.

    Returns
    -------
    Tensor
        ``(n,)``.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.mv(fg.tensor([[1.0, 2.0], [3.0, 4.0]]), fg.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """,
)


def vdot_forward(input: Any, other: Any) -> Any:
    require_ranks("vdot", input, other, (1, 1), "1D tensors expected")
    check_shapes("vdot", input.shape, other.shape)
    require_same_dtype("vdot", input, other)
    return product(input.conj(), other)


operator(
    "vdot(input, other)",
    forward=vdot_forward,
    vjp=dict(input=lambda g, other: conj(g) * other, other=lambda g, input: g * input),
    dtypes=KEEP, jvp=dict(input=lambda t, other: functions["vdot"](t, other), other=lambda t, input: input.vdot(t)),
    samples=lambda make: [((make(3), make(3)), {})],
    doc="The sum of the products of two vectors' elements, the first one's conjugated.",
)


@composite(
    "inner(input, other)", numpy=np.inner,
    samples=lambda make: [((make(2, 3), make(4, 3)), {}), ((make(3), make(3)), {}), ((make(2, 3), make()), {})],
)
def inner(input: Any, other: Any) -> Any:
    """The sum of products over the last dimension of both tensors; for vectors this is ``dot``."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(f"inner() the last dimension must match on both input tensors but got shapes "
                           f"{list(input.shape)} and {list(other.shape)}")
    return functions["tensordot"](input, other, dims=([-1], [-1]))


@composite("outer(input, vec2)", aliases=("ger",), samples=lambda make: [((make(2), make(3)), {})])
def outer(input: Any, vec2: Any) -> Any:
    """All products of an element of one vector and an element of the other.

    Parameters
    ----------
    input : Tensor
        ``(n,)``.
    vec2 : Tensor
        ``(m,)``; the dtypes promote.

    Returns
    -------
    Tensor
        ``(n, m)``.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.outer(fg.tensor([1.0, 2.0]), fg.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    for name, vector in (("self", input), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector.ndim}-D of shape "
                               f"{tuple(vector.shape)}")
    return input.unsqueeze(1) * vec2


# --- Products plus something -----------------------------------------------------------------------------------------


def scaled(g: Any, factor: Any) -> Any:
    """g times the conjugate of a number; g itself for 1."""
    return g if factor == 1 else g * conj(factor)


def combined(name: str, input: Any, result: Any, beta: Any, alpha: Any) -> Any:
    """``beta * input + alpha * result``, written into result; input's NaNs do not count where beta is 0."""
    if input.dtype != result.dtype:
        raise RuntimeError(f"{name}: self and mat2 must have the same dtype, but got {input.dtype} and {result.dtype}")
    try:
        input = np.broadcast_to(input, result.shape)
    except ValueError:
        raise RuntimeError(f"{name}: The expanded size of the tensor {list(result.shape)} must match the existing size "
                           f"of input, {list(input.shape)}: it does not broadcast to the product") from None
    if alpha != 1:
        result = result * result.dtype.type(alpha)
    if beta == 0:
        return result
    return result + (input if beta == 1 else input * input.dtype.type(beta))


def addbmm_forward(input: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    total = np.add.reduce(bmm_forward(batch1, batch2), axis=0, dtype=batch1.dtype)
    return combined("addbmm", input, total, beta, alpha)


operator(
    "addbmm(input, batch1, batch2, *, beta=1, alpha=1)",
    forward=addbmm_forward,
    vjp=dict(input=lambda g, beta: scaled(g, beta),
             batch1=lambda g, batch2, alpha: scaled(product_adjoint(g, batch2), alpha),
             batch2=lambda g, batch1, alpha: scaled(adjoint_product(batch1, g), alpha)),
    jvp=dict(input=lambda t, beta: t * beta, batch1=lambda t, batch2, alpha: (t @ batch2).sum(0) * alpha,
             batch2=lambda t, batch1, alpha: (batch1 @ t).sum(0) * alpha),
    dtypes=KEEP, tensors="input batch1 batch2", inplace=True, source=GILES,
    samples=lambda make: [((make(3, 5), make(2, 3, 4), make(2, 4, 5)), dict(beta=0.5, alpha=-2.0))],
    doc="``beta * input + alpha * bmm(batch1, batch2).sum(0)``; ``input`` broadcasts to one product.",
)


def addmm_forward(input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    return combined("addmm", input, mm_forward(mat1, mat2), beta, alpha)


operator(
    "addmm(input, mat1, mat2, *, beta=1, alpha=1)",
    forward=addmm_forward,
    vjp=dict(input=lambda g, beta: scaled(g, beta),
             mat1=lambda g, mat2, alpha: scaled(product_adjoint(g, mat2), alpha),
             mat2=lambda g, mat1, alpha: scaled(adjoint_product(mat1, g), alpha)),
    jvp=dict(input=lambda t, beta: t * beta, mat1=lambda t, mat2, alpha: t @ mat2 * alpha,
             mat2=lambda t, mat1, alpha: mat1 @ t * alpha),
    dtypes=KEEP, tensors="input mat1 mat2", inplace=True, source=GILES,
    samples=lambda make: [((make(2, 4), make(2, 3), make(3, 4)), {}),
                          ((make(4), make(2, 3), make(3, 4)), dict(beta=0.5, alpha=-2.0))],
    doc="``beta * input + alpha * (mat1 @ mat2)``; ``input`` broadcasts to the product.",
)


def addmv_forward(input: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Any:
    return combined("addmv", input, mv_forward(mat, vec), beta, alpha)


operator(
    "addmv(input, mat, vec, *, beta=1, alpha=1)",
    forward=addmv_forward,
    vjp=dict(input=lambda g, beta: scaled(g, beta),
             mat=lambda g, vec, alpha: scaled(g.unsqueeze(-1) * conj(vec), alpha),
             vec=lambda g, mat, alpha: scaled(g @ conj(mat), alpha)),
    jvp=dict(input=lambda t, beta: t * beta, mat=lambda t, vec, alpha: t @ vec * alpha,
             vec=lambda t, mat, alpha: mat @ t * alpha),
    dtypes=KEEP, tensors="input mat vec", inplace=True,
    samples=lambda make: [((make(2), make(2, 3), make(3)), dict(beta=0.5, alpha=3.0)),
                          ((make(1), make(2, 3), make(3)), {})],
    doc="``beta * input + alpha * (mat @ vec)``; ``input`` broadcasts to the product.",
)


def addr_forward(input: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    if vec1.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(f"addr: Expected 1-D arguments vec1 and vec2, but got shapes {vec1.shape} and {vec2.shape}")
    return combined("addr", input, np.outer(vec1, vec2), beta, alpha)


operator(
    "addr(input, vec1, vec2, *, beta=1, alpha=1)",
    forward=addr_forward,
    vjp=dict(input=lambda g, beta: scaled(g, beta),
             vec1=lambda g, vec2, alpha: scaled(g @ conj(vec2), alpha),
             vec2=lambda g, vec1, alpha: scaled(conj(vec1) @ g, alpha)),
    jvp=dict(input=lambda t, beta: t * beta, vec1=lambda t, vec2, alpha: outer(t, vec2) * alpha,
             vec2=lambda t, vec1, alpha: outer(vec1, t) * alpha),
    dtypes=PROMOTE, tensors="input vec1 vec2", inplace=True,
    samples=lambda make: [((make(2, 3), make(2), make(3)), dict(beta=0.5, alpha=3.0)),
                          ((make(3), make(2), make(3)), {})],
    doc="``beta * input + alpha * outer(vec1, vec2)``; ``input`` broadcasts to the product.",
)


def baddbmm_forward(input: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    return combined("baddbmm", input, bmm_forward(batch1, batch2), beta, alpha)


operator(
    "baddbmm(input, batch1, batch2, *, beta=1, alpha=1)",
    forward=baddbmm_forward,
    vjp=dict(input=lambda g, beta: scaled(g, beta),
             batch1=lambda g, batch2, alpha: scaled(product_adjoint(g, batch2), alpha),
             batch2=lambda g, batch1, alpha: scaled(adjoint_product(batch1, g), alpha)),
    jvp=dict(input=lambda t, beta: t * beta, batch1=lambda t, batch2, alpha: t @ batch2 * alpha,
             batch2=lambda t, batch1, alpha: batch1 @ t * alpha),
    dtypes=KEEP, tensors="input batch1 batch2", inplace=True, source=GILES,
    samples=lambda make: [((make(2, 3, 5), make(2, 3, 4), make(2, 4, 5)), {}),
                          ((make(3, 1), make(2, 3, 4), make(2, 4, 5)), dict(beta=0.5, alpha=-2.0))],
    doc="``beta * input + alpha * bmm(batch1, batch2)``; ``input`` broadcasts to the product.",
)
