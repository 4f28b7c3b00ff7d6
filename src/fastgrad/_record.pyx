"""Floor 2: recording and reading back. The contract is in `_record.pxd`."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF

import weakref

from . import _errors
from ._node import set_saved_attribute

from ._arrays cimport dtype_object
from ._layout cimport layout_overlaps_itself, layout_release, layout_retain, layout_shape_tuple
from ._node cimport (
    NODE_ACCUMULATES, NODE_PACKED, SAVED_PACKED, Edge, Node, NodeObject, OpDef, OutputSlot, Saved, next_sequence_nr,
    node_edges, node_new, node_object, node_outputs, node_release, node_retain, node_saved, object_node,
)
from ._storage cimport Buffer, buffer_alias, buffer_release_saved, buffer_retain, buffer_retain_saved
from ._tensor cimport (
    FROM_CONSTANTS, FROM_DETACH, FROM_INTEGERS, FROM_NO_GRAD, TENSOR_INFERENCE, TENSOR_MULTI_VIEW,
    TENSOR_NO_GRAD_VIEW, TENSOR_RETAINS_GRAD, Tensor, can_require_grad, renew_if_stale, tensor_detached,
    tensor_edge_try, tensor_new, tensor_slots,
)

cdef extern from *:
    """
    #include "_platform.h"
    static FG_THREAD_LOCAL FgThreadMode fg_thread_mode;
    static FgThreadMode *fg_mode(void) { return &fg_thread_mode; }
    """
    FgThreadMode* fg_mode() noexcept


cdef bint pack_hooks_seen = False      # by any thread, ever: until then recording need not look for them (4 ns a node)


cdef FgThreadMode* thread_mode() noexcept:
    return fg_mode()


cdef bint grad_enabled() noexcept:
    return not fg_mode().grad_disabled


# --- Grad modes, as Python sees them (the context managers are in autograd/grad_mode.py) -----------------------------

def is_grad_enabled():
    """Whether operations of this thread are recorded."""
    return not fg_mode().grad_disabled


def set_grad_mode(bint enabled):
    """Switch recording for this thread and return what it was."""
    previous = not fg_mode().grad_disabled
    fg_mode().grad_disabled = not enabled
    return previous


def is_inference_mode_enabled():
    """Whether this thread is under ``inference_mode``."""
    return fg_mode().inference != 0


def set_inference_mode(bint enabled):
    """Switch inference mode for this thread and return what it was."""
    previous = fg_mode().inference != 0
    fg_mode().inference = enabled
    return previous


def set_pack_hooks(hooks):
    """The (pack, unpack) pair for this thread, or None. The caller keeps the tuple alive while it is set."""
    global pack_hooks_seen
    pack_hooks_seen = True
    fg_mode().pack_hooks = NULL if hooks is None else <void*>hooks


# --- Recording -------------------------------------------------------------------------------------------------------

cdef inline int argument_of(OpDef* op, int i) noexcept:
    """Which tensor argument input i belongs to: the elements of a sequence argument, the last one, share its number."""
    return i if i < op.n_inputs else op.n_inputs - 1


cdef inline bint saved_for(OpDef* op, uint32_t wanted, int i) noexcept:
    return (wanted >> argument_of(op, i)) & 1


cdef inline uint32_t wanted_by(OpDef* op, int n_inputs, const char* needs) noexcept:
    """What the formulas of the inputs that require grad name: the bits of OpDef.saves."""
    cdef uint32_t wanted = 0
    cdef int i
    for i in range(n_inputs):
        if needs[i]:
            wanted |= op.saves[argument_of(op, i)]
    return wanted


cdef bint needs_original(OpDef* op, int n_inputs, const char* needs) noexcept:
    return saved_for(op, wanted_by(op, n_inputs, needs), 0)


cdef int record(OpDef* op, int n_inputs, PyObject** inputs, const char* needs, int n_outputs, PyObject** outputs,
                const char* differentiable, PyObject* args, bint written, PyObject* original) except -1:
    cdef uint32_t wanted = wanted_by(op, n_inputs, needs)
    cdef int i, n_saved = 0
    cdef Node* node
    for i in range(n_inputs):
        if inputs[i] is not NULL and saved_for(op, wanted, i):
            n_saved += 1
            if (<Tensor>inputs[i]).flags & TENSOR_INFERENCE:
                raise RuntimeError(_errors.inference_saved(str((<object>op.operator).name)))
    for i in range(n_outputs):
        n_saved += (wanted >> (SAVE_OUTPUT_BIT + i)) & 1
    if n_saved > 32767:
        raise RuntimeError(f"{(<object>op.operator).name}: cannot save {n_saved} tensors in one node (at most 32767)")
    if op.node_type is NULL:
        (<object>op.operator).make_node_class()
    node = node_new(op, n_inputs, n_saved, n_outputs)
    if node is NULL or not connect(node, inputs, needs):
        if node is not NULL:
            node_release(node)
        raise MemoryError("fastgrad: cannot allocate a node")
    node.sequence_nr = next_sequence_nr()      # after `connect`, which may have made accumulators
    if n_saved:
        save(node, wanted, inputs, outputs, written, original)
        if pack_hooks_seen and fg_mode().pack_hooks is not NULL:
            try:
                pack_saved(node)
            except BaseException:
                node_release(node)
                raise
    if args is not NULL:
        Py_INCREF(<object>args)
        node.args = args
    own_outputs(node, outputs, differentiable)
    node_release(node)        # from here on the outputs keep it
    return 0


cdef bint connect(Node* node, PyObject** inputs, const char* needs) noexcept:
    """Edges to what made the inputs; False when memory runs out."""
    cdef Edge* edges = node_edges(node)
    cdef int i
    for i in range(<int>node.n_inputs):
        if needs[i]:
            edges[i].node = tensor_edge_try(<Tensor>inputs[i])
            if edges[i].node is NULL:
                return False
            edges[i].output_nr = (<Tensor>inputs[i]).output_nr
    return True


cdef void save(Node* node, uint32_t wanted, PyObject** inputs, PyObject** outputs, bint written,
               PyObject* original) noexcept:
    cdef Saved* saved = node_saved(node)
    cdef int i, k = 0
    for i in range(<int>node.n_inputs):
        if inputs[i] is not NULL and saved_for(node.op, wanted, i):
            if i == 0 and original is not NULL:
                save_one(&saved[k], <Tensor>original, i)
            else:
                save_one(&saved[k], <Tensor>inputs[i], i)
                # y.mul_(y), or an operand that is a view of y: what was needed is gone, and reading it says so.
                if written and (<Tensor>inputs[i]).buffer is (<Tensor>outputs[0]).buffer:
                    saved[k].version -= 1
            k += 1
    for i in range(<int>node.n_outputs):
        if (wanted >> (SAVE_OUTPUT_BIT + i)) & 1:
            save_one(&saved[k], <Tensor>outputs[i], -1 - i)
            k += 1


cdef inline void save_one(Saved* saved, Tensor t, int source) noexcept:
    buffer_retain_saved(t.buffer)
    layout_retain(t.layout)
    saved.buffer = t.buffer
    saved.layout = t.layout
    saved.version = t.buffer.version
    saved.source = source


cdef int pack_saved(Node* node) except -1:
    """Replace each saved tensor by what the user's pack hook makes of it."""
    cdef Saved* saved = node_saved(node)
    cdef tuple hooks = <tuple><object><PyObject*>fg_mode().pack_hooks
    cdef int k
    cdef Buffer* buffer
    cdef FgThreadMode* mode = fg_mode()
    cdef int was_disabled = mode.grad_disabled
    attachments = Attachments()
    (<Attachments>attachments).unpack = hooks[1]
    node.attachments = <PyObject*>attachments
    Py_INCREF(attachments)
    for k in range(node.n_saved):
        t = saved_view(node, k, False)
        mode.grad_disabled = 1        # a hook's own operations are not part of the graph
        try:
            packed = hooks[0](t)
        finally:
            mode.grad_disabled = was_disabled
        buffer = saved[k].buffer
        Py_INCREF(packed)             # OWNED by the record in the buffer's place
        saved[k].buffer = <Buffer*><PyObject*>packed
        saved[k].flags |= SAVED_PACKED
        buffer_release_saved(buffer)
    node.flags |= NODE_PACKED
    return 0


