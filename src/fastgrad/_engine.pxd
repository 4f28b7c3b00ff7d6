"""Floor 2: the backward pass."""
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from ._node cimport Node, OutputSlot
from ._tensor cimport Tensor

# A set of nodes with one byte each: open addressing, no deletion. Only passes with `inputs=` have one.
cdef struct NodeMap:
    Node** keys          # OWNED; NULL marks a free place
    uint8_t* values      # OWNED
    size_t capacity      # a power of two; at most half full
    size_t n

cdef class Pass:
    cdef uint32_t id
    cdef bint retain_graph
    cdef bint create_graph
    cdef bint accumulates            # leaves' .grad is written (backward) or not (autograd.grad)
    cdef Node* top                   # ready node of the highest sequence number; BORROWED, as all nodes of a pass are,
    cdef Node** heap                 # from the roots, which `kept` owns. heap: the other ready nodes
    cdef size_t heap_n
    cdef size_t heap_capacity
    cdef Node* leaves                # accumulators with a cotangent, linked; they run after everything else
    cdef NodeMap needed              # keys NULL: every node is needed
    cdef dict captures               # node address -> [(output number, position in results)]
    cdef dict overflow               # node address -> cotangents, for nodes whose slots another pass is using
    cdef list results
    cdef list kept
