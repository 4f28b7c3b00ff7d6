"""Floor 2: the backward pass.

Consumers are made after their inputs, so visiting nodes by descending
sequence number visits every node after all its consumers: the ready queue is
a heap on that number, and a chain never touches the heap at all.

For each node: its cotangent is complete; hooks see it; the formulas turn it
into cotangents of the inputs, which are added into the slots of the nodes
that made them; then, unless the graph is retained, what the node saved is
released. Leaves come last, so that no `.grad` changes unless every formula
has succeeded.
"""
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport uint8_t, uint32_t

from . import _errors

from ._kernels cimport MAX_OPERANDS, Loop, add_into, elementwise
from ._layout cimport (
    FLOAT32, FLOAT64, Layout, dtype_itemsize, layout_fresh, layout_overlaps_itself, layout_release, layout_retain,
    layout_same_shape, layout_scalar, layout_shape_tuple,
)
from ._node cimport (
    NODE_ACCUMULATES, NODE_PACKED, NODE_RAN, OPERAND_G, OPERAND_RESULT, SAVED_FREED, Edge, FusedVjp, Node, OutputSlot,
    Saved, node_edges, node_free_saved, node_object, node_outputs, node_release, node_saved, object_node,
)
from ._operator cimport Operator, has_formula, run_formula, spread, spreads
from ._record cimport Attachments, FgThreadMode, saved_tensor, thread_mode
from ._storage cimport ADOPTED, POOL_LARGE, POOL_SMALL, Buffer, buffer_release, buffer_retain, buffer_saved_last
from ._tensor cimport Tensor, dtype_object, tensor_detached, tensor_edge, tensor_empty, tensor_new, tensor_set_gradient

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

cdef enum:
    SIGNAL_INTERVAL = 4096      # nodes between two looks at Ctrl-C: about a millisecond
    NEEDED_RUNS = 1             # bits of a NodeMap's values: the node's formulas lead to a captured node,
    NEEDED_CAPTURED = 2         # and the node itself is captured

cdef uint32_t pass_counter = 0
cdef bint strict = False
cdef Py_ssize_t* itemsizes = dtype_itemsize()

# Operators the engine needs when cotangents have a history of their own, or meet in unusual shapes; told once by ops.
cdef object add_function = None
cdef object clone_function = None
cdef object cast_function = None
cdef object sum_to_function = None
cdef object zeros_function = None


def set_functions(add, clone, cast, sum_to, zeros):
    """Hand the engine the operators it composes with."""
    global add_function, clone_function, cast_function, sum_to_function, zeros_function
    add_function = add
    clone_function = clone
    cast_function = cast
    sum_to_function = sum_to
    zeros_function = zeros


def set_strict_mode(bint enabled):
    """Whether a second backward without retain_graph is refused even where nothing was saved; returns what it was."""
    global strict
    previous = strict
    strict = enabled
    return previous


# --- A set of nodes --------------------------------------------------------------------------------------------------

cdef inline size_t place_of(NodeMap* nodes, Node* node) noexcept:
    # Nodes are at least 64 bytes apart; the multiplier spreads what is left of the address.
    cdef size_t i = ((<size_t>node >> 4) * 0x9E3779B97F4A7C15u >> 20) & (nodes.capacity - 1)
    while nodes.keys[i] is not NULL and nodes.keys[i] is not node:
        i = (i + 1) & (nodes.capacity - 1)
    return i


cdef int map_reserve(NodeMap* nodes) except -1:
    """Room for one more."""
    cdef NodeMap larger
    cdef size_t i, j
    if nodes.keys is not NULL and 2 * (nodes.n + 1) <= nodes.capacity:
        return 0
    larger.capacity = 2 * nodes.capacity if nodes.capacity else 64
    larger.n = nodes.n
    larger.keys = <Node**>PyMem_RawCalloc(larger.capacity, sizeof(Node*))
    larger.values = <uint8_t*>PyMem_RawCalloc(larger.capacity, 1)
    if larger.keys is NULL or larger.values is NULL:
        PyMem_RawFree(larger.keys)
        PyMem_RawFree(larger.values)
        raise MemoryError("backward: cannot allocate the set of needed nodes")
    for i in range(nodes.capacity):
        if nodes.keys[i] is not NULL:
            j = place_of(&larger, nodes.keys[i])
            larger.keys[j] = nodes.keys[i]
            larger.values[j] = nodes.values[i]
    map_free(nodes)
    nodes[0] = larger
    return 0