cdef void move_retained(Tensor t, Node* old, Node* node, int output_nr) noexcept:
    """retain_grad follows the tensor to the value an in-place write gave it; hooks stay with the old value."""
    cdef Attachments attachments = <Attachments>old.attachments
    reference = attachments.retains.pop(t.output_nr, None)
    attachments = attachments_of(node)
    if attachments.retains is None:
        attachments.retains = {}
    attachments.retains[output_nr] = reference


cdef void own_outputs(Node* node, PyObject** outputs, const char* differentiable) noexcept:
    cdef OutputSlot* slots = node_outputs(node)
    cdef PyObject* old
    cdef Tensor t
    cdef int k
    for k in range(<int>node.n_outputs):
        t = <Tensor>outputs[k]
        slots[k].layout = t.layout
        layout_retain(t.layout)
        if (differentiable is not NULL and not differentiable[k]) or not can_require_grad(t.layout.dtype):
            continue
        old = t.node
        if old is not NULL and t.flags & TENSOR_RETAINS_GRAD:
            move_retained(t, object_node(old), node, k)
        if old is not NULL and object_node(old).output is <PyObject*>t:
            object_node(old).output = NULL       # written in place: no longer the old node's output
        node_retain(node)
        t.node = node_object(node)
        t.output_nr = k
        t.needs_grad = 1
        Py_XDECREF(old)
    if node.n_outputs == 1 and (<Tensor>outputs[0]).node is node_object(node):
        node.output = outputs[0]


