"""Floor 3: contractions: products over chosen dimensions, made of permuting, reshaping and `matmul`."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._tensor import Tensor
from ._declare import BILINEAR, KEEP, composite, operator
from ._helpers import conj, normal_dim
from .products import require_arrays

# --- tensordot, kron -------------------------------------------------------------------------------------------------


def contracted_dims(dims: Any, a: Any, b: Any) -> tuple[list[int], list[int]]:
    """What ``dims`` means, counted from the front, for either tensor."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if not isinstance(dims, (tuple, list)):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims} for shapes "
                               f"{tuple(a.shape)} and {tuple(b.shape)}")
        return list(range(a.ndim - dims, a.ndim)), list(range(dims))
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(first) != len(second):
        raise RuntimeError(f"tensordot: both dimension lists should have same length, got {first} and {second}")
    return [normal_dim(d, a.ndim) for d in first], [normal_dim(d, b.ndim) for d in second]


@composite(
    "tensordot(a, b, dims=2)", method=False,
    samples=lambda make: [
        ((make(2, 3, 4), make(3, 4, 5)), {}), ((make(2, 3), make(3, 4), 1), {}), ((make(2), make(3), 0), {}),
        ((make(2, 3), make(3, 2), ([0, 1], [1, 0])), {}), ((make(2, 1), make(4, 3), ([-1], [0])), {}),
    ],
)
def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """The sum of products over the last ``dims`` dimensions of ``a`` and the first of ``b``, or over chosen ones.

    Parameters
    ----------
    a, b : Tensor
        Of one dtype.
    dims : int or pair of sequences of int
        How many dimensions, or which of either tensor.

    Returns
    -------
    Tensor
        Its dimensions are those of ``a`` that are left, then those of ``b``.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.tensordot(fg.ones(2, 3), fg.ones(3, 4), dims=1).shape
    fastgrad.Size([2, 4])
    """
    first, second = contracted_dims(dims, a, b)
    for i, j in zip(first, second):
        m, n = a.shape[i], b.shape[j]
        if m != n and m != 1 and n != 1:
            raise RuntimeError(f"contracted dimensions need to match, but first has size {m} in dim {i} and second has "
                               f"size {n} in dim {j}")
        if m != n:       # size 1 broadcasts: the other one is summed first
            a, b = (a, b.sum(j, keepdim=True)) if m == 1 else (a.sum(i, keepdim=True), b)
    left = [i for i in range(a.ndim) if i not in first]
    right = [j for j in range(b.ndim) if j not in second]
    inner = math.prod(a.shape[i] for i in first)
    shape = tuple(a.shape[i] for i in left) + tuple(b.shape[j] for j in right)
    rows = math.prod(a.shape[i] for i in left)
    columns = math.prod(b.shape[j] for j in right)
    a = permuted(a, left + first).reshape(rows, inner)
    b = permuted(b, second + right).reshape(inner, columns)
    return (a @ b).reshape(shape)


def permuted(t: Any, order: Sequence[int]) -> Any:
    return t if list(order) == list(range(t.ndim)) else t.permute(tuple(order))


@composite(
    "kron(input, other)", numpy=np.kron,
    samples=lambda make: [((make(2, 3), make(4)), {}), ((make(2, 3), make(3, 2)), {}), ((make(), make(2)), {})],
)
def kron(input: Any, other: Any) -> Any:
    """The Kronecker product: every element of ``input`` times all of ``other``, laid out as blocks."""
    ndim = max(input.ndim, other.ndim)
    m = (1,) * (ndim - input.ndim) + tuple(input.shape)
    n = (1,) * (ndim - other.ndim) + tuple(other.shape)
    blocks = input.reshape([k for size in m for k in (size, 1)]) * other.reshape([k for size in n for k in (1, size)])
    return blocks.reshape([p * q for p, q in zip(m, n)])


# --- cross -----------------------------------------------------------------------------------------------------------


def cross_forward(input: Any, other: Any, dim: int) -> Any:
    require_arrays("linalg.cross", input=input, other=other)
    if input.ndim != other.ndim:
        raise RuntimeError(f"linalg.cross: inputs must have the same number of dimensions. Got shapes {input.shape} "
                           f"and {other.shape}")
    dim = normal_dim(dim, input.ndim)
    if input.ndim == 0 or input.shape[dim] != 3 or other.shape[dim] != 3:
        sizes = f"{input.shape[dim]} and {other.shape[dim]}" if input.ndim else "0-D tensors"
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes}")
    if input.dtype != other.dtype:
        raise RuntimeError(f"linalg.cross: expected both tensors to have the same dtype, but got {input.dtype} and "
                           f"{other.dtype}")
    shape = np.broadcast_shapes(input.shape, other.shape)
    a, b = np.moveaxis(np.broadcast_to(input, shape), dim, 0), np.moveaxis(np.broadcast_to(other, shape), dim, 0)
    result = np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
    return np.moveaxis(result, 0, dim)


