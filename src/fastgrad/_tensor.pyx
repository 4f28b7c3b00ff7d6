# cython: c_api_binop_methods=True
"""Floor 2: the Tensor type. The contract is in `_tensor.pxd`; methods written in Python are attached from above."""
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject, destructor, freefunc, inquiry, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.string cimport memcpy, memset

import numpy as np

from . import _dtypes, _errors
from ._size import Size

from ._layout cimport (
    FLOAT16, FLOAT32, FLOAT64, Layout, dtype_itemsize, layout_contiguous, layout_release, layout_retain,
    layout_shape_tuple, layout_stride_tuple, layout_strided,
)
from ._node cimport (
    GC_HEAD, NODE_ACCUMULATES, Node, OpDef, each_live_object, next_sequence_nr, node_class, node_new, node_retain,
    object_node, set_leaf_forgets,
)
from ._storage cimport (
    Buffer, Slab, buffer_acquire, buffer_alias, buffer_borrow, buffer_release, buffer_retain, buffer_try, slab_acquire,
    slab_free, slab_init,
)

cnp.import_array()

cdef extern from "Python.h":
    ctypedef struct PyTypeRaw "PyTypeObject":
        unsigned long tp_flags
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
    int PyObject_GenericSetAttr(PyObject*, PyObject*, PyObject*) noexcept
    void PyObject_GC_UnTrack(void*)
    void PyType_Modified(PyTypeObject*)
    void Py_SET_REFCNT(PyObject*, Py_ssize_t)
    void Py_SET_TYPE(PyObject*, PyTypeObject*)
    PyTypeObject* Py_TYPE(PyObject*)
    void PyObject_ClearWeakRefs(PyObject*)

cdef Slab tensor_slab
cdef size_t TENSOR_SLOT = 0          # bytes of a tensor with its garbage collector's header
cdef SlotTable slots
cdef Py_ssize_t* itemsizes = dtype_itemsize()
cdef tuple dtype_objects = _dtypes.DTYPES
cdef tuple dtype_descrs = tuple([np.dtype(d.numpy) for d in _dtypes.DTYPES])
cdef dict codes_by_descr = {np.dtype(d.numpy): d.code for d in _dtypes.DTYPES}
cdef OpDef accumulate_op            # the operator of every leaf accumulator
cdef PyTypeRaw* tensor_type = <PyTypeRaw*>Tensor

memset(&slots, 0, sizeof(slots))
memset(&accumulate_op, 0, sizeof(accumulate_op))
accumulate_class = node_class("AccumulateGrad")      # kept for ever by `_node`
accumulate_op.node_type = <PyTypeObject*>accumulate_class


cdef SlotTable* tensor_slots() noexcept:
    return &slots


# --- Making and destroying -------------------------------------------------------------------------------------------

cdef PyObject* slab_alloc(PyTypeObject* cls, Py_ssize_t n) noexcept:
    """tp_alloc of exactly Tensor: a zeroed slot with one reference; NULL with MemoryError set."""
    cdef char* slot
    cdef PyObject* obj
    slot = <char*>slab_acquire(&tensor_slab)
    if slot is NULL:
        return PyErr_NoMemory()
    memset(slot, 0, TENSOR_SLOT)
    obj = <PyObject*>(slot + GC_HEAD)
    Py_SET_TYPE(obj, cls)
    Py_SET_REFCNT(obj, 1)
    return obj


cdef extern from "Python.h":
    PyObject* PyErr_NoMemory() noexcept


cdef void slab_give_back(void* obj) noexcept:
    """tp_free of exactly Tensor."""
    Py_SET_REFCNT(<PyObject*>obj, 0)      # a free slot: walking the slab skips it
    slab_free(&tensor_slab, <char*>obj - GC_HEAD)


