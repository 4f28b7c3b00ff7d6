"""Floor 2: Tensor: a buffer seen through a layout, and its place in the graph.

One extension type and no Python subclass on top: a subclass costs the slab
and the quick deallocation (about 200 ns an operation, measured). What is not
hot is written in Python and attached to the type (`attach`). Neighbours:
Buffer and Layout below, NumPy's arrays (`_arrays`), allocation and destruction
(`_lifetime`), Node (`_node`) for history; operators and backward are above,
and reach the number protocol through `slots`.
"""
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t

from ._arrays cimport array_over
from ._layout cimport Layout
from ._node cimport Node
from ._storage cimport Buffer

cdef enum Origin:
    # Why a tensor that requires no grad does not; errors say so.
    FROM_DATA = 0          # made from values
    FROM_CONSTANTS = 1     # an operator's result, none of whose inputs required grad
    FROM_NO_GRAD = 2       # an operator's result under no_grad or inference_mode
    FROM_DETACH = 3
    FROM_INTEGERS = 4      # a result whose dtype cannot carry a gradient

cdef enum TensorFlag:
    TENSOR_INFERENCE = 1       # made under inference_mode
    TENSOR_RETAINS_GRAD = 2    # retain_grad() was called
    TENSOR_MULTI_VIEW = 4      # one of several views an operator returned: no in-place writes
    TENSOR_NO_GRAD_VIEW = 8    # a view made under no_grad of a tensor that requires grad

# The pointers come first and in the order of TensorFields (`_lifetime`), which is checked at import.
cdef class Tensor:
    cdef Buffer* buffer           # OWNED
    cdef Layout* layout           # OWNED; layout.offset is relative to buffer.data
    cdef PyObject* node           # OWNED: the Node that made this tensor (grad_fn); NULL for leaves and constants
    cdef Node* accumulator        # BORROWED: a leaf's accumulator while some graph holds one (it clears this itself)
    cdef PyObject* gradient       # OWNED Tensor or NULL: what `.grad` shows
    cdef PyObject* base           # OWNED Tensor or NULL: the tensor this one is a view of; never a view itself
    cdef PyObject* attachments    # OWNED or NULL: hooks of a leaf
    cdef uint32_t output_nr       # which output of `node`
    cdef uint32_t history         # as a base: how often an in-place write gave it a new history
    cdef uint32_t seen_history    # as a view: base.history when `node` was made; older => `node` is made anew
    cdef uint8_t needs_grad       # requires_grad; 1 whenever node is not NULL
    cdef uint8_t origin           # Origin
    cdef uint8_t flags            # TensorFlag
    cdef dict __dict__
    cdef object __weakref__

cdef enum Slot:
    SLOT_ADD = 0
    SLOT_SUB = 1
    SLOT_MUL = 2
    SLOT_TRUEDIV = 3
    SLOT_POW = 4
    SLOT_MATMUL = 5
    SLOT_FLOORDIV = 6
    SLOT_MOD = 7
    SLOT_AND = 8
    SLOT_OR = 9
    SLOT_XOR = 10
    SLOT_LSHIFT = 11
    SLOT_RSHIFT = 12
    SLOT_LT = 13           # LT .. GE in the order of Py_LT .. Py_GE
    SLOT_LE = 14
    SLOT_EQ = 15
    SLOT_NE = 16
    SLOT_GT = 17
    SLOT_GE = 18
    SLOT_NEG = 19
    SLOT_POS = 20
    SLOT_ABS = 21
    SLOT_INVERT = 22
    N_SLOTS = 23

# The floors above, as the number protocol sees them: filled once by `_fast` (and `_record`).
cdef struct SlotTable:
    object (*binary)(int slot, object a, object b)
    object (*inplace)(int slot, object a, object b)
    object (*unary)(int slot, object a)
    object (*getitem)(Tensor t, object index)
    int (*setitem)(Tensor t, object index, object value) except -1
    int (*renew_view)(Tensor t) except -1

cdef SlotTable* tensor_slots() noexcept
# NEW tensor; both references are STOLEN (released when this raises).
cdef Tensor tensor_new(Buffer* buffer, Layout* layout)
# NEW contiguous tensor of that layout, contents undefined; the layout is STOLEN. It must be contiguous at offset 0.
cdef Tensor tensor_empty(Layout* layout)
# NEW tensor sharing t's memory, version counter and layout, with no history.
cdef Tensor tensor_detached(Tensor t)
# Where t's gradient goes: NEW reference to its node, or to its accumulator, which is made if need be.
cdef Node* tensor_edge(Tensor t) except NULL
# The same; NULL when memory runs out.
cdef Node* tensor_edge_try(Tensor t) noexcept
# NEW tensor over `array`: borrowed, or (adopt) taken over, the caller holding the only other reference.
cdef Tensor tensor_from_array(object array, bint adopt)
# NEW tensor with a contiguous copy of `array` in our own memory.
cdef Tensor tensor_copied(object array)
cdef bint can_require_grad(int dtype) noexcept
cdef int renew_if_stale(Tensor t) except -1

# An ndarray over t's memory that keeps `base` alive; no copy.
cdef inline object tensor_array(Tensor t, object base):
    return array_over(t.buffer, t.layout, <PyObject*>base)

cdef inline bint tensor_check(PyObject* obj) noexcept:
    return isinstance(<object>obj, Tensor)

# t.grad = gradient (a reference is taken), whatever it was.
cdef void tensor_set_gradient(Tensor t, object gradient) noexcept
