"""Floor 2: the general path: any operator on any arguments. The contract is in `_compute.pxd`.

A call goes through these stages, each a function below: `gather_inputs` makes tensors of what stands for tensors,
`computing_dtype` finds what they are cast to, `call_forward` runs the declared function on zero-copy ndarrays,
`wrap_result` makes tensors of what it returned, `finish` records. An in-place call computes first and then copies
into its target, between `prepare_write`, which refuses what must be refused, and `written`. What `_fast` can do
does not come here.
"""
cimport numpy as cnp
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject

import numpy as np

from . import _dtypes, _errors

from ._arrays cimport dtype_code_of, dtype_descr, dtype_object
from ._kernels cimport copy_into
from ._layout cimport (
    BOOL, FLOAT16, FLOAT64, INT64, N_DTYPES, Layout, layout_fresh, layout_shape_tuple, layout_span, layout_strided,
)
from ._operator cimport FLOAT, KEEP, SAME, Operator, is_required, operator_paths
from ._record cimport (
    check_writable, grad_enabled, mark_unrecorded,
    mark_view, needs_original, rebase_history, record, requires_grad, thread_mode,
)
from ._storage cimport buffer_retain
from ._tensor cimport Tensor, tensor_array, tensor_copied, tensor_empty, tensor_from_array, tensor_new

cnp.import_array()

cdef enum:
    ADOPT_ABOVE = 1024     # bytes: smaller results are copied into the pool, which is cheaper than keeping an ndarray

cdef bytes promote_table = bytes(_dtypes.PROMOTE)
cdef bytes combine_table = bytes(_dtypes.COMBINE)
cdef type ndarray_type = np.ndarray        # here, since a look-up in NumPy's module costs more than the test
cdef type generic_type = np.generic
# PyTorch gives inf and NaN without a warning, and so do we. np.errstate costs as much as a small operator (700 ns);
# what it does is set this context variable, which NumPy keeps to itself: so use it where it is, and errstate otherwise.
cdef object error_state = None
cdef object quiet_state = None
try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj
    error_state = _extobj_contextvar
    quiet_state = _make_extobj(all="ignore")
except (ImportError, TypeError):
    pass


# --- The dtype that is computed in ------------------------------------------------------------------------------------

cdef inline int category(int code) noexcept:
    if code == BOOL:
        return 0
    if code < FLOAT16:
        return 1
    return 2 if code <= FLOAT64 else 3


cdef inline int promote(int a, int b) noexcept:
    return (<const unsigned char*>promote_table)[a * N_DTYPES + b]


cdef inline int combine(int higher, int lower) noexcept:
    """A lower level (0-dim tensor, number) matters only if its category is higher; -1 stands for no operand."""
    if lower < 0:
        return higher
    if higher < 0:
        return lower
    return (<const unsigned char*>combine_table)[higher * N_DTYPES + lower]


cdef int number_code(object number) except -1:
    if isinstance(number, bool):
        return BOOL
    if isinstance(number, int):
        return INT64
    if isinstance(number, float):
        return _dtypes.get_default_dtype().code
    return _dtypes.get_default_dtype().to_complex().code


cdef bint is_number(object value):
    return isinstance(value, (int, float, complex))


cdef int computing_dtype(Operator op, list flat, list values) except -2:
    """The dtype code that tensor arguments are cast to; -1 for no cast."""
    cdef int dimensioned = -1, scalar = -1, number = -1, code, i
    cdef Tensor t
    if op.dtype_rule == KEEP:
        return -1
    for value in flat:
        if value is not None:
            t = <Tensor>value
            code = t.layout.dtype
            if op.dtype_rule == SAME and dimensioned >= 0 and code != dimensioned:
                raise RuntimeError(f"{op.name}: expected all tensors to have the same dtype, but got: "
                                   f"{dtype_object(dimensioned)} != {dtype_object(code)}; convert one with .to(dtype)")
            if t.layout.ndim > 0 or op.dtype_rule == SAME:
                dimensioned = code if dimensioned < 0 else promote(dimensioned, code)
            else:
                scalar = code if scalar < 0 else promote(scalar, code)
    if op.dtype_rule == SAME:
        return -1
    for i in range(op.c.n_inputs):
        value = values[<int>op.tensor_positions[i]]
        if is_number(value):
            code = number_code(value)
            number = code if number < 0 else promote(number, code)
    code = combine(combine(dimensioned, scalar), number)
    if op.dtype_rule == FLOAT and code < FLOAT16:
        code = _dtypes.get_default_dtype().code
    return code