cdef void map_free(NodeMap* nodes) noexcept:
    PyMem_RawFree(nodes.keys)
    PyMem_RawFree(nodes.values)
    nodes.keys = NULL
    nodes.values = NULL


cdef int map_put(NodeMap* nodes, Node* node, uint8_t value) except -1:
    cdef size_t i
    map_reserve(nodes)
    i = place_of(nodes, node)
    if nodes.keys[i] is NULL:
        nodes.keys[i] = node
        nodes.n += 1
    nodes.values[i] = value
    return 0


cdef inline int map_get(NodeMap* nodes, Node* node) noexcept:
    """The node's value, -1 if it has none."""
    cdef size_t i
    if nodes.n == 0:
        return -1
    i = place_of(nodes, node)
    return -1 if nodes.keys[i] is NULL else nodes.values[i]


# --- The ready queue -------------------------------------------------------------------------------------------------

cdef class Pass:
    def __dealloc__(self):
        PyMem_RawFree(self.heap)
        map_free(&self.needed)


cdef int push(Pass p, Node* node) except -1:
    cdef Node** heap
    cdef size_t i, parent
    if p.top is NULL:
        p.top = node               # then the heap is empty too
        return 0
    if node.sequence_nr > p.top.sequence_nr:
        node, p.top = p.top, node
    if p.heap_n == p.heap_capacity:
        heap = <Node**>PyMem_RawRealloc(p.heap, (2 * p.heap_capacity + 16) * sizeof(Node*))
        if heap is NULL:
            raise MemoryError("backward: cannot grow the ready queue")
        p.heap = heap
        p.heap_capacity = 2 * p.heap_capacity + 16
    heap = p.heap
    i = p.heap_n
    p.heap_n += 1
    while i > 0:
        parent = (i - 1) >> 1
        if heap[parent].sequence_nr >= node.sequence_nr:
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = node
    return 0


cdef Node* pop(Pass p) noexcept:
    """The ready node of the highest sequence number; NULL when there is none."""
    cdef Node* result = p.top
    cdef Node** heap = p.heap
    cdef Node* last
    cdef size_t i = 0, child
    if result is NULL:
        return NULL
    p.top = NULL
    if p.heap_n == 0:
        return result
    p.top = heap[0]
    p.heap_n -= 1
    last = heap[p.heap_n]
    while True:
        child = 2 * i + 1
        if child >= p.heap_n:
            break
        if child + 1 < p.heap_n and heap[child + 1].sequence_nr > heap[child].sequence_nr:
            child += 1
        if last.sequence_nr >= heap[child].sequence_nr:
            break
        heap[i] = heap[child]
        i = child
    if p.heap_n:
        heap[i] = last
    return result


# --- Cotangents: delivering and accumulating -------------------------------------------------------------------------

cdef inline bint owned_alone(Tensor t, Py_ssize_t references) noexcept:
    """Note [Donating buffers]: whether t's memory may be written over.

    Nobody can see it when: the tensor has only our own reference(s); its buffer only the tensor's (a saved record, a
    view, an ndarray made by numpy() would each hold one more); the memory is ours, not borrowed; it is contiguous from
    the start, so that every byte is covered; and no history refers to its value.
    """
    return (Py_REFCNT(<PyObject*>t) == references and t.buffer.refcount == 1 and t.layout.contiguous
            and t.layout.offset == 0 and t.node is NULL and not t.buffer.readonly
            and (t.buffer.kind == POOL_SMALL or t.buffer.kind == POOL_LARGE or t.buffer.kind == ADOPTED))


