"""Floor 1: layouts of views. The contract is in `_views.pxd`."""
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack

from ._layout cimport MAX_NDIM, Layout, dtype_itemsize, layout_strided

# Shadows of: expand, permute, reshape and view (of contiguous tensors), squeeze, transpose, unsqueeze, _select, _slice.


cdef inline int as_dim(object value, int ndim) except -2:
    """A dimension counted from the front; -1 if it is not one (or not an int)."""
    cdef Py_ssize_t dim
    if type(value) is not int:
        return -1
    dim = value if -MAX_NDIM <= value < MAX_NDIM else MAX_NDIM
    if dim < 0:
        dim += ndim
    return <int>dim if 0 <= dim < ndim else -1


cdef int as_sizes(object value, Py_ssize_t* sizes) except -2:
    """The ints of a tuple; how many, or -1 if it is not a tuple of at most MAX_NDIM ints in range."""
    cdef int i
    if not isinstance(value, tuple) or len(value) > MAX_NDIM:
        return -1
    for i in range(<int>len(value)):
        size = (<tuple>value)[i]
        if type(size) is not int or not -1 <= size < (1 << 48):
            return -1
        sizes[i] = size
    return <int>len(value)


cdef Layout* expand_layout(Layout* source, list values) except? NULL:
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int n = as_sizes(values[1], sizes)
    cdef int extra = n - source.ndim
    cdef int i
    if n < 0 or extra < 0:
        return NULL
    for i in range(n):
        strides[i] = 0
        if i < extra:
            if sizes[i] < 0:
                return NULL
        elif sizes[i] == source.dims[i - extra] or sizes[i] == -1:
            sizes[i] = source.dims[i - extra]
            strides[i] = source.dims[source.ndim + i - extra]
        elif source.dims[i - extra] != 1:
            return NULL
    return layout_strided(source.dtype, n, sizes, strides, source.offset)


cdef Layout* permute_layout(Layout* source, list values) except? NULL:
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef bint used[MAX_NDIM]
    cdef int n = source.ndim, i, dim
    dims = values[1]
    if not isinstance(dims, tuple) or len(dims) != n:
        return NULL
    for i in range(n):
        used[i] = False
    for i in range(n):
        dim = as_dim((<tuple>dims)[i], n)
        if dim < 0 or used[dim]:
            return NULL
        used[dim] = True
        sizes[i] = source.dims[dim]
        strides[i] = source.dims[n + dim]
    return layout_strided(source.dtype, n, sizes, strides, source.offset)


cdef Layout* reshape_layout(Layout* source, list values) except? NULL:
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int n = as_sizes(values[1], sizes)
    cdef int i, unknown = -1
    cdef Py_ssize_t known = 1, stride
    if n < 0 or not source.contiguous or source.numel == 0:
        return NULL
    for i in range(n):
        if sizes[i] == -1:
            if unknown >= 0:
                return NULL
            unknown = i
        elif sizes[i] == 0 or known > source.numel // sizes[i]:
            return NULL
        else:
            known *= sizes[i]
    if unknown >= 0:
        if source.numel % known:
            return NULL
        sizes[unknown] = source.numel // known
        known *= sizes[unknown]
    if known != source.numel:
        return NULL
    stride = source_itemsize(source)
    for i in range(n - 1, -1, -1):
        strides[i] = stride
        stride *= sizes[i]
    return layout_strided(source.dtype, n, sizes, strides, source.offset)


cdef Layout* squeeze_layout(Layout* source, list values) except? NULL:
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int i, n = 0, dim = -1
    if values[1] is not None:
        dim = as_dim(values[1], source.ndim)
        if dim < 0:
            return NULL
    for i in range(source.ndim):
        if source.dims[i] == 1 and (dim < 0 or dim == i):
            continue
        sizes[n] = source.dims[i]
        strides[n] = source.dims[source.ndim + i]
        n += 1
    return layout_strided(source.dtype, n, sizes, strides, source.offset)