# --- Tensor arguments -------------------------------------------------------------------------------------------------

cdef object operand(Operator op, str name, object value):
    """A tensor argument as Tensor; a number or None stays what it is."""
    if isinstance(value, Tensor) or value is None or is_number(value):
        return value
    if isinstance(value, ndarray_type):
        # Copied where it may be saved: a later write to the user's array would move no version counter.
        return tensor_from_array(value.copy(), True) if grad_enabled() else tensor_from_array(value, False)
    if isinstance(value, generic_type):
        return value.item()
    raise TypeError(f"{op.name}(): argument '{name}' must be Tensor, not {type(value).__name__}")


cdef list gather_inputs(Operator op, list values):
    """The tensors among the arguments, flattened: Tensor, or None where a number (or nothing) was given.

    Replaces what had to be converted in `values`.
    """
    cdef list flat = []
    cdef bint any_tensor = False
    cdef int i, position
    for i in range(op.c.n_inputs):
        position = op.tensor_positions[i]
        value = values[position]
        if op.c.is_sequence and i == op.c.n_inputs - 1:
            if isinstance(value, Tensor):
                value = value.unbind(0)
            if not isinstance(value, (tuple, list)):
                raise TypeError(f"{op.name}(): argument '{op.tensor_names[i]}' must be tuple of Tensors, not "
                                f"{type(value).__name__}")
            value = [operand(op, f"{op.tensor_names[i]}[{k}]", v) for k, v in enumerate(value)]
            for k, v in enumerate(value):
                if not isinstance(v, Tensor):
                    raise TypeError(f"{op.name}(): expected Tensor as element {k} in argument '{op.tensor_names[i]}', "
                                    f"but got {type(v).__name__}")
            values[position] = value
            flat.extend(value)
            any_tensor = any_tensor or op.c.n_inputs == 1
            continue
        if value is None and is_required(op.defaults[position]):
            raise TypeError(f"{op.name}(): argument '{op.tensor_names[i]}' must be Tensor, not NoneType")
        value = operand(op, op.tensor_names[i], value)
        values[position] = value
        if isinstance(value, Tensor):
            any_tensor = True
            flat.append(value)
        else:
            flat.append(None)
    if not any_tensor and op.c.n_inputs > 0:
        value = values[<int>op.tensor_positions[0]]
        raise TypeError(f"{op.name}(): argument '{op.tensor_names[0]}' must be Tensor, not {type(value).__name__}")
    return flat


# --- Calling the declared forward -------------------------------------------------------------------------------------

cdef object as_array(Tensor t, int dtype):
    cdef object array = tensor_array(t, t)
    return array.astype(dtype_descr(dtype)) if dtype >= 0 and t.layout.dtype != dtype else array


cdef object call_quietly(object function, tuple arguments):
    """function(*arguments) without NumPy's floating point warnings."""
    if quiet_state is None:
        with np.errstate(all="ignore"):
            return function(*arguments)
    token = error_state.set(quiet_state)
    try:
        return function(*arguments)
    finally:
        error_state.reset(token)


