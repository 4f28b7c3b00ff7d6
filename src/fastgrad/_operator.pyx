"""Floor 2: the Operator class: binding, computing, recording. The contract is in `_operator.pxd`."""
cimport numpy as cnp
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset
from numpy cimport npy_intp

import numpy as np

from . import _dtypes, _errors

from ._kernels cimport NOGIL_NUMEL, Loop, copy_into, elementwise, fused_is_identity, fused_loop, fused_operands, numpy_loop
from ._layout cimport (
    BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, N_DTYPES, Layout, dtype_itemsize, layout_contiguous, layout_fresh,
    layout_release, layout_retain, layout_same_shape, layout_scalar, layout_shape_tuple, layout_span, layout_strided,
)
from ._node cimport (
    MAX_INPUTS, OPERAND_G, OPERAND_RESULT, REDUCES_MEAN, REDUCES_SUM, Edge, FusedVjp, Node, OpDef, Saved, node_class,
    node_edges, node_outputs, node_saved,
)
from ._record cimport (
    SAVE_OUTPUT_BIT, check_writable, mark_view, needs_original, rebase_history, record, requires_grad, saved_tensor,
    thread_mode,
)
from ._storage cimport buffer_retain
from ._tensor cimport (
    FROM_CONSTANTS, FROM_INTEGERS, FROM_NO_GRAD, N_SLOTS, SLOT_ADD, SLOT_EQ, SLOT_NE, SLOT_POW, TENSOR_INFERENCE,
    SlotTable, Tensor, can_require_grad, dtype_code_of, dtype_descr, dtype_object, tensor_array, tensor_empty,
    tensor_from_array, tensor_new, tensor_slots,
)
from ._views cimport select_layout, view_function

cnp.import_array()

# Kinds of formula parameters (Formula.sources).
cdef enum:
    FORMULA_G = 0          # the cotangent
    FORMULA_RESULT = 1     # an output: all of them as a tuple where there are several
    FORMULA_TENSOR = 2     # a tensor argument, by its number
    FORMULA_PLAIN = 3      # a plain argument, by its position
    FORMULA_SHAPE = 4      # the shape of the tensor argument whose formula it is
    FORMULA_OUTPUT = 5     # one output of several, by its number

cdef Py_ssize_t* itemsizes = dtype_itemsize()
cdef bytes promote_table = bytes(_dtypes.PROMOTE)
cdef bytes combine_table = bytes(_dtypes.COMBINE)
cdef object REQUIRED = object()
cdef type ndarray_type = np.ndarray        # here, since a look-up in NumPy's module costs more than the test
cdef type generic_type = np.generic
cdef dict ALIASED_KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "axes": "dims"}   # NumPy's words for the same
# PyTorch gives inf and NaN without a warning, and so do we. np.errstate costs as much as a small operator (700 ns);
# what it does is set this context variable, which NumPy keeps to itself: so use it where it is, and errstate otherwise.
try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj
    error_state = _extobj_contextvar
    quiet_state = _make_extobj(all="ignore")
except (ImportError, TypeError):
    error_state = quiet_state = None
ADOPT_ABOVE = 1024     # bytes: smaller results are copied into the pool, which is cheaper than keeping an ndarray


cdef Tensor empty_tensor(int dtype, int ndim, const Py_ssize_t* shape):
    return tensor_empty(layout_contiguous(dtype, ndim, shape))


# --- Dtypes ----------------------------------------------------------------------------------------------------------

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


# --- The operator ----------------------------------------------------------------------------------------------------

cdef class Formula:
    pass


