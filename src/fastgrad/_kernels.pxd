"""Floor 1: elementwise loops, and running one over broadcast, strided operands.

A Loop has the calling convention of a NumPy inner loop, so that our fused
loops (`_fused.h`, written at build time from the `fused=` entries of the
operator declarations) and NumPy's own serve the same callers. A loop sees
bytes and strides; it knows nothing of tensors, and it never sets a Python
error.
"""
from numpy cimport npy_intp

from ._layout cimport Layout

ctypedef void (*LoopFunction)(char** args, const npy_intp* dims, const npy_intp* steps, void* data) noexcept nogil

cdef enum:
    MAX_OPERANDS = 6           # inputs + output of one loop
    NOGIL_NUMEL = 32768        # elements above which a loop runs without the GIL (about 10 us of work)

cdef struct Loop:
    LoopFunction function      # NULL: there is no loop for this dtype
    void* data                 # handed to the function; BORROWED from the ufunc, which lives for ever

# A loop of `ufunc` whose inputs all have dtype `dtype` and whose output has `out`; function NULL if there is none.
cdef Loop numpy_loop(object ufunc, int n_inputs, int dtype, int out)
# The fused loop of an operator's role ("forward" or an argument's name); function NULL if there is none.
# `accumulate` asks for the variant that adds to its output.
cdef Loop fused_loop(object op, object role, int dtype, bint accumulate)
# The operand names, in order, of a fused role, or None.
cdef object fused_operands(object op, object role)
# Whether a fused derivative is the cotangent itself, which is then handed on instead of copied.
cdef bint fused_is_identity(object op, object role)
# Run `loop` over n_operands arrays (inputs, then the output), inputs broadcast to the output's shape.
# data[i] is the buffer's start; the layouts carry the offsets.
cdef void elementwise(Loop loop, int n_operands, char** data, Layout** layouts) noexcept
# dst[...] += src[...] for equal shapes and dtypes, any strides; dst must not overlap itself.
# holding_gil: for memory that other threads may add into as well.
cdef void add_into(char* dst, Layout* dst_layout, char* src, Layout* src_layout, bint holding_gil) noexcept
cdef void copy_into(char* dst, Layout* dst_layout, char* src, Layout* src_layout) noexcept