cdef inline bint is_needed(Pass p, Node* node) noexcept:
    """Whether a cotangent for this node is wanted."""
    return p.needed.keys is NULL or map_get(&p.needed, node) > 0


cdef inline bint must_run(Pass p, Node* node) noexcept:
    """Whether the node's formulas are: not for a captured node that leads to no other one."""
    return p.needed.keys is NULL or map_get(&p.needed, node) & NEEDED_RUNS


cdef int deliver(Pass p, Node* target, uint32_t output_nr, Tensor cotangent) except -1:
    """Add a cotangent (which fits: see `fit`) to what output output_nr of target has; the first one makes it ready."""
    cdef OutputSlot* slot = &node_outputs(target)[output_nr]
    if target.pass_id != p.id:
        if target.pass_id != 0 or (p.overflow is not None and <size_t>target in p.overflow):
            return deliver_aside(p, target, output_nr, cotangent)
        if target.flags & NODE_ACCUMULATES:
            target.link = p.leaves
            p.leaves = target
        else:
            push(p, target)
        target.pass_id = p.id
    if slot.cotangent is NULL:
        Py_INCREF(cotangent)          # OWNED by the slot
        slot.cotangent = <PyObject*>cotangent
        return 0
    return accumulate(p, slot, cotangent)


cdef int accumulate(Pass p, OutputSlot* slot, Tensor cotangent) except -1:
    cdef Tensor total = <Tensor>slot.cotangent
    # 2: the slot's reference and the variable's.
    if not p.create_graph and owned_alone(total, 2) and total.layout.dtype == cotangent.layout.dtype:
        add_into(total.buffer.data, total.layout, cotangent.buffer.data, cotangent.layout, False)
        return 0
    total = add_function(total, cotangent)
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
            push(p, target)
    row[output_nr] = cotangent if row[output_nr] is None else add_function(row[output_nr], cotangent)
    return 0


cdef Tensor fit(Node* node, int i, Tensor cotangent, Layout* expected):
    """Give a formula's result the dtype and shape of its input. The only place that undoes broadcasting."""
    if not layout_same_shape(cotangent.layout, expected):
        if not reducible(cotangent.layout, expected):
            raise RuntimeError(_errors.formula_shape(type(<object>node_object(node)).__name__, i,
                                                     layout_shape_tuple(cotangent.layout),
                                                     layout_shape_tuple(expected)))
        cotangent = sum_to_function(cotangent, layout_shape_tuple(expected))
    if cotangent.layout.dtype != expected.dtype:
        cotangent = cast_function(cotangent, dtype_object(expected.dtype))
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


# --- One node --------------------------------------------------------------------------------------------------------

cdef bint fused_applies(Node* node, Tensor g) noexcept:
    """Whether all that the fused loops read has g's dtype, float32 or float64, and lies in buffers."""
    cdef Saved* saved = node_saved(node)
    cdef int k, dtype = g.layout.dtype
    if not node.op.has_fused_vjp or (dtype != FLOAT32 and dtype != FLOAT64) or node.flags & NODE_PACKED:
        return False
    for k in range(node.n_saved):
        if saved[k].layout.dtype != dtype:
            return False
    return True