cdef object call_forward(Operator op, list flat, list values, int dtype):
    """Run the declared forward; NumPy's complaints become PyTorch's exception types."""
    cdef list given = list(values)
    cdef int i, position
    for i in range(op.c.n_inputs):
        position = op.tensor_positions[i]
        value = given[position]
        if isinstance(value, Tensor):
            given[position] = as_array(<Tensor>value, dtype)
        elif op.c.is_sequence and i == op.c.n_inputs - 1:
            given[position] = [as_array(<Tensor>v, dtype) for v in value]
        elif dtype >= 0 and value is not None:
            given[position] = np.asarray(value).astype(dtype_descr(dtype))
    try:
        return call_quietly(op.forward, tuple(given))
    except np._core._exceptions._UFuncNoLoopError:
        named = dtype_object(dtype) if dtype >= 0 else ", ".join([str(t.dtype) for t in flat if t is not None])
        raise NotImplementedError(f'"{op.name}" not implemented for {named}') from None
    except (ValueError, np.exceptions.AxisError) as error:
        if isinstance(error, IndexError):
            raise IndexError(f"{op.name}: {error}") from None
        if type(error) is not ValueError:
            raise
        shapes = [tuple(t.shape) for t in flat if t is not None]
        if len(shapes) == 2 and "broadcast" in str(error):
            raise RuntimeError(_errors.cannot_broadcast(op.name, shapes[0], shapes[1])) from None
        raise RuntimeError(f"{op.name}: {error}; the shapes given are {', '.join(map(str, shapes))}") from None


# --- Tensors of what the forward returned -----------------------------------------------------------------------------

cdef Tensor wrap_view(Tensor source, object array):
    """A tensor that sees source's buffer as `array` (a NumPy view of it) does."""
    cdef cnp.ndarray a = array
    cdef Layout* layout = layout_strided(
        dtype_code_of(a.dtype), cnp.PyArray_NDIM(a), <Py_ssize_t*>cnp.PyArray_DIMS(a),
        <Py_ssize_t*>cnp.PyArray_STRIDES(a), cnp.PyArray_BYTES(a) - source.buffer.data)
    buffer_retain(source.buffer)
    return tensor_new(source.buffer, layout)


cdef Py_ssize_t span_of(Tensor t) noexcept:
    """Bytes from the buffer's start to the end of what t sees (a borrowed buffer's nbytes do not count gaps)."""
    cdef Py_ssize_t low = 0, high = 0
    layout_span(t.layout, &low, &high)
    return high if high > <Py_ssize_t>t.buffer.nbytes else <Py_ssize_t>t.buffer.nbytes


cdef bint shares_memory(cnp.ndarray array, list flat):
    """Whether the array's span of memory meets that of a tensor's buffer."""
    cdef char* low = cnp.PyArray_BYTES(array)
    cdef char* high = low + cnp.PyArray_ITEMSIZE(array)
    cdef Py_ssize_t reach
    cdef Tensor t
    cdef int i
    for i in range(cnp.PyArray_NDIM(array)):
        if cnp.PyArray_DIM(array, i) == 0:
            return False
        reach = (cnp.PyArray_DIM(array, i) - 1) * cnp.PyArray_STRIDE(array, i)
        if reach > 0:
            high += reach
        else:
            low += reach
    for value in flat:
        if value is not None:
            t = <Tensor>value
            if t.buffer.data < high and low < t.buffer.data + span_of(t):
                return True
    return False


cdef Tensor wrap_result(Operator op, object array, list flat):
    """A tensor over what the forward returned: taken over if it is the forward's own, else copied."""
    cdef cnp.ndarray a
    if not isinstance(array, ndarray_type):
        array = np.asarray(array)
    a = array
    if op.c.is_view and flat[0] is not None and (cnp.PyArray_SIZE(a) == 0 or shares_memory(a, flat[:1])):
        return wrap_view(<Tensor>flat[0], a)
    if cnp.PyArray_NBYTES(a) <= ADOPT_ABOVE or not cnp.PyArray_ISWRITEABLE(a) or shares_memory(a, flat):
        return tensor_copied(a)
    if not cnp.PyArray_IS_C_CONTIGUOUS(a) and not cnp.PyArray_IS_F_CONTIGUOUS(a):
        a = np.ascontiguousarray(a)
    return tensor_from_array(a, True)


# --- Recording --------------------------------------------------------------------------------------------------------