cdef Tensor tensor_new(Buffer* buffer, Layout* layout):
    cdef PyObject* obj
    cdef Tensor t
    cdef char* slot = <char*>slab_acquire(&tensor_slab)
    if slot is NULL:
        buffer_release(buffer)
        layout_release(layout)
        raise MemoryError("fastgrad: cannot allocate a tensor")
    memset(slot, 0, TENSOR_SLOT)
    obj = <PyObject*>(slot + GC_HEAD)
    Py_SET_TYPE(obj, <PyTypeObject*>tensor_type)
    Py_SET_REFCNT(obj, 0)                 # the conversion to an object takes the first reference
    t = <Tensor>obj
    t.buffer = buffer
    t.layout = layout
    return t


cdef Tensor tensor_empty(Layout* layout):
    cdef Buffer* buffer = buffer_try(layout.numel * itemsizes[layout.dtype])
    if buffer is NULL:
        nbytes = layout.numel * itemsizes[layout.dtype]
        layout_release(layout)
        raise MemoryError(f"fastgrad: cannot allocate {nbytes} bytes for a tensor")
    return tensor_new(buffer, layout)


# Note [Deallocating chains of tensors]
# A chain x.grad.grad.grad... or a tensor whose history ends in a leaf whose .grad ... may be of any length. Beyond a
# depth, a dying tensor waits (linked through `accumulator`, which a dying tensor does not need: no accumulator refers
# to it) until the outermost deallocation comes to it.
cdef int dealloc_depth = 0
cdef PyObject* waiting_tensors = NULL

cdef enum:
    DEALLOC_DEPTH_MAX = 50


cdef void tensor_dealloc(PyObject* obj) noexcept:
    global dealloc_depth, waiting_tensors
    if dealloc_depth >= DEALLOC_DEPTH_MAX and Py_TYPE(obj) is <PyTypeObject*>tensor_type:
        forget_output(obj)
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


cdef void dealloc_now(PyObject* obj) noexcept:
    cdef PyObject* held
    cdef PyObject** weak = <PyObject**>(<char*>obj + tensor_type.tp_weaklistoffset)
    cdef PyObject** attributes = <PyObject**>(<char*>obj + tensor_type.tp_dictoffset)
    forget_output(obj)                    # first: the callbacks of weak references may unpack what the node saved
    if weak[0] is not NULL:
        PyObject_ClearWeakRefs(obj)
    if (<size_t*>(<char*>obj - GC_HEAD))[0]:       # tracked: see `_gc`
        PyObject_GC_UnTrack(obj)
    release_fields(obj)
    held = attributes[0]
    attributes[0] = NULL
    Py_XDECREF(held)
    (<PyTypeRaw*>Py_TYPE(obj)).tp_free(obj)


cdef struct TensorFields:
    # The C view of a Tensor for code that must not touch its reference count (destruction, traversal).
    Buffer* buffer
    Layout* layout
    PyObject* node
    Node* accumulator
    PyObject* gradient
    PyObject* base
    PyObject* attachments


cdef inline TensorFields* fields_of(PyObject* obj) noexcept:
    return <TensorFields*>(<char*>obj + FIELDS_OFFSET)


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


cdef int tensor_traverse(PyObject* obj, visitproc visit, void* arg) noexcept:
    cdef TensorFields* t = fields_of(obj)
    cdef PyObject** attributes = <PyObject**>(<char*>obj + tensor_type.tp_dictoffset)
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
    cdef PyObject** attributes = <PyObject**>(<char*>obj + tensor_type.tp_dictoffset)
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


def tensor_count():
    """How many tensors of exactly this type are alive, for tests."""
    return tensor_slab.n_live


cdef void each_live_tensor(void (*visit)(PyObject*) noexcept) noexcept:
    each_live_object(&tensor_slab, visit)


cdef size_t n_suspects = 0       # see the contract


cdef size_t cycle_suspects() noexcept:
    return n_suspects


cdef void reset_cycle_suspects() noexcept:
    global n_suspects
    n_suspects = 0


cdef void suspect_cycle(PyObject* obj) noexcept:
    global n_suspects
    cdef PyObject* gradient = fields_of(obj).gradient
    if (<PyObject**>(<char*>obj + tensor_type.tp_dictoffset))[0] is not NULL:
        n_suspects += 1
    elif gradient is not NULL and (fields_of(gradient).node is not NULL or fields_of(gradient).gradient is not NULL):
        n_suspects += 1