cdef int find_operand(Node* node, int operand, Tensor g, char* place, char** data, Layout** layout,
                      Buffer** buffer) except -1:
    """Where a fused formula's operand lies; 0 if it cannot be had here (the general path then explains or copes).

    buffer: the saved buffer it is in, BORROWED from the node, or NULL.
    """
    cdef Saved* saved = node_saved(node)
    cdef int k, source
    buffer[0] = NULL
    if operand == OPERAND_G:
        data[0] = g.buffer.data
        layout[0] = g.layout
        return 1
    source = -1 if operand == OPERAND_RESULT else operand
    for k in range(node.n_saved):
        if saved[k].source == source:
            if saved[k].buffer is NULL or saved[k].buffer.version != saved[k].version:
                saved_tensor(node, k, False)       # raises the precise error
            buffer[0] = saved[k].buffer
            data[0] = saved[k].buffer.data
            layout[0] = saved[k].layout
            return 1
    if operand == OPERAND_RESULT or node.args is NULL:
        return 0
    number = <object>node.args
    if isinstance(number, tuple):
        number = number[(<Operator>node.op.operator).tensor_positions[operand]]
    if not isinstance(number, (int, float)):
        return 0
    if g.layout.dtype == FLOAT64:
        (<double*>place)[0] = number
    else:
        (<float*>place)[0] = <float><double>number
    data[0] = place
    layout[0] = layout_scalar(g.layout.dtype)
    layout_release(layout[0])          # BORROWED from the table of scalars, which keeps it
    return 1


cdef bint reads_saved(Node* node, int k, const bint* waits) noexcept:
    """Whether a formula that has not run yet reads saved record k."""
    cdef int source = node_saved(node)[k].source
    cdef int i, j
    for i in range(<int>node.n_inputs):
        if waits[i]:
            for j in range(node.op.vjp[i].n_operands):
                if node.op.vjp[i].operands[j] == (source if source >= 0 else OPERAND_RESULT):
                    return True
    return False


cdef Tensor take_saved(Node* node, Tensor g, const bint* waits):
    """A saved buffer that only this node holds and no later formula reads, as the place for a result; None if none.

    It is freed by this, as it would be a moment later: the caller knows that the graph is not retained. See
    Note [Donating buffers]; a saved record takes the place of the tensor there.
    """
    cdef Saved* saved = node_saved(node)
    cdef Buffer* buffer
    cdef int k
    for k in range(node.n_saved):
        buffer = saved[k].buffer
        if (buffer is not NULL and buffer.refcount == 1 and not buffer.readonly and saved[k].layout.contiguous
                and saved[k].layout.offset == 0 and layout_same_shape(saved[k].layout, g.layout)
                and (buffer.kind == POOL_SMALL or buffer.kind == POOL_LARGE or buffer.kind == ADOPTED)
                and not reads_saved(node, k, waits)):
            saved[k].buffer = NULL
            saved[k].flags |= SAVED_FREED
            buffer.saved_count = 0
            buffer_saved_last(buffer)
            layout_retain(saved[k].layout)
            return tensor_new(buffer, saved[k].layout)     # the record's reference is handed on
    return None


cdef void run_held(Loop loop, int n, char** data, Layout** layouts, Buffer** buffers) noexcept:
    """`elementwise` over n operands and the output, with the operands' buffers held: a large loop lets other threads
    run, and one of them may free what this node saved."""
    cdef int k
    for k in range(n):
        if buffers[k] is not NULL:
            buffer_retain(buffers[k])
    elementwise(loop, n + 1, data, layouts)
    for k in range(n):
        if buffers[k] is not NULL:
            buffer_release(buffers[k])


