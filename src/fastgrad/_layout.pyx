"""Floor 0: layouts. The contract is in `_layout.pxd`."""
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.long cimport PyLong_FromSsize_t

from ._storage cimport Slab, slab_acquire, slab_free, slab_init

cdef Py_ssize_t* itemsizes = [1, 1, 1, 2, 4, 8, 2, 4, 8, 2, 4, 8, 8, 16]
cdef Slab layout_slab
cdef size_t n_large = 0                  # layouts of rank > INLINE_NDIM, which malloc serves
cdef Layout* scalars[N_DTYPES]           # OWNED for the life of the process: every reduction to 0-dim shares them

slab_init(&layout_slab, sizeof(Layout))


cdef Py_ssize_t* dtype_itemsize() noexcept:
    return itemsizes


cdef Layout* layout_new(int dtype, int ndim) except NULL:
    """NEW layout with refcount 1; shape, strides, numel and flags are the caller's to fill."""
    global n_large
    cdef Layout* layout
    if ndim <= INLINE_NDIM:
        layout = <Layout*>slab_acquire(&layout_slab)
        if layout is NULL:
            raise MemoryError("fastgrad: cannot allocate a layout")
    elif ndim > MAX_NDIM:
        raise ValueError(f"fastgrad: tensors have at most {MAX_NDIM} dimensions, got {ndim}")
    else:
        layout = <Layout*>PyMem_RawMalloc(sizeof(Layout) + (2 * ndim - 8) * sizeof(Py_ssize_t))
        if layout is NULL:
            raise MemoryError("fastgrad: cannot allocate a layout")
        n_large += 1
    layout.refcount = 1
    layout.dtype = <uint8_t>dtype
    layout.ndim = <uint8_t>ndim
    layout.offset = 0
    return layout


cdef void layout_free(Layout* layout) noexcept:
    global n_large
    if layout.ndim <= INLINE_NDIM:
        slab_free(&layout_slab, layout)
    else:
        n_large -= 1
        PyMem_RawFree(layout)


cdef Layout* layout_contiguous(int dtype, int ndim, const Py_ssize_t* shape) except NULL:
    cdef Py_ssize_t itemsize = itemsizes[dtype]
    cdef Py_ssize_t numel = 1, stride = itemsize
    cdef int i
    cdef bint empty = False
    for i in range(ndim):
        if shape[i] < 0:
            raise RuntimeError(f"fastgrad: a size cannot be negative: {[shape[k] for k in range(ndim)]}")
        empty = empty or shape[i] == 0
    for i in range(ndim):
        if shape[i] != 0 and numel > (<Py_ssize_t>1 << 60) // (shape[i] * itemsize):
            if not empty:
                raise RuntimeError(f"fastgrad: a tensor of shape {[shape[k] for k in range(ndim)]} is too large")
            numel = 0
        numel *= shape[i]
    cdef Layout* layout = layout_new(dtype, ndim)
    cdef Py_ssize_t* strides = layout.dims + ndim
    for i in range(ndim - 1, -1, -1):
        layout.dims[i] = shape[i]
        strides[i] = stride
        stride *= shape[i] if shape[i] > 1 else 1
    layout.numel = numel
    layout.contiguous = 1
    layout.dense = 1
    return layout


cdef bint is_contiguous(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t itemsize) noexcept:
    cdef int i
    cdef Py_ssize_t expected = itemsize
    for i in range(ndim - 1, -1, -1):
        if shape[i] != 1:
            if strides[i] != expected:
                return False
            expected *= shape[i]
    return True


cdef bint is_dense(int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t itemsize) noexcept:
    """Whether some order of the axes is contiguous: each axis found in turn by its stride (ndim**2, ndim is small)."""
    cdef int i
    cdef int found
    cdef Py_ssize_t expected = itemsize
    cdef int left = 0
    for i in range(ndim):
        if shape[i] != 1:
            left += 1
    while left:
        found = -1
        for i in range(ndim):
            if shape[i] != 1 and strides[i] == expected:
                found = i
                break
        if found < 0:
            return False
        expected *= shape[found]
        left -= 1
    return True


