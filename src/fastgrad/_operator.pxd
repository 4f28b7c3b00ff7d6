"""Floor 2: operators: what a declaration becomes.

An Operator binds arguments, finds the computing dtype, runs the forward (a
fused or NumPy loop on the tensors' own memory where there is one, else the
declared function on zero-copy ndarrays), and records. The backward pass asks
it to run one derivative formula.
"""
from ._node cimport Node, OpDef
from ._tensor cimport Tensor
from ._views cimport ViewFunction

cdef enum DTypeRule:
    PROMOTE = 0     # tensor arguments are cast to their common dtype
    FLOAT = 1       # likewise, and integers to the default dtype
    COMPARE = 2     # likewise without the cast of integers; the result's dtype is the forward's
    KEEP = 3        # no cast
    SAME = 4        # no cast, different dtypes are an error

cdef class Formula:
    cdef object function       # OWNED callable
    cdef tuple sources         # one int for each parameter: kind * 256 + index, see FORMULA_*

cdef class Operator:
    cdef OpDef c
    cdef readonly str name
    cdef readonly tuple parameters         # all argument names, in order
    cdef readonly tuple tensor_names       # those that are tensors
    cdef tuple defaults
    cdef int n_positional                  # arguments that may be given by position
    cdef int varargs                       # position of the *argument, or -1
    cdef tuple tensor_positions
    cdef object forward
    cdef list formulas                     # by tensor argument: Formula or None
    cdef int dtype_rule
    cdef ViewFunction view                 # computes a view's layout without NumPy, or NULL
    cdef bytes differentiable              # by output; None: all
    cdef tuple output_names                # of several outputs, or None
    cdef tuple plain_defaults              # what a reduction of everything keeps as plain arguments
    cdef bint keeps_plain                  # some formula names a plain argument
    cdef bint multi_view                   # returns several views
    cdef object result_class               # namedtuple of several outputs, or None
    cdef dict __dict__
    cdef Formula make_formula(self, int argument, function)
    cdef void setup_fused(self)
    cdef void setup_loops(self, ufunc)

# The cotangents of tensor argument `argument` given those of the node's outputs: a Tensor, None, or (for a sequence
# argument) a list of them. Runs the formula in the calling thread's grad mode.
cdef object run_formula(Operator op, Node* node, int argument, object g, bint with_history)
# Whether the argument has a formula at all.
cdef bint has_formula(Operator op, int argument)
# NEW contiguous tensor, contents undefined.
cdef Tensor empty_tensor(int dtype, int ndim, const Py_ssize_t* shape)
# The cotangent of the tensor that a full sum or mean reduced: g for every element, without a copy.
cdef Tensor spread(Node* node, Tensor g)
# Whether the node is one of a full reduction, so that `spread` applies.
cdef bint spreads(Node* node) noexcept