cdef class Operator:
    """A declared operator: callable, and a method when found on Tensor.

    Made by :func:`fastgrad.ops.operator` only.
    """

    def __init__(self, str name, tuple parameters, tuple defaults, int n_positional, int varargs,
                 tuple tensor_positions, bint is_sequence, forward, dict vjp, str node_name, int dtype_rule,
                 bint is_view, outputs, differentiable):
        memset(&self.c, 0, sizeof(self.c))
        if len(tensor_positions) > MAX_INPUTS or (outputs and len(outputs) > 15):
            raise ValueError(f"{name}: too many tensor arguments or outputs")
        self.name = name
        self.parameters = parameters
        self.defaults = defaults
        self.n_positional = n_positional
        self.varargs = varargs
        self.tensor_positions = tensor_positions
        self.tensor_names = tuple([parameters[p] for p in tensor_positions])
        self.forward = forward
        self.dtype_rule = dtype_rule
        self.differentiable = None if differentiable is None else bytes(differentiable)
        self.multi_view = False
        self.result_class = None
        self.output_names = tuple(outputs) if outputs else ()
        self.view = view_function(name) if is_view else NULL
        self.c.operator = <PyObject*>self
        Py_INCREF(self)          # for ever: nodes point here without owning
        cls = node_class(node_name)      # kept for ever by `_node`
        self.c.node_type = <PyTypeObject*>cls
        self.c.n_inputs = len(tensor_positions)
        self.c.n_outputs = len(outputs) if outputs else 1
        self.c.is_sequence = is_sequence
        self.c.is_view = is_view
        self.formulas = [self.make_formula(i, vjp.get(n)) for i, n in enumerate(self.tensor_names)]
        self.setup_fused()
        # A Python forward may say whose loops it stands for, where it adds no more than checks of unusual dtypes.
        ufunc = getattr(forward, "ufunc", forward)
        if len(self.parameters) == self.c.n_inputs <= 2 and not is_sequence:
            self.setup_loops(ufunc if isinstance(ufunc, np.ufunc) else None)

    cdef Formula make_formula(self, int argument, function):
        """Resolve the formula's parameter names; what they name is what will be saved."""
        cdef Formula formula
        cdef uint32_t saves = 0
        if function is None:
            return None
        code = function.__code__
        sources = []
        for parameter in code.co_varnames[:code.co_argcount]:
            own = self.tensor_names[argument]
            if parameter == "g":
                sources.append(FORMULA_G * 256)
            elif parameter == "result":
                sources.append(FORMULA_RESULT * 256)
                saves |= ((<uint32_t>1 << self.c.n_outputs) - 1) << SAVE_OUTPUT_BIT
            elif parameter in self.output_names:
                index = self.output_names.index(parameter)
                sources.append(FORMULA_OUTPUT * 256 + index)
                saves |= <uint32_t>1 << (SAVE_OUTPUT_BIT + <int>index)
            elif parameter == f"{own}_shape":
                sources.append(FORMULA_SHAPE * 256 + argument)
            elif parameter in self.tensor_names:
                index = self.tensor_names.index(parameter)
                sources.append(FORMULA_TENSOR * 256 + index)
                saves |= <uint32_t>1 << index
            elif parameter in self.parameters:
                sources.append(FORMULA_PLAIN * 256 + self.parameters.index(parameter))
                self.keeps_plain = True
            else:
                raise ValueError(f"{self.name}: the formula for '{own}' names '{parameter}', which is no argument; "
                                 f"known are g, result, {own}_shape, "
                                 f"{', '.join(self.output_names + self.parameters)}")
        formula = Formula()
        formula.function = function
        formula.sources = tuple(sources)
        self.c.has_vjp[argument] = True
        self.c.saves[argument] = saves
        return formula

    cdef void setup_fused(self):
        cdef FusedVjp* fused
        cdef int i, k, dtype
        self.c.has_fused_vjp = 0 < self.c.n_inputs <= 3 and not self.c.is_sequence and self.c.n_outputs == 1
        for i in range(min(self.c.n_inputs, 3)):
            operands = fused_operands(self.name, self.tensor_names[i])
            if operands is None:
                if self.formulas[i] is not None:
                    self.c.has_fused_vjp = 0
                continue
            fused = &self.c.vjp[i]
            fused.n_operands = len(operands)
            fused.identity = fused_is_identity(self.name, self.tensor_names[i])
            for k in range(fused.n_operands):
                fused.operands[k] = (OPERAND_G if operands[k] == "g" else OPERAND_RESULT if operands[k] == "result"
                                     else self.tensor_names.index(operands[k]))
            for dtype in (FLOAT32, FLOAT64):
                fused.assign[dtype] = fused_loop(self.name, self.tensor_names[i], dtype, False)
                fused.add[dtype] = fused_loop(self.name, self.tensor_names[i], dtype, True)

    cdef void setup_loops(self, ufunc):
        """NumPy's loops, and over them our fused ones, for running on tensors without making ndarrays."""
        cdef int dtype
        cdef Loop loop
        if ufunc is not None and (ufunc.nout != 1 or ufunc.nin != self.c.n_inputs):
            ufunc = None
        self.c.compares = self.dtype_rule == COMPARE
        for dtype in range(<int>N_DTYPES):
            if self.dtype_rule == FLOAT and dtype < FLOAT16:
                continue
            loop = fused_loop(self.name, "forward", dtype, False)
            if loop.function is NULL and ufunc is not None:
                loop = numpy_loop(ufunc, ufunc.nin, dtype, BOOL if self.c.compares else dtype)
            self.c.forward[dtype] = loop
            if loop.function is not NULL:
                self.c.elementwise = 1

    def limit_loops(self, codes):
        """Keep the direct loops for these dtype codes only: the others mean something else here than in NumPy."""
        for dtype in range(<int>N_DTYPES):
            if dtype not in codes:
                self.c.forward[<int>dtype].function = NULL

    def set_reduction(self, ufunc, bint mean):
        """Called with a tensor alone, the operator is `ufunc.reduce` over everything (divided by the count: mean)."""
        cdef int dtype
        self.c.reduces = REDUCES_MEAN if mean else REDUCES_SUM
        self.plain_defaults = tuple([None if d is REQUIRED else d for d in self.defaults])
        for dtype in (FLOAT32, FLOAT64):
            self.c.forward[dtype] = numpy_loop(ufunc, 2, dtype, dtype)

    def set_outputs(self, result_class, bint multi_view):
        self.result_class = result_class
        self.multi_view = multi_view

    # --- calling ---

    def __call__(self, *args, **kwargs):
        cdef object fast
        if not kwargs and self.c.elementwise:
            if self.c.n_inputs == 2 and len(args) == 2:
                return apply_binary(self, args[0], args[1])
            if self.c.n_inputs == 1 and len(args) == 1 and isinstance(args[0], Tensor):
                fast = fast_unary(self, <Tensor>args[0])
                if fast is not None:
                    return fast
        elif self.c.reduces and not kwargs and len(args) == 1 and isinstance(args[0], Tensor):
            fast = fast_reduce(self, <Tensor>args[0])
            if fast is not None:
                return fast
        return compute(self, bind(self, args, kwargs), None)

    def inplace(self, *args, **kwargs):
        """The in-place form: writes the result into the first tensor argument and returns it."""
        cdef list values = bind(self, args, kwargs)
        target = values[<int>self.tensor_positions[0]]
        if not isinstance(target, Tensor):
            raise TypeError(f"{self.name}_(): argument '{self.tensor_names[0]}' must be Tensor, not "
                            f"{type(target).__name__}")
        return apply_inplace(self, <Tensor>target, values)

    def __get__(self, instance, owner):
        if instance is None:
            return self
        return bound_method(self, instance)

    def __repr__(self):
        return f"<operator {self.name}>"

    def __reduce__(self):
        return (find_operator, (self.name,))

    def saves(self, *names):
        """What a call saves when the named tensor arguments require grad: names of arguments, and 'result'.

        Without names: when all do.
        """
        cdef uint32_t wanted = 0
        cdef int i
        for i, name in enumerate(self.tensor_names):
            if not names or name in names:
                wanted |= self.c.saves[i]
        found = [n for i, n in enumerate(self.tensor_names) if (wanted >> <int>i) & 1]
        if self.output_names:
            found += [n for i, n in enumerate(self.output_names) if (wanted >> (SAVE_OUTPUT_BIT + <int>i)) & 1]
        elif wanted >> SAVE_OUTPUT_BIT:
            found.append("result")
        return tuple(found)

    @property
    def __signature__(self):
        return self.spec.signature()

    @property
    def differentiable_arguments(self):
        """The tensor arguments that have a derivative."""
        return tuple([n for n, f in zip(self.tensor_names, self.formulas) if f is not None])


