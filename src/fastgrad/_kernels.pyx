"""Floor 1: finding and running elementwise loops. The contract is in `_kernels.pxd`."""
cimport numpy as cnp
from libc.string cimport memcpy
from numpy cimport npy_intp

import numpy as np

from ._layout cimport (
    BOOL, COMPLEX64, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, MAX_NDIM, N_DTYPES, UINT8,
    UINT16, UINT32, UINT64, Layout, dtype_itemsize, layout_same_shape,
)

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct PyUFuncObject:
        int nin
        int nout
        int ntypes
        LoopFunction* functions
        void** data
        const char* types

cdef extern from "_fused.h":
    ctypedef struct FusedEntry:
        const char* op
        const char* role
        const char* operands
        const char* expression
        int dtype
        LoopFunction set
        LoopFunction add
    FusedEntry* FUSED_TABLE
    int FUSED_COUNT

cdef Py_ssize_t* itemsizes = dtype_itemsize()
cdef Loop add_loops[N_DTYPES]      # += by dtype
cdef Loop copy_loops[N_DTYPES]
cdef int type_codes[32]            # by NumPy type number; filled by setup
cdef dict fused_index = {}         # (op, role, dtype) -> row of FUSED_TABLE


cdef inline int type_code(int type_number) noexcept:
    """Our dtype code of a NumPy type number, -1 for those we do not have."""
    return type_codes[type_number] if 0 <= type_number < 32 else -1


TYPE_CODES = {
    cnp.NPY_BOOL: BOOL, cnp.NPY_BYTE: INT8, cnp.NPY_UBYTE: UINT8, cnp.NPY_SHORT: INT16, cnp.NPY_USHORT: UINT16,
    cnp.NPY_INT: INT32, cnp.NPY_UINT: UINT32, cnp.NPY_LONGLONG: INT64, cnp.NPY_ULONGLONG: UINT64,
    cnp.NPY_FLOAT16: FLOAT16, cnp.NPY_FLOAT: FLOAT32, cnp.NPY_DOUBLE: FLOAT64, cnp.NPY_CFLOAT: COMPLEX64,
    cnp.NPY_CDOUBLE: COMPLEX128,
}


cdef Loop numpy_loop(object ufunc, int n_inputs, int dtype, int out):
    cdef Loop loop
    cdef PyUFuncObject* u = <PyUFuncObject*>ufunc
    cdef int i, j, width = u.nin + u.nout
    cdef bint fits
    loop.function = NULL
    loop.data = NULL
    if u.nin != n_inputs or u.nout != 1:
        return loop
    for i in range(u.ntypes):
        fits = type_code(u.types[i * width + n_inputs]) == out
        for j in range(n_inputs):
            fits = fits and type_code(u.types[i * width + j]) == dtype
        if fits:
            loop.function = u.functions[i]
            loop.data = u.data[i] if u.data is not NULL else NULL
            return loop
    return loop


cdef Loop fused_loop(object op, object role, int dtype, bint accumulate):
    cdef Loop loop
    loop.function = NULL
    loop.data = NULL
    row = fused_index.get((op, role, dtype))
    if row is not None:
        loop.function = FUSED_TABLE[<int>row].add if accumulate else FUSED_TABLE[<int>row].set
    return loop


cdef object fused_operands(object op, object role):
    row = fused_index.get((op, role, <int>FLOAT64))
    if row is None:
        return None
    return (<bytes>FUSED_TABLE[<int>row].operands).decode().split()


cdef bint fused_is_identity(object op, object role):
    row = fused_index.get((op, role, <int>FLOAT64))
    return row is not None and FUSED_TABLE[<int>row].expression == b"g"


def fused_roles():
    """Every (operator, role, dtype code) that has a fused loop: the tests compare each with its formula."""
    return sorted(fused_index)


# --- Running a loop --------------------------------------------------------------------------------------------------

cdef void run(Loop loop, char** args, npy_intp n, npy_intp* steps) noexcept nogil:
    loop.function(args, &n, steps, loop.data)


cdef void elementwise(Loop loop, int n_operands, char** data, Layout** layouts) noexcept:
    cdef Layout* out = layouts[n_operands - 1]
    cdef char* args[MAX_OPERANDS]
    cdef npy_intp steps[MAX_OPERANDS]
    cdef npy_intp n = out.numel
    cdef bint flat = True
    cdef int i
    if n == 0:
        return
    for i in range(n_operands):
        args[i] = data[i] + layouts[i].offset
        if layouts[i].numel == 1:
            steps[i] = 0 if n > 1 else itemsizes[layouts[i].dtype]
        elif layouts[i].contiguous and layouts[i].numel == n:
            steps[i] = itemsizes[layouts[i].dtype]
        else:
            flat = False
            break
    if flat:
        if n < NOGIL_NUMEL:
            run(loop, args, n, steps)
        else:
            with nogil:
                run(loop, args, n, steps)
    elif n < NOGIL_NUMEL:
        elementwise_strided(loop, n_operands, data, layouts)
    else:
        with nogil:
            elementwise_strided(loop, n_operands, data, layouts)


