"""Floor 1: layouts of views, computed without an ndarray.

Each function gives the NEW layout that an operator's declared forward (on
ndarrays, in ops/views.py) would give, or NULL where it does not apply; no
error is ever set (but MemoryError), since the declared forward, which then runs, finds and
words what is wrong. A test compares the two on random input.
"""
from ._layout cimport Layout

# values: the operator's bound arguments, the tensor first.
ctypedef Layout* (*ViewFunction)(Layout* source, list values) except? NULL

# The function for an operator's name, or NULL.
cdef ViewFunction view_function(str name) noexcept
# The layout of source[index], index an int counted from either end; NULL if it is out of range.
cdef Layout* select_layout(Layout* source, Py_ssize_t index) except? NULL
