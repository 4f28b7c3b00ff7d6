"""Floor 2: running one derivative formula of an operator on what its node saved. The contract is in `_formula.pxd`."""
from cpython.object cimport PyObject
from libc.string cimport memcpy

from ._operator import find_operator

from ._arrays cimport dtype_object
from ._layout cimport FLOAT16, FLOAT64, Layout, dtype_itemsize, layout_scalar, layout_shape_tuple, layout_strided
from ._node cimport REDUCES_MEAN, Edge, Node, Saved, node_edges, node_outputs, node_saved
from ._operator cimport (
    FLOAT, FORMULA_G, FORMULA_OUTPUT, FORMULA_PLAIN, FORMULA_RESULT, FORMULA_TENSOR, PROMOTE, Formula,
    Operator,
)
from ._record cimport saved_tensor
from ._storage cimport buffer_retain
from ._tensor cimport Tensor, tensor_empty, tensor_new

cdef Py_ssize_t* itemsizes = dtype_itemsize()


# --- Declared formulas ------------------------------------------------------------------------------------------------

cdef object formula_tensor(Operator op, Node* node, int argument, bint with_history):
    """What a formula's parameter that names a tensor argument gets."""
    cdef Saved* saved = node_saved(node)
    cdef int k
    if op.c.is_sequence and argument == op.c.n_inputs - 1:
        return [saved_tensor(node, k, with_history) for k in range(node.n_saved) if saved[k].source >= argument]
    for k in range(node.n_saved):
        if saved[k].source == argument:
            return widened(op, saved_tensor(node, k, with_history), node)
    if node.args is NULL:
        return None
    plain = <object>node.args
    if isinstance(plain, tuple):
        return plain[<int>op.tensor_positions[argument]]
    return plain             # the number operand of an elementwise operator


cdef object widened(Operator op, Tensor t, Node* node):
    """A saved operand of a narrower floating dtype than the result, as the forward computed with it: cast."""
    cdef int result = node_outputs(node)[0].layout.dtype
    if (op.dtype_rule == PROMOTE or op.dtype_rule == FLOAT) and FLOAT16 <= t.layout.dtype < result <= FLOAT64:
        return find_operator("_to_copy")(t, dtype_object(result))
    return t


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


cdef object edge_shape(Node* node, int argument):
    """The shape of a tensor argument that requires grad: its edge's target knows it; of a sequence, a list."""
    cdef Edge* edges = node_edges(node)
    cdef int i
    if node.op.is_sequence and argument == node.op.n_inputs - 1:
        return [None if edges[i].node is NULL
                else layout_shape_tuple(node_outputs(edges[i].node)[edges[i].output_nr].layout)
                for i in range(argument, <int>node.n_inputs)]
    return layout_shape_tuple(node_outputs(edges[argument].node)[edges[argument].output_nr].layout)


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


# --- The formula of a full sum or mean, which is ours -----------------------------------------------------------------

cdef void scale_scalar(Tensor t, double divisor) noexcept:
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
