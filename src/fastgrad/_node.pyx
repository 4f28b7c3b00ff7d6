"""Floor 2: making and destroying nodes. The contract is in `_node.pxd`."""
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.object cimport PyObject, PyTypeObject, destructor, inquiry, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_XDECREF
from libc.string cimport memset

from ._layout cimport layout_release
from ._storage cimport Slab, buffer_release_saved, slab_acquire, slab_free, slab_init

cdef extern from "Python.h":
    ctypedef struct PyTypeRaw "PyTypeObject":
        unsigned long tp_flags
        destructor tp_dealloc
        traverseproc tp_traverse
        inquiry tp_clear
        PyObject* (*tp_new)(PyTypeObject*, PyObject*, PyObject*)
        void* tp_vectorcall
    void PyObject_GC_UnTrack(void*)
    void PyType_Modified(PyTypeObject*)
    void Py_SET_REFCNT(PyObject*, Py_ssize_t)
    Py_ssize_t Py_REFCNT(PyObject*)
    void Py_SET_TYPE(PyObject*, PyTypeObject*)
    unsigned long Py_TPFLAGS_HAVE_GC
    unsigned long Py_TPFLAGS_BASETYPE
    void PyErr_SetString(object, const char*)

cdef Slab node_slab
cdef uint64_t sequence_counter = 0
cdef Node* dead_nodes = NULL     # linked through `link`; whoever finds the list unattended empties it
cdef bint destroying = False
cdef dict node_classes = {}      # keeps the per-operator classes alive
cdef void (*leaf_forgets)(Node*) noexcept

slab_init(&node_slab, GC_HEAD + sizeof(PyObject) + sizeof(Node))


cdef uint64_t next_sequence_nr() noexcept:
    global sequence_counter
    sequence_counter += 1
    return sequence_counter


cdef Node* node_new(OpDef* op, int n_inputs, int n_saved, int n_outputs) noexcept:
    cdef char* slot = <char*>slab_acquire(&node_slab)
    cdef PyObject* obj = <PyObject*>(slot + GC_HEAD)
    cdef Node* node = object_node(obj)
    if slot is NULL:
        return NULL
    # A size that the compiler does not know: it would inline `rep stos` for it, which is several times slower than the
    # library's vector stores at 200 bytes (15 % of the whole forward, measured).
    memset(slot, 0, node_slab.slot_size)
    if n_inputs > INLINE_SLOTS or n_saved > INLINE_SLOTS or n_outputs > 1:
        if not allocate_arrays(node, n_inputs, n_saved, n_outputs):
            slab_free(&node_slab, slot)
            return NULL
    node.op = op
    node.n_inputs = <uint32_t>n_inputs
    node.n_saved = <uint16_t>n_saved
    node.n_outputs = <uint32_t>n_outputs
    # The class is set without taking a reference to it: it lives for ever, and node_dealloc gives none back.
    Py_SET_TYPE(obj, op.node_type)
    Py_SET_REFCNT(obj, 1)
    return node


cdef bint allocate_arrays(Node* node, int n_inputs, int n_saved, int n_outputs) noexcept:
    """Arrays for the unusual node; all or nothing."""
    cdef void* edges = NULL
    cdef void* saved = NULL
    cdef void* outputs = NULL
    if n_inputs > INLINE_SLOTS:
        edges = PyMem_RawCalloc(n_inputs, sizeof(Edge))
    if n_saved > INLINE_SLOTS:
        saved = PyMem_RawCalloc(n_saved, sizeof(Saved))
    if n_outputs > 1:
        outputs = PyMem_RawCalloc(n_outputs, sizeof(OutputSlot))
    if ((n_inputs > INLINE_SLOTS and edges is NULL) or (n_saved > INLINE_SLOTS and saved is NULL)
            or (n_outputs > 1 and outputs is NULL)):
        PyMem_RawFree(edges)
        PyMem_RawFree(saved)
        PyMem_RawFree(outputs)
        return False
    if n_inputs > INLINE_SLOTS:
        node.edges.apart = <Edge*>edges
    if n_saved > INLINE_SLOTS:
        node.saved.apart = <Saved*>saved
    if n_outputs > 1:
        node.outputs.apart = <OutputSlot*>outputs
    return True


