"""Floor 2: recording: grad modes, making nodes, and reading back what they saved.

Between Tensor and Node below, and the operators and the backward pass above.
"""
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from ._node cimport Node, OpDef
from ._tensor cimport Tensor, renew_if_stale

cdef extern from "_platform.h":
    ctypedef struct FgThreadMode:
        int grad_disabled
        int inference
        void* pack_hooks

cdef enum:
    SAVE_OUTPUT_BIT = 16       # in OpDef.saves: bit 16 + k asks for output k

# The calling thread's modes; valid as long as the thread.
cdef FgThreadMode* thread_mode() noexcept
# The same for code that only asks.
cdef bint grad_enabled() noexcept
# Whether t requires grad, after taking over a new history of its base.
cdef inline bint requires_grad(Tensor t) except -1:
    if t.base is not NULL:
        renew_if_stale(t)
    return t.needs_grad

# Record one application of an operator. inputs[i] is a BORROWED Tensor or NULL (a number, an absent argument);
# outputs are new tensors, or (written) the tensor that an in-place operator has just written to. `needs` tells which
# inputs require grad, one byte each. args is BORROWED: the plain arguments that the formulas name, or NULL.
# original: see needs_original; NULL otherwise.
# differentiable[k] == 0 leaves output k a constant; NULL means all are.
cdef int record(OpDef* op, int n_inputs, PyObject** inputs, const char* needs, int n_outputs, PyObject** outputs,
                const char* differentiable, PyObject* args, bint written, PyObject* original) except -1
# A new output that was not recorded: note why, for errors. wanted: some input requires grad.
cdef void mark_unrecorded(Tensor t, bint wanted) noexcept
# Whether an in-place application must keep the first argument's old value, because a formula that will run names it.
# `original` above is then a copy, BORROWED, made before the write.
cdef bint needs_original(OpDef* op, int n_inputs, const char* needs) noexcept
# The tensor that saved record k stands for: checks freed, then version. with_history: so that it can be differentiated.
cdef Tensor saved_tensor(Node* node, int k, bint with_history)
# What a record is called in messages: "its argument input", "its result".
cdef str saved_name(Node* node, int k)
# Refuse an in-place write that PyTorch refuses, before anything is changed.
cdef int check_writable(str op, Tensor t, bint recording) except -1
# A recorded in-place write went through the view t: its base, and so all other views, get the new history.
cdef int rebase_history(Tensor view) except -1
# Make `view` a view of input's base (or of input).
cdef void mark_view(Tensor view, Tensor input, bint multi) noexcept

cdef class Attachments:
    cdef object unpack          # the unpack hook for this node's packed tensors
    cdef dict retains           # output number -> weak reference to the tensor that retains its grad
    cdef dict tensor_hooks      # output number -> dict of hooks, in order of registration
    cdef str stack              # where the forward ran, under anomaly mode
    cdef str where(self)

# The node's attachments, made if need be.
cdef Attachments attachments_of(Node* node)
# How many attachments are alive: while there are none, no cycle can pass through the graph (see `_gc`).
cdef size_t attachment_count() noexcept