cdef int tensor_setattr(PyObject* obj, PyObject* name, PyObject* value) noexcept:
    """tp_setattro: an attribute of the user's may close a cycle."""
    cdef int result = PyObject_GenericSetAttr(obj, name, value)
    if (<PyObject**>(<char*>obj + tensor_type.tp_dictoffset))[0] is not NULL:
        suspect_cycle(obj)
    return result


cdef void tensor_set_gradient(Tensor t, object gradient) noexcept:
    cdef PyObject* old = t.gradient
    if gradient is None:
        t.gradient = NULL
    else:
        Py_INCREF(gradient)
        t.gradient = <PyObject*>gradient
        suspect_cycle(<PyObject*>t)
    Py_XDECREF(old)


# --- The place in the graph ------------------------------------------------------------------------------------------

cdef void leaf_forgets(Node* accumulator) noexcept:
    """The last graph that used this leaf is gone: its accumulator with it (see `destroy` in `_node`)."""
    cdef TensorFields* leaf = fields_of(accumulator.args)
    if leaf.accumulator is accumulator:
        leaf.accumulator = NULL


cdef Tensor tensor_detached(Tensor t):
    buffer_retain(t.buffer)
    layout_retain(t.layout)
    cdef Tensor result = tensor_new(t.buffer, t.layout)
    result.origin = FROM_DETACH
    return result


cdef Node* tensor_edge(Tensor t) except NULL:
    cdef Node* node = tensor_edge_try(t)
    if node is NULL:
        raise MemoryError("fastgrad: cannot allocate a node")
    return node


cdef Node* tensor_edge_try(Tensor t) noexcept:
    cdef Node* node
    if t.node is not NULL:
        node = object_node(t.node)
        node_retain(node)
        return node
    if t.accumulator is not NULL:
        node_retain(t.accumulator)
        return t.accumulator
    node = node_new(&accumulate_op, 0, 0, 1)
    if node is NULL:
        return NULL
    node.sequence_nr = next_sequence_nr()
    node.flags = NODE_ACCUMULATES
    node.outputs.here.layout = t.layout
    layout_retain(t.layout)
    node.args = <PyObject*>t          # the accumulator keeps its leaf alive; the leaf does not own the accumulator
    Py_INCREF(t)
    node.output = <PyObject*>t
    t.accumulator = node
    return node


cdef int renew_if_stale(Tensor t) except -1:
    """An in-place write through the base or another view gave the base a new history: take it over."""
    if t.base is not NULL and (<Tensor>t.base).history != t.seen_history:
        slots.renew_view(t)
    return 0


cdef bint can_require_grad(int dtype) noexcept:
    return dtype >= FLOAT16


cdef object dtype_object(int code):
    return <object>(<PyObject*>(<tuple>dtype_objects)[code])


cdef object dtype_descr(int code):
    return (<tuple>dtype_descrs)[code]


cdef int dtype_code_of(object descr) except -1:
    code = codes_by_descr.get(descr)
    if code is None:
        raise TypeError(_errors.unsupported_dtype(descr))
    return <int>code


# --- NumPy's side ----------------------------------------------------------------------------------------------------

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyArray_Descr:
        pass
    object PyArray_NewFromDescr(PyTypeObject* subtype, PyArray_Descr* descr, int nd, const Py_ssize_t* dims,
                                const Py_ssize_t* strides, void* data, int flags, PyObject* obj)
    int PyArray_SetBaseObject(cnp.ndarray arr, PyObject* base) except -1
    PyTypeObject PyArray_Type
    int NPY_ARRAY_WRITEABLE