cdef void node_free_saved(Node* node) noexcept:
    cdef Saved* saved = node_saved(node)
    cdef Buffer* buffer
    cdef int k
    for k in range(node.n_saved):
        buffer = saved[k].buffer
        if buffer is not NULL:
            saved[k].buffer = NULL
            saved[k].flags |= SAVED_FREED
            if saved[k].flags & SAVED_PACKED:
                Py_DECREF(<object>buffer)
            else:
                buffer_release_saved(buffer)


# Note [Destruction is a loop]
# A chain of ten million nodes must not touch the C stack. Python calls node_dealloc when a node's last reference goes.
# It only puts the node on the dead list; the first such call empties the list, and every call made while it does so
# (edges dropping their targets, a leaf dropping its .grad, a weak reference's callback) adds to the list and returns.
cdef void node_dealloc(PyObject* obj) noexcept:
    global dead_nodes, destroying
    cdef Node* node = object_node(obj)
    if node.flags & NODE_ACCUMULATES and node.args is not NULL:
        leaf_forgets(node)     # at once: until it is destroyed, finalizers may run that use the leaf again
    node.link = dead_nodes
    dead_nodes = node
    if destroying:
        return
    destroying = True
    while dead_nodes is not NULL:
        node = dead_nodes
        dead_nodes = node.link
        destroy(node)
    destroying = False


cdef void destroy(Node* node) noexcept:
    cdef PyObject* obj = node_object(node)
    cdef Edge* edges = node_edges(node)
    cdef OutputSlot* outputs = node_outputs(node)
    cdef Saved* saved = node_saved(node)
    cdef int k
    if (<size_t*>(<char*>obj - GC_HEAD))[0]:       # tracked: see `_gc`
        PyObject_GC_UnTrack(obj)
    node_free_saved(node)
    for k in range(node.n_saved):
        if saved[k].layout is not NULL:
            layout_release(saved[k].layout)
    for k in range(<int>node.n_inputs):
        if edges[k].node is not NULL:
            node_release(edges[k].node)
    for k in range(<int>node.n_outputs):
        if outputs[k].layout is not NULL:
            layout_release(outputs[k].layout)
        Py_XDECREF(outputs[k].cotangent)
    Py_XDECREF(node.args)
    Py_XDECREF(node.attachments)
    if node.n_inputs > INLINE_SLOTS:
        PyMem_RawFree(edges)
    if node.n_saved > INLINE_SLOTS:
        PyMem_RawFree(saved)
    if node.n_outputs > 1:
        PyMem_RawFree(outputs)
    Py_SET_REFCNT(obj, 0)      # a free slot: walking the slab skips it
    slab_free(&node_slab, <char*>obj - GC_HEAD)


cdef void set_leaf_forgets(void (*function)(Node*) noexcept) noexcept:
    global leaf_forgets
    leaf_forgets = function


cdef size_t live_nodes() noexcept:
    return node_slab.n_live


cdef void each_live_object(Slab* slab, void (*visit)(PyObject*) noexcept) noexcept:
    cdef size_t k
    cdef char* slot
    cdef char* end
    for k in range(slab.n_chunks):
        slot = slab.chunks[k]
        end = slab.bump if k == slab.n_chunks - 1 else slab.chunk_ends[k]
        while slot < end:
            if Py_REFCNT(<PyObject*>(slot + GC_HEAD)) > 0:
                visit(<PyObject*>(slot + GC_HEAD))
            slot += slab.slot_size


cdef void each_live_node(void (*visit)(PyObject*) noexcept) noexcept:
    each_live_object(&node_slab, visit)


# --- For the garbage collector ---------------------------------------------------------------------------------------

cdef int node_traverse(PyObject* obj, visitproc visit, void* arg) noexcept:
    """Every reference this node owns, once each; its class is not among them (see node_new)."""
    cdef Node* node = object_node(obj)
    cdef Edge* edges = node_edges(node)
    cdef OutputSlot* outputs = node_outputs(node)
    cdef Saved* saved = node_saved(node)
    cdef int k, stop
    for k in range(<int>node.n_inputs):
        if edges[k].node is not NULL:
            stop = visit(node_object(edges[k].node), arg)
            if stop:
                return stop
    for k in range(<int>node.n_outputs):
        if outputs[k].cotangent is not NULL:
            stop = visit(<PyObject*>outputs[k].cotangent, arg)
            if stop:
                return stop
    for k in range(node.n_saved):
        if saved[k].buffer is not NULL and saved[k].flags & SAVED_PACKED:
            stop = visit(<PyObject*>saved[k].buffer, arg)
            if stop:
                return stop
    if node.args is not NULL:
        stop = visit(<PyObject*>node.args, arg)
        if stop:
            return stop
    if node.attachments is not NULL:
        return visit(<PyObject*>node.attachments, arg)
    return 0