cdef Layout* layout_strided(int dtype, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides,
                            Py_ssize_t offset) except NULL:
    cdef Layout* layout
    cdef Py_ssize_t numel = 1
    cdef int i
    for i in range(ndim):
        if shape[i] > 0 and numel > (<Py_ssize_t>1 << 62) // shape[i]:
            raise RuntimeError(f"numel: integer multiplication overflow: {[shape[k] for k in range(ndim)]}")
        numel *= shape[i]
    layout = layout_new(dtype, ndim)
    for i in range(ndim):
        layout.dims[i] = shape[i]
        layout.dims[ndim + i] = strides[i]
    layout.numel = numel
    layout.offset = offset
    layout.contiguous = numel == 0 or is_contiguous(ndim, shape, strides, itemsizes[dtype])
    layout.dense = layout.contiguous or is_dense(ndim, shape, strides, itemsizes[dtype])
    return layout


cdef Layout* layout_fresh(Layout* like, int dtype) except NULL:
    if like.contiguous and like.offset == 0 and like.dtype == dtype and like.numel > 0:
        like.refcount += 1
        return like
    if like.ndim == 0:
        return layout_scalar(dtype)
    return layout_contiguous(dtype, like.ndim, like.dims)


cdef Layout* layout_scalar(int dtype) except NULL:
    if scalars[dtype] is NULL:
        scalars[dtype] = layout_contiguous(dtype, 0, NULL)
    scalars[dtype].refcount += 1
    return scalars[dtype]


cdef bint layout_same_shape(Layout* a, Layout* b) noexcept nogil:
    cdef int i
    if a is b:
        return True
    if a.ndim != b.ndim or a.numel != b.numel:
        return False
    for i in range(a.ndim):
        if a.dims[i] != b.dims[i]:
            return False
    return True


cdef void layout_span(Layout* layout, Py_ssize_t* low, Py_ssize_t* high) noexcept nogil:
    cdef int i
    cdef Py_ssize_t reach
    low[0] = layout.offset
    high[0] = layout.offset
    if layout.numel == 0:
        return
    for i in range(layout.ndim):
        reach = (layout.dims[i] - 1) * layout.dims[layout.ndim + i]
        if reach > 0:
            high[0] += reach
        else:
            low[0] += reach
    high[0] += itemsizes[layout.dtype]


cdef bint layout_overlaps_itself(Layout* layout) noexcept nogil:
    """Exact for what views can make by slicing and expanding; conservative (yes) for interleaved as_strided ones."""
    cdef int i, j, left
    cdef Py_ssize_t reach = itemsizes[layout.dtype], stride
    cdef bint used[64]
    if layout.dense or layout.numel <= 1:
        return False
    left = 0
    for i in range(layout.ndim):
        used[i] = layout.dims[i] == 1
        left += not used[i]
    while left:
        # The axis of the smallest stride left must step over all that the axes before it span.
        j = -1
        for i in range(layout.ndim):
            if not used[i] and (j < 0 or magnitude(layout.dims[layout.ndim + i])
                                < magnitude(layout.dims[layout.ndim + j])):
                j = i
        stride = magnitude(layout.dims[layout.ndim + j])
        if stride < reach:
            return True
        reach += (layout.dims[j] - 1) * stride
        used[j] = True
        left -= 1
    return False


cdef inline Py_ssize_t magnitude(Py_ssize_t x) noexcept nogil:
    return x if x >= 0 else -x


cdef object size_tuple(int n, const Py_ssize_t* values, Py_ssize_t divisor):
    cdef object result = PyTuple_New(n)
    cdef int i
    for i in range(n):
        value = PyLong_FromSsize_t(values[i] // divisor)
        Py_INCREF(value)          # stolen by SET_ITEM
        PyTuple_SET_ITEM(result, i, value)
    return result


cdef object layout_shape_tuple(Layout* layout):
    return size_tuple(layout.ndim, layout.dims, 1)


cdef object layout_stride_tuple(Layout* layout):
    """Strides in elements, as PyTorch counts them."""
    return size_tuple(layout.ndim, layout.dims + layout.ndim, itemsizes[layout.dtype])


cdef size_t live_layouts() noexcept:
    return layout_slab.n_live + n_large
