"""Floor 2: fast paths, which make no ndarray and no list, and the number protocol on top of them.

An elementwise operator on tensors of one dtype, or on a tensor and a Python number, and a sum or mean of everything,
need no more than a loop over the tensors' own memory and a record. Each `fast_*` function here does that and returns
None where it does not apply; the general path (`_compute`) then does the same by other means: results, records and
errors are equal. Signs (`a + b`, `a += b`, `-a`, `a[i]`) come in through the SlotTable of `_tensor`, calls of
operators by name through the PathTable of `_operator`.
"""
from cpython.object cimport PyObject
from libc.string cimport memset
from numpy cimport npy_intp

import numpy as np

from . import _errors

from ._compute cimport apply_inplace, compute, original_of, spread_history, view_of
from ._formula cimport scale_scalar
from ._kernels cimport NOGIL_NUMEL, Loop, elementwise
from ._layout cimport (
    BOOL, FLOAT32, FLOAT64, INT64, Layout, dtype_itemsize, layout_contiguous, layout_fresh, layout_release,
    layout_retain, layout_same_shape, layout_scalar, layout_shape_tuple,
)
from ._node cimport REDUCES_MEAN, OpDef
from ._operator cimport Operator, bind, operator_paths, register_operator
from ._record cimport check_writable, mark_unrecorded, needs_original, record, requires_grad, thread_mode
from ._tensor cimport (
    N_SLOTS, SLOT_ADD, SLOT_EQ, SLOT_NE, SLOT_POW, SlotTable, Tensor, tensor_empty, tensor_slots,
)
from ._views cimport select_layout

cdef Py_ssize_t* itemsizes = dtype_itemsize()
cdef type ndarray_type = np.ndarray        # here, since a look-up in NumPy's module costs more than the test
cdef type generic_type = np.generic


# --- Layouts of results, and recording --------------------------------------------------------------------------------

cdef Layout* broadcast_layout(Operator op, Layout* a, Layout* b, int dtype) except NULL:
    """NEW contiguous layout of the broadcast shape."""
    cdef Py_ssize_t shape[64]
    cdef int ndim = a.ndim if a.ndim > b.ndim else b.ndim
    cdef int i
    cdef Py_ssize_t m, n
    for i in range(1, ndim + 1):
        m = a.dims[a.ndim - i] if i <= a.ndim else 1
        n = b.dims[b.ndim - i] if i <= b.ndim else 1
        if m != n and m != 1 and n != 1:
            raise RuntimeError(_errors.cannot_broadcast(op.name, layout_shape_tuple(a), layout_shape_tuple(b)))
        shape[ndim - i] = n if m == 1 else m
    return layout_contiguous(dtype, ndim, shape)


cdef Layout* result_layout(Operator op, Layout* a, Layout* b, int dtype) except NULL:
    """NEW layout of an elementwise result: an operand's own one where it will do, which is the usual case."""
    if b is NULL or layout_same_shape(a, b):
        if b is not NULL and not (a.contiguous and a.offset == 0) and b.contiguous and b.offset == 0:
            return layout_fresh(b, dtype)
        return layout_fresh(a, dtype)
    if b.ndim == 0:
        return layout_fresh(a, dtype)
    if a.ndim == 0:
        return layout_fresh(b, dtype)
    return broadcast_layout(op, a, b, dtype)


cdef int record_elementwise(OpDef* op, PyObject* a, PyObject* b, PyObject* number, Tensor out, bint is_written,
                            PyObject* original) except -1:
    """Record a unary or binary application; a or b is NULL where there is a number or nothing. All BORROWED."""
    cdef PyObject* inputs[2]
    cdef PyObject* outputs[1]
    cdef char needs[2]
    inputs[0] = a
    inputs[1] = b
    needs[0] = a is not NULL and requires_grad(<Tensor>a)
    needs[1] = b is not NULL and requires_grad(<Tensor>b)
    if needs[0] or needs[1]:
        if not thread_mode().grad_disabled and ((needs[0] and op.has_vjp[0]) or (needs[1] and op.has_vjp[1])
                                                or is_written):
            outputs[0] = <PyObject*>out
            return record(op, op.n_inputs, inputs, needs, 1, outputs, NULL, number, is_written, original)
        if not is_written:
            mark_unrecorded(out, True)
    elif not is_written:
        mark_unrecorded(out, False)
    return 0


# --- Two tensors ------------------------------------------------------------------------------------------------------

