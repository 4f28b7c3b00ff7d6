"""Floor 3: eigenvalues, singular values, and what is made of them.

In the formulas ``X^H`` is the conjugate transpose, and ``gaps`` the differences of the values: element (i, j) is value
j minus value i, and 1 on the diagonal, so that it can be divided by. Equal values divide by 0 where a loss depends on
their vectors, which are then not determined; a loss of the values alone never comes to that.
"""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _record
from ._declare import KEEP, composite, operator
from ._matrices import (
    NO_SAMPLES,
    Array,
    attempt,
    is_zero,
    mH,
    not_converged,
    part,
    pattern_like,
    require_matrix,
    require_square,
)
from .decompositions import linalg_solve
from .products import adjoint_product, product_adjoint

EIG = "Boeddeker et al., On the computation of complex-valued gradients with application to statistically optimum " \
      "beamforming (2017), eq. 4.77"
SVD = "Townsend, Differentiating the singular value decomposition (2016); Wan and Zhang (2019) for the complex phase"


def tracked(t: Any) -> bool:
    """Whether operations on t are being recorded."""
    return t.requires_grad and _record.is_grad_enabled()


def phase_checked(name: str, diagonal: Any) -> None:
    """RuntimeError where a loss depends on the phases of complex vectors, which are arbitrary."""
    if diagonal.dtype.is_complex and not np.allclose(diagonal.detach().numpy().imag, 0, atol=1e-2):
        raise RuntimeError(
            f"{name}: The vectors in the complex case are specified up to multiplication by e^(i phi). The specified "
            "loss function depends on this quantity, so it is ill-defined."
        )


def diagonal_of(t: Any) -> Any:
    return t.diagonal(0, -2, -1)


def gaps(values: Any) -> Any:
    difference = values.unsqueeze(-2) - values.unsqueeze(-1)
    return difference + pattern_like("eye", difference)


def on_diagonal(values: Any, like: Any) -> Any:
    """Matrices with these values on the diagonal."""
    return values.unsqueeze(-1) * pattern_like("eye", like)


# --- Eigenvalues of symmetric and Hermitian matrices -----------------------------------------------------------------


def with_nan(function: Callable[[Array], Any], A: Array, name: str) -> Any:
    """function(A), where matrices with NaN or inf give NaN instead of an error."""
    finite = np.isfinite(A).all((-2, -1))
    if not finite.all():
        outputs = function(np.where(finite[..., None, None], A, np.eye(A.shape[-1], dtype=A.dtype)))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        found = [np.where(finite.reshape(finite.shape + (1,) * (o.ndim - finite.ndim)), o, np.nan) for o in outputs]
        return tuple(f.astype(o.dtype) for f, o in zip(found, outputs)) if len(found) > 1 else found[0]
    return attempt(name, function, A, not_converged(A, "an eigenvalue iteration"))


def require_uplo(UPLO: str) -> str:
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


def eigh_forward(A: Array, UPLO: str) -> tuple[Array, Array]:
    require_square("linalg.eigh", A)
    values, vectors = with_nan(lambda M: tuple(np.linalg.eigh(M, require_uplo(UPLO))), A, "linalg.eigh")
    return values, vectors


def linalg_eigh_vjp_A(g: Any, result: Any) -> Any:
    g_values, g_vectors = g
    values, V = result
    if is_zero(g_vectors):
        return product_adjoint(V * g_values.unsqueeze(-2), V)
    VhgV = adjoint_product(V, g_vectors)
    phase_checked("linalg_eigh_backward", diagonal_of(VhgV))
    inner = part("off_diagonal", skew(VhgV) * 0.5 / gaps(values)) + on_diagonal(g_values, VhgV)
    return product_adjoint(V @ inner, V)


linalg_eigh = operator(
    "linalg_eigh(A, UPLO='L')",
    forward=eigh_forward,
    vjp=dict(A=linalg_eigh_vjp_A),
    dtypes=KEEP, tensors="A", outputs=("eigenvalues", "eigenvectors"), public=False, method=False,
    numpy=np.linalg.eigh, samples=NO_SAMPLES, source=EIG,
    doc="""Eigenvalues, ascending, and eigenvectors, in columns, of a symmetric or Hermitian matrix (or a batch).

    Only the lower triangle (``UPLO="U"``: the upper) is read. Saves the results. The gradient of eigenvectors is not
    finite where eigenvalues are equal; that of eigenvalues is.
    """,
)


def eigvalsh_forward(A: Array, UPLO: str) -> Array:
    require_square("linalg.eigvalsh", A)
    return with_nan(lambda M: np.linalg.eigvalsh(M, require_uplo(UPLO)), A, "linalg.eigvalsh")


