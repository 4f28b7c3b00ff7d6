"""Floor 2: derivative formulas: from a node's cotangent to that of one of its inputs.

A Formula (`_operator`) is the declared function with its parameter names
resolved. Here the node supplies what they name: saved tensors, plain
arguments, shapes. Neighbours: `_record` made the saved tensors and checks them
when they are read; the backward pass (`_vjp`) calls, and delivers the result.
"""
from ._node cimport Node
from ._operator cimport Operator
from ._tensor cimport Tensor

# The cotangents of tensor argument `argument` given those of the node's outputs: a Tensor, None, or (for a sequence
# argument) a list of them. Runs the formula in the calling thread's grad mode.
cdef object run_formula(Operator op, Node* node, int argument, object g, bint with_history)
# Whether the argument has a formula at all.
cdef inline bint has_formula(Operator op, int argument):
    return op.formulas[argument] is not None

# Whether the node is one of a full reduction (fast_reduce in `_fast`), so that `spread` applies.
cdef bint spreads(Node* node) noexcept
# The cotangent of the tensor that a full sum or mean reduced: g for every element, without a copy. NEW.
cdef Tensor spread(Node* node, Tensor g)
# Divide a 0-dim float32 or float64 tensor at offset 0 that nobody else sees: a sum becomes a mean.
cdef void scale_scalar(Tensor t, double divisor) noexcept