cdef object hot_binary(OpDef* op, Tensor a, Tensor b):
    """a op b where both lie alike and contiguously in small memory: what almost every call in a loop is.

    None where it is not so. Shadows `fast_binary`, which handles everything.
    """
    cdef Layout* layout = a.layout
    cdef Loop* loop = &op.forward[layout.dtype]
    cdef char* args[3]
    cdef npy_intp steps[3]
    cdef npy_intp n = layout.numel
    cdef Tensor out
    if not layout.contiguous or layout.offset or loop.function is NULL or op.compares or n >= NOGIL_NUMEL or n == 0:
        return None
    if layout is not b.layout and not (layout.dtype == b.layout.dtype and b.layout.contiguous
                                       and layout_same_shape(layout, b.layout)):
        return None
    layout_retain(layout)
    out = tensor_empty(layout)
    args[0] = a.buffer.data
    args[1] = b.buffer.data + b.layout.offset
    args[2] = out.buffer.data
    steps[0] = steps[1] = steps[2] = itemsizes[layout.dtype]
    loop.function(args, &n, steps, loop.data)
    record_elementwise(op, <PyObject*>a, <PyObject*>b, NULL, out, False, NULL)
    return out


cdef object fast_binary(Operator op, Tensor a, Tensor b):
    """a op b for tensors of one dtype that has a loop; None where the general path must do it."""
    cdef Layout* la = a.layout
    cdef Layout* lb = b.layout
    cdef int dtype = la.dtype
    cdef char* data[3]
    cdef Layout* layouts[3]
    cdef Tensor out
    if dtype != lb.dtype or op.c.forward[dtype].function is NULL:
        return None
    out = tensor_empty(result_layout(op, la, lb, BOOL if op.c.compares else dtype))
    data[0] = a.buffer.data
    data[1] = b.buffer.data
    data[2] = out.buffer.data
    layouts[0] = la
    layouts[1] = lb
    layouts[2] = out.layout
    elementwise(op.c.forward[dtype], 3, data, layouts)
    record_elementwise(&op.c, <PyObject*>a, <PyObject*>b, NULL, out, False, NULL)
    return out


# --- A tensor and a number --------------------------------------------------------------------------------------------

cdef bint scalar_operand(object number, int dtype, char* place) except -1:
    """Write a Python number as `dtype` to place; False where the general path must decide the dtype."""
    if dtype == FLOAT64:
        if type(number) is float or type(number) is int:
            (<double*>place)[0] = number
            return True
    elif dtype == FLOAT32:
        if type(number) is float or type(number) is int:
            (<float*>place)[0] = <float><double>number
            return True
    elif dtype == INT64 and type(number) is int:
        if -(2 ** 62) < number < 2 ** 62:
            (<long long*>place)[0] = number
            return True
    return False


cdef object fast_number(Operator op, Tensor t, object number, bint number_first):
    """t op number, or number op t; None where the general path must do it."""
    cdef int dtype = t.layout.dtype
    cdef Loop loop = op.c.forward[dtype]
    cdef char place[16]
    cdef char* data[3]
    cdef Layout* layouts[3]
    cdef Layout* scalar
    cdef Tensor out
    if loop.function is NULL or not scalar_operand(number, dtype, place):
        return None
    out = tensor_empty(layout_fresh(t.layout, BOOL if op.c.compares else dtype))
    scalar = layout_scalar(dtype)
    data[number_first] = t.buffer.data
    data[not number_first] = place
    data[2] = out.buffer.data
    layouts[number_first] = t.layout
    layouts[not number_first] = scalar
    layouts[2] = out.layout
    elementwise(loop, 3, data, layouts)
    layout_release(scalar)
    if number_first:
        record_elementwise(&op.c, NULL, <PyObject*>t, <PyObject*>number, out, False, NULL)
    else:
        record_elementwise(&op.c, <PyObject*>t, NULL, <PyObject*>number, out, False, NULL)
    return out


# --- One tensor -------------------------------------------------------------------------------------------------------

cdef object fast_unary(Operator op, Tensor t):
    cdef int dtype = t.layout.dtype
    cdef Loop loop = op.c.forward[dtype]
    cdef char* data[2]
    cdef Layout* layouts[2]
    cdef Tensor out
    if loop.function is NULL:
        return None
    out = tensor_empty(layout_fresh(t.layout, BOOL if op.c.compares else dtype))
    data[0] = t.buffer.data
    data[1] = out.buffer.data
    layouts[0] = t.layout
    layouts[1] = out.layout
    elementwise(loop, 2, data, layouts)
    record_elementwise(&op.c, <PyObject*>t, NULL, NULL, out, False, NULL)
    return out


