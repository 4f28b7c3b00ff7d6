"""Floor 0: dtypes by code, and Layout: how a tensor sees its buffer.

A Layout is immutable and shared by reference: the result of `x * w` has the
very Layout of x, a saved record keeps one pointer instead of shape and
strides, and "same shape, same strides, same dtype" is often one comparison of
pointers. Its neighbours: a Buffer (`_storage`) is the memory, dtypes are
described for Python in `_dtypes.py`, whose codes are these.
"""
from libc.stdint cimport uint8_t, uint16_t, uint32_t

cdef enum DType:
    BOOL = 0
    UINT8 = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    FLOAT16 = 9
    FLOAT32 = 10
    FLOAT64 = 11
    COMPLEX64 = 12
    COMPLEX128 = 13
    N_DTYPES = 14

cdef enum:
    MAX_NDIM = 64       # NumPy 2's limit
    INLINE_NDIM = 4     # layouts up to this rank come from a slab

cdef struct Layout:
    uint32_t refcount      # tensors + saved records + node outputs
    uint8_t dtype          # DType
    uint8_t ndim           # <= MAX_NDIM
    uint8_t contiguous     # 1 <=> C-contiguous (empty and one-element layouts are)
    uint8_t dense          # 1 <=> every element of the spanned bytes belongs to exactly one index (any order of axes)
    Py_ssize_t numel       # product of shape
    Py_ssize_t offset      # bytes from buffer.data to the element at index (0, ..., 0)
    Py_ssize_t dims[8]     # shape[ndim], then strides[ndim] in bytes (may be 0 or negative); longer if ndim > 4

cdef inline Py_ssize_t* layout_shape(Layout* layout) noexcept nogil:
    return layout.dims

cdef inline Py_ssize_t* layout_strides(Layout* layout) noexcept nogil:
    return layout.dims + layout.ndim

cdef inline void layout_retain(Layout* layout) noexcept:
    layout.refcount += 1

cdef inline void layout_release(Layout* layout) noexcept:
    layout.refcount -= 1
    if layout.refcount == 0:
        layout_free(layout)

cdef void layout_free(Layout* layout) noexcept
# Bytes of one element, by code.
cdef Py_ssize_t* dtype_itemsize() noexcept
# NEW contiguous layout at offset 0. Raises MemoryError, OverflowError.
cdef Layout* layout_contiguous(int dtype, int ndim, const Py_ssize_t* shape) except NULL
# NEW layout of the given geometry (strides and offset in bytes).
cdef Layout* layout_strided(int dtype, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides,
                            Py_ssize_t offset) except NULL
# NEW contiguous layout at offset 0 with the shape of `like`: `like` itself, retained, where it already is that.
cdef Layout* layout_fresh(Layout* like, int dtype) except NULL
# The 0-dim layout of a dtype, NEW reference.
cdef Layout* layout_scalar(int dtype) except NULL
cdef bint layout_same_shape(Layout* a, Layout* b) noexcept nogil
# Lowest and one past the highest byte touched, relative to buffer.data.
cdef void layout_span(Layout* layout, Py_ssize_t* low, Py_ssize_t* high) noexcept nogil
# 1 if two indices may share memory in an in-place write (some stride 0 with size > 1, or strides that interleave).
cdef bint layout_overlaps_itself(Layout* layout) noexcept nogil
cdef object layout_shape_tuple(Layout* layout)
cdef object layout_stride_tuple(Layout* layout)
cdef size_t live_layouts() noexcept