cdef object bound_method = None
cdef dict registry = {}


def find_operator(name):
    """The operator of that name."""
    return registry[name]


def register(Operator op not None, method_type):
    """Make an operator known by its name, and to the number protocol where it has a sign."""
    global bound_method, pow_tensor, select_operator
    bound_method = method_type
    registry[op.name] = op
    if op.name == "_pow_tensor":
        pow_tensor = op
    elif op.name == "_select":
        select_operator = op
    slot = SLOT_NAMES.get(op.name)
    if slot is not None:
        slot_ops[<int>slot] = <PyObject*>op
        slot_defs[<int>slot] = &op.c if op.c.elementwise else NULL


# --- Binding arguments -----------------------------------------------------------------------------------------------

cdef list bind(Operator op, tuple args, dict kwargs):
    """Argument values in the order of op.parameters. Raises TypeError as a Python function would."""
    cdef Py_ssize_t n = len(args)
    cdef list values = list(op.defaults)
    cdef Py_ssize_t i
    if op.varargs >= 0 and n > op.varargs:
        rest = args[op.varargs:]
        if len(rest) == 1 and (isinstance(rest[0], (tuple, list)) or rest[0] is None):
            rest = rest[0]
        args = args[:op.varargs] + (rest if rest is None else tuple(rest),)
        n = len(args)
    if n > op.n_positional:
        raise TypeError(f"{op.name}() takes {op.n_positional} positional arguments but {n} were given")
    for i in range(n):
        values[i] = args[i]
    if kwargs:
        for key, value in kwargs.items():
            name = key if key in op.parameters else ALIASED_KEYWORDS.get(key, key)
            if name not in op.parameters:
                raise TypeError(f"{op.name}() got an unexpected keyword argument '{key}'")
            i = op.parameters.index(name)
            if i < n:
                raise TypeError(f"{op.name}() got multiple values for argument '{name}'")
            values[i] = value
    for i in range(len(values)):
        if values[i] is REQUIRED:
            raise TypeError(f"{op.name}() missing required argument '{op.parameters[i]}'")
    return values