cdef object tensor_array(Tensor t, object base):
    cdef Layout* layout = t.layout
    descr = dtype_descr(layout.dtype)
    Py_INCREF(descr)                      # stolen by PyArray_NewFromDescr
    cdef object array = PyArray_NewFromDescr(
        &PyArray_Type, <PyArray_Descr*><PyObject*>descr, layout.ndim, layout.dims, layout.dims + layout.ndim,
        t.buffer.data + layout.offset, 0 if t.buffer.readonly else NPY_ARRAY_WRITEABLE, NULL)
    Py_INCREF(base)                       # stolen by PyArray_SetBaseObject
    PyArray_SetBaseObject(array, <PyObject*>base)
    return array


cdef Tensor tensor_from_array(object array, bint adopt):
    cdef cnp.ndarray a = array
    cdef Layout* layout
    cdef Buffer* buffer
    cdef int code = dtype_code_of(a.dtype)
    if not cnp.PyArray_ISALIGNED(a) or not cnp.PyArray_ISNOTSWAPPED(a):
        a = np.require(a, a.dtype.newbyteorder("="), ["ALIGNED", "OWNDATA"])
        adopt = True
    layout = layout_strided(code, cnp.PyArray_NDIM(a), <Py_ssize_t*>cnp.PyArray_DIMS(a),
                            <Py_ssize_t*>cnp.PyArray_STRIDES(a), 0)
    try:
        buffer = buffer_borrow(cnp.PyArray_BYTES(a), layout.numel * itemsizes[code], <PyObject*>a,
                               not cnp.PyArray_ISWRITEABLE(a), adopt)
    except MemoryError:
        layout_release(layout)
        raise
    return tensor_new(buffer, layout)


cdef Tensor tensor_copied(object array):
    """A contiguous copy in our own memory."""
    cdef cnp.ndarray a = array
    cdef int code = dtype_code_of(a.dtype)
    cdef Layout* layout = layout_contiguous(code, cnp.PyArray_NDIM(a), <Py_ssize_t*>cnp.PyArray_DIMS(a))
    cdef Tensor t = tensor_empty(layout)
    if cnp.PyArray_IS_C_CONTIGUOUS(a) and cnp.PyArray_ISBEHAVED_RO(a):
        memcpy(t.buffer.data, cnp.PyArray_BYTES(a), layout.numel * itemsizes[code])
    else:
        np.copyto(tensor_array(t, t), a)
    return t


def from_ndarray(array, copy=False, requires_grad=False, adopt=False):
    """A tensor over an ndarray's memory, or (copy) with a copy of it; the dtype is the array's.

    adopt: the caller has just made the array and keeps no reference, so its memory counts as the tensor's own.
    """
    cdef Tensor t
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_ndarray: expected numpy.ndarray, got {type(array).__name__}")
    t = tensor_copied(array) if copy else tensor_from_array(array, adopt)
    if requires_grad:
        t.requires_grad = True
    return t


def attach(str name, function):
    """Make ``function`` the attribute ``name`` of Tensor. For methods written in Python and by declarations.

    Names with a C slot (``__add__``, ``__len__``) are defined by the type itself and cannot be replaced.
    """
    (<dict>tensor_type.tp_dict)[name] = function
    PyType_Modified(<PyTypeObject*>tensor_type)


# --- The type --------------------------------------------------------------------------------------------------------

cdef object flat_number(Tensor t, str what):
    """The one element as a Python number."""
    if t.layout.numel != 1:
        raise RuntimeError(_errors.not_one_element(t, what))
    cdef char* p = t.buffer.data + t.layout.offset
    if t.layout.dtype == FLOAT64:
        return (<double*>p)[0]
    if t.layout.dtype == FLOAT32:
        return <double>(<float*>p)[0]
    return tensor_array(t, t).item()