cdef bint find_needs(list flat, char* needs) except -1:
    """Which inputs require grad, one byte each, whatever the grad mode."""
    cdef bint wanted = False
    cdef Py_ssize_t i
    for i in range(len(flat)):
        needs[i] = flat[i] is not None and requires_grad(<Tensor>flat[i])
        wanted = wanted or needs[i]
    return wanted


cdef tuple plain_arguments(Operator op, list values):
    """What formulas may name besides tensors; tensors themselves never hang on a node outside its saved records."""
    cdef list plain = list(values)
    cdef int i
    for i in range(op.c.n_inputs):
        value = plain[<int>op.tensor_positions[i]]
        if isinstance(value, Tensor) or isinstance(value, list):
            plain[<int>op.tensor_positions[i]] = None
    return tuple(plain)


cdef bint n_has_numbers(list flat):
    for t in flat:
        if t is None:
            return True
    return False


cdef bint any_formula(Operator op, list flat, const char* needs):
    cdef int i, argument
    for i in range(len(flat)):
        argument = i if i < op.c.n_inputs else op.c.n_inputs - 1
        if needs[i] and op.formulas[argument] is not None:
            return True
    return False


cdef int finish(Operator op, list flat, list values, list outputs, Tensor written, Tensor original) except -1:
    """Record the call if it is to be recorded, and set what else the outputs must know."""
    cdef Py_ssize_t n = len(flat), i
    cdef char small_needs[16]
    cdef PyObject* small_inputs[16]
    cdef PyObject* results[16]
    cdef PyObject** results_p = results
    cdef char* needs = small_needs
    cdef PyObject** inputs = small_inputs
    cdef bint wanted
    cdef int n_outputs = len(outputs)
    if n > 16 or n_outputs > 16:
        needs = <char*>PyMem_Malloc(n + 1)
        inputs = <PyObject**>PyMem_Malloc((n + 1) * sizeof(void*))
        results_p = <PyObject**>PyMem_Malloc((n_outputs + 1) * sizeof(void*))
        if needs is NULL or inputs is NULL or results_p is NULL:
            PyMem_Free(needs)
            PyMem_Free(inputs)
            PyMem_Free(results_p)
            raise MemoryError(f"{op.name}: cannot record {n} inputs")
    try:
        wanted = find_needs(flat, needs)
        for i in range(n):
            inputs[i] = NULL if flat[i] is None else <PyObject*>flat[i]
        for i in range(n_outputs):
            results_p[i] = <PyObject*>outputs[i]
            if op.c.is_view and written is None and (<Tensor>outputs[i]).buffer is (<Tensor>flat[0]).buffer:
                mark_view(<Tensor>outputs[i], <Tensor>flat[0], op.multi_view)
        # An operator without a formula makes a constant; written in place, it cuts the history of what it wrote over.
        if thread_mode().grad_disabled or not wanted or (written is None and not any_formula(op, flat, needs)):
            for i in range(n_outputs if written is None else 0):
                mark_unrecorded(<Tensor>outputs[i], wanted)
            return 0
        args = plain_arguments(op, values) if op.keeps_plain or n_has_numbers(flat) else None
        record(&op.c, <int>n, inputs, needs, n_outputs, results_p,
               NULL if op.differentiable is None else <char*>op.differentiable,
               NULL if args is None else <PyObject*>args, written is not None,
               NULL if original is None else <PyObject*>original)
        for i in range(n_outputs):
            if (<Tensor>outputs[i]).node is NULL:
                mark_unrecorded(<Tensor>outputs[i], wanted)
    finally:
        if needs is not small_needs:
            PyMem_Free(needs)
            PyMem_Free(inputs)
            PyMem_Free(results_p)
    return 0


# --- A call -----------------------------------------------------------------------------------------------------------

