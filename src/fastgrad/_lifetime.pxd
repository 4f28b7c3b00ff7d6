"""Floor 2: how tensors come into being and go: allocation, destruction, traversal, and which may close cycles.

All of it works on PyObject*: it runs when a reference count is 0, or for the
garbage collector, when nothing may touch the count. It needs the Tensor class
(`_tensor`, above) only for its offsets, and is handed it once. Neighbours:
slabs are from `_storage`; `_node` destroys nodes in the same manner; `_gc`
walks the live tensors.
"""
from cpython.object cimport PyObject, PyTypeObject, destructor, freefunc, inquiry, traverseproc
from libc.string cimport memset

from ._layout cimport Layout
from ._node cimport GC_HEAD, Node
from ._storage cimport Buffer, Slab, slab_acquire

cdef extern from "Python.h":
    ctypedef struct PyTypeRaw "PyTypeObject":
        destructor tp_dealloc
        traverseproc tp_traverse
        inquiry tp_clear
        freefunc tp_free
        PyObject* (*tp_alloc)(PyTypeObject*, Py_ssize_t)
        PyObject* tp_dict
        Py_ssize_t tp_dictoffset
        Py_ssize_t tp_weaklistoffset
        Py_ssize_t tp_basicsize
        int (*tp_setattro)(PyObject*, PyObject*, PyObject*)
    void PyType_Modified(PyTypeObject*)
    void Py_SET_REFCNT(PyObject*, Py_ssize_t)
    void Py_SET_TYPE(PyObject*, PyTypeObject*)

# The pointers of a Tensor, in its order; who owns what is said there.
cdef struct TensorFields:
    Buffer* buffer
    Layout* layout
    PyObject* node
    Node* accumulator          # of a dying tensor: the next that waits, see Note [Deallocating chains of tensors]
    PyObject* gradient
    PyObject* base
    PyObject* attachments

# Put our allocation, destruction and traversal under the Tensor type, whose instances have their TensorFields at
# fields_offset. Called once, before any tensor exists.
cdef void lifetime_install(PyTypeObject* cls, Py_ssize_t fields_offset) noexcept
# Where tensors of exactly that type come from; valid for the life of the process.
cdef Slab* tensor_slab() noexcept

# A zeroed object of class cls from the slab, with that many references; NULL when memory runs out (no error is set).
cdef inline PyObject* slab_object(Slab* slab, PyTypeObject* cls, Py_ssize_t references) noexcept:
    cdef char* slot = <char*>slab_acquire(slab)
    if slot is NULL:
        return NULL
    memset(slot, 0, slab.slot_size)
    Py_SET_TYPE(<PyObject*>(slot + GC_HEAD), cls)
    Py_SET_REFCNT(<PyObject*>(slot + GC_HEAD), references)
    return <PyObject*>(slot + GC_HEAD)

# For `_gc`: every live tensor of exactly this type to `visit`.
cdef void each_live_tensor(void (*visit)(PyObject*) noexcept) noexcept
# How many tensors may close a cycle, at most: they have attributes of the user's, or a .grad that has a history or a
# .grad of its own. `suspect_cycle` counts one if it does.
cdef size_t cycle_suspects() noexcept
cdef void reset_cycle_suspects() noexcept
cdef void suspect_cycle(PyObject* t) noexcept