cdef void mark_unrecorded(Tensor t, bint wanted) noexcept:
    if not can_require_grad(t.layout.dtype):
        t.origin = FROM_INTEGERS
    elif wanted and fg_mode().grad_disabled:
        t.origin = FROM_NO_GRAD
    else:
        t.origin = FROM_CONSTANTS
    if fg_mode().inference:
        t.flags |= TENSOR_INFERENCE


# --- Reading back ----------------------------------------------------------------------------------------------------

cdef str saved_name(Node* node, int k):
    cdef Saved* saved = &node_saved(node)[k]
    operator = <object>node.op.operator
    if saved.source < 0:
        if node.n_outputs == 1:
            return "its result"
        return f"its result number {-1 - saved.source}"
    cdef int argument = argument_of(node.op, saved.source)
    name = operator.tensor_names[argument]
    if node.op.is_sequence and argument == node.op.n_inputs - 1:
        return f"element {saved.source - argument} of its argument '{name}'"
    return f"its argument '{name}'"


cdef int raise_freed(Node* node, int k) except -1:
    cdef Saved* saved = &node_saved(node)[k]
    where = ""
    if node.attachments is not NULL:
        where = (<Attachments>node.attachments).where()
    raise RuntimeError(_errors.freed(
        type(<object>node_object(node)).__name__, saved_name(node, k), dtype_object(saved.layout.dtype),
        layout_shape_tuple(saved.layout), where))


cdef int raise_modified(Node* node, int k) except -1:
    cdef Saved* saved = &node_saved(node)[k]
    cdef Node* producer = NULL
    text = ""
    if saved.source < 0:
        producer = node
    elif node_edges(node)[saved.source].node is not NULL:
        producer = node_edges(node)[saved.source].node
    if producer is not NULL:
        text = f", which is output 0 of {type(<object>node_object(producer)).__name__}"
    raise RuntimeError(_errors.modified(
        type(<object>node_object(node)).__name__, saved_name(node, k), dtype_object(saved.layout.dtype),
        layout_shape_tuple(saved.layout), text, saved.buffer.version, saved.version))