cdef object compute(Operator op, list values):
    """The general forward: any operator, any arguments."""
    cdef Layout* layout
    cdef list flat
    if op.view is not NULL and isinstance(values[0], Tensor):
        layout = op.view((<Tensor>values[0]).layout, values)
        if layout is not NULL:
            return view_of(op, <Tensor>values[0], values, layout)
    flat = gather_inputs(op, values)
    cdef int dtype = computing_dtype(op, flat, values)
    cdef list outputs
    result = call_forward(op, flat, values, dtype)
    if isinstance(result, (tuple, list)):
        outputs = [wrap_result(op, r, flat) for r in result]
    else:
        outputs = [wrap_result(op, result, flat)]
    finish(op, flat, values, outputs, None, None)
    if not isinstance(result, (tuple, list)):
        return outputs[0]
    return op.result_class(*outputs) if op.result_class is not None else tuple(outputs)


cdef Tensor view_of(Operator op, Tensor source, list values, Layout* layout):
    """source's memory under a layout, which is STOLEN, recorded."""
    cdef Tensor out
    buffer_retain(source.buffer)
    out = tensor_new(source.buffer, layout)
    finish(op, [source], values, [out], None, None)
    return out


# --- A call in place --------------------------------------------------------------------------------------------------

cdef Tensor original_of(Tensor target):
    """A constant with target's present value."""
    cdef Tensor copy = tensor_empty(layout_fresh(target.layout, target.layout.dtype))
    copy_into(copy.buffer.data, copy.layout, target.buffer.data, target.layout)
    return copy


cdef Tensor prepare_write(Operator op, Tensor target, list flat):
    """Refuse what must be refused; a copy of target's old value if a formula will need it, else None."""
    cdef char needs[64]
    cdef int n = <int>min(len(flat), 64)
    cdef bint recording = find_needs(flat[:64], needs)
    check_writable(op.name, target, recording)
    if recording and not thread_mode().grad_disabled and needs_original(&op.c, n, needs):
        return original_of(target)
    return None


cdef int spread_history(Tensor target) except -1:
    """A recorded write gave target a new history: its base, if it is a view, and all other views must follow."""
    if target.base is not NULL:
        rebase_history(target)
    else:
        target.history += 1
    return 0


cdef object written(Operator op, Tensor target, list flat, list values, Tensor original):
    """What follows a write into target: version, record, and the new history of its base and its views."""
    cdef PyObject* before = target.node
    target.buffer.version += 1
    finish(op, flat, values, [target], target, original)
    if target.node is not before:
        spread_history(target)
    return target


cdef int write_array(object target, object values) except -1:
    """target[...] = values with a cast, without warnings about NaN to integer."""
    if target.dtype == values.dtype:
        target[...] = values
    else:
        with np.errstate(all="ignore"):
            np.copyto(target, values, casting="unsafe")
    return 0


cdef object apply_inplace(Operator op, Tensor target, list values):
    cdef list flat = gather_inputs(op, values)
    cdef Tensor original
    cdef int dtype
    original = prepare_write(op, target, flat)
    dtype = computing_dtype(op, flat, values)
    result = np.asarray(call_forward(op, flat, values, dtype))
    if category(dtype_code_of(result.dtype)) > category(target.layout.dtype):
        raise RuntimeError(_errors.inplace_dtype(op.name, dtype_object(dtype_code_of(result.dtype)), target.dtype))
    own = layout_shape_tuple(target.layout)
    if result.shape != own:
        raise RuntimeError(_errors.inplace_shape(op.name, own, result.shape))
    write_array(tensor_array(target, target), result)
    return written(op, target, flat, values, original)


# --- Results that were written by other means -------------------------------------------------------------------------

def write_through(Operator op not None, Tensor target not None, values, array):
    """Write `array` into target as the result of op(*values), recorded as an in-place application.

    For operators whose declared forward cannot write, such as setting items.
    """
    cdef list given = list(values)
    cdef list flat = gather_inputs(op, given)
    cdef Tensor original = prepare_write(op, target, flat)
    np.copyto(tensor_array(target, target), array, casting="unsafe")
    return written(op, target, flat, given, original)


def replace_history(Operator op not None, Tensor target not None, values):
    """Record target as the result of op(*values) without computing: its memory already holds the result."""
    cdef list given = list(values)
    cdef list flat = gather_inputs(op, given)
    finish(op, flat, given, [target], target, None)
    return target


operator_paths().compute = compute
operator_paths().inplace = apply_inplace
