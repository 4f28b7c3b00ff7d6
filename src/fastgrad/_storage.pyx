"""Floor 0: the pool of buffers, their reference counts, and slabs. The contract is in `_storage.pxd`."""
from cpython.mem cimport PyMem_RawRealloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_DECREF
from libc.string cimport memset

cdef extern from "_platform.h" nogil:
    void* fg_aligned_alloc(size_t alignment, size_t nbytes)
    void fg_aligned_free(void* block)
    void fg_prefer_huge_pages(void* block, size_t nbytes)

# --- Size classes ----------------------------------------------------------------------------------------------------
# Small: header and data in one block, so that one cache miss fetches both. Data up to 48 bytes starts right after the
# 32-byte header (16-byte aligned, no padding: a one-element tensor costs 48 bytes); larger data starts at +64, which
# keeps it 64-byte aligned because the blocks are.
# Large: the data is a block of its own; classes are eighths of a power of two, so at most 12 % is wasted.
cdef enum:
    HEADER = 32
    N_TINY = 3             # 16, 32, 48 bytes
    N_SMALL = 13           # then 64, 128, ... 32768
    MAX_SMALL = 32768
    N_LARGE = 216          # above 32 KiB to 2**42, eight steps an octave
    FIRST_CHUNK = 65536    # chunks double from here ...
    HUGE_PAGE = 2097152    # ... to one huge page (x86-64 and the common ARM granule)

# Kept for reuse beyond this, large blocks go back to the system. 256 MiB holds the activations of every workload in
# bench/ but the ones that measure the bound itself.
cdef size_t POOL_MAX_BYTES = 256 * 1024 * 1024

cdef MemoryStats stats
cdef Buffer* small_free[N_SMALL]   # linked through `data`
cdef char* small_bump[N_SMALL]
cdef char* small_end[N_SMALL]
cdef int small_chunks[N_SMALL]     # chunks taken so far
cdef void* large_free[N_LARGE]     # linked through the first word of each block
cdef Slab header_slab              # headers of buffers whose data lies elsewhere (SplitBuffer)
cdef size_t large_pooled = 0       # bytes in large_free, the bounded part of stats.pooled

cdef struct SplitBuffer:
    Buffer head
    void* keeper    # BORROWED, ADOPTED: OWNED PyObject*; ALIAS: OWNED Buffer*; else NULL

memset(&stats, 0, sizeof(stats))
slab_init(&header_slab, sizeof(SplitBuffer))


cdef MemoryStats* memory_stats() noexcept:
    return &stats


cdef inline int small_class(size_t nbytes) noexcept nogil:
    cdef int index = N_TINY
    cdef size_t capacity = 64
    if nbytes <= 48:
        return <int>((nbytes + 15) >> 4) - 1 if nbytes else 0
    while capacity < nbytes:
        capacity <<= 1
        index += 1
    return index


cdef inline size_t small_block_size(int index) noexcept nogil:
    if index < N_TINY:
        return HEADER + 16 * (<size_t>index + 1)
    return 64 + (<size_t>64 << (index - N_TINY))


cdef inline int large_class(size_t nbytes, size_t* capacity) noexcept nogil:
    """Smallest class of at least nbytes; classes are k * 2**e / 8 for k in 8..15."""
    cdef int exponent = 15
    cdef size_t step
    while (<size_t>2 << exponent) < nbytes:
        exponent += 1
    step = (<size_t>1 << exponent) >> 3
    cdef size_t k = (nbytes + step - 1) // step       # 9..16
    capacity[0] = k * step
    return (exponent - 15) * 8 + <int>k - 9


cdef inline void count_live(size_t nbytes) noexcept:
    stats.n_buffers += 1
    stats.live += nbytes
    if stats.live > stats.peak:
        stats.peak = stats.live


cdef Buffer* small_refill(int index) noexcept:
    """A never-used block, cut from a chunk of the class; NULL when memory runs out."""
    cdef size_t size = small_block_size(index)
    cdef size_t chunk
    if small_bump[index] is NULL or small_bump[index] + size > small_end[index]:
        chunk = chunk_size(small_chunks[index])
        small_bump[index] = <char*>chunk_alloc(chunk)
        if small_bump[index] is NULL:
            small_end[index] = NULL
            return NULL
        small_end[index] = small_bump[index] + chunk
        small_chunks[index] += 1
    cdef Buffer* buffer = <Buffer*>small_bump[index]
    small_bump[index] += size
    return buffer