cdef int fused_input(Pass p, Node* node, int i, Tensor g, Py_ssize_t g_references, const bint* waits,
                     bint last) except -1:
    """The cotangent of input i by its fused loop, delivered; 0 if the general path must do it.

    waits: the inputs whose formulas run after this. last: there are none, so g's memory may be donated to the result.
    """
    cdef FusedVjp* fused = &node.op.vjp[i]
    cdef Edge edge = node_edges(node)[i]
    cdef OutputSlot* slot = &node_outputs(edge.node)[edge.output_nr]
    cdef char* data[MAX_OPERANDS]
    cdef Layout* layouts[MAX_OPERANDS]
    cdef Buffer* buffers[MAX_OPERANDS]
    cdef char places[4][16]
    cdef int k, n = fused.n_operands
    cdef bint same = layout_same_shape(slot.layout, g.layout) and slot.layout.dtype == g.layout.dtype
    cdef Tensor out
    if fused.identity and same:
        deliver(p, edge.node, edge.output_nr, g)
        return 1
    for k in range(n):
        if not find_operand(node, fused.operands[k], g, places[k], &data[k], &layouts[k], &buffers[k]):
            return 0
    if same and edge.node.pass_id == p.id and slot.cotangent is not NULL:
        out = <Tensor>slot.cotangent
        if owned_alone(out, 2) and out is not g:
            data[n] = out.buffer.data
            layouts[n] = out.layout
            run_held(fused.add[g.layout.dtype], n, data, layouts, buffers)
            return 1
    if last and owned_alone(g, g_references):
        out = g
    else:
        out = None if p.retain_graph else take_saved(node, g, waits)
        if out is None:
            out = tensor_empty(layout_fresh(g.layout, g.layout.dtype))
    data[n] = out.buffer.data
    layouts[n] = out.layout
    run_held(fused.assign[g.layout.dtype], n, data, layouts, buffers)
    if not same:
        out = fit(node, i, out, slot.layout)
    deliver(p, edge.node, edge.output_nr, out)
    return 1


cdef bint accumulates_already(Pass p, Edge* edge) noexcept:
    return edge.node.pass_id == p.id and node_outputs(edge.node)[edge.output_nr].cotangent is not NULL


cdef int run_fused(Pass p, Node* node, Tensor g, Py_ssize_t g_references) except -1:
    """All inputs by fused loops, those that add into an existing cotangent first: the last may then take g's memory."""
    cdef Edge* edges = node_edges(node)
    cdef int i, left = 0, phase
    cdef bint waits[3]
    for i in range(<int>node.n_inputs):
        waits[i] = edges[i].node is not NULL and node.op.vjp[i].n_operands > 0 and is_needed(p, edges[i].node)
        left += waits[i]
    for phase in range(2):
        for i in range(<int>node.n_inputs):
            if waits[i] and (phase == 1 or accumulates_already(p, &edges[i])):
                waits[i] = False
                left -= 1
                if not fused_input(p, node, i, g, g_references, waits, left == 0):
                    run_argument(p, node, i, g)
    return 0


cdef int run_argument(Pass p, Node* node, int argument, object g) except -1:
    """One argument by its formula, in operators on tensors."""
    cdef Operator op = <Operator>node.op.operator
    cdef Edge* edges = node_edges(node)
    cdef int i
    cdef list results
    result = run_formula(op, node, argument, g, p.create_graph)
    if result is None:
        return 0
    results = list(result) if op.c.is_sequence and argument == op.c.n_inputs - 1 else [result]
    for i in range(len(results)):
        result = results[i]
        results[i] = None
        if result is None or edges[argument + i].node is NULL or not is_needed(p, edges[argument + i].node):
            continue
        if not isinstance(result, Tensor):
            raise TypeError(f"{op.name}: the derivative formula for '{op.tensor_names[argument]}' returned "
                            f"{type(result).__name__}, expected a Tensor or None")
        deliver(p, edges[argument + i].node, edges[argument + i].output_nr,
                fit(node, argument + i, <Tensor>result,
                    node_outputs(edges[argument + i].node)[edges[argument + i].output_nr].layout))
    return 0


cdef bint argument_wanted(Pass p, Node* node, Operator op, int argument) noexcept:
    cdef Edge* edges = node_edges(node)
    cdef int i, stop = argument + 1
    if op.c.is_sequence and argument == op.c.n_inputs - 1:
        stop = <int>node.n_inputs
    for i in range(argument, stop):
        if edges[i].node is not NULL and is_needed(p, edges[i].node):
            return True
    return False


cdef int run_general(Pass p, Node* node, object g) except -1:
    cdef Operator op = <Operator>node.op.operator
    cdef int argument
    for argument in range(op.c.n_inputs):
        if has_formula(op, argument) and argument_wanted(p, node, op, argument):
            run_argument(p, node, argument, g)
    return 0


