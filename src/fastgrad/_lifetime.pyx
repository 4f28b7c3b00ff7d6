"""Floor 2: the lifetime of tensors. The contract is in `_lifetime.pxd`."""
from cpython.object cimport PyObject, PyTypeObject, destructor, freefunc, inquiry, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_XDECREF

from ._layout cimport layout_release
from ._node cimport GC_HEAD, Node, each_live_object, object_node, set_leaf_forgets
from ._storage cimport Slab, buffer_release, slab_free, slab_init

cdef extern from "Python.h":
    PyObject* PyErr_NoMemory() noexcept
    int PyObject_GenericSetAttr(PyObject*, PyObject*, PyObject*) noexcept
    void PyObject_GC_UnTrack(void*)
    PyTypeObject* Py_TYPE(PyObject*)
    void PyObject_ClearWeakRefs(PyObject*)

cdef Slab slab                           # of tensors of exactly the type; a subclass's are Python's own
cdef PyTypeRaw* tensor_type = NULL       # BORROWED: lives as long as the process
cdef Py_ssize_t FIELDS_OFFSET = 0        # bytes from an object to its TensorFields


cdef Slab* tensor_slab() noexcept:
    return &slab


cdef inline TensorFields* fields_of(PyObject* obj) noexcept:
    return <TensorFields*>(<char*>obj + FIELDS_OFFSET)


cdef inline PyObject** attributes_of(PyObject* obj) noexcept:
    """Where its __dict__ is, which is NULL until it has one."""
    return <PyObject**>(<char*>obj + tensor_type.tp_dictoffset)


# --- Allocation -------------------------------------------------------------------------------------------------------

cdef PyObject* slab_alloc(PyTypeObject* cls, Py_ssize_t n) noexcept:
    """tp_alloc of exactly Tensor: a zeroed slot with one reference; NULL with MemoryError set."""
    cdef PyObject* obj = slab_object(&slab, cls, 1)
    return PyErr_NoMemory() if obj is NULL else obj


cdef void slab_give_back(void* obj) noexcept:
    """tp_free of exactly Tensor."""
    Py_SET_REFCNT(<PyObject*>obj, 0)      # a free slot: walking the slab skips it
    slab_free(&slab, <char*>obj - GC_HEAD)


# --- Destruction ------------------------------------------------------------------------------------------------------

cdef void forget_output(PyObject* obj) noexcept:
    cdef TensorFields* t = fields_of(obj)
    if t.node is not NULL and object_node(t.node).output is obj:
        object_node(t.node).output = NULL


cdef void release_fields(PyObject* obj) noexcept:
    cdef TensorFields* t = fields_of(obj)
    if t.node is not NULL:
        Py_DECREF(<object>t.node)
        t.node = NULL
    if t.gradient is not NULL:
        Py_DECREF(<object>t.gradient)
        t.gradient = NULL
    if t.base is not NULL:
        Py_DECREF(<object>t.base)
        t.base = NULL
    if t.attachments is not NULL:
        Py_DECREF(<object>t.attachments)
        t.attachments = NULL
    if t.buffer is not NULL:
        buffer_release(t.buffer)
        t.buffer = NULL
    if t.layout is not NULL:
        layout_release(t.layout)
        t.layout = NULL


# Note [Deallocating chains of tensors]
# A chain x.grad.grad.grad... or a tensor whose history ends in a leaf whose .grad ... may be of any length. Beyond a
# depth, a dying tensor waits (linked through `accumulator`, which a dying tensor does not need: no accumulator refers
# to it) until the outermost deallocation comes to it.
cdef int dealloc_depth = 0
cdef PyObject* waiting_tensors = NULL

cdef enum:
    DEALLOC_DEPTH_MAX = 50


cdef inline void hide(PyObject* obj) noexcept:
    """Nobody finds a dying tensor any more: neither its node nor the garbage collector."""
    forget_output(obj)
    if (<size_t*>(<char*>obj - GC_HEAD))[0]:       # tracked: see `_gc`
        PyObject_GC_UnTrack(obj)


cdef void dealloc_now(PyObject* obj) noexcept:
    cdef PyObject* held
    cdef PyObject** weak = <PyObject**>(<char*>obj + tensor_type.tp_weaklistoffset)
    cdef PyObject** attributes = attributes_of(obj)
    # Both before the callbacks of weak references, which may unpack what the node saved, or collect.
    hide(obj)
    if weak[0] is not NULL:
        PyObject_ClearWeakRefs(obj)
    release_fields(obj)
    held = attributes[0]
    attributes[0] = NULL
    Py_XDECREF(held)
    (<PyTypeRaw*>Py_TYPE(obj)).tp_free(obj)