linalg_cross = operator(
    "linalg_cross(input, other, *, dim=-1)",
    forward=cross_forward,
    vjp=dict(input=lambda g, other, dim: linalg_cross(conj(other).expand(g.shape), g, dim=dim),
             other=lambda g, input, dim: linalg_cross(g, conj(input).expand(g.shape), dim=dim)),
    dtypes=KEEP, jvp=BILINEAR, method=False, public=False,
    samples=lambda make: [((make(2, 3), make(2, 3)), {}), ((make(2, 1, 3), make(1, 4, 3)), {}),
                          ((make(3), make(3)), {}), ((make(3, 2), make(3, 2)), dict(dim=0))],
    doc="The cross product of vectors of three elements along ``dim``; the other dimensions broadcast.",
)


@composite("cross(input, other, dim=None)", samples=lambda make: [((make(2, 3), make(2, 3)), {})])
def cross(input: Any, other: Any, dim: int | None = None) -> Any:
    """The cross product along ``dim``, by default the first dimension of size 3 (``linalg.cross``: the last)."""
    if dim is None:
        if 3 not in input.shape:
            raise RuntimeError(f"cross: no dimension of size 3 in input, whose shape is {tuple(input.shape)}")
        dim = input.shape.index(3)
    return linalg_cross(input, other, dim=dim)


# --- Chains ----------------------------------------------------------------------------------------------------------


def chain_order(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split the chain ``i..j`` so that it takes the fewest multiplications.

    Matrix ``i`` is ``sizes[i] x sizes[i + 1]``. Dynamic programming (Cormen et al., Introduction to Algorithms, 15.2).
    """
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(options)
    return split


@composite(
    "linalg_multi_dot(tensors)", method=False, public=False,
    samples=lambda make: [(([make(2, 3), make(3, 4), make(4, 2)],), {}), (([make(3), make(3, 4), make(4)],), {})],
)
def linalg_multi_dot(tensors: Sequence[Any]) -> Any:
    """The product of a chain of matrices in the order that takes the fewest multiplications.

    The first and the last may be vectors.
    """
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    last = len(tensors) - 1
    for i, t in enumerate(tensors):
        if i in (0, last) and t.ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {'last' if i else 'first'} tensor must be 1D or 2D but got {t.ndim}D")
        if 0 < i < last and t.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.ndim}D")
    matrices = list(tensors)
    if tensors[0].ndim == 1:
        matrices[0] = matrices[0].unsqueeze(0)
    if tensors[-1].ndim == 1:
        matrices[-1] = matrices[-1].unsqueeze(-1)
    for i in range(last):
        if matrices[i].shape[1] != matrices[i + 1].shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].shape)} and "
                               f"{list(tensors[i + 1].shape)} cannot be multiplied")
    split = chain_order([matrices[0].shape[0], *(m.shape[1] for m in matrices)])

    def chain(i: int, j: int) -> Any:
        return matrices[i] if i == j else chain(i, split[i, j]) @ chain(split[i, j] + 1, j)

    shape = (tensors[0].shape[:1] if tensors[0].ndim == 2 else ()) + tuple(tensors[-1].shape[1:])
    return chain(0, last).reshape(shape)


@composite("chain_matmul(*matrices)", method=False, samples=lambda make: [((make(2, 3), make(3, 4)), {})])
def chain_matmul(*matrices: Any) -> Any:
    """The product of matrices given one by one; a single one is returned as it is."""
    if len(matrices) == 1:
        return matrices[0]
    return linalg_multi_dot(matrices)


# --- One inner product for each pair of vectors ----------------------------------------------------------------------


@composite(
    "linalg_vecdot(x, y, *, dim=-1)", method=False, public=False, numpy=np.vecdot if hasattr(np, "vecdot") else (),
    samples=lambda make: [((make(2, 3), make(2, 3)), {}), ((make(3, 1, 2), make(4, 2)), {}),
                          ((make(3, 2), make(3, 2)), dict(dim=0))],
)
def linalg_vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """The inner products of the vectors along ``dim``, the first one's elements conjugated."""
    if x.ndim == 0 or y.ndim == 0 or x.shape[dim] != y.shape[dim]:
        raise RuntimeError(f"linalg.vecdot: Expected two tensors of at least one dimension with equal sizes in dim "
                           f"{dim}, got shapes {tuple(x.shape)} and {tuple(y.shape)}")
    if dim in (-1, x.ndim - 1) and x.ndim == y.ndim and x.dtype == y.dtype and x.dtype.name != "bool":
        return (conj(x).unsqueeze(-2) @ y.unsqueeze(-1)).squeeze(-1).squeeze(-1)
    return (conj(x) * y).sum(dim)


