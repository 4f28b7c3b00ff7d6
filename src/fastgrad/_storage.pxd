"""Floor 0: buffers, the pool they come from, and slabs for fixed-size objects.

A Buffer is the memory behind one tensor and all its views. Its neighbours:
a Layout (`_layout`) says how a tensor sees the memory, a Saved record
(`_node`) keeps a buffer alive for a derivative. All counters here change
under the GIL only, so none is atomic.
"""
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t

cdef enum BufferKind:
    POOL_SMALL = 0      # header and data are one block of a size class
    POOL_LARGE = 1      # data is a block of its own, cached by the pool
    BORROWED = 2        # data belongs to `owner`, which this buffer keeps alive
    ADOPTED = 3         # as BORROWED, but nobody else can reach `owner`: counted as ours
    ALIAS = 4           # data belongs to `parent`; a version counter of its own

cdef struct Buffer:
    uint32_t refcount     # tensors + saved records + exports; 0 => back to the pool
    uint32_t saved_count  # how many of them are saved records; saved_count <= refcount
    uint32_t version      # +1 per in-place write, shared by all views; never goes back while refcount > 0
    uint8_t kind          # BufferKind
    uint8_t size_class    # POOL_SMALL: index of its free list; POOL_LARGE: of its cache
    uint8_t readonly      # 1 => in-place writes are refused
    uint8_t unused
    char* data            # 16-byte aligned below 64 bytes, 64-byte aligned above (when ours); free list link when free
    size_t nbytes         # bytes asked for, which is what the statistics count

cdef struct MemoryStats:
    size_t live       # bytes in buffers with refcount > 0 that we allocated or adopted
    size_t saved      # bytes in buffers with saved_count > 0
    size_t pooled     # bytes of blocks kept for reuse
    size_t peak       # highest `live` since the last reset
    size_t n_buffers  # buffers with refcount > 0, of every kind

# NEW buffer, contents undefined; the caller releases it. Raises MemoryError.
cdef Buffer* buffer_acquire(size_t nbytes) except NULL
# The same; NULL when memory runs out, for callers that have something to release before they raise.
cdef Buffer* buffer_try(size_t nbytes) noexcept
# NEW buffer over `data`, which `owner` keeps alive (a reference to owner is taken).
cdef Buffer* buffer_borrow(char* data, size_t nbytes, PyObject* owner, bint readonly, bint adopted) except NULL
# NEW buffer over the memory of `parent` (a reference is taken) with its own version counter.
cdef Buffer* buffer_alias(Buffer* parent) except NULL
# The object a BORROWED or ADOPTED buffer keeps alive, BORROWED from it; NULL for the others.
cdef PyObject* buffer_owner(Buffer* buffer) noexcept
# The last reference is gone: memory goes back where it came from. May run Python code (a borrowed owner's end).
cdef void buffer_free(Buffer* buffer) noexcept
# The first and last saved record of a buffer: only these change the statistics.
cdef void buffer_saved_first(Buffer* buffer) noexcept
cdef void buffer_saved_last(Buffer* buffer) noexcept
# Where the statistics live; valid for the life of the process.
cdef MemoryStats* memory_stats() noexcept

cdef inline void buffer_retain(Buffer* buffer) noexcept:
    buffer.refcount += 1

cdef inline void buffer_release(Buffer* buffer) noexcept:
    buffer.refcount -= 1
    if buffer.refcount == 0:
        buffer_free(buffer)

cdef inline void buffer_retain_saved(Buffer* buffer) noexcept:
    buffer.refcount += 1
    buffer.saved_count += 1
    if buffer.saved_count == 1:
        buffer_saved_first(buffer)

cdef inline void buffer_release_saved(Buffer* buffer) noexcept:
    buffer.saved_count -= 1
    if buffer.saved_count == 0:
        buffer_saved_last(buffer)
    buffer_release(buffer)


# --- Slabs -----------------------------------------------------------------------------------------------------------
# Fixed-size slots for the objects made millions of times (tensors, nodes), cut from large chunks so that a deep graph
# lies in memory in the order it was built: the backward pass then walks memory backwards, which the hardware
# prefetches. Chunks are kept for the life of the process, and can be walked slot by slot (the garbage collector needs
# to find every live object, see Note [Collecting cycles] in `_gc`).

cdef struct Slab:
    size_t slot_size    # bytes, a multiple of 16
    void* free          # singly linked through the first word of each free slot
    char* bump          # next never-used slot of the newest chunk
    char* end           # end of the newest chunk
    size_t n_chunks
    char** chunks       # OWNED array of OWNED chunks
    char** chunk_ends
    size_t n_live       # slots handed out

cdef void slab_init(Slab* slab, size_t slot_size) noexcept
# A never-used slot; NULL when memory runs out.
cdef void* slab_refill(Slab* slab) noexcept

# A slot, contents undefined; NULL when memory runs out (no error is set: the caller cleans up, then raises).
cdef inline void* slab_acquire(Slab* slab) noexcept:
    cdef void* slot = slab.free
    if slot is NULL:
        slot = slab_refill(slab)
        if slot is NULL:
            return NULL
    else:
        slab.free = (<void**>slot)[0]
    slab.n_live += 1
    return slot

cdef inline void slab_free(Slab* slab, void* slot) noexcept:
    (<void**>slot)[0] = slab.free
    slab.free = slot
    slab.n_live -= 1
