"""Floor 2: nodes, edges and saved tensors: the graph.

A Node stands for one recorded application of an operator. It has one Edge per
tensor input, leading to the node that made that input (or to the accumulator
of a leaf), and the Saved records its derivative formulas asked for. Tensors
hold nodes (`Tensor.grad_fn`), nodes hold nodes through edges; nothing points
the other way, so a graph lives exactly as long as its roots do.

Invariants
    node.refcount > 0         => all its edges' nodes are alive
    node.n_saved counts what was saved; saved[k].buffer is NULL => it was freed
    edge.node is NULL         <=> that input needs no gradient
    consumer.sequence_nr > input.sequence_nr   (a consumer is made after its inputs)

Who owns what: every pointer below says OWNED (released by `destroy`) or
BORROWED (from whom).
"""
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int16_t, uint8_t, uint16_t, uint32_t, uint64_t

from ._kernels cimport Loop
from ._layout cimport N_DTYPES, Layout
from ._storage cimport Buffer, Slab

cdef enum:
    GC_HEAD = 16            # sizeof(PyGC_Head): two words before the object in CPython 3.10 to 3.13
    INLINE_SLOTS = 2        # edges and saved records kept inside the node; more go to a malloc'ed array
    MAX_INPUTS = 16         # distinct tensor arguments of an operator (a sequence argument may have any number)
    OPERAND_G = -1          # operand codes of a fused formula; >= 0 is a tensor argument
    OPERAND_RESULT = -2

cdef enum NodeFlag:
    NODE_ACCUMULATES = 1    # the accumulator of a leaf; `args` is that leaf
    NODE_RAN = 2            # a freeing backward has gone through (strict mode looks at this)
    NODE_PACKED = 4         # some saved record was replaced by what a pack hook returned

cdef enum Reduction:
    REDUCES_SUM = 1
    REDUCES_MEAN = 2

cdef enum SavedFlag:
    SAVED_PACKED = 1        # `buffer` is an OWNED PyObject*: what a pack hook returned
    SAVED_FREED = 2         # released by a backward without retain_graph

# One derivative formula that has a fused loop, for one argument.
cdef struct FusedVjp:
    int n_operands                  # 0: no fused loop
    bint identity                   # the expression is `g`
    int operands[4]                 # OPERAND_* or the index of a tensor argument
    Loop assign[N_DTYPES]           # out = expression
    Loop add[N_DTYPES]              # out += expression

# What the C side knows of an operator. One for each, never freed.
cdef struct OpDef:
    PyObject* operator              # BORROWED: the Operator object lives as long as the process
    PyTypeObject* node_type         # BORROWED likewise: the operator's subclass of Node
    int n_inputs                    # tensor arguments; the last may be a sequence
    int n_outputs
    uint8_t is_sequence             # the last tensor argument is a list: n_inputs counts it once
    uint8_t is_view
    uint8_t elementwise             # forward[] may be used through `elementwise`
    uint8_t compares                # forward[] gives bool
    uint8_t reduces                 # Reduction: forward[] sums everything when only the tensor is given
    uint8_t has_fused_vjp           # every differentiable argument has a fused formula
    uint8_t has_vjp[MAX_INPUTS]     # by argument: whether it has a derivative formula
    uint32_t saves[MAX_INPUTS]      # by argument whose gradient is wanted: bit i = save input i, bit 16 + k = output k
    Loop forward[N_DTYPES]
    FusedVjp vjp[3]

cdef struct Edge:
    Node* node              # OWNED or NULL
    uint32_t output_nr      # which output of `node` this input was

cdef struct Saved:
    Buffer* buffer          # OWNED as a saved reference; NULL once freed
    Layout* layout          # OWNED; kept after freeing, for the error's message
    uint32_t version        # of the buffer when it was saved
    int16_t source          # >= 0: the input of that index; < 0: output -1 - source
    uint16_t flags          # SavedFlag

cdef struct OutputSlot:
    Layout* layout          # OWNED: shape and dtype a cotangent must have
    PyObject* cotangent     # OWNED Tensor while a backward is under way, else NULL

# The usual node keeps its arrays inside; the unusual one has them allocated (OWNED).
cdef union Edges:
    Edge here[2]            # n_inputs <= INLINE_SLOTS
    Edge* apart

cdef union SavedRecords:
    Saved here[2]           # n_saved <= INLINE_SLOTS
    Saved* apart

cdef union Outputs:
    OutputSlot here         # n_outputs == 1
    OutputSlot* apart

cdef struct Node:
    OpDef* op               # BORROWED
    uint64_t sequence_nr
    Node* link              # the next in the list this node is in: pending leaves, or dead nodes
    Outputs outputs
    PyObject* output        # BORROWED: the Tensor that is output 0, NULL once it is gone (it clears this itself)
    PyObject* args          # OWNED or NULL: plain arguments the formulas name (tuple), or an accumulator's leaf
    PyObject* attachments   # OWNED or NULL: hooks and retain_grad (Attachments)
    uint32_t pass_id        # the backward pass whose cotangent is in the slot
    uint32_t n_inputs
    uint32_t n_outputs
    uint16_t n_saved
    uint16_t flags          # NodeFlag
    Edges edges
    SavedRecords saved

# The Python object around a Node: the C struct follows the object header directly.
cdef class NodeObject:
    cdef Node c

cdef inline PyObject* node_object(Node* node) noexcept:
    return <PyObject*>(<char*>node - sizeof(PyObject))

cdef inline Node* object_node(PyObject* obj) noexcept:
    return <Node*>(<char*>obj + sizeof(PyObject))

cdef inline Edge* node_edges(Node* node) noexcept:
    return &node.edges.here[0] if node.n_inputs <= INLINE_SLOTS else node.edges.apart

cdef inline Saved* node_saved(Node* node) noexcept:
    return &node.saved.here[0] if node.n_saved <= INLINE_SLOTS else node.saved.apart

cdef inline OutputSlot* node_outputs(Node* node) noexcept:
    return &node.outputs.here if node.n_outputs == 1 else node.outputs.apart

cdef inline void node_retain(Node* node) noexcept:
    Py_INCREF(<object>node_object(node))

cdef inline void node_release(Node* node) noexcept:
    Py_DECREF(<object>node_object(node))

# NEW node with zeroed edges, saved records and outputs; NULL when memory runs out. The caller gives it a sequence
# number once the nodes of all its inputs exist.
cdef Node* node_new(OpDef* op, int n_inputs, int n_saved, int n_outputs) noexcept
# Free what the node saved; the records stay, marked, so that the error can say what is missing.
cdef void node_free_saved(Node* node) noexcept
cdef uint64_t next_sequence_nr() noexcept
# The operator's subclass of Node, made once and kept for ever.
cdef type node_class(str name)
# How a destroyed accumulator tells its leaf; set once by `_lifetime`, which knows what a leaf is.
cdef void set_leaf_forgets(void (*function)(Node*) noexcept) noexcept
# Every live node to `visit`: for the garbage collector, see `_gc`.
cdef void each_live_node(void (*visit)(PyObject*) noexcept) noexcept
cdef size_t live_nodes() noexcept

# Every live object in a slab of Python objects to `visit`.
cdef void each_live_object(Slab* slab, void (*visit)(PyObject*) noexcept) noexcept