cdef inline size_t chunk_size(size_t n_chunks) noexcept:
    """64 KiB first, then doubling to 2 MiB: a small program stays small, a deep graph gets whole huge pages."""
    return <size_t>FIRST_CHUNK << (n_chunks if n_chunks < 5 else 5)


cdef void* chunk_alloc(size_t size) noexcept:
    cdef void* chunk = fg_aligned_alloc(HUGE_PAGE if size == HUGE_PAGE else 64, size)
    if chunk is not NULL and size == HUGE_PAGE:
        fg_prefer_huge_pages(chunk, size)
    return chunk


cdef Buffer* buffer_acquire(size_t nbytes) except NULL:
    cdef Buffer* buffer = buffer_try(nbytes)
    if buffer is NULL:
        raise MemoryError(f"fastgrad: cannot allocate {nbytes} bytes for a tensor")
    return buffer


cdef Buffer* buffer_try(size_t nbytes) noexcept:
    cdef Buffer* buffer
    cdef int index
    if nbytes > MAX_SMALL:
        buffer = acquire_large(nbytes)
        if buffer is NULL:
            return NULL
    else:
        index = small_class(nbytes)
        buffer = small_free[index]
        if buffer is not NULL:
            small_free[index] = <Buffer*>buffer.data
            stats.pooled -= small_block_size(index)
        else:
            buffer = small_refill(index)
            if buffer is NULL:
                return NULL
        buffer.kind = POOL_SMALL
        buffer.size_class = <uint8_t>index
        buffer.data = <char*>buffer + (HEADER if index < N_TINY else 64)
    buffer.refcount = 1
    buffer.saved_count = 0
    buffer.version = 0
    buffer.readonly = 0
    buffer.nbytes = nbytes
    count_live(nbytes)
    return buffer


cdef Buffer* acquire_large(size_t nbytes) noexcept:
    global large_pooled
    cdef size_t capacity = 0
    cdef int index
    cdef void* block
    cdef SplitBuffer* split
    if nbytes > (<size_t>1 << 42):
        return NULL                # beyond the largest class, and beyond what any machine has
    split = <SplitBuffer*>slab_acquire(&header_slab)
    if split is NULL:
        return NULL
    index = large_class(nbytes, &capacity)
    block = large_free[index]
    if block is not NULL:
        large_free[index] = (<void**>block)[0]
        stats.pooled -= capacity
        large_pooled -= capacity
    else:
        block = fg_aligned_alloc(64 if capacity < HUGE_PAGE else HUGE_PAGE, capacity)
        if block is NULL:
            empty_pool()           # what we hoard may be what is missing
            block = fg_aligned_alloc(64, capacity)
        if block is NULL:
            slab_free(&header_slab, split)
            return NULL
        if capacity >= HUGE_PAGE:
            fg_prefer_huge_pages(block, capacity)
    split.keeper = NULL
    split.head.kind = POOL_LARGE
    split.head.size_class = <uint8_t>index
    split.head.data = <char*>block
    return &split.head


cdef void free_large(Buffer* buffer) noexcept:
    global large_pooled
    cdef size_t capacity = 0
    cdef int index = large_class(buffer.nbytes, &capacity)
    if large_pooled + capacity <= POOL_MAX_BYTES:
        (<void**>buffer.data)[0] = large_free[index]
        large_free[index] = buffer.data
        large_pooled += capacity
        stats.pooled += capacity
    else:
        fg_aligned_free(buffer.data)
    slab_free(&header_slab, buffer)


cdef Buffer* split_new(char* data, size_t nbytes, void* keeper, BufferKind kind) except NULL:
    cdef SplitBuffer* split = <SplitBuffer*>slab_acquire(&header_slab)
    if split is NULL:
        raise MemoryError("fastgrad: cannot allocate a buffer's header")
    split.keeper = keeper
    split.head.refcount = 1
    split.head.saved_count = 0
    split.head.version = 0
    split.head.kind = <uint8_t>kind
    split.head.size_class = 0
    split.head.readonly = 0
    split.head.data = data
    split.head.nbytes = nbytes
    return &split.head


cdef Buffer* buffer_borrow(char* data, size_t nbytes, PyObject* owner, bint readonly, bint adopted) except NULL:
    cdef Buffer* buffer = split_new(data, nbytes, owner, ADOPTED if adopted else BORROWED)
    Py_INCREF(<object>owner)   # released by free_split
    buffer.readonly = readonly
    count_live(nbytes if adopted else 0)
    return buffer