def required():
    """The marker of a parameter without default, for ops/_declare.py."""
    return REQUIRED


cdef object operand(Operator op, str name, object value):
    """A tensor argument as Tensor; a number or None stays what it is."""
    if isinstance(value, Tensor) or value is None or is_number(value):
        return value
    if isinstance(value, ndarray_type):
        return tensor_from_array(value, False)
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
        if value is None and op.defaults[position] is REQUIRED:
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


# --- The general path: the declared forward on ndarrays --------------------------------------------------------------

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


cdef Tensor wrap_view(Tensor source, object array):
    """A tensor that sees source's buffer as `array` (a NumPy view of it) does."""
    cdef cnp.ndarray a = array
    cdef Layout* layout = layout_strided(
        dtype_code_of(a.dtype), cnp.PyArray_NDIM(a), <Py_ssize_t*>cnp.PyArray_DIMS(a),
        <Py_ssize_t*>cnp.PyArray_STRIDES(a), cnp.PyArray_BYTES(a) - source.buffer.data)
    buffer_retain(source.buffer)
    return tensor_new(source.buffer, layout)


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


cdef Py_ssize_t span_of(Tensor t) noexcept:
    """Bytes from the buffer's start to the end of what t sees (a borrowed buffer's nbytes do not count gaps)."""
    cdef Py_ssize_t low = 0, high = 0
    layout_span(t.layout, &low, &high)
    return high if high > <Py_ssize_t>t.buffer.nbytes else <Py_ssize_t>t.buffer.nbytes


cdef Tensor wrap_result(Operator op, object array, list flat):
    """A tensor over what the forward returned: taken over if it is the forward's own, else copied."""
    cdef cnp.ndarray a
    if not isinstance(array, ndarray_type):
        array = np.asarray(array)
    a = array
    if op.c.is_view and flat[0] is not None and (cnp.PyArray_SIZE(a) == 0 or shares_memory(a, flat[:1])):
        return wrap_view(<Tensor>flat[0], a)
    if cnp.PyArray_NBYTES(a) <= ADOPT_ABOVE or not cnp.PyArray_ISWRITEABLE(a) or shares_memory(a, flat):
        return copied(a)
    if not cnp.PyArray_IS_C_CONTIGUOUS(a) and not cnp.PyArray_IS_F_CONTIGUOUS(a):
        a = np.ascontiguousarray(a)
    return tensor_from_array(a, True)


cdef Tensor copied(cnp.ndarray a):
    cdef Tensor t = empty_tensor(dtype_code_of(a.dtype), cnp.PyArray_NDIM(a), <Py_ssize_t*>cnp.PyArray_DIMS(a))
    if cnp.PyArray_IS_C_CONTIGUOUS(a):
        memcpy(t.buffer.data, cnp.PyArray_BYTES(a), cnp.PyArray_NBYTES(a))
    else:
        np.copyto(tensor_array(t, t), a)
    return t


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