cdef object complete(Node* node, list cotangents):
    """What formulas get as g: one tensor, or a tuple for the differentiable outputs with zeros where nothing came."""
    cdef Operator op = <Operator>node.op.operator
    cdef OutputSlot* outputs = node_outputs(node)
    cdef int k
    cdef list given = []
    for k in range(<int>node.n_outputs):
        if op.differentiable is not None and not op.differentiable[k]:
            continue
        if cotangents[k] is None:
            given.append(zeros_function(layout_shape_tuple(outputs[k].layout),
                                        dtype=dtype_object(outputs[k].layout.dtype)))
        else:
            given.append(cotangents[k])
    return given[0] if op.differentiable is not None and len(given) == 1 else tuple(given)


cdef int run_node(Pass p, Node* node) except -1:
    cdef OutputSlot* slot = &node.outputs.here
    cdef PyObject* held
    cdef Tensor g
    if node.n_outputs == 1 and node.pass_id == p.id and node.attachments is NULL and p.captures is None:
        # The usual case, without any Python object but the cotangent.
        node.pass_id = 0
        held = slot.cotangent
        slot.cotangent = NULL
        g = <Tensor>held
        Py_DECREF(g)                       # the slot's reference; the variable's is the only one of ours now
        if not must_run(p, node):
            return 0
        if strict and node.flags & NODE_RAN:
            raise RuntimeError(_errors.strict_second_backward(type(<object>node_object(node)).__name__))
        if not p.create_graph and fused_applies(node, g):
            run_fused(p, node, g, 1)
        elif not p.create_graph and spreads(node):
            if is_needed(p, node_edges(node)[0].node):
                deliver(p, node_edges(node)[0].node, node_edges(node)[0].output_nr, spread(node, g))
        else:
            run_general(p, node, g)
    else:
        if not run_attended(p, node):
            return 0
    if not p.retain_graph:
        node.flags |= NODE_RAN
        if node.n_saved:
            node_free_saved(node)
    return 0


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


cdef bint run_attended(Pass p, Node* node) except -1:
    """A node with several outputs, hooks, captures, or slots that another pass is using. Whether its formulas ran."""
    cdef list cotangents = take_cotangents(p, node)
    if node.attachments is not NULL:
        run_hooks(node, cotangents)
    if p.captures is not None:
        capture(p, node, cotangents)
    if not must_run(p, node):
        return False
    if strict and node.flags & NODE_RAN:
        raise RuntimeError(_errors.strict_second_backward(type(<object>node_object(node)).__name__))
    g = cotangents[0] if node.n_outputs == 1 else complete(node, cotangents)
    cotangents = None
    if node.n_outputs == 1 and not p.create_graph and fused_applies(node, <Tensor>g):
        run_fused(p, node, <Tensor>g, 0)
    else:
        run_general(p, node, g)
    return True


cdef int run_hooks(Node* node, list cotangents) except -1:
    """Tensor hooks in order of registration, each seeing what the one before returned; then retain_grad."""
    cdef Attachments attachments = <Attachments>node.attachments
    cdef int k
    if attachments.tensor_hooks is not None:
        for k, hooks in list(attachments.tensor_hooks.items()):
            if cotangents[k] is not None:
                cotangents[k] = run_tensor_hooks(hooks, cotangents[k])
    if attachments.retains is not None:
        for k, reference in attachments.retains.items():
            tensor = reference()
            if tensor is not None and cotangents[k] is not None:
                retain(<Tensor>tensor, <Tensor>cotangents[k])
    return 0


cdef object run_tensor_hooks(object hooks, object g):
    for hook in list(hooks.values()):
        result = hook(g)
        if result is not None:
            if not isinstance(result, Tensor):
                raise TypeError(f"a tensor hook must return None or a Tensor, got {type(result).__name__}")
            if not layout_same_shape((<Tensor>result).layout, (<Tensor>g).layout):
                raise RuntimeError(_errors.hook_shape(result, g))
            if (<Tensor>result).layout.dtype != (<Tensor>g).layout.dtype:
                result = cast_function(result, g.dtype)
            g = result
    return g