cdef void tensor_dealloc(PyObject* obj) noexcept:
    global dealloc_depth, waiting_tensors
    if dealloc_depth >= DEALLOC_DEPTH_MAX and Py_TYPE(obj) is <PyTypeObject*>tensor_type:
        hide(obj)
        fields_of(obj).accumulator = <Node*>waiting_tensors
        waiting_tensors = obj
        return
    dealloc_depth += 1
    dealloc_now(obj)
    dealloc_depth -= 1
    while dealloc_depth == 0 and waiting_tensors is not NULL:
        obj = waiting_tensors
        waiting_tensors = <PyObject*>fields_of(obj).accumulator
        fields_of(obj).accumulator = NULL
        dealloc_depth = 1
        dealloc_now(obj)
        dealloc_depth = 0


cdef void leaf_forgets(Node* accumulator) noexcept:
    """The last graph that used this leaf is gone: its accumulator with it (see `destroy` in `_node`)."""
    cdef TensorFields* leaf = fields_of(accumulator.args)
    if leaf.accumulator is accumulator:
        leaf.accumulator = NULL


# --- Traversal, for the garbage collector -----------------------------------------------------------------------------

cdef int tensor_traverse(PyObject* obj, visitproc visit, void* arg) noexcept:
    cdef TensorFields* t = fields_of(obj)
    cdef PyObject** attributes = attributes_of(obj)
    cdef PyObject* held[5]
    cdef int k, stop
    held[0] = t.node
    held[1] = t.gradient
    held[2] = t.base
    held[3] = t.attachments
    held[4] = attributes[0]
    for k in range(5):
        if held[k] is not NULL:
            stop = visit(<PyObject*>held[k], arg)
            if stop:
                return stop
    return 0


cdef int tensor_clear(PyObject* obj) noexcept:
    """Break cycles; the memory and the history stay, so that whoever still sees the tensor sees a whole one."""
    cdef TensorFields* t = fields_of(obj)
    cdef PyObject** attributes = attributes_of(obj)
    cdef PyObject* gradient = t.gradient
    cdef PyObject* attachments = t.attachments
    cdef PyObject* held = attributes[0]
    t.gradient = NULL
    t.attachments = NULL
    attributes[0] = NULL
    Py_XDECREF(gradient)
    Py_XDECREF(attachments)
    Py_XDECREF(held)
    return 0


cdef void each_live_tensor(void (*visit)(PyObject*) noexcept) noexcept:
    each_live_object(&slab, visit)


# --- Tensors that may close a cycle -----------------------------------------------------------------------------------

cdef size_t n_suspects = 0       # see the contract


cdef size_t cycle_suspects() noexcept:
    return n_suspects


cdef void reset_cycle_suspects() noexcept:
    global n_suspects
    n_suspects = 0


cdef void suspect_cycle(PyObject* obj) noexcept:
    global n_suspects
    cdef PyObject* gradient = fields_of(obj).gradient
    if attributes_of(obj)[0] is not NULL:
        n_suspects += 1
    elif gradient is not NULL and (fields_of(gradient).node is not NULL or fields_of(gradient).gradient is not NULL):
        n_suspects += 1


cdef int tensor_setattr(PyObject* obj, PyObject* name, PyObject* value) noexcept:
    """tp_setattro: an attribute of the user's may close a cycle."""
    cdef int result = PyObject_GenericSetAttr(obj, name, value)
    if attributes_of(obj)[0] is not NULL:
        suspect_cycle(obj)
    return result


# --- The type ---------------------------------------------------------------------------------------------------------

cdef void lifetime_install(PyTypeObject* cls, Py_ssize_t fields_offset) noexcept:
    global FIELDS_OFFSET, tensor_type
    FIELDS_OFFSET = fields_offset
    tensor_type = <PyTypeRaw*>cls
    slab_init(&slab, GC_HEAD + tensor_type.tp_basicsize)
    tensor_type.tp_dealloc = <destructor>tensor_dealloc
    tensor_type.tp_traverse = <traverseproc>tensor_traverse
    tensor_type.tp_clear = <inquiry>tensor_clear
    tensor_type.tp_alloc = slab_alloc
    tensor_type.tp_setattro = tensor_setattr
    tensor_type.tp_free = <freefunc>slab_give_back
    PyType_Modified(cls)
    set_leaf_forgets(leaf_forgets)