cdef Tensor saved_view(Node* node, int k, bint with_history):
    """The tensor of a record that holds a buffer (not a packed one)."""
    cdef Saved* saved = &node_saved(node)[k]
    cdef Node* origin = NULL
    cdef Tensor t
    cdef uint32_t output_nr = 0
    if with_history:
        if saved.source < 0:
            origin = node
            output_nr = -1 - saved.source
        else:
            origin = node_edges(node)[saved.source].node
            output_nr = node_edges(node)[saved.source].output_nr
            # The very tensor, while it is still around and still what it was.
            if origin is not NULL and origin.output is not NULL and output_nr == 0:
                t = <Tensor>origin.output
                if t.buffer is saved.buffer and t.layout is saved.layout:
                    return t
    buffer_retain(saved.buffer)
    layout_retain(saved.layout)
    t = tensor_new(saved.buffer, saved.layout)
    if origin is not NULL:
        give_history(t, origin, output_nr)
    return t


cdef void give_history(Tensor t, Node* origin, uint32_t output_nr) noexcept:
    """Make a tensor that was just built stand for output output_nr of `origin`."""
    node_retain(origin)
    t.needs_grad = 1
    t.output_nr = output_nr
    if origin.flags & NODE_ACCUMULATES:
        # The leaf was given other memory since. OWNED here, so that the BORROWED `accumulator` cannot dangle.
        t.attachments = node_object(origin)
        t.accumulator = origin
    else:
        t.node = node_object(origin)


cdef Tensor saved_tensor(Node* node, int k, bint with_history):
    cdef Saved* saved = &node_saved(node)[k]
    if saved.buffer is NULL:
        raise_freed(node, k)
    if saved.flags & SAVED_PACKED:
        return unpack_saved(node, k, with_history)
    if saved.buffer.version != saved.version:
        raise_modified(node, k)
    return saved_view(node, k, with_history)


cdef Tensor unpack_saved(Node* node, int k, bint with_history):
    cdef Saved* saved = &node_saved(node)[k]
    cdef Tensor plain, t
    cdef Node* origin = NULL
    cdef uint32_t output_nr = 0
    result = (<Attachments>node.attachments).unpack(<object><PyObject*>saved.buffer)
    if not isinstance(result, Tensor):
        raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                        f"{type(result).__name__}")
    plain = <Tensor>result
    if layout_shape_tuple(plain.layout) != layout_shape_tuple(saved.layout):
        raise RuntimeError(f"saved tensor unpack_hook: expected shape {layout_shape_tuple(saved.layout)}, got "
                           f"{layout_shape_tuple(plain.layout)}")
    if not with_history:
        return plain
    t = tensor_detached(plain)
    if saved.source < 0:
        origin = node
        output_nr = -1 - saved.source
    else:
        origin = node_edges(node)[saved.source].node
        output_nr = node_edges(node)[saved.source].output_nr
    if origin is not NULL:
        give_history(t, origin, output_nr)
    return t


# --- Hooks and what else hangs on a node -----------------------------------------------------------------------------

cdef size_t n_attachments = 0


cdef size_t attachment_count() noexcept:
    return n_attachments


cdef class Attachments:
    """What Python code hung on a node: made on first use, so that a node without any costs nothing."""

    def __cinit__(self):
        global n_attachments
        n_attachments += 1
        self.unpack = None
        self.retains = None
        self.tensor_hooks = None
        self.stack = None

    def __dealloc__(self):
        global n_attachments
        n_attachments -= 1

    cdef str where(self):
        """The user's line that made the node, where anomaly mode noted it."""
        return "" if self.stack is None else f"\nThe forward ran at:\n{self.stack}"


