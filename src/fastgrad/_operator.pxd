"""Floor 2: operators: what a declaration becomes.

An Operator holds one declaration, resolved: argument names and defaults, what
each derivative formula reads, the loops of its forward. Neighbours: an OpDef
(`_node`) is the part of it that C code needs and that nodes point to;
`_formula` runs its derivatives; `_compute` and `_fast`, both above, run its
forward, and have put themselves into the PathTable.

Invariants
    operators live for ever      => nodes, slots and tables BORROW them
    formula i names argument k   <=> c.saves[i] has bit k
    c.elementwise                => one or two tensor arguments and nothing else
"""
from ._node cimport OpDef
from ._tensor cimport Tensor
from ._views cimport ViewFunction

cdef enum DTypeRule:
    PROMOTE = 0     # tensor arguments are cast to their common dtype
    FLOAT = 1       # likewise, and integers to the default dtype
    COMPARE = 2     # likewise without the cast of integers; the result's dtype is the forward's
    KEEP = 3        # no cast
    SAME = 4        # no cast, different dtypes are an error

# Kinds of formula parameters, see Formula.sources.
cdef enum FormulaSource:
    FORMULA_G = 0          # the cotangent
    FORMULA_RESULT = 1     # an output: all of them as a tuple where there are several
    FORMULA_TENSOR = 2     # a tensor argument, by its number
    FORMULA_PLAIN = 3      # a plain argument, by its position
    FORMULA_SHAPE = 4      # the shape of the tensor argument whose formula it is
    FORMULA_OUTPUT = 5     # one output of several, by its number

cdef class Formula:
    cdef object function       # OWNED callable
    cdef tuple sources         # one int for each parameter: kind * 256 + index, see FormulaSource

cdef class Operator:
    cdef OpDef c
    cdef readonly str name
    cdef readonly str node_name            # of the nodes' class
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

# The floors above, as calling an operator sees them: filled once, by `_compute` and by `_fast`.
cdef struct PathTable:
    object (*fast)(Operator op, tuple args)                         # op(*args), or None where `compute` must do it
    object (*compute)(Operator op, list values)                     # values: bound, may be changed by this
    object (*inplace)(Operator op, Tensor target, list values)      # target is the first tensor among values

cdef PathTable* operator_paths() noexcept
# Argument values in the order of op.parameters. kwargs may be None. Raises TypeError as a Python function would.
cdef list bind(Operator op, tuple args, dict kwargs)
# Whether a parameter with this "default" has none.
cdef bint is_required(object default)
# Make op known by its name; method_type(op, tensor) is what it becomes when found on a Tensor.
cdef int register_operator(Operator op, object method_type) except -1
