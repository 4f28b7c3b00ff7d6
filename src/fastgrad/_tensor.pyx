# cython: c_api_binop_methods=True
"""Floor 2: the Tensor type. The contract is in `_tensor.pxd`; methods written in Python are attached from above."""
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.string cimport memset

import numpy as np

from . import _dtypes, _errors
from ._size import Size

from ._arrays cimport buffer_over, copy_elements, dtype_object, layout_like
from ._layout cimport (
    FLOAT16, FLOAT32, FLOAT64, Layout, dtype_itemsize, layout_contiguous, layout_release, layout_retain,
    layout_shape_tuple, layout_stride_tuple,
)
from ._lifetime cimport (
    PyType_Modified, PyTypeRaw, TensorFields, lifetime_install, slab_object, suspect_cycle, tensor_slab,
)
from ._node cimport NODE_ACCUMULATES, Node, OpDef, next_sequence_nr, node_class, node_new, node_retain, object_node
from ._storage cimport Buffer, Slab, buffer_acquire, buffer_release, buffer_retain, buffer_try

cdef Slab* slab = tensor_slab()
cdef SlotTable slots
cdef Py_ssize_t* itemsizes = dtype_itemsize()
cdef OpDef accumulate_op            # the operator of every leaf accumulator
cdef PyTypeRaw* tensor_type = <PyTypeRaw*>Tensor

memset(&slots, 0, sizeof(slots))
memset(&accumulate_op, 0, sizeof(accumulate_op))
accumulate_class = node_class("AccumulateGrad")      # kept for ever by `_node`
accumulate_op.node_type = <PyTypeObject*>accumulate_class


cdef SlotTable* tensor_slots() noexcept:
    return &slots


# --- Making -----------------------------------------------------------------------------------------------------------

cdef Tensor tensor_new(Buffer* buffer, Layout* layout):
    cdef Tensor t
    # No reference yet: the conversion to an object takes the first.
    cdef PyObject* obj = slab_object(slab, <PyTypeObject*>tensor_type, 0)
    if obj is NULL:
        buffer_release(buffer)
        layout_release(layout)
        raise MemoryError("fastgrad: cannot allocate a tensor")
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


cdef Tensor tensor_detached(Tensor t):
    buffer_retain(t.buffer)
    layout_retain(t.layout)
    cdef Tensor result = tensor_new(t.buffer, t.layout)
    result.origin = FROM_DETACH
    return result


cdef Tensor tensor_from_array(object array, bint adopt):
    cdef Layout* layout
    cdef Buffer* buffer = buffer_over(array, adopt, &layout)
    return tensor_new(buffer, layout)


cdef Tensor tensor_copied(object array):
    cdef Tensor t = tensor_empty(layout_like(array))
    copy_elements(array, t.buffer, t.layout)
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


def tensor_count():
    """How many tensors of exactly this type are alive, for tests."""
    return slab.n_live


# --- The place in the graph -------------------------------------------------------------------------------------------

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


cdef Node* tensor_edge(Tensor t) except NULL:
    cdef Node* node = tensor_edge_try(t)
    if node is NULL:
        raise MemoryError("fastgrad: cannot allocate a node")
    return node


cdef int renew_if_stale(Tensor t) except -1:
    """An in-place write through the base or another view gave the base a new history: take it over."""
    if t.base is not NULL and (<Tensor>t.base).history != t.seen_history:
        slots.renew_view(t)
    return 0


cdef bint can_require_grad(int dtype) noexcept:
    return dtype >= FLOAT16


cdef void tensor_set_gradient(Tensor t, object gradient) noexcept:
    cdef PyObject* old = t.gradient
    if gradient is None:
        t.gradient = NULL
    else:
        Py_INCREF(gradient)
        t.gradient = <PyObject*>gradient
        suspect_cycle(<PyObject*>t)
    Py_XDECREF(old)


# --- The type ---------------------------------------------------------------------------------------------------------

def attach(str name, function):
    """Make ``function`` the attribute ``name`` of Tensor. For methods written in Python and by declarations.

    Names with a C slot (``__add__``, ``__len__``) are defined by the type itself and cannot be replaced.
    """
    (<dict>tensor_type.tp_dict)[name] = function
    PyType_Modified(<PyTypeObject*>tensor_type)


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
        if type(value) is not bool:
            raise RuntimeError(f"requires_grad must be a bool, not {type(value).__name__}")
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
        if type(requires_grad) is not bool:
            raise TypeError("requires_grad_(): argument 'requires_grad' must be bool, not "
                            f"{type(requires_grad).__name__}")
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


cdef void setup() except *:
    """Hand the type to `_lifetime`."""
    cdef Tensor probe = Tensor.__new__(Tensor)
    cdef Py_ssize_t offset = <char*>&probe.buffer - <char*><PyObject*>probe
    assert <char*>&probe.attachments - <char*>&probe.buffer == sizeof(TensorFields) - sizeof(void*), "not as in Tensor"
    buffer_release(probe.buffer)
    layout_release(probe.layout)
    probe = None      # freed by the generated code, before ours takes over
    lifetime_install(<PyTypeObject*>tensor_type, offset)


setup()