eigvalsh_only = operator(
    "_eigvalsh(A, UPLO='L')",
    forward=eigvalsh_forward,
    vjp=dict(A=lambda g, A, UPLO: hermitian_part(g, A, UPLO)),
    dtypes=KEEP, tensors="A", public=False, method=False, node="LinalgEigh", samples=NO_SAMPLES, source=EIG,
)


def hermitian_part(g: Any, A: Any, UPLO: str) -> Any:
    vectors = linalg_eigh(A, UPLO)[1]
    return product_adjoint(vectors * g.unsqueeze(-2), vectors)


@composite("linalg_eigvalsh(A, UPLO='L')", public=False, method=False, numpy=np.linalg.eigvalsh,
           samples=NO_SAMPLES)
def linalg_eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of a symmetric or Hermitian matrix, ascending; differentiable where they are equal, too.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.linalg.eigvalsh(fg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    # The derivative needs the vectors; finding them now costs less than doing all of it again later.
    return linalg_eigh(A, UPLO)[0] if tracked(A) else eigvalsh_only(A, UPLO)


# --- Eigenvalues of any square matrix --------------------------------------------------------------------------------


def require_finite(name: str, A: Array) -> None:
    require_square(name, A)
    if not np.isfinite(A).all():
        raise RuntimeError(f"{name}: input tensor should not contain infs or NaNs.")


def complex_of(array: Array) -> Array:
    return array.astype(np.result_type(array.dtype, np.complex64))


def eig_forward(A: Array) -> tuple[Array, Array]:
    require_finite("linalg.eig", A)
    values, vectors = attempt("linalg.eig", np.linalg.eig, A, not_converged(A, "an eigenvalue iteration"))
    return complex_of(values), complex_of(vectors)


def linalg_eig_vjp_A(g: Any, result: Any) -> Any:
    g_values, g_vectors = g
    values, V = result
    Vh = mH(V)
    if is_zero(g_vectors):
        return linalg_solve(Vh, g_values.unsqueeze(-1) * Vh)
    VhgV = Vh @ g_vectors
    phase_checked("linalg_eig_backward", diagonal_of(VhgV))
    # The vectors have norm 1, so their cotangent's part along themselves changes nothing.
    VhgV = VhgV - Vh @ (V * diagonal_of(VhgV).real.unsqueeze(-2))
    inner = part("off_diagonal", VhgV / gaps(values.conj())) + on_diagonal(g_values, VhgV)
    return linalg_solve(Vh, inner @ Vh)


linalg_eig = operator(
    "linalg_eig(A)",
    forward=eig_forward,
    vjp=dict(A=linalg_eig_vjp_A),
    dtypes=KEEP, tensors="A", outputs=("eigenvalues", "eigenvectors"), public=False, method=False, numpy=np.linalg.eig,
    samples=NO_SAMPLES, source=EIG,
    doc="""Eigenvalues and eigenvectors (columns of norm 1) of a square matrix; always complex, in no order.

    Saves the results. The gradient of eigenvectors is not finite where eigenvalues are equal.
    """,
)


def eigvals_forward(A: Array) -> Array:
    require_finite("linalg.eigvals", A)
    values = attempt("linalg.eigvals", np.linalg.eigvals, A, not_converged(A, "an eigenvalue iteration"))
    return complex_of(values)


eigvals_only = operator(
    "_eigvals(A)",
    forward=eigvals_forward,
    vjp=dict(A=lambda g, A: (lambda V: linalg_solve(mH(V), g.unsqueeze(-1) * mH(V)))(linalg_eig(A)[1])),
    dtypes=KEEP, tensors="A", public=False, method=False, node="LinalgEig", samples=NO_SAMPLES, source=EIG,
    doc="The eigenvalues alone: see ``linalg.eigvals``.",
)


@composite("linalg_eigvals(A)", public=False, method=False, numpy=np.linalg.eigvals, samples=NO_SAMPLES)
def linalg_eigvals(A: Any) -> Any:
    """The eigenvalues of a square matrix; always complex, in no order."""
    return linalg_eig(A)[0] if tracked(A) else eigvals_only(A)


# --- Singular values -------------------------------------------------------------------------------------------------


def svd_forward(A: Array, full_matrices: bool) -> tuple[Array, Array, Array]:
    require_matrix("linalg.svd", A)
    U, S, Vh = attempt("linalg.svd", lambda M: np.linalg.svd(M, full_matrices), A, not_converged(A, "the SVD"))
    return U, S, Vh


def skew(t: Any) -> Any:
    return t - mH(t)


def linalg_svd_vjp_A(g: Any, result: Any) -> Any:
    g_U, g_S, g_Vh = g
    U, S, Vh = result
    k, m, n = S.shape[-1], U.shape[-2], Vh.shape[-1]
    U, g_U = U.narrow(-1, 0, k), g_U.narrow(-1, 0, k)         # the further columns of full matrices are arbitrary
    Vh, g_Vh = Vh.narrow(-2, 0, k), g_Vh.narrow(-2, 0, k)
    if is_zero(g_U) and is_zero(g_Vh):
        return (U * g_S.unsqueeze(-2)) @ Vh
    UhgU, VhgV = adjoint_product(U, g_U), product_adjoint(Vh, g_Vh)
    phase_checked("svd_backward", diagonal_of(UhgU + VhgV))
    rows, columns = S.unsqueeze(-2), S.unsqueeze(-1)
    squared_gaps = gaps(S * S)
    inner = skew(UhgU) / squared_gaps * rows + columns * (skew(VhgV) / squared_gaps) + on_diagonal(g_S, UhgU)
    if UhgU.dtype.is_complex:
        inner = inner + part("eye", skew(UhgU) / (rows * 2))
    left = U @ inner
    if m > k:
        outside = g_U / rows
        left = left + outside - U @ adjoint_product(U, outside)
    whole = left @ Vh
    if n > k:
        outside = g_Vh / columns
        whole = whole + U @ (outside - product_adjoint(outside, Vh) @ Vh)
    return whole


svd_factors = operator(
    "_svd(A, full_matrices=True)",
    forward=svd_forward,
    vjp=dict(A=linalg_svd_vjp_A),
    dtypes=KEEP, tensors="A", outputs=("U", "S", "Vh"), public=False, method=False, node="LinalgSvd",
    samples=lambda make: [((make(3, 2), False), {}), ((make(2, 3), False), {}), ((make(2, 2),), {})],
    complex=False, source=SVD,
)

LinalgSvdResult = namedtuple("linalg_svd", "U S Vh")


def require_no_driver(name: str, driver: Any) -> None:
    if driver is not None:
        raise RuntimeError(f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER "
                           "backend.")


@composite("linalg_svd(A, full_matrices=True, *, driver=None)", public=False, method=False, samples=NO_SAMPLES)
def linalg_svd(A: Any, full_matrices: bool = True, *, driver: Any = None) -> Any:
    """The singular value decomposition ``A = U @ diag(S) @ Vh``, with S descending.

    Saves the results. The gradient of U and Vh is not finite where singular values are equal, or 0; that of S is.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.linalg.svd(fg.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    require_no_driver("linalg.svd", driver)
    return LinalgSvdResult(*svd_factors(A, full_matrices))


def svdvals_forward(A: Array) -> Array:
    require_matrix("linalg.svdvals", A)
    return attempt("linalg.svdvals", lambda M: np.linalg.svd(M, compute_uv=False), A, not_converged(A, "the SVD"))


def svdvals_vjp(g: Any, A: Any) -> Any:
    U, _, Vh = svd_factors(A, False)
    return (U * g.unsqueeze(-2)) @ Vh


svdvals_only = operator(
    "_svdvals(A)",
    forward=svdvals_forward,
    vjp=dict(A=svdvals_vjp),
    dtypes=KEEP, tensors="A", public=False, method=False, node="LinalgSvd",
    samples=lambda make: [((make(3, 2),), {})], source=SVD, doc="The singular values alone: see ``linalg.svdvals``.",
)


@composite("linalg_svdvals(A, *, driver=None)", public=False, method=False,
           samples=lambda make: [((make(3, 2),), {}), ((make(2, 2, 3),), {})])
def linalg_svdvals(A: Any, *, driver: Any = None) -> Any:
    """The singular values, descending; differentiable where they are equal, too."""
    require_no_driver("linalg.svdvals", driver)
    return svd_factors(A, False)[1] if tracked(A) else svdvals_only(A)


SvdResult = namedtuple("svd", "U S V")


@composite("svd(input, some=True, compute_uv=True)", complex=False, samples=NO_SAMPLES)
def svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """``(U, S, V)`` with ``input = U @ diag(S) @ V^H``: V itself, where ``linalg.svd`` gives ``Vh``."""
    U, S, Vh = svd_factors(input, not some)
    if not compute_uv:
        U, Vh = U.detach() * 0, Vh.detach() * 0
    return SvdResult(U, S, mH(Vh))
