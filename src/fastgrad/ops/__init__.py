"""Floor 3: operators, one declaration each, by family."""
from .. import _engine
from . import (
    arithmetic,
    combining,
    comparison,
    complex_parts,
    contractions,
    decompositions,
    diagonals,
    einsum,
    exponential,
    extrema,
    factorizations,
    gamma,
    gathering,
    indexing,
    joining,
    least_squares,
    masking,
    matrix_functions,
    norms,
    padding,
    products,
    quantiles,
    rearranging,
    reductions,
    regions,
    rounding,
    scans,
    scattering,
    selection,
    softmax,
    sorting,
    spectral,
    statistics,
    strided,
    trigonometric,
    views,
)
from ._declare import declarations, functions
from ._wiring import wire

wire()

__all__ = ["declarations", "functions"]