cdef int node_clear(PyObject* obj) noexcept:
    """Break cycles: they all pass through an attachment, a packed tensor or the plain arguments, never edges alone."""
    cdef Node* node = object_node(obj)
    cdef Saved* saved = node_saved(node)
    cdef PyObject* held = node.attachments
    cdef int k
    node.attachments = NULL
    Py_XDECREF(held)
    for k in range(node.n_saved):
        if saved[k].flags & SAVED_PACKED and saved[k].buffer is not NULL:
            held = <PyObject*>saved[k].buffer
            saved[k].buffer = NULL
            saved[k].flags |= SAVED_FREED
            Py_DECREF(<object>held)
    if not node.flags & NODE_ACCUMULATES:
        held = node.args
        node.args = NULL
        Py_XDECREF(held)
    return 0


cdef PyObject* refuse_new(PyTypeObject* cls, PyObject* args, PyObject* kwargs) noexcept:
    """tp_new of all nodes. Their memory comes from the slab, and destruction gives it back there."""
    PyErr_SetString(TypeError, "Node: nodes are made by recording operators, not by calling the class")
    return NULL


cdef void adopt_class(PyTypeObject* cls) noexcept:
    """Our allocation, destruction and traversal for a class of nodes."""
    cdef PyTypeRaw* raw = <PyTypeRaw*>cls
    raw.tp_new = refuse_new
    raw.tp_vectorcall = NULL       # Cython's, which calls its own tp_new
    raw.tp_flags |= Py_TPFLAGS_HAVE_GC
    raw.tp_dealloc = <destructor>node_dealloc
    raw.tp_traverse = <traverseproc>node_traverse
    raw.tp_clear = <inquiry>node_clear
    PyType_Modified(cls)


cdef type node_class(str name):
    cls = node_classes.get(name)
    if cls is None:
        cls = type(name, (NodeObject,), {"__slots__": (), "__module__": "fastgrad"})
        adopt_class(<PyTypeObject*>cls)
        (<PyTypeRaw*>cls).tp_flags &= ~Py_TPFLAGS_BASETYPE
        node_classes[name] = cls
    return cls


# --- What Python sees ------------------------------------------------------------------------------------------------

cdef object saved_attribute = None


def set_saved_attribute(function):
    """What answers ``node._saved_self`` and its like; told once by `_record`, which can make tensors."""
    global saved_attribute
    saved_attribute = function


cdef class NodeObject:
    """A recorded operation: what ``Tensor.grad_fn`` is.

    Nodes are made by operators only. ``next_functions`` leads to the nodes of
    the inputs, ``name()`` says which operator it was.
    """

    def name(self):
        """The node's name, as PyTorch spells it.

        Examples
        --------
        >>> import fastgrad as fg
        >>> x = fg.ones(2, requires_grad=True)
        >>> (x * x).grad_fn.name()
        'MulBackward0'
        """
        if self.c.flags & NODE_ACCUMULATES:
            return "fastgrad::autograd::AccumulateGrad"
        return type(self).__name__

    @property
    def next_functions(self):
        """For each tensor input, the pair (node, output number); (None, 0) where no gradient is needed."""
        cdef Edge* edges = node_edges(&self.c)
        cdef int k
        result = []
        for k in range(<int>self.c.n_inputs):
            if edges[k].node is NULL:
                result.append((None, 0))
            else:
                result.append((<object>node_object(edges[k].node), edges[k].output_nr))
        return tuple(result)

    def _sequence_nr(self):
        """Nodes are numbered in the order they were made; backward visits them in descending order."""
        return self.c.sequence_nr

    def __getattr__(self, name):
        if saved_attribute is None or not (name.startswith("_saved_") or name.startswith("_raw_saved_")):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return saved_attribute(self, name)

    def __repr__(self):
        return f"<{type(self).__name__} object at {<size_t><PyObject*>self:#x}>"


def node_count():
    """How many nodes are alive, for tests."""
    return node_slab.n_live


adopt_class(<PyTypeObject*>NodeObject)
