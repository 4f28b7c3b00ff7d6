"""Floor 2: letting Python's garbage collector see the graph, when it matters.

Note [Collecting cycles]
Nodes and tensors are made by the million and are not tracked by the collector: a tracked object costs about 120 ns more
over its life. But a cycle such as hook -> closure -> tensor -> node -> hook must be collectable, and one untracked
object in it hides all of it. So: they have the collector's header and traverse functions, and a callback tracks every
live one just before a full collection and untracks the survivors after it. That walk costs about 100 ns an object, so
it happens only while something Python-level hangs on a graph that could close a cycle: an attachment (hooks,
retain_grad, packed tensors), an attribute that the user gave a tensor, or a `.grad` with a history or a `.grad` of its
own. Without those, nodes and tensors lead only to each
other and downwards, and reference counts are enough.
"""
import gc

from cpython.object cimport PyObject

from ._lifetime cimport cycle_suspects, each_live_tensor, reset_cycle_suspects, suspect_cycle
from ._node cimport GC_HEAD, each_live_node
from ._record cimport attachment_count

cdef extern from "Python.h":
    void PyObject_GC_Track(PyObject*)
    void PyObject_GC_UnTrack(void*)

cdef bint tracking = False


cdef inline bint is_tracked(PyObject* obj) noexcept:
    """Whether the collector's header links the object into a list (its first word is the next object's)."""
    return (<size_t*>(<char*>obj - GC_HEAD))[0] != 0


cdef void track(PyObject* obj) noexcept:
    if not is_tracked(obj):
        PyObject_GC_Track(obj)


cdef void untrack(PyObject* obj) noexcept:
    if is_tracked(obj):
        PyObject_GC_UnTrack(obj)


cdef bint cycles_possible() noexcept:
    return attachment_count() > 0 or cycle_suspects() > 0


def callback(phase, info):
    """What `gc.callbacks` calls before and after every collection."""
    global tracking
    if info["generation"] < 2:
        return
    if phase == "start":
        if cycles_possible():
            tracking = True
            each_live_node(track)
            each_live_tensor(track)
    elif tracking:
        tracking = False
        each_live_node(untrack)
        each_live_tensor(untrack)
        # The count only grows while nobody looks; now it is exact again.
        reset_cycle_suspects()
        each_live_tensor(suspect_cycle)


gc.callbacks.append(callback)


def suspects():
    """How many tensors may close a cycle, at most: for tests."""
    return cycle_suspects()
