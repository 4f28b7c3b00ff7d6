"""Floor 2: the general path: any operator, any arguments, by the declared forward on ndarrays.

Above Operator (`_operator`), which binds the arguments, and `_record`, which
makes the nodes; below `_fast`, which handles the usual cases by itself and
comes here with the rest. An operator's call reaches it through its PathTable.
"""
from ._layout cimport Layout
from ._operator cimport Operator
from ._tensor cimport Tensor

# op(*values), computed and recorded: NEW tensor, tuple or namedtuple of them. `values` are bound arguments; those that
# had to be converted to tensors are replaced.
cdef object compute(Operator op, list values)
# The same written into target, which must be the first tensor argument among values; returns target.
cdef object apply_inplace(Operator op, Tensor target, list values)
# NEW tensor: source's memory under a layout, which is STOLEN, recorded as op(*values).
cdef Tensor view_of(Operator op, Tensor source, list values, Layout* layout)
# NEW constant with target's present value.
cdef Tensor original_of(Tensor target)
# A recorded write gave target a new history: its base, if it is a view, and all other views must follow.
cdef int spread_history(Tensor target) except -1
