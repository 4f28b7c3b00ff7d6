"""Floor 2: the backward pass.

Consumers are made after their inputs, so visiting nodes by descending
sequence number visits every node after all its consumers: the ready queue is
a heap on that number, and a chain never touches the heap at all.

For each node: its cotangent is complete; hooks see it; the formulas turn it
into cotangents of the inputs, which are added into the slots of the nodes
that made them; then, unless the graph is retained, what the node saved is
released. Leaves come last, so that no `.grad` changes unless every formula
has succeeded.

What one node's formulas do is in `_vjp`, cotangents on their way are in `_pass`, the ready queue is in `_queue`.
"""
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint8_t, uint32_t

from . import _errors

from ._kernels cimport add_into
from ._layout cimport layout_overlaps_itself, layout_same_shape
from ._node cimport (
    NODE_RAN, Edge, Node, OutputSlot, node_edges, node_free_saved, node_object, node_release, object_node,
)
from ._pass cimport (
    NEEDED_CAPTURED, NEEDED_RUNS, Pass, add_tensors, clone_tensor, deliver, drop_cotangents, is_needed,
    owned_alone, take_cotangents,
)
from ._queue cimport map_get, map_put, map_reserve, queue_pop
from ._record cimport Attachments, FgThreadMode, thread_mode
from ._tensor cimport Tensor, tensor_detached, tensor_edge, tensor_set_gradient
from ._vjp cimport run_formulas, run_formulas_on

cdef enum:
    SIGNAL_INTERVAL = 4096      # nodes between two looks at Ctrl-C: about a millisecond

cdef uint32_t pass_counter = 0
cdef bint strict = False


def set_strict_mode(bint enabled):
    """Whether a second backward without retain_graph is refused even where nothing was saved; returns what it was."""
    global strict
    previous = strict
    strict = enabled
    return previous


# --- One node ---------------------------------------------------------------------------------------------------------

cdef inline bint must_run(Pass p, Node* node) noexcept:
    """Whether the node's formulas are: not for a captured node that leads to no other one."""
    return p.needed.keys is NULL or map_get(&p.needed, node) & NEEDED_RUNS


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
        run_formulas(p, node, g, 1)
    elif not run_attended(p, node):
        return 0
    if not p.retain_graph:
        node.flags |= NODE_RAN
        if node.n_saved:
            node_free_saved(node)
    return 0


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
    run_formulas_on(p, node, cotangents)
    return True


# --- Hooks and captures -----------------------------------------------------------------------------------------------

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
                raise RuntimeError(_errors.hook_dtype(hook, result, g))
            g = result
    return g


cdef int retain(Tensor t, Tensor g) except -1:
    """Add g to the .grad of a tensor that is not a leaf."""
    if t.gradient is NULL:
        tensor_set_gradient(t, g)
    else:
        tensor_set_gradient(t, add_tensors(<Tensor>t.gradient, g))
    return 0


cdef int capture(Pass p, Node* node, list cotangents) except -1:
    for output_nr, position in p.captures.get(<size_t>node, ()):
        p.results[position] = cotangents[output_nr]
    return 0


# --- Leaves -----------------------------------------------------------------------------------------------------------

cdef int run_leaf(Pass p, Node* node) except -1:
    cdef list cotangents
    cdef Tensor g, leaf = <Tensor>node.args
    cdef PyObject* held
    if leaf.node is not NULL and p.accumulates:
        raise RuntimeError(_errors.leaf_moved(leaf))
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
    if not leaf.needs_grad:
        return 0          # frozen since the forward
    # Adding operators may let another thread run, which may give the leaf another .grad meanwhile: then again.
    while True:
        if leaf.gradient is NULL:
            if p.create_graph or not owned_alone(g, references):
                g = clone_tensor(g)
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
        result = add_tensors(total, g)
        if leaf.gradient is <PyObject*>total:
            tensor_set_gradient(leaf, result)
            return 0


# --- Which nodes are needed, in a pass with `inputs=` -----------------------------------------------------------------

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


# --- The pass ---------------------------------------------------------------------------------------------------------

cdef void abandon(Pass p) noexcept:
    """After an error: give back every cotangent that is still waiting, so that the graph is as before."""
    cdef Node* node
    while True:
        node = queue_pop(&p.ready)
        if node is NULL:
            break
        drop_cotangents(p, node)
    while p.leaves is not NULL:
        node = p.leaves
        p.leaves = node.link
        drop_cotangents(p, node)


cdef int run_pass(Pass p) except -1:
    cdef Node* node
    cdef int countdown = SIGNAL_INTERVAL
    while True:
        node = queue_pop(&p.ready)
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
    if len(gradients) != len(roots) or None in gradients:
        raise TypeError("run_backward: one gradient for each root")
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