cdef object finish(Operator op, list flat, list values, list outputs, Tensor written, Tensor original):
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
            return None
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
    return None


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


cdef inline void mark_unrecorded(Tensor t, bint wanted) noexcept:
    if not can_require_grad(t.layout.dtype):
        t.origin = FROM_INTEGERS
    elif wanted and thread_mode().grad_disabled:
        t.origin = FROM_NO_GRAD
    else:
        t.origin = FROM_CONSTANTS
    if thread_mode().inference:
        t.flags |= TENSOR_INFERENCE


cdef object compute(Operator op, list values, object unused):
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


cdef int write_array(object target, object values) except -1:
    """target[...] = values with a cast, without warnings about NaN to integer."""
    if target.dtype == values.dtype:
        target[...] = values
    else:
        with np.errstate(all="ignore"):
            np.copyto(target, values, casting="unsafe")
    return 0


cdef Tensor view_of(Operator op, Tensor source, list values, Layout* layout):
    """source's memory under a layout, which is STOLEN, recorded."""
    cdef Tensor out
    buffer_retain(source.buffer)
    out = tensor_new(source.buffer, layout)
    finish(op, [source], values, [out], None, None)
    return out


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


cdef Tensor prepare_write(Operator op, Tensor target, list flat):
    """Refuse what must be refused; a copy of target's old value if a formula will need it, else None."""
    cdef char needs[64]
    cdef int n = <int>min(len(flat), 64)
    cdef bint recording = find_needs(flat[:64], needs)
    check_writable(op.name, target, recording)
    if recording and not thread_mode().grad_disabled and needs_original(&op.c, n, needs):
        return original_of(target)
    return None


cdef Tensor original_of(Tensor target):
    """A constant with target's present value."""
    cdef Tensor copy = tensor_empty(layout_fresh(target.layout, target.layout.dtype))
    copy_into(copy.buffer.data, copy.layout, target.buffer.data, target.layout)
    return copy


cdef object written(Operator op, Tensor target, list flat, list values, Tensor original):
    """What follows a write into target: version, record, and the new history of its base and its views."""
    cdef PyObject* before = target.node
    target.buffer.version += 1
    finish(op, flat, values, [target], target, original)
    if target.node is not before:
        spread_history(target)
    return target


cdef int spread_history(Tensor target) except -1:
    """A recorded write gave target a new history: its base, if it is a view, and all other views must follow."""
    if target.base is not NULL:
        rebase_history(target)
    else:
        target.history += 1
    return 0


# --- The fast path: elementwise operators on tensors of one dtype, no ndarray made -----------------------------------

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


cdef inline void scale_scalar(Tensor t, double divisor) noexcept:
    if t.layout.dtype == FLOAT64:
        (<double*>t.buffer.data)[0] /= divisor
    else:
        (<float*>t.buffer.data)[0] = (<float*>t.buffer.data)[0] / <float>divisor


cdef bint spreads(Node* node) noexcept:
    return (node.op.reduces != 0 and node.args is <PyObject*>(<Operator>node.op.operator).plain_defaults
            and node_edges(node)[0].node is not NULL)


cdef Tensor spread(Node* node, Tensor g):
    cdef Layout* target = node_outputs(node_edges(node)[0].node)[node_edges(node)[0].output_nr].layout
    cdef Py_ssize_t strides[64]
    cdef Layout* layout
    cdef Tensor scaled = g
    cdef int i
    if node.op.reduces == REDUCES_MEAN:
        scaled = tensor_empty(layout_scalar(g.layout.dtype))
        memcpy(scaled.buffer.data, g.buffer.data + g.layout.offset, itemsizes[g.layout.dtype])
        scale_scalar(scaled, <double>target.numel)
    for i in range(target.ndim):
        strides[i] = 0
    layout = layout_strided(g.layout.dtype, target.ndim, target.dims, strides, scaled.layout.offset)
    buffer_retain(scaled.buffer)
    return tensor_new(scaled.buffer, layout)


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


# --- The number protocol ---------------------------------------------------------------------------------------------