cdef class Tensor:
    """A multi-dimensional array that can record its history and be differentiated.

    Made by :func:`fastgrad.tensor` and the other constructors, and by
    operators. Names and meanings are those of ``torch.Tensor`` on the CPU.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __cinit__(self, *args, **kwargs):
        # Whatever a subclass's __init__ does or leaves out, there is memory and a geometry: an empty float vector.
        cdef Py_ssize_t empty = 0
        self.layout = layout_contiguous(_dtypes.get_default_dtype().code, 1, &empty)
        self.buffer = buffer_acquire(0)

    def __init__(self, data=None, *, requires_grad=False):
        if data is not None:
            fill_from_data(self, data)
        if requires_grad:
            self.requires_grad = True

    # --- geometry ---

    @property
    def shape(self):
        """The sizes, as a :class:`fastgrad.Size` (a tuple)."""
        return tuple.__new__(Size, layout_shape_tuple(self.layout))

    @property
    def ndim(self):
        """The number of dimensions."""
        return self.layout.ndim

    @property
    def dtype(self):
        """The element type, a :class:`fastgrad.dtype`."""
        return dtype_object(self.layout.dtype)

    @property
    def itemsize(self):
        """Bytes of one element."""
        return itemsizes[self.layout.dtype]

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return itemsizes[self.layout.dtype] * self.layout.numel

    def dim(self):
        """The number of dimensions."""
        return self.layout.ndim

    def numel(self):
        """The number of elements."""
        return self.layout.numel

    def element_size(self):
        """Bytes of one element."""
        return itemsizes[self.layout.dtype]

    def stride(self, dim=None):
        """Strides in elements: all of them, or that of one dimension."""
        strides = layout_stride_tuple(self.layout)
        return strides if dim is None else strides[check_dim(self, dim)]

    def storage_offset(self):
        """Elements from the start of the memory to the first element."""
        return self.layout.offset // itemsizes[self.layout.dtype]

    def data_ptr(self):
        """The address of the first element."""
        return <size_t>(self.buffer.data + self.layout.offset)

    def is_contiguous(self):
        """Whether the elements lie in memory in C order without gaps."""
        return self.layout.contiguous != 0

    def __len__(self):
        if self.layout.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.layout.dims[0]

    # --- the graph ---

    @property
    def requires_grad(self):
        """Whether operations on this tensor are recorded. Only leaves can be changed."""
        renew_if_stale(self)
        return self.needs_grad != 0

    @requires_grad.setter
    def requires_grad(self, value):
        renew_if_stale(self)
        if self.node is not NULL:
            if not value:
                raise RuntimeError(_errors.not_a_leaf_flag(self))
            return
        if value and not can_require_grad(self.layout.dtype):
            raise RuntimeError(_errors.cannot_require_grad(self))
        if value and self.flags & TENSOR_INFERENCE:
            raise RuntimeError(_errors.inference_requires_grad(self))
        self.needs_grad = 1 if value else 0

    def requires_grad_(self, requires_grad=True):
        """Set ``requires_grad`` and return the tensor."""
        self.requires_grad = requires_grad
        return self

    @property
    def grad_fn(self):
        """The node that made this tensor; None for leaves and constants."""
        renew_if_stale(self)
        return None if self.node is NULL else <object>self.node

    @property
    def output_nr(self):
        """Which of its node's outputs this tensor is."""
        return self.output_nr

    @property
    def is_leaf(self):
        """Whether no recorded operation made this tensor."""
        renew_if_stale(self)
        return self.node is NULL

    @property
    def _version(self):
        """How many in-place writes the memory has seen; shared by all views."""
        return self.buffer.version

    @property
    def _base(self):
        """The tensor this one is a differentiable view of, or None."""
        return None if self.base is NULL else <object>self.base

    def _is_view(self):
        """Whether this tensor is a differentiable view of another."""
        return self.base is not NULL

    def is_inference(self):
        """Whether the tensor was made under ``inference_mode``."""
        return (self.flags & TENSOR_INFERENCE) != 0

    @property
    def retains_grad(self):
        """Whether ``retain_grad()`` was called on this non-leaf tensor."""
        return (self.flags & TENSOR_RETAINS_GRAD) != 0

    @property
    def _origin(self):
        """Why a tensor that requires no grad does not (see `Origin`)."""
        return self.origin

    @property
    def grad(self):
        """The accumulated gradient, or None.

        For a tensor that is not a leaf this is None (with a warning that says
        why) unless ``retain_grad()`` was called.
        """
        if self.gradient is not NULL:
            return <object>self.gradient
        if self.node is not NULL and not self.flags & TENSOR_RETAINS_GRAD:
            _errors.warn_grad_of_non_leaf(self)
        return None

    @grad.setter
    def grad(self, value):
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad: assigned grad must be a Tensor or None, got {type(value).__name__}")
            if value is self:
                raise RuntimeError("grad: can't assign a tensor as its own grad")
            if (<Tensor>value).layout.dtype != self.layout.dtype or value.shape != self.shape:
                raise RuntimeError(_errors.grad_assignment(self, value))
        tensor_set_gradient(self, value)

    @grad.deleter
    def grad(self):
        self.grad = None

    def detach(self):
        """A tensor that shares memory and version counter but has no history."""
        return tensor_detached(self)

    @property
    def data(self):
        """A tensor that shares memory, but neither history nor version counter."""
        return data_of(self)

    # --- values ---

    def numpy(self, *, force=False):
        """An ndarray that shares this tensor's memory.

        Raises
        ------
        RuntimeError
            If the tensor requires grad (``force=True`` detaches first).
        """
        if self.requires_grad and not force:
            raise RuntimeError(_errors.numpy_requires_grad())
        return tensor_array(self, tensor_detached(self))

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"__array__: a copy is needed to convert {array.dtype} to {dtype}, and copy=False")
            return array.astype(dtype)
        return array.copy() if copy else array

    def item(self):
        """The value of a one-element tensor as a Python number."""
        return flat_number(self, "item")

    def tolist(self):
        """The values as nested lists of Python numbers."""
        return tensor_array(self, self).tolist()

    def __bool__(self):
        if self.layout.numel != 1:
            raise RuntimeError(_errors.ambiguous_bool(self))
        return bool(flat_number(self, "bool"))

    def __int__(self):
        return int(flat_number(self, "int"))

    def __float__(self):
        return float(flat_number(self, "float"))

    def __complex__(self):
        return complex(flat_number(self, "complex"))

    def __index__(self):
        if self.layout.numel != 1 or self.layout.dtype > 8:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(flat_number(self, "index"))

    def __hash__(self):
        return <Py_hash_t>(<size_t><PyObject*>self >> 4)

    def __contains__(self, value):
        return bool((tensor_array(self, self) == np.asarray(value)).any())

    # --- the number protocol: see `slots` ---

    def __richcmp__(a, b, int op):
        return slots.binary(SLOT_LT + op, a, b)

    def __add__(a, b):
        return slots.binary(SLOT_ADD, a, b)

    def __sub__(a, b):
        return slots.binary(SLOT_SUB, a, b)

    def __mul__(a, b):
        return slots.binary(SLOT_MUL, a, b)

    def __truediv__(a, b):
        return slots.binary(SLOT_TRUEDIV, a, b)

    def __floordiv__(a, b):
        return slots.binary(SLOT_FLOORDIV, a, b)

    def __mod__(a, b):
        return slots.binary(SLOT_MOD, a, b)

    def __pow__(a, b, modulus):
        if modulus is not None:
            raise TypeError("pow: a third argument (modulus) is not supported for tensors")
        return slots.binary(SLOT_POW, a, b)

    def __matmul__(a, b):
        return slots.binary(SLOT_MATMUL, a, b)

    def __and__(a, b):
        return slots.binary(SLOT_AND, a, b)

    def __or__(a, b):
        return slots.binary(SLOT_OR, a, b)

    def __xor__(a, b):
        return slots.binary(SLOT_XOR, a, b)

    def __lshift__(a, b):
        return slots.binary(SLOT_LSHIFT, a, b)

    def __rshift__(a, b):
        return slots.binary(SLOT_RSHIFT, a, b)

    def __iadd__(self, b):
        return slots.inplace(SLOT_ADD, self, b)

    def __isub__(self, b):
        return slots.inplace(SLOT_SUB, self, b)

    def __imul__(self, b):
        return slots.inplace(SLOT_MUL, self, b)

    def __itruediv__(self, b):
        return slots.inplace(SLOT_TRUEDIV, self, b)

    def __ifloordiv__(self, b):
        return slots.inplace(SLOT_FLOORDIV, self, b)

    def __imod__(self, b):
        return slots.inplace(SLOT_MOD, self, b)

    def __ipow__(self, b, modulus):
        return slots.inplace(SLOT_POW, self, b)

    def __iand__(self, b):
        return slots.inplace(SLOT_AND, self, b)

    def __ior__(self, b):
        return slots.inplace(SLOT_OR, self, b)

    def __ixor__(self, b):
        return slots.inplace(SLOT_XOR, self, b)

    def __neg__(self):
        return slots.unary(SLOT_NEG, self)

    def __pos__(self):
        return slots.unary(SLOT_POS, self)

    def __abs__(self):
        return slots.unary(SLOT_ABS, self)

    def __invert__(self):
        return slots.unary(SLOT_INVERT, self)

    def __getitem__(self, index):
        return slots.getitem(self, index)

    def __setitem__(self, index, value):
        slots.setitem(self, index, value)

    def __delitem__(self, index):
        raise TypeError("a tensor's elements cannot be deleted; index what should stay, or use cat")

    def __iter__(self):
        if self.layout.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(self.layout.dims[0])])

    def __repr__(self):
        return type(self)._repr(self)

    def __reduce_ex__(self, protocol):
        return type(self)._reduce(self, protocol)


