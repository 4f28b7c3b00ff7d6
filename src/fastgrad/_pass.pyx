"""Floor 2: the state of a backward pass, and delivering cotangents. The contract is in `_pass.pxd`."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t

from . import _errors

from ._arrays cimport dtype_object
from ._kernels cimport add_into
from ._layout cimport Layout, layout_same_shape, layout_shape_tuple
from ._node cimport NODE_ACCUMULATES, Node, OutputSlot, node_object, node_outputs
from ._queue cimport map_free, queue_free, queue_push
from ._tensor cimport Tensor


cdef class Pass:
    def __dealloc__(self):
        queue_free(&self.ready)
        map_free(&self.needed)


# --- Composing cotangents: operators on tensors, told once by ops/_wiring.py ------------------------------------------

cdef object add_function = None
cdef object clone_function = None
cdef object cast_function = None
cdef object sum_to_function = None
cdef object zeros_function = None


def set_functions(add, clone, cast, sum_to, zeros):
    """Hand over the operators that cotangents are composed with."""
    global add_function, clone_function, cast_function, sum_to_function, zeros_function
    add_function = add
    clone_function = clone
    cast_function = cast
    sum_to_function = sum_to
    zeros_function = zeros


cdef Tensor add_tensors(Tensor a, Tensor b):
    return add_function(a, b)


cdef Tensor clone_tensor(Tensor t):
    return clone_function(t)


cdef Tensor cast_tensor(Tensor t, int dtype):
    return cast_function(t, dtype_object(dtype))


cdef Tensor zeros_like_layout(Layout* layout):
    return zeros_function(layout_shape_tuple(layout), dtype=dtype_object(layout.dtype))


# --- Delivering and accumulating --------------------------------------------------------------------------------------

cdef int deliver_first(Pass p, Node* target, uint32_t output_nr, Tensor cotangent) except -1:
    if target.pass_id != 0 or (p.overflow is not None and <size_t>target in p.overflow):
        return deliver_aside(p, target, output_nr, cotangent)
    if target.flags & NODE_ACCUMULATES:
        target.link = p.leaves
        p.leaves = target
    else:
        queue_push(&p.ready, target)
    target.pass_id = p.id
    return deliver(p, target, output_nr, cotangent)


cdef int accumulate(Pass p, OutputSlot* slot, Tensor cotangent) except -1:
    cdef Tensor total = <Tensor>slot.cotangent
    # 2: the slot's reference and the variable's.
    if not p.create_graph and owned_alone(total, 2) and total.layout.dtype == cotangent.layout.dtype:
        add_into(total.buffer.data, total.layout, cotangent.buffer.data, cotangent.layout, False)
        return 0
    total = add_tensors(total, cotangent)
    Py_DECREF(<object>slot.cotangent)
    Py_INCREF(total)
    slot.cotangent = <PyObject*>total
    return 0


cdef int deliver_aside(Pass p, Node* target, uint32_t output_nr, Tensor cotangent) except -1:
    """As `deliver`, for a node whose slots belong to another pass (another thread's, or one around this one)."""
    key = <size_t>target
    if p.overflow is None:
        p.overflow = {}
    row = p.overflow.get(key)
    if row is None:
        row = [None] * target.n_outputs
        p.overflow[key] = row
        if not target.flags & NODE_ACCUMULATES:
            queue_push(&p.ready, target)
    row[output_nr] = cotangent if row[output_nr] is None else add_tensors(row[output_nr], cotangent)
    return 0


# --- Fitting ----------------------------------------------------------------------------------------------------------

cdef Tensor fit(Node* node, int i, Tensor cotangent, Layout* expected):
    """The only place that undoes broadcasting."""
    if not layout_same_shape(cotangent.layout, expected):
        if not reducible(cotangent.layout, expected):
            raise RuntimeError(_errors.formula_shape(type(<object>node_object(node)).__name__, i,
                                                     layout_shape_tuple(cotangent.layout),
                                                     layout_shape_tuple(expected)))
        cotangent = sum_to_function(cotangent, layout_shape_tuple(expected))
    if cotangent.layout.dtype != expected.dtype:
        cotangent = cast_tensor(cotangent, expected.dtype)
    return cotangent


cdef bint reducible(Layout* layout, Layout* expected) noexcept:
    """Whether `expected` broadcasts to layout's shape."""
    cdef int i, extra = layout.ndim - expected.ndim
    if extra < 0:
        return False
    for i in range(expected.ndim):
        if expected.dims[i] != layout.dims[extra + i] and expected.dims[i] != 1:
            return False
    return True


# --- Taking -----------------------------------------------------------------------------------------------------------

cdef list take_cotangents(Pass p, Node* node):
    cdef OutputSlot* outputs = node_outputs(node)
    cdef list taken = []
    cdef int k
    if node.pass_id != p.id:
        return p.overflow.pop(<size_t>node)
    node.pass_id = 0
    for k in range(<int>node.n_outputs):
        if outputs[k].cotangent is NULL:
            taken.append(None)
        else:
            cotangent = <object>outputs[k].cotangent
            outputs[k].cotangent = NULL
            Py_DECREF(cotangent)
            taken.append(cotangent)
    return taken


cdef void drop_cotangents(Pass p, Node* node) noexcept:
    cdef OutputSlot* outputs = node_outputs(node)
    cdef PyObject* held
    cdef int k
    if node.pass_id != p.id:
        return
    node.pass_id = 0
    for k in range(<int>node.n_outputs):
        held = outputs[k].cotangent
        outputs[k].cotangent = NULL
        Py_XDECREF(held)
