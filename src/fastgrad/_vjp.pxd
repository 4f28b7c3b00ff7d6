"""Floor 2: the vjp of one node: from the cotangents of its outputs to those of its inputs, delivered.

Below: `_formula` runs a declared formula, `_kernels` a fused loop, `_pass`
takes what they give. Above: `_engine` decides when a node runs, lets hooks see
its cotangents first, and releases what it saved afterwards.
"""
from ._node cimport Node
from ._pass cimport Pass
from ._tensor cimport Tensor

# Run the node's formulas for the inputs that need a gradient, and deliver. For a node of one output, whose cotangent
# is g. g_references: how many references to g the caller has, if there are no others, else 0: with no formula left
# that reads it, g's memory may become a result's, see Note [Donating buffers].
cdef int run_formulas(Pass p, Node* node, Tensor g, Py_ssize_t g_references) except -1
# The same for any node; cotangents by output, None where nothing came.
cdef int run_formulas_on(Pass p, Node* node, list cotangents) except -1