cdef Layout* transpose_layout(Layout* source, list values) except? NULL:
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int n = source.ndim, i
    cdef int a = as_dim(values[1], n), b = as_dim(values[2], n)
    if a < 0 or b < 0:
        return NULL
    for i in range(n):
        sizes[i] = source.dims[i]
        strides[i] = source.dims[n + i]
    sizes[a], sizes[b] = sizes[b], sizes[a]
    strides[a], strides[b] = strides[b], strides[a]
    return layout_strided(source.dtype, n, sizes, strides, source.offset)


cdef Layout* unsqueeze_layout(Layout* source, list values) except? NULL:
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int n = source.ndim + 1, i, own
    cdef int dim = as_dim(values[1], n)
    if dim < 0 or n > MAX_NDIM:
        return NULL
    for i in range(n):
        own = i if i < dim else i - 1
        if i == dim:
            sizes[i] = 1
            strides[i] = source_itemsize(source)
        else:
            sizes[i] = source.dims[own]
            strides[i] = source.dims[source.ndim + own]
    return layout_strided(source.dtype, n, sizes, strides, source.offset)


cdef Layout* select_layout(Layout* source, Py_ssize_t index) except? NULL:
    if source.ndim == 0:
        return NULL
    if index < 0:
        index += source.dims[0]
    if not 0 <= index < source.dims[0]:
        return NULL
    return layout_strided(source.dtype, source.ndim - 1, source.dims + 1, source.dims + source.ndim + 1,
                          source.offset + index * source.dims[source.ndim])


cdef Layout* index_layout(Layout* source, list values) except? NULL:
    """Basic indexing by a tuple of ints, slices, None and at most one Ellipsis."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t offset = source.offset, start, stop, step, size, stride, i
    cdef int n = 0, axis = 0, covered = 0, _left
    cdef bint dots = False
    index = values[1]
    if not isinstance(index, tuple):
        return NULL
    for item in <tuple>index:
        covered += item is not None and item is not Ellipsis
    if covered > source.ndim:
        return NULL
    for item in <tuple>index:
        if n >= MAX_NDIM:
            return NULL
        if item is None:
            sizes[n] = 1
            strides[n] = source_itemsize(source)
            n += 1
        elif item is Ellipsis:
            if dots:
                return NULL
            dots = True
            for _left in range(source.ndim - covered):
                if n >= MAX_NDIM:
                    return NULL
                sizes[n] = source.dims[axis]
                strides[n] = source.dims[source.ndim + axis]
                n += 1
                axis += 1
        elif type(item) is int:
            size = source.dims[axis]
            if not -size <= item < size:
                return NULL
            i = item
            offset += (i + size if i < 0 else i) * source.dims[source.ndim + axis]
            axis += 1
        elif isinstance(item, slice):
            if not plain_slice(item):
                return NULL
            PySlice_Unpack(item, &start, &stop, &step)
            size = PySlice_AdjustIndices(source.dims[axis], &start, &stop, step)
            stride = source.dims[source.ndim + axis]
            if size:
                offset += start * stride
            sizes[n] = size
            strides[n] = stride * step
            n += 1
            axis += 1
        else:
            return NULL
    while axis < source.ndim:
        if n >= MAX_NDIM:
            return NULL
        sizes[n] = source.dims[axis]
        strides[n] = source.dims[source.ndim + axis]
        n += 1
        axis += 1
    return layout_strided(source.dtype, n, sizes, strides, offset)


cdef bint plain_slice(object s) except -1:
    """Bounds that need no conversion, and a step that is not 0."""
    return ((s.start is None or type(s.start) is int) and (s.stop is None or type(s.stop) is int)
            and (s.step is None or (type(s.step) is int and s.step != 0)))


cdef inline Py_ssize_t source_itemsize(Layout* source) noexcept:
    return dtype_itemsize()[source.dtype]


cdef ViewFunction view_function(str name) noexcept:
    if name == "expand":
        return expand_layout
    if name == "permute":
        return permute_layout
    if name == "reshape" or name == "view":
        return reshape_layout
    if name == "squeeze":
        return squeeze_layout
    if name == "transpose":
        return transpose_layout
    if name == "unsqueeze":
        return unsqueeze_layout
    if name == "_select" or name == "_slice":
        return index_layout
    return NULL