cdef Attachments attachments_of(Node* node):
    """The node's attachments, made if need be; BORROWED from the node."""
    if node.attachments is NULL:
        made = Attachments()
        Py_INCREF(made)
        node.attachments = <PyObject*>made
    return <Attachments>node.attachments


# --- In-place writes and views ---------------------------------------------------------------------------------------

cdef void mark_view(Tensor view, Tensor input, bint multi) noexcept:
    cdef PyObject* base = input.base if input.base is not NULL else <PyObject*>input
    Py_INCREF(<object>base)
    view.base = base
    view.seen_history = (<Tensor>base).history
    if multi:
        view.flags |= TENSOR_MULTI_VIEW
    view.flags |= input.flags & (TENSOR_MULTI_VIEW | TENSOR_INFERENCE)
    if fg_mode().grad_disabled and input.needs_grad:
        view.flags |= TENSOR_NO_GRAD_VIEW


cdef bint views_a_leaf(Tensor t) noexcept:
    """Whether t is a view of a leaf that is itself a view (of data that needs no grad): its history leads to an
    accumulator through views alone."""
    cdef Node* node = NULL if t.node is NULL else object_node(t.node)
    while node is not NULL and not node.flags & NODE_ACCUMULATES and node.op.is_view:
        node = node_edges(node)[0].node
    return node is not NULL and node.flags & NODE_ACCUMULATES != 0


cdef int check_writable(str op, Tensor t, bint recording) except -1:
    cdef Tensor base
    renew_if_stale(t)
    if t.buffer.readonly:
        raise RuntimeError(_errors.inplace_readonly(op, t))
    if layout_overlaps_itself(t.layout):
        raise RuntimeError(_errors.inplace_overlap(op, t))
    if t.flags & TENSOR_INFERENCE and not fg_mode().inference:
        raise RuntimeError(_errors.inplace_inference(op, t))
    if fg_mode().grad_disabled:
        return 0
    if t.needs_grad and t.node is NULL:
        raise RuntimeError(_errors.inplace_leaf(op, t))
    if t.base is not NULL:
        base = <Tensor>t.base
        if base.needs_grad and base.node is NULL:
            raise RuntimeError(_errors.inplace_view_of_leaf(op, t))
        if t.needs_grad and t.flags & TENSOR_MULTI_VIEW:
            raise RuntimeError(_errors.inplace_multi_view(op, t))
        if t.needs_grad and views_a_leaf(t):
            raise RuntimeError(_errors.inplace_view_of_leaf(op, t))
        if t.flags & TENSOR_NO_GRAD_VIEW and (recording or base.needs_grad):
            raise RuntimeError(_errors.inplace_no_grad_view(op, t))
    return 0


# Note [In-place writes through a view]
# After `v = base.t(); v.mul_(3)` the value of base changed too, and so must its history: new base = old base with v's
# region replaced by the product. That is an operator of its own (`as_strided_scatter`), recorded like any other: its
# inputs are the old base and the written view (whose new node is the product's, and leads to the old base by the old
# view), its output is the base. v and every other view then differ from what their nodes say; each notices by
# base.history when it is next used, and becomes an `as_strided` of the new base.
cdef int rebase_history(Tensor view) except -1:
    cdef Tensor base = <Tensor>view.base
    scatter_hook(base, view)
    base.history += 1
    return 0


cdef object scatter_function = None
cdef object renew_function = None


def set_view_functions(scatter, renew):
    """The operators that in-place writes through views are recorded as; told once by ops/views.py."""
    global scatter_function, renew_function
    scatter_function = scatter
    renew_function = renew


cdef int scatter_hook(Tensor base, Tensor view) except -1:
    scatter_function(base, view)
    return 0


cdef int renew_view(Tensor view) except -1:
    cdef Tensor base = <Tensor>view.base
    view.seen_history = base.history
    renew_function(base, view)
    return 0


tensor_slots().renew_view = renew_view


# --- Hooks and histories, as tensor.py sees them ---------------------------------------------------------------------

