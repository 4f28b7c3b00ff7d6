"""Floor 2: running the formulas of one node. The contract is in `_vjp.pxd`.

Two ways, which give the same: fused loops on the memory of saved tensors and cotangents, where all of a node's
formulas have them and dtypes agree (`run_fused`), and the declared formulas, which are operators on tensors
(`run_general`).
"""
from ._formula cimport has_formula, run_formula, spread, spreads
from ._kernels cimport MAX_OPERANDS, Loop, elementwise
from ._layout cimport (
    FLOAT32, FLOAT64, Layout, layout_fresh, layout_release, layout_retain, layout_same_shape, layout_scalar,
)
from ._node cimport (
    NODE_PACKED, OPERAND_G, OPERAND_RESULT, SAVED_FREED, Edge, FusedVjp, Node, OutputSlot, Saved, node_edges,
    node_outputs, node_saved,
)
from ._operator cimport Operator
from ._pass cimport Pass, deliver, fit, is_needed, owned_alone, zeros_like_layout
from ._record cimport saved_tensor
from ._storage cimport (
    ADOPTED, POOL_LARGE, POOL_SMALL, Buffer, buffer_release, buffer_retain, buffer_saved_last,
)
from ._tensor cimport Tensor, tensor_empty, tensor_new


# --- Operands and results of fused loops ------------------------------------------------------------------------------

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
                and saved[k].layout.offset == 0
                and (saved[k].layout is g.layout or layout_same_shape(saved[k].layout, g.layout))
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


# --- Fused formulas ---------------------------------------------------------------------------------------------------

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
    cdef bint same = slot.layout is g.layout or (layout_same_shape(slot.layout, g.layout)
                                                 and slot.layout.dtype == g.layout.dtype)
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


# --- Declared formulas ------------------------------------------------------------------------------------------------

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
            given.append(zeros_like_layout(outputs[k].layout))
        else:
            given.append(cotangents[k])
    return given[0] if op.differentiable is not None and len(given) == 1 else tuple(given)


# --- One node ---------------------------------------------------------------------------------------------------------

cdef int run_formulas(Pass p, Node* node, Tensor g, Py_ssize_t g_references) except -1:
    cdef Edge* edge
    if p.create_graph:
        return run_general(p, node, g)
    if fused_applies(node, g):
        return run_fused(p, node, g, g_references)
    if spreads(node):
        edge = node_edges(node)
        if is_needed(p, edge.node):
            deliver(p, edge.node, edge.output_nr, spread(node, g))
        return 0
    return run_general(p, node, g)


cdef int run_formulas_on(Pass p, Node* node, list cotangents) except -1:
    if node.n_outputs > 1:
        return run_general(p, node, complete(node, cotangents))
    if not p.create_graph and fused_applies(node, <Tensor>cotangents[0]):
        return run_fused(p, node, <Tensor>cotangents[0], 0)
    return run_general(p, node, cotangents[0])
