"""Floor 2: the Operator: what a declaration says, resolved once, and a call's arguments put in its order.

An Operator is made by `operator()` in ops/_declare.py. It knows the names and defaults of its arguments, which of them
are tensors, what each derivative formula reads (and so what a call saves), and which loops, fused or NumPy's, can run
it without an ndarray. Its neighbours: `_formula` below the backward pass runs its derivatives; `_compute` and `_fast`,
both above, run its forward and are reached through `paths`. The contract is in `_operator.pxd`.
"""
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint32_t
from libc.string cimport memset

import numpy as np

from ._kernels cimport Loop, fused_is_identity, fused_loop, fused_operands, numpy_loop
from ._layout cimport BOOL, FLOAT16, FLOAT32, FLOAT64, N_DTYPES
from ._node cimport (
    MAX_INPUTS, OPERAND_G, OPERAND_RESULT, REDUCES_MEAN, REDUCES_SUM, FusedVjp, node_class,
)
from ._record cimport SAVE_OUTPUT_BIT
from ._tensor cimport Tensor
from ._views cimport view_function

cdef object REQUIRED = object()
cdef dict ALIASED_KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "axes": "dims"}   # NumPy's words for the same
cdef PathTable paths                # the floors above; see the contract
cdef dict registry = {}
cdef object bound_method = None     # what an operator found on a Tensor becomes: ops/_declare.py knows


cdef PathTable* operator_paths() noexcept:
    return &paths


cdef bint is_required(object default):
    return default is REQUIRED


# --- The operator -----------------------------------------------------------------------------------------------------

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
        self.node_name = node_name       # its class is made when the first node is
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

    def make_node_class(self):
        """The operator's subclass of Node; kept for ever by `_node`. Making all at import would cost 4 ms."""
        cls = node_class(self.node_name)
        self.c.node_type = <PyTypeObject*>cls

    # --- calling ---

    def __call__(self, *args, **kwargs):
        cdef object result = None
        if not kwargs and (self.c.elementwise or self.c.reduces):
            result = paths.fast(self, args)
        return paths.compute(self, bind(self, args, kwargs)) if result is None else result

    def inplace(self, *args, **kwargs):
        """The in-place form: writes the result into the first tensor argument and returns it."""
        cdef list values = bind(self, args, kwargs)
        target = values[<int>self.tensor_positions[0]]
        if not isinstance(target, Tensor):
            raise TypeError(f"{self.name}_(): argument '{self.tensor_names[0]}' must be Tensor, not "
                            f"{type(target).__name__}")
        return paths.inplace(self, <Tensor>target, values)

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


# --- The operators by name --------------------------------------------------------------------------------------------

cdef int register_operator(Operator op, object method_type) except -1:
    global bound_method
    bound_method = method_type
    registry[op.name] = op
    return 0


def find_operator(name):
    """The operator of that name."""
    return registry[name]


def operators():
    """All operators, in order of declaration."""
    return tuple(registry.values())


# --- Binding arguments ------------------------------------------------------------------------------------------------

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