cdef Attachments attachments_for(Tensor t):
    """Where t's hooks are: on its node, or on the leaf itself."""
    renew_if_stale(t)
    if t.node is not NULL:
        return attachments_of(object_node(t.node))
    if t.attachments is NULL or not isinstance(<object>t.attachments, Attachments):
        made = Attachments()
        Py_INCREF(made)
        Py_XDECREF(t.attachments)
        t.attachments = <PyObject*>made
    return <Attachments>t.attachments


def tensor_hooks(Tensor t not None):
    """The dict of t's hooks, by handle number."""
    cdef Attachments attachments = attachments_for(t)
    if attachments.tensor_hooks is None:
        attachments.tensor_hooks = {}
    return attachments.tensor_hooks.setdefault(t.output_nr if t.node is not NULL else 0, {})


def retain_grad(Tensor t not None):
    """From now on a backward pass that goes through t's node sets t.grad."""
    cdef Attachments attachments
    renew_if_stale(t)
    if t.node is NULL:
        return
    attachments = attachments_of(object_node(t.node))
    if attachments.retains is None:
        attachments.retains = {}
    attachments.retains[t.output_nr] = weakref.ref(t)
    t.flags |= TENSOR_RETAINS_GRAD


def data_of(Tensor t not None):
    """A tensor that shares memory, but neither history nor version counter; assigning gives it other memory."""
    layout_retain(t.layout)
    cdef Buffer* buffer
    try:
        buffer = buffer_alias(t.buffer)
    except MemoryError:
        layout_release(t.layout)
        raise
    return tensor_new(buffer, t.layout)


def set_data(Tensor t not None, value):
    """The setter of `data`. Graphs recorded before keep what they saved."""
    cdef Tensor source
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if (<Tensor>value).layout.dtype != t.layout.dtype:
        raise RuntimeError(f"set_data: the tensor is {t.dtype}, the new data {value.dtype}: incompatible tensor type")
    source = data_of(value)
    t.buffer, source.buffer = source.buffer, t.buffer
    t.layout, source.layout = source.layout, t.layout
    t.accumulator = NULL           # the next graph's accumulator has the new shape


def drop_history(Tensor t not None):
    """Make t a leaf that does not require grad."""
    cdef PyObject* node = t.node
    if node is not NULL:
        if object_node(node).output is <PyObject*>t:
            object_node(node).output = NULL
        t.node = NULL
        t.output_nr = 0
        Py_DECREF(<object>node)
    t.needs_grad = 0
    t.origin = FROM_DETACH


def saved_attribute(NodeObject obj not None, str name not None):
    """``_saved_<argument>``: a saved tensor (``_saved_self`` is the first argument, ``_saved_result`` the output), or a
    plain argument that the formulas name."""
    cdef Node* node = &obj.c
    cdef Saved* saved = node_saved(node)
    cdef int k, source
    operator = None if node.op.operator is NULL else <object>node.op.operator
    wanted = name.partition("_saved_")[2]
    if operator is None:
        raise AttributeError(f"{type(obj).__name__} saves nothing")
    if wanted == "self" and operator.tensor_names:
        wanted = operator.tensor_names[0]
    for k in range(node.n_saved):
        source = saved[k].source
        if wanted == ("result" if source < 0 else operator.tensor_names[argument_of(node.op, source)]):
            if saved[k].buffer is NULL:
                raise RuntimeError(_errors.accessed_freed(type(obj).__name__, f"_saved_{wanted}"))
            return saved_tensor(node, k, True)
    if wanted in operator.parameters and node.args is not NULL:
        plain = <object>node.args
        return plain[operator.parameters.index(wanted)] if isinstance(plain, tuple) else plain
    raise AttributeError(f"'{type(obj).__name__}' object has no attribute '{name}': it saved "
                         f"{[saved_name(node, k) for k in range(node.n_saved)]}")


set_saved_attribute(saved_attribute)