cdef object fast_reduce(Operator op, Tensor t):
    """The sum or mean of all elements; None where the general path must do it.

    NumPy's loop, called as its own `reduce` calls it for contiguous memory, and so pairwise and to the same bits.
    """
    cdef int dtype = t.layout.dtype
    cdef Loop* loop = &op.c.forward[dtype]
    cdef char* args[3]
    cdef npy_intp steps[3]
    cdef npy_intp n = t.layout.numel
    cdef Tensor out
    if (dtype != FLOAT32 and dtype != FLOAT64) or loop.function is NULL or not t.layout.contiguous or n == 0:
        return None
    out = tensor_empty(layout_scalar(dtype))
    memset(out.buffer.data, 0, 8)
    args[0] = args[2] = out.buffer.data
    args[1] = t.buffer.data + t.layout.offset
    steps[0] = steps[2] = 0
    steps[1] = itemsizes[dtype]
    if n < NOGIL_NUMEL:
        loop.function(args, &n, steps, loop.data)
    else:
        with nogil:
            loop.function(args, &n, steps, loop.data)
    if op.c.reduces == REDUCES_MEAN:
        scale_scalar(out, <double>t.layout.numel)
    record_elementwise(&op.c, <PyObject*>t, NULL, <PyObject*>op.plain_defaults, out, False, NULL)
    return out


# --- In place ---------------------------------------------------------------------------------------------------------

cdef object fast_inplace(Operator op, Tensor target, Tensor other, object number):
    """target op= other (or number), written straight into target's memory; None where the general path must do it."""
    cdef int dtype = target.layout.dtype
    cdef Loop loop = op.c.forward[dtype]
    cdef char place[16]
    cdef char* data[3]
    cdef Layout* layouts[3]
    cdef Layout* scalar = NULL
    cdef PyObject* before
    cdef char needs[2]
    cdef Tensor original = None
    if loop.function is NULL or op.c.compares:
        return None
    if other is None:
        if not scalar_operand(number, dtype, place):
            return None
    elif other.layout.dtype != dtype or not (layout_same_shape(target.layout, other.layout) or other.layout.ndim == 0):
        return None
    elif other.buffer is target.buffer and other.layout is not target.layout:
        return None            # may overlap: the general path computes first and writes afterwards
    needs[0] = requires_grad(target)
    needs[1] = other is not None and requires_grad(other)
    check_writable(op.name, target, needs[0] or needs[1])
    if (needs[0] or needs[1]) and not thread_mode().grad_disabled and needs_original(&op.c, 2, needs):
        original = original_of(target)
    if other is None:
        scalar = layout_scalar(dtype)
        data[1] = place
        layouts[1] = scalar
    else:
        data[1] = other.buffer.data
        layouts[1] = other.layout
    before = target.node
    data[0] = target.buffer.data
    data[2] = target.buffer.data
    layouts[0] = target.layout
    layouts[2] = target.layout
    elementwise(loop, 3, data, layouts)
    if scalar is not NULL:
        layout_release(scalar)
    target.buffer.version += 1
    record_elementwise(&op.c, <PyObject*>target, NULL if other is None else <PyObject*>other,
                       NULL if number is None else <PyObject*>number, target, True,
                       NULL if original is None else <PyObject*>original)
    if target.node is not before:
        spread_history(target)
    return target


# --- Calls by name ----------------------------------------------------------------------------------------------------

cdef object apply_binary(Operator op, object a, object b):
    cdef object result = None
    if isinstance(a, Tensor):
        if isinstance(b, Tensor):
            result = fast_binary(op, <Tensor>a, <Tensor>b)
        elif type(b) is float or type(b) is int:
            result = fast_number(op, <Tensor>a, b, False)
    elif isinstance(b, Tensor) and (type(a) is float or type(a) is int):
        result = fast_number(op, <Tensor>b, a, True)
    if result is not None:
        return result
    return compute(op, [a, b])


cdef object fast_call(Operator op, tuple args):
    """op(*args) for an operator that is elementwise or reduces; None where the general path must do it."""
    if op.c.elementwise:
        if op.c.n_inputs == 2 and len(args) == 2:
            return apply_binary(op, args[0], args[1])
        if op.c.n_inputs == 1 and len(args) == 1 and isinstance(args[0], Tensor):
            return fast_unary(op, <Tensor>args[0])
    elif len(args) == 1 and isinstance(args[0], Tensor):
        return fast_reduce(op, <Tensor>args[0])
    return None


# --- The number protocol ----------------------------------------------------------------------------------------------