cdef int check_dim(Tensor t, object dim) except -1:
    cdef int ndim = t.layout.ndim if t.layout.ndim > 0 else 1
    cdef Py_ssize_t d = dim.__index__()
    if d < -ndim or d >= ndim:
        raise IndexError(_errors.dim_out_of_range(d, ndim))
    return <int>(d + ndim if d < 0 else d)


cdef object data_of(Tensor t):
    layout_retain(t.layout)
    cdef Buffer* buffer
    try:
        buffer = buffer_alias(t.buffer)
    except MemoryError:
        layout_release(t.layout)
        raise
    return tensor_new(buffer, t.layout)


cdef int fill_from_data(Tensor t, object data) except -1:
    """What ``Tensor(data)`` does: another tensor's memory, or a copy in the default dtype (as torch.Tensor)."""
    cdef Tensor source
    if t.node is not NULL or t.accumulator is not NULL or t.layout.numel:
        raise RuntimeError("Tensor: already made; a tensor cannot be initialised twice")
    if isinstance(data, Tensor):
        source = tensor_detached(data)
    else:
        source = tensor_copied(np.asarray(data, dtype=_dtypes.get_default_dtype().numpy))
    buffer_release(t.buffer)
    layout_release(t.layout)
    t.buffer = source.buffer
    t.layout = source.layout
    buffer_retain(t.buffer)
    layout_retain(t.layout)
    return 0


