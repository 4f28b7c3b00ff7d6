"""Floor 2: a Pass, which is the state of one backward pass, and cotangents on their way between nodes.

A cotangent lives in a slot of the node whose output it belongs to, until that
node runs. `deliver` puts it there, or adds it to what is there, and makes the
node ready; `fit` first gives it the dtype and shape that the slot wants.
Neighbours: `_queue` has the collections, `_vjp` produces cotangents,
`_engine` drives the pass.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint32_t

from ._layout cimport Layout
from ._node cimport NODE_ACCUMULATES, Node, OutputSlot, node_outputs
from ._queue cimport NodeMap, ReadyQueue, map_get, queue_push
from ._storage cimport ADOPTED, POOL_LARGE, POOL_SMALL
from ._tensor cimport Tensor

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

cdef enum:
    NEEDED_RUNS = 1             # bits of Pass.needed: the node's formulas lead to a captured node,
    NEEDED_CAPTURED = 2         # and the node itself is captured

# Invariants
#     node.pass_id == p.id  <=>  this pass uses the node's slots, and the node is in `ready` or in `leaves`
#     node in p.overflow     =>  another pass uses the node's slots; ours are the lists there
cdef class Pass:
    cdef uint32_t id                 # never 0, which marks slots that nobody uses
    cdef bint retain_graph
    cdef bint create_graph
    cdef bint accumulates            # leaves' .grad is written (backward) or not (autograd.grad)
    cdef ReadyQueue ready            # nodes are BORROWED, as all of a pass are, from the roots, which `kept` owns
    cdef Node* leaves                # accumulators with a cotangent, linked; they run after everything else
    cdef NodeMap needed              # keys NULL: every node is needed. Only passes with `inputs=` have one
    cdef dict captures               # node address -> [(output number, position in results)]
    cdef dict overflow               # node address -> cotangents, for nodes whose slots another pass is using
    cdef list results
    cdef list kept                   # the nodes of roots and inputs

# Note [Donating buffers]
# Whether t's memory may be written over, because nobody can see it: the tensor has only our own reference(s); its
# buffer only the tensor's (a saved record, a view, an ndarray made by numpy() would each hold one more); the memory is
# ours, not borrowed; it is contiguous from the start, so that every byte is covered; no history refers to its value.
cdef inline bint owned_alone(Tensor t, Py_ssize_t references) noexcept:
    return (Py_REFCNT(<PyObject*>t) == references and t.buffer.refcount == 1 and t.layout.contiguous
            and t.layout.offset == 0 and t.node is NULL and not t.buffer.readonly
            and (t.buffer.kind == POOL_SMALL or t.buffer.kind == POOL_LARGE or t.buffer.kind == ADOPTED))

# Whether a cotangent for this node is wanted.
cdef inline bint is_needed(Pass p, Node* node) noexcept:
    return p.needed.keys is NULL or map_get(&p.needed, node) > 0

# What `deliver` leaves to it: a target that has no cotangent of this pass and is a leaf or in the way of another pass,
# and a slot that has a cotangent already.
cdef int deliver_first(Pass p, Node* target, uint32_t output_nr, Tensor cotangent) except -1
cdef int accumulate(Pass p, OutputSlot* slot, Tensor cotangent) except -1

# Add a cotangent (which fits: see `fit`) to what output output_nr of target has; the first one makes target ready.
# Inline for the usual case, which is once a node: a call into another module would be 3 % of a chain's backward.
cdef inline int deliver(Pass p, Node* target, uint32_t output_nr, Tensor cotangent) except -1:
    cdef OutputSlot* slot = &node_outputs(target)[output_nr]
    if target.pass_id != p.id and target.pass_id == 0 and p.overflow is None and not target.flags & NODE_ACCUMULATES:
        queue_push(&p.ready, target)
        target.pass_id = p.id
    elif target.pass_id != p.id:
        return deliver_first(p, target, output_nr, cotangent)
    if slot.cotangent is not NULL:
        return accumulate(p, slot, cotangent)
    Py_INCREF(cotangent)          # OWNED by the slot
    slot.cotangent = <PyObject*>cotangent
    return 0

# Give what the formula of input i returned the dtype and shape of that input.
cdef Tensor fit(Node* node, int i, Tensor cotangent, Layout* expected)
# The cotangents in a node's slots, a list by output with None where nothing came; the slots are free afterwards.
cdef list take_cotangents(Pass p, Node* node)
# Give up what is in a node's slots.
cdef void drop_cotangents(Pass p, Node* node) noexcept

# The operators that a pass composes cotangents with.
cdef Tensor add_tensors(Tensor a, Tensor b)
cdef Tensor clone_tensor(Tensor t)
cdef Tensor cast_tensor(Tensor t, int dtype)
cdef Tensor zeros_like_layout(Layout* layout)
