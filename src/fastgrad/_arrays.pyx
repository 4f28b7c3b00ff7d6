"""Floor 1: NumPy's side. The contract is in `_arrays.pxd`."""
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy

import numpy as np

from . import _dtypes, _errors

from ._layout cimport Layout, dtype_itemsize, layout_contiguous, layout_release, layout_strided
from ._storage cimport Buffer, buffer_borrow

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyArray_Descr:
        pass
    object PyArray_NewFromDescr(PyTypeObject* subtype, PyArray_Descr* descr, int nd, const Py_ssize_t* dims,
                                const Py_ssize_t* strides, void* data, int flags, PyObject* obj)
    int PyArray_SetBaseObject(cnp.ndarray arr, PyObject* base) except -1
    PyTypeObject PyArray_Type
    int NPY_ARRAY_WRITEABLE

cdef Py_ssize_t* itemsizes = dtype_itemsize()
cdef tuple dtype_objects = _dtypes.DTYPES
cdef tuple dtype_descrs = tuple([np.dtype(d.numpy) for d in _dtypes.DTYPES])
cdef dict codes_by_descr = {np.dtype(d.numpy): d.code for d in _dtypes.DTYPES}


# --- Dtypes -----------------------------------------------------------------------------------------------------------

cdef object dtype_object(int code):
    return <object>(<PyObject*>(<tuple>dtype_objects)[code])


cdef object dtype_descr(int code):
    return (<tuple>dtype_descrs)[code]


cdef int dtype_code_of(object descr) except -1:
    code = codes_by_descr.get(descr)
    if code is None:
        raise TypeError(_errors.unsupported_dtype(descr))
    return <int>code


# --- Memory -----------------------------------------------------------------------------------------------------------

cdef object array_over(Buffer* buffer, Layout* layout, PyObject* base):
    descr = dtype_descr(layout.dtype)
    Py_INCREF(descr)                      # stolen by PyArray_NewFromDescr
    cdef object array = PyArray_NewFromDescr(
        &PyArray_Type, <PyArray_Descr*><PyObject*>descr, layout.ndim, layout.dims, layout.dims + layout.ndim,
        buffer.data + layout.offset, 0 if buffer.readonly else NPY_ARRAY_WRITEABLE, NULL)
    if base is not NULL:
        Py_INCREF(<object>base)           # stolen by PyArray_SetBaseObject
        PyArray_SetBaseObject(array, base)
    return array


cdef Buffer* buffer_over(object array, bint adopt, Layout** layout) except NULL:
    cdef cnp.ndarray a = array
    cdef int code = dtype_code_of(a.dtype)
    if not cnp.PyArray_ISALIGNED(a) or not cnp.PyArray_ISNOTSWAPPED(a):
        a = np.require(a, a.dtype.newbyteorder("="), ["ALIGNED", "OWNDATA"])
        adopt = True
    layout[0] = layout_strided(code, cnp.PyArray_NDIM(a), <Py_ssize_t*>cnp.PyArray_DIMS(a),
                               <Py_ssize_t*>cnp.PyArray_STRIDES(a), 0)
    try:
        return buffer_borrow(cnp.PyArray_BYTES(a), layout[0].numel * itemsizes[code], <PyObject*>a,
                             not cnp.PyArray_ISWRITEABLE(a), adopt)
    except MemoryError:
        layout_release(layout[0])
        raise


cdef Layout* layout_like(object array) except NULL:
    cdef cnp.ndarray a = array
    return layout_contiguous(dtype_code_of(a.dtype), cnp.PyArray_NDIM(a), <Py_ssize_t*>cnp.PyArray_DIMS(a))


cdef int copy_elements(object array, Buffer* buffer, Layout* layout) except -1:
    cdef cnp.ndarray a = array
    if cnp.PyArray_IS_C_CONTIGUOUS(a) and cnp.PyArray_ISBEHAVED_RO(a):
        memcpy(buffer.data, cnp.PyArray_BYTES(a), layout.numel * itemsizes[layout.dtype])
    else:
        np.copyto(array_over(buffer, layout, NULL), a)
    return 0