cdef Buffer* buffer_alias(Buffer* parent) except NULL:
    if parent.kind == ALIAS:       # of the memory's owner, so that freeing never goes deeper than one
        parent = <Buffer*>(<SplitBuffer*>parent).keeper
    cdef Buffer* buffer = split_new(parent.data, parent.nbytes, parent, ALIAS)
    buffer_retain(parent)      # released by free_split
    buffer.readonly = parent.readonly
    count_live(0)
    return buffer


cdef PyObject* buffer_owner(Buffer* buffer) noexcept:
    if buffer.kind == BORROWED or buffer.kind == ADOPTED:
        return <PyObject*>(<SplitBuffer*>buffer).keeper
    return NULL


cdef void free_split(Buffer* buffer) noexcept:
    cdef void* keeper = (<SplitBuffer*>buffer).keeper
    cdef bint alias = buffer.kind == ALIAS
    slab_free(&header_slab, buffer)
    if alias:
        buffer_release(<Buffer*>keeper)      # an alias's parent is never an alias of the same buffer: bounded depth
    else:
        Py_DECREF(<object>keeper)


cdef void buffer_free(Buffer* buffer) noexcept:
    cdef int index
    stats.n_buffers -= 1
    if buffer.kind == POOL_SMALL:
        stats.live -= buffer.nbytes
        index = buffer.size_class
        buffer.data = <char*>small_free[index]
        small_free[index] = buffer
        stats.pooled += small_block_size(index)
    elif buffer.kind == POOL_LARGE:
        stats.live -= buffer.nbytes
        free_large(buffer)
    else:
        if buffer.kind == ADOPTED:
            stats.live -= buffer.nbytes
        free_split(buffer)


cdef void buffer_saved_first(Buffer* buffer) noexcept:
    stats.saved += buffer.nbytes


cdef void buffer_saved_last(Buffer* buffer) noexcept:
    stats.saved -= buffer.nbytes


cdef size_t empty_pool() noexcept:
    """Give the cached large blocks back; small blocks stay (their chunks are shared with live buffers)."""
    global large_pooled
    cdef size_t freed = large_pooled
    cdef int index
    cdef void* block
    for index in range(N_LARGE):
        while large_free[index] is not NULL:
            block = large_free[index]
            large_free[index] = (<void**>block)[0]
            fg_aligned_free(block)
    stats.pooled -= freed
    large_pooled = 0
    return freed


# --- Slabs -----------------------------------------------------------------------------------------------------------
cdef void slab_init(Slab* slab, size_t slot_size) noexcept:
    memset(slab, 0, sizeof(Slab))
    slab.slot_size = (slot_size + 15) & ~<size_t>15


cdef void* slab_refill(Slab* slab) noexcept:
    cdef size_t size
    cdef char** chunks
    cdef char* chunk
    cdef void* slot
    if slab.bump is NULL or slab.bump + slab.slot_size > slab.end:
        size = chunk_size(slab.n_chunks)
        chunks = <char**>PyMem_RawRealloc(slab.chunks, (slab.n_chunks + 1) * sizeof(char*))
        if chunks is NULL:
            return NULL
        slab.chunks = chunks
        chunks = <char**>PyMem_RawRealloc(slab.chunk_ends, (slab.n_chunks + 1) * sizeof(char*))
        if chunks is NULL:
            return NULL
        slab.chunk_ends = chunks
        chunk = <char*>chunk_alloc(size)
        if chunk is NULL:
            return NULL
        slab.chunks[slab.n_chunks] = chunk
        slab.chunk_ends[slab.n_chunks] = chunk + size // slab.slot_size * slab.slot_size
        slab.n_chunks += 1
        slab.bump = chunk
        slab.end = slab.chunk_ends[slab.n_chunks - 1]
    slot = slab.bump
    slab.bump += slab.slot_size
    return slot


# --- What Python sees (fastgrad.memory) ------------------------------------------------------------------------------

def live_bytes():
    return stats.live


def saved_bytes():
    return stats.saved


def pooled_bytes():
    return stats.pooled


def peak_bytes():
    return stats.peak


def reset_peak():
    stats.peak = stats.live


def live_buffers():
    return stats.n_buffers


def release_pool():
    return empty_pool()


def set_pool_limit(size_t nbytes):
    global POOL_MAX_BYTES
    cdef size_t previous = POOL_MAX_BYTES
    POOL_MAX_BYTES = nbytes
    return previous
