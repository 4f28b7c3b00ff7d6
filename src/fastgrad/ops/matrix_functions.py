"""Floor 3: functions of a matrix: powers, the exponential, norms and condition."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._declare import KEEP, composite, functions, operator
from ._matrices import Array, mH, part, require_matrix, require_square
from .decompositions import linalg_inv
from .factorizations import linalg_inv_ex
from .norms import linalg_matrix_norm
from .spectral import linalg_svdvals

# --- Powers and the exponential --------------------------------------------------------------------------------------


@composite("linalg_matrix_power(A, n)", public=False, method=False, numpy=np.linalg.matrix_power,
           samples=lambda make: [((make(2, 2), 3), {}), ((make(2, 2), 0), {}), ((make(2, 2, 2), -2), {})])
def linalg_matrix_power(A: Any, n: int) -> Any:
    """A times itself n times, by repeated squaring; of the inverse for negative n, the identity for 0."""
    name = "linalg.matrix_power"
    if not hasattr(n, "__index__"):
        raise TypeError(f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions. Got shape {tuple(A.shape)}")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} "
                           "matrices")
    n = n.__index__()
    if n == 0:
        # Times 0, so that it stays in the graph, with gradient 0.
        return A * 0 + part("eye", A.detach() * 0 + 1).to(A.dtype)
    if n < 0:
        A, n = linalg_inv(A), -n
    result = None
    while True:
        if n & 1:
            result = A if result is None else result @ A
        n >>= 1
        if not n:
            return functions["clone"](result) if result is A else result
        A = A @ A


@composite("matrix_power(input, n)", samples=lambda make: [((make(2, 2), 3), {})])
def matrix_power(input: Any, n: int) -> Any:
    """A times itself n times: see ``linalg.matrix_power``."""
    return linalg_matrix_power(input, n)


# The diagonal Pade approximant of order 13 and the largest norm for which it is exact to double precision.
PADE_13 = (64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000.,
           10559470521600., 670442572800., 33522128640., 1323241920., 40840800., 960960., 16380., 182., 1.)
PADE_NORM = 5.371920351148152


def matrix_exp_forward(A: Array) -> Array:
    require_square("linalg.matrix_exp", A)
    if not A.size:
        return A.copy()
    norm = np.abs(A).sum(-2).max()
    squarings = max(0, math.ceil(math.log2(norm / PADE_NORM))) if np.isfinite(norm) and norm > PADE_NORM else 0
    b = PADE_13
    A = A / A.dtype.type(2.0**squarings)
    eye = np.eye(A.shape[-1], dtype=A.dtype)
    A2 = A @ A
    A4 = A2 @ A2
    A6 = A4 @ A2
    odd = A @ (A6 @ (b[13] * A6 + b[11] * A4 + b[9] * A2) + b[7] * A6 + b[5] * A4 + b[3] * A2 + b[1] * eye)
    even = A6 @ (b[12] * A6 + b[10] * A4 + b[8] * A2) + b[6] * A6 + b[4] * A4 + b[2] * A2 + b[0] * eye
    X = np.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        X = X @ X
    return X


def linalg_matrix_exp_vjp_A(g: Any, A: Any) -> Any:
    """The upper right block of exp([[A^H, g], [0, A^H]])."""
    cat = functions["cat"]
    n = A.shape[-1]
    Ah = mH(A)
    top, bottom = cat([Ah, g], -1), cat([Ah * 0, Ah], -1)
    return linalg_matrix_exp(cat([top, bottom], -2)).narrow(-2, 0, n).narrow(-1, n, n)


linalg_matrix_exp = operator(
    "linalg_matrix_exp(A)",
    forward=matrix_exp_forward,
    vjp=dict(A=linalg_matrix_exp_vjp_A),
    dtypes=KEEP, tensors="A", public=False, method=False,
    samples=lambda make: [((make(2, 2),), {}), ((make(2, 3, 3),), {})],
    source="Higham, The scaling and squaring method for the matrix exponential revisited (2005); Al-Mohy and Higham, "
           "Computing the Frechet derivative of the matrix exponential (2009), eq. 1.2",
    doc="The exponential of a square matrix, or of each in a batch: the sum of ``A**k / k!``.",
)


@composite("matrix_exp(input)", samples=lambda make: [((make(2, 2),), {})])
def matrix_exp(input: Any) -> Any:
    """The exponential of a square matrix: see ``linalg.matrix_exp``."""
    return linalg_matrix_exp(input)


# --- The condition number --------------------------------------------------------------------------------------------


@composite("linalg_cond(A, p=None)", public=False, method=False,
           samples=lambda make: [((make(3, 3),), {}), ((make(3, 2), -2), {})])
def linalg_cond(A: Any, p: Any = None) -> Any:
    """The condition number: a norm of A times that of its inverse; by default the ratio of extreme singular values.

    Infinite for a singular matrix.
    """
    name = "linalg.cond"
    require_matrix(name, A)
    if p in (None, 2, -2):
        S = linalg_svdvals(A)
        largest, smallest = S.amax(-1), S.amin(-1)
        return smallest / largest if p == -2 else largest / smallest
    require_square(name, A)
    inverse, singular = linalg_inv_ex(A)
    bad = singular != 0
    norm = linalg_matrix_norm(A, p) * linalg_matrix_norm(inverse, p)
    return functions["where"](bad, math.inf, norm) if bool(bad.any()) else norm