cdef void elementwise_strided(Loop loop, int n_operands, char** data, Layout** layouts) noexcept nogil:
    """The general case: align shapes at the right, merge axes that all operands step through evenly, run the longest
    possible inner loops, and count through the rest like an odometer."""
    cdef Layout* out = layouts[n_operands - 1]
    cdef npy_intp sizes[MAX_NDIM]
    cdef npy_intp strides[MAX_OPERANDS][MAX_NDIM]
    cdef npy_intp index[MAX_NDIM]
    cdef npy_intp steps[MAX_OPERANDS]
    cdef char* args[MAX_OPERANDS]
    cdef char* rows[MAX_OPERANDS]
    cdef int ndim = 0, axis, own, i, d
    cdef bint merge
    for i in range(n_operands):
        rows[i] = data[i] + layouts[i].offset
    # Axes from the innermost outwards, so that axis 0 of the arrays below is the inner loop.
    for axis in range(out.ndim - 1, -1, -1):
        if out.dims[axis] == 1:
            continue
        merge = ndim > 0
        for i in range(n_operands):
            own = axis - (out.ndim - layouts[i].ndim)
            strides[i][ndim] = 0
            if own >= 0 and layouts[i].dims[own] != 1:
                strides[i][ndim] = layouts[i].dims[layouts[i].ndim + own]
            if merge and strides[i][ndim] != strides[i][ndim - 1] * sizes[ndim - 1]:
                merge = False
        if merge:
            sizes[ndim - 1] *= out.dims[axis]
        else:
            sizes[ndim] = out.dims[axis]
            ndim += 1
    if ndim == 0:
        sizes[0] = 1
        ndim = 1
        for i in range(n_operands):
            strides[i][0] = 0
    for i in range(n_operands):
        steps[i] = strides[i][0]
    for d in range(ndim):
        index[d] = 0
    while True:
        for i in range(n_operands):
            args[i] = rows[i]
        run(loop, args, sizes[0], steps)
        d = 1
        while d < ndim:
            index[d] += 1
            for i in range(n_operands):
                rows[i] += strides[i][d]
            if index[d] < sizes[d]:
                break
            for i in range(n_operands):
                rows[i] -= strides[i][d] * sizes[d]
            index[d] = 0
            d += 1
        if d == ndim:
            return


cdef void add_into(char* dst, Layout* dst_layout, char* src, Layout* src_layout, bint holding_gil) noexcept:
    cdef char* data[3]
    cdef Layout* layouts[3]
    cdef Loop loop = add_loops[dst_layout.dtype]
    data[0] = dst
    data[1] = src
    data[2] = dst
    layouts[0] = dst_layout
    layouts[1] = src_layout
    layouts[2] = dst_layout
    if not holding_gil:
        elementwise(loop, 3, data, layouts)
    elif dst_layout.numel:
        elementwise_strided(loop, 3, data, layouts)


cdef void copy_into(char* dst, Layout* dst_layout, char* src, Layout* src_layout) noexcept:
    cdef char* data[2]
    cdef Layout* layouts[2]
    if dst_layout.contiguous and src_layout.contiguous and layout_same_shape(dst_layout, src_layout):
        memcpy(dst + dst_layout.offset, src + src_layout.offset, src_layout.numel * itemsizes[src_layout.dtype])
        return
    data[0] = src
    data[1] = dst
    layouts[0] = src_layout
    layouts[1] = dst_layout
    elementwise(copy_loops[dst_layout.dtype], 2, data, layouts)


cdef void setup():
    cdef int i
    for i in range(32):
        type_codes[i] = <int>TYPE_CODES.get(i, -1)
    type_codes[<int>cnp.NPY_LONG] = INT64 if sizeof(long) == 8 else INT32
    type_codes[<int>cnp.NPY_ULONG] = UINT64 if sizeof(long) == 8 else UINT32
    for i in range(FUSED_COUNT):
        key = (FUSED_TABLE[i].op.decode(), FUSED_TABLE[i].role.decode(), FUSED_TABLE[i].dtype)
        fused_index[key] = i
    for i in range(<int>N_DTYPES):
        add_loops[i] = numpy_loop(np.add, 2, i, i)
        copy_loops[i] = numpy_loop(np.positive, 1, i, i)
    # NumPy has no positive() for bool; a bool's or(x) with itself would need two operands, so copy as bytes.
    copy_loops[<int>BOOL] = numpy_loop(np.positive, 1, UINT8, UINT8)


setup()