cdef Operator pow_tensor = None           # pow with a tensor exponent, whose node PyTorch names differently
cdef OpDef* slot_defs[N_SLOTS]            # of those that are elementwise
cdef PyObject* slot_ops[N_SLOTS]          # BORROWED Operators, which live for ever; NULL until declared
SLOT_NAMES = {
    "add": SLOT_ADD, "sub": 1, "mul": 2, "div": 3, "pow": 4, "matmul": 5, "floor_divide": 6, "remainder": 7,
    "bitwise_and": 8, "bitwise_or": 9, "bitwise_xor": 10, "bitwise_left_shift": 11, "bitwise_right_shift": 12,
    "lt": 13, "le": 14, "eq": SLOT_EQ, "ne": SLOT_NE, "gt": 17, "ge": 18, "neg": 19, "positive": 20, "abs": 21,
    "bitwise_not": 22,
}


cdef object slot_operator(int slot):
    if slot_ops[slot] is NULL:
        name = [n for n, s in SLOT_NAMES.items() if s == slot][0]
        raise NotImplementedError(f"fastgrad has no operator '{name}' yet")
    return <object>slot_ops[slot]


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
    return compute(op, [a, b], None)


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
    return compute(op, bind(op, (a, b), None), None)


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
    return compute(op, [t], None) if result is None else result


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


setup()


# --- Writing in place for operators that are not elementwise ---------------------------------------------------------

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


# --- Derivative formulas ---------------------------------------------------------------------------------------------

cdef bint has_formula(Operator op, int argument):
    return op.formulas[argument] is not None


cdef object formula_tensor(Operator op, Node* node, int argument, bint with_history):
    """What a formula's parameter that names a tensor argument gets."""
    cdef Saved* saved = node_saved(node)
    cdef int k
    if op.c.is_sequence and argument == op.c.n_inputs - 1:
        return [saved_tensor(node, k, with_history) for k in range(node.n_saved) if saved[k].source >= argument]
    for k in range(node.n_saved):
        if saved[k].source == argument:
            return saved_tensor(node, k, with_history)
    if node.args is NULL:
        return None
    plain = <object>node.args
    if isinstance(plain, tuple):
        return plain[<int>op.tensor_positions[argument]]
    return plain             # the number operand of an elementwise operator


cdef object formula_result(Operator op, Node* node, bint with_history):
    cdef Saved* saved = node_saved(node)
    cdef list results = []
    cdef int k
    for k in range(node.n_saved):
        if saved[k].source < 0:
            results.append(saved_tensor(node, k, with_history))
    return results[0] if op.c.n_outputs == 1 else tuple(results)


cdef object formula_output(Node* node, int output, bint with_history):
    cdef Saved* saved = node_saved(node)
    cdef int k
    for k in range(node.n_saved):
        if saved[k].source == -1 - output:
            return saved_tensor(node, k, with_history)


cdef object run_formula(Operator op, Node* node, int argument, object g, bint with_history):
    cdef Formula formula = <Formula>op.formulas[argument]
    cdef list arguments = []
    cdef int source, kind
    for source in formula.sources:
        kind = source >> 8
        if kind == FORMULA_G:
            arguments.append(g)
        elif kind == FORMULA_RESULT:
            arguments.append(formula_result(op, node, with_history))
        elif kind == FORMULA_OUTPUT:
            arguments.append(formula_output(node, source & 255, with_history))
        elif kind == FORMULA_TENSOR:
            arguments.append(formula_tensor(op, node, source & 255, with_history))
        elif kind == FORMULA_PLAIN:
            arguments.append((<object>node.args)[source & 255])
        else:
            arguments.append(edge_shape(node, source & 255))
    return formula.function(*arguments)


cdef object edge_shape(Node* node, int argument):
    """The shape of a tensor argument that requires grad: its edge's target knows it; of a sequence, a list."""
    cdef Edge* edges = node_edges(node)
    cdef int i
    if node.op.is_sequence and argument == node.op.n_inputs - 1:
        return [None if edges[i].node is NULL
                else layout_shape_tuple(node_outputs(edges[i].node)[edges[i].output_nr].layout)
                for i in range(argument, <int>node.n_inputs)]
    return layout_shape_tuple(node_outputs(edges[argument].node)[edges[argument].output_nr].layout)


def operators():
    """All operators, in order of declaration."""
    return tuple(registry.values())