cdef int retain(Tensor t, Tensor g) except -1:
    """Add g to the .grad of a tensor that is not a leaf."""
    if t.gradient is NULL:
        tensor_set_gradient(t, g)
    else:
        tensor_set_gradient(t, add_function(<object>t.gradient, g))
    return 0


cdef int capture(Pass p, Node* node, list cotangents) except -1:
    for output_nr, position in p.captures.get(<size_t>node, ()):
        p.results[position] = cotangents[output_nr]
    return 0


# --- Leaves ----------------------------------------------------------------------------------------------------------

cdef int run_leaf(Pass p, Node* node) except -1:
    cdef list cotangents
    cdef Tensor g, leaf = <Tensor>node.args
    cdef PyObject* held
    if node.pass_id == p.id and leaf.attachments is NULL and p.captures is None:
        node.pass_id = 0
        held = node.outputs.here.cotangent
        node.outputs.here.cotangent = NULL
        g = <Tensor>held
        Py_DECREF(g)
        return accumulate_grad(p, leaf, g, 1)
    cotangents = take_cotangents(p, node)
    if leaf.attachments is not NULL and isinstance(<object>leaf.attachments, Attachments):
        hooks = (<Attachments>leaf.attachments).tensor_hooks
        if hooks is not None:
            cotangents[0] = run_tensor_hooks(hooks[0], cotangents[0])
    if p.captures is not None:
        capture(p, node, cotangents)
    if p.accumulates and (p.captures is None or <size_t>node in p.captures):
        g = cotangents[0]
        cotangents = None
        accumulate_grad(p, leaf, g, 0)
    return 0


cdef int accumulate_grad(Pass p, Tensor leaf, Tensor g, Py_ssize_t references) except -1:
    """leaf.grad += g. A first gradient is taken over without a copy when nobody else can see it."""
    cdef Tensor total, result
    # Adding operators may let another thread run, which may give the leaf another .grad meanwhile: then again.
    while True:
        if leaf.gradient is NULL:
            if p.create_graph or not owned_alone(g, references):
                g = clone_function(g)
                references = 0
            if leaf.gradient is NULL:
                tensor_set_gradient(leaf, g)
                return 0
        total = <Tensor>leaf.gradient
        if not (p.create_graph or total.layout.dtype != g.layout.dtype or total.buffer.readonly
                or layout_overlaps_itself(total.layout)
                or (g.buffer is total.buffer and g.layout is not total.layout)):
            add_into(total.buffer.data, total.layout, g.buffer.data, g.layout, True)
            total.buffer.version += 1
            return 0
        result = add_function(total, g)
        if leaf.gradient is <PyObject*>total:
            tensor_set_gradient(leaf, result)
            return 0


# --- The pass --------------------------------------------------------------------------------------------------------

cdef int mark_needed(Pass p, list roots) except -1:
    """Which nodes lead to one of the captured ones.

    Two sweeps with an explicit stack: collect what is reachable, then go through it by ascending sequence number, so
    that every node is decided after the nodes its edges lead to.
    """
    cdef list reached = []
    cdef list stack = list(roots)
    cdef Node* node
    cdef Edge* edges
    cdef int i
    cdef uint8_t needed
    map_reserve(&p.needed)
    while stack:
        obj = stack.pop()
        node = object_node(<PyObject*>obj)
        if map_get(&p.needed, node) >= 0:
            continue
        map_put(&p.needed, node, 0)
        reached.append((node.sequence_nr, obj))
        edges = node_edges(node)
        for i in range(<int>node.n_inputs):
            if edges[i].node is not NULL and map_get(&p.needed, edges[i].node) < 0:
                stack.append(<object>node_object(edges[i].node))
    reached.sort(key=first)
    for _, obj in reached:
        node = object_node(<PyObject*>obj)
        edges = node_edges(node)
        needed = NEEDED_CAPTURED if <size_t>node in p.captures else 0
        for i in range(<int>node.n_inputs):
            if edges[i].node is not NULL and map_get(&p.needed, edges[i].node) > 0:
                needed |= NEEDED_RUNS
                break
        map_put(&p.needed, node, needed)
    return 0