cdef Operator pow_tensor = None           # pow with a tensor exponent, whose node PyTorch names differently
cdef OpDef* slot_defs[N_SLOTS]            # of those that are elementwise
cdef PyObject* slot_ops[N_SLOTS]          # BORROWED Operators, which live for ever; NULL until declared
SLOT_NAMES = {
    "add": SLOT_ADD, "sub": 1, "mul": 2, "div": 3, "pow": 4, "matmul": 5, "floor_divide": 6, "remainder": 7,
    "bitwise_and": 8, "bitwise_or": 9, "bitwise_xor": 10, "bitwise_left_shift": 11, "bitwise_right_shift": 12,
    "lt": 13, "le": 14, "eq": SLOT_EQ, "ne": SLOT_NE, "gt": 17, "ge": 18, "neg": 19, "positive": 20, "abs": 21,
    "bitwise_not": 22,
}


def register(Operator op not None, method_type):
    """Make an operator known by its name, and to the number protocol where it has a sign."""
    global pow_tensor, select_operator
    register_operator(op, method_type)
    if op.name == "_pow_tensor":
        pow_tensor = op
    elif op.name == "_select":
        select_operator = op
    slot = SLOT_NAMES.get(op.name)
    if slot is not None:
        slot_ops[<int>slot] = <PyObject*>op
        # A power of two tensors is another operator (`pow_tensor`), so the direct way is not for `pow`.
        slot_defs[<int>slot] = &op.c if op.c.elementwise and slot != SLOT_POW else NULL


cdef object slot_operator(int slot):
    if slot_ops[slot] is NULL:
        name = [n for n, s in SLOT_NAMES.items() if s == slot][0]
        raise NotImplementedError(f"fastgrad has no operator '{name}' yet")
    return <object>slot_ops[slot]


cdef bint is_operand(object value):
    return (isinstance(value, Tensor) or isinstance(value, (int, float, complex))
            or isinstance(value, ndarray_type) or isinstance(value, generic_type))


cdef object slot_binary(int slot, object a, object b):
    cdef Operator op
    cdef object result
    if type(a) is Tensor and type(b) is Tensor and slot_defs[slot] is not NULL:
        result = hot_binary(slot_defs[slot], <Tensor>a, <Tensor>b)
        if result is not None:
            return result
    if not is_operand(a) or not is_operand(b):
        return NotImplemented
    op = slot_operator(slot)
    if slot == SLOT_POW and pow_tensor is not None and isinstance(b, Tensor):
        op = pow_tensor
    if op.c.elementwise:
        return apply_binary(op, a, b)
    return compute(op, bind(op, (a, b), None))


cdef object slot_inplace(int slot, object target, object other):
    cdef Operator op
    cdef object result = None
    if not is_operand(other):
        return NotImplemented
    op = slot_operator(slot)
    if slot == SLOT_POW and pow_tensor is not None and isinstance(other, Tensor):
        op = pow_tensor
    if op.c.elementwise:
        if isinstance(other, Tensor):
            result = fast_inplace(op, <Tensor>target, <Tensor>other, None)
        elif type(other) is float or type(other) is int:
            result = fast_inplace(op, <Tensor>target, None, other)
        if result is not None:
            return result
    return apply_inplace(op, <Tensor>target, bind(op, (target, other), None))


cdef object slot_unary(int slot, object t):
    cdef Operator op = slot_operator(slot)
    cdef object result = None
    if op.c.elementwise:
        result = fast_unary(op, <Tensor>t)
    return compute(op, [t]) if result is None else result


# --- Indexing ---------------------------------------------------------------------------------------------------------

cdef Operator select_operator = None      # what t[i] is recorded as
cdef object getitem_function = None
cdef object setitem_function = None


def set_index_functions(getitem, setitem):
    """What ``t[index]`` and ``t[index] = value`` call; told once by ops/indexing.py."""
    global getitem_function, setitem_function
    getitem_function = getitem
    setitem_function = setitem


cdef object slot_getitem(Tensor t, object index):
    cdef Layout* layout
    if type(index) is int and -(1 << 62) < index < (1 << 62) and select_operator is not None:
        layout = select_layout(t.layout, index)
        if layout is not NULL:
            return view_of(select_operator, t, [t, (index, Ellipsis)], layout)
    return getitem_function(t, index)


cdef int slot_setitem(Tensor t, object index, object value) except -1:
    setitem_function(t, index, value)
    return 0


cdef void setup() noexcept:
    cdef SlotTable* table = tensor_slots()
    table.binary = slot_binary
    table.inplace = slot_inplace
    table.unary = slot_unary
    table.getitem = slot_getitem
    table.setitem = slot_setitem
    operator_paths().fast = fast_call


setup()