cdef Py_ssize_t FIELDS_OFFSET = sizeof(PyObject)


cdef void setup() except *:
    """Put our allocation, destruction and traversal under the type."""
    global FIELDS_OFFSET, TENSOR_SLOT
    cdef Tensor probe = Tensor.__new__(Tensor)
    FIELDS_OFFSET = <char*>&probe.buffer - <char*><PyObject*>probe
    assert <char*>&probe.attachments - <char*>&probe.buffer == 6 * sizeof(void*), "TensorFields mirrors Tensor"
    release_fields(<PyObject*>probe)
    probe = None      # freed by the generated code, before ours takes over
    slab_init(&tensor_slab, GC_HEAD + tensor_type.tp_basicsize)
    TENSOR_SLOT = tensor_slab.slot_size
    tensor_type.tp_dealloc = <destructor>tensor_dealloc
    tensor_type.tp_traverse = <traverseproc>tensor_traverse
    tensor_type.tp_clear = <inquiry>tensor_clear
    tensor_type.tp_alloc = slab_alloc
    tensor_type.tp_setattro = tensor_setattr
    tensor_type.tp_free = <freefunc>slab_give_back
    PyType_Modified(<PyTypeObject*>tensor_type)
    set_leaf_forgets(leaf_forgets)


setup()