def first(pair):
    return pair[0]


cdef void abandon(Pass p) noexcept:
    """After an error: give back every cotangent that is still waiting, so that the graph is as before."""
    cdef Node* node
    while True:
        node = pop(p)
        if node is NULL:
            break
        drop_cotangents(p, node)
    while p.leaves is not NULL:
        node = p.leaves
        p.leaves = node.link
        drop_cotangents(p, node)


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


cdef int run_pass(Pass p) except -1:
    cdef Node* node
    cdef int countdown = SIGNAL_INTERVAL
    while True:
        node = pop(p)
        if node is NULL:
            break
        try:
            run_node(p, node)
        except BaseException:
            drop_cotangents(p, node)
            raise
        countdown -= 1
        if countdown == 0:
            countdown = SIGNAL_INTERVAL
            PyErr_CheckSignals()
    while p.leaves is not NULL:
        node = p.leaves
        p.leaves = node.link
        try:
            run_leaf(p, node)
        except BaseException:
            drop_cotangents(p, node)
            raise
    if p.overflow:
        for key in list(p.overflow):
            run_leaf(p, <Node*><size_t>key)
    return 0


def run_backward(list roots not None, list gradients not None, bint retain_graph, bint create_graph, inputs,
                 bint accumulates):
    """One backward pass.

    Parameters
    ----------
    roots : list of Tensor
        Each requires grad (checked by the caller).
    gradients : list of Tensor
        One for each root, of its shape and dtype.
    inputs : list of Tensor or None
        Only these get gradients; None: all leaves.
    accumulates : bool
        Whether to add to `.grad`.

    Returns
    -------
    list
        With `inputs`: for each the cotangent that arrived, or None.
    """
    global pass_counter
    cdef Pass p = Pass()
    cdef FgThreadMode* mode = thread_mode()
    cdef int was_disabled = mode.grad_disabled
    cdef int was_inference = mode.inference
    cdef Tensor t, g
    cdef Node* node
    pass_counter += 1
    if pass_counter == 0:
        pass_counter = 1           # 0 marks a slot nobody uses
    p.id = pass_counter
    p.retain_graph = retain_graph
    p.create_graph = create_graph
    p.accumulates = accumulates
    p.kept = []
    for t in roots:
        if t is None:
            raise TypeError("run_backward: a root is None")
        node = tensor_edge(t)
        p.kept.append(<object>node_object(node))
        node_release(node)
    if inputs is not None:
        prepare_captures(p, inputs)
        mark_needed(p, p.kept)
    mode.grad_disabled = not create_graph
    mode.inference = 0
    try:
        for k in range(len(roots)):
            t = roots[k]
            g = gradients[k]
            if not create_graph and g.needs_grad:
                g = tensor_detached(g)
            node = object_node(<PyObject*>p.kept[k])
            if is_needed(p, node):
                deliver(p, node, t.output_nr if t.node is not NULL else 0, g)
        g = None
        run_pass(p)
    except BaseException:
        abandon(p)
        raise
    finally:
        mode.grad_disabled = was_disabled
        mode.inference = was_inference
    if accumulates and inputs is not None:
        for position, t in enumerate(inputs):
            if t.node is not NULL and p.results[position] is not None:
                retain(t, p.results[position])
    return p.results


cdef int prepare_captures(Pass p, inputs) except -1:
    cdef Tensor t
    cdef Node* node
    p.captures = {}
    p.results = [None] * len(inputs)
    for position, t in enumerate(inputs):
        node = tensor_edge(t)
        p.kept.append(<object>node_object(node))
        node_release(node)
        p.captures.setdefault(<size_t>node, []).append((t.output_nr if t.node is not NULL else 0, position))
    return 0
