"""Floor 1: NumPy's side: its dtypes by our codes, and ndarrays over buffers and buffers over ndarrays.

Neighbours: Buffer (`_storage`) and Layout (`_layout`) below; Tensor
(`_tensor`) above, which is nothing but the two together here. `_dtypes.py`
describes the dtypes for Python.
"""
from cpython.object cimport PyObject

from ._layout cimport Layout
from ._storage cimport Buffer

# The fastgrad.dtype of a code, and NumPy's.
cdef object dtype_object(int code)
cdef object dtype_descr(int code)
# Our code of a NumPy dtype; TypeError for those we do not have.
cdef int dtype_code_of(object descr) except -1
# An ndarray over the buffer's memory that keeps `base` alive (NULL: nothing, the caller sees to it); no copy.
cdef object array_over(Buffer* buffer, Layout* layout, PyObject* base)
# NEW buffer over the array's memory: borrowed, or (adopt) taken over, the caller holding the only other reference.
# layout: NEW, how the array sees it. What is misaligned or of foreign byte order is copied first.
cdef Buffer* buffer_over(object array, bint adopt, Layout** layout) except NULL
# NEW contiguous layout of the array's shape and dtype.
cdef Layout* layout_like(object array) except NULL
# Copy the array's elements to a buffer that is seen through its `layout_like`.
cdef int copy_elements(object array, Buffer* buffer, Layout* layout) except -1
