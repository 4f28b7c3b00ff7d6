"""Floor 2: the ready queue and the set of nodes. The contract is in `_queue.pxd`."""
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport uint8_t

from ._node cimport Node


# --- The ready queue --------------------------------------------------------------------------------------------------

cdef int queue_insert(ReadyQueue* queue, Node* node) except -1:
    cdef Node** heap
    cdef size_t i, parent
    if node.sequence_nr > queue.top.sequence_nr:
        node, queue.top = queue.top, node
    if queue.n == queue.capacity:
        heap = <Node**>PyMem_RawRealloc(queue.heap, (2 * queue.capacity + 16) * sizeof(Node*))
        if heap is NULL:
            raise MemoryError("backward: cannot grow the ready queue")
        queue.heap = heap
        queue.capacity = 2 * queue.capacity + 16
    heap = queue.heap
    i = queue.n
    queue.n += 1
    while i > 0:
        parent = (i - 1) >> 1
        if heap[parent].sequence_nr >= node.sequence_nr:
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = node
    return 0


cdef void queue_promote(ReadyQueue* queue) noexcept:
    """Make the heap's first node the top."""
    cdef Node** heap = queue.heap
    cdef Node* last
    cdef size_t i = 0, child
    queue.top = heap[0]
    queue.n -= 1
    last = heap[queue.n]
    while True:                    # heap[i] is free, and everything above it is in order
        child = 2 * i + 1
        if child >= queue.n:
            break
        if child + 1 < queue.n and heap[child + 1].sequence_nr > heap[child].sequence_nr:
            child += 1
        if last.sequence_nr >= heap[child].sequence_nr:
            break
        heap[i] = heap[child]
        i = child
    if queue.n:
        heap[i] = last


cdef void queue_free(ReadyQueue* queue) noexcept:
    PyMem_RawFree(queue.heap)
    queue.heap = NULL


# --- A set of nodes ---------------------------------------------------------------------------------------------------

cdef inline size_t place_of(NodeMap* nodes, Node* node) noexcept:
    # Nodes are at least 64 bytes apart; the multiplier spreads what is left of the address.
    cdef size_t i = ((<size_t>node >> 4) * 0x9E3779B97F4A7C15u >> 20) & (nodes.capacity - 1)
    while nodes.keys[i] is not NULL and nodes.keys[i] is not node:
        i = (i + 1) & (nodes.capacity - 1)
    return i


cdef void map_free(NodeMap* nodes) noexcept:
    PyMem_RawFree(nodes.keys)
    PyMem_RawFree(nodes.values)
    nodes.keys = NULL
    nodes.values = NULL


cdef int map_reserve(NodeMap* nodes) except -1:
    """Room for one more."""
    cdef NodeMap larger
    cdef size_t i, j
    if nodes.keys is not NULL and 2 * (nodes.n + 1) <= nodes.capacity:
        return 0
    larger.capacity = 2 * nodes.capacity if nodes.capacity else 64
    larger.n = nodes.n
    larger.keys = <Node**>PyMem_RawCalloc(larger.capacity, sizeof(Node*))
    larger.values = <uint8_t*>PyMem_RawCalloc(larger.capacity, 1)
    if larger.keys is NULL or larger.values is NULL:
        PyMem_RawFree(larger.keys)
        PyMem_RawFree(larger.values)
        raise MemoryError("backward: cannot allocate the set of needed nodes")
    for i in range(nodes.capacity):
        if nodes.keys[i] is not NULL:
            j = place_of(&larger, nodes.keys[i])
            larger.keys[j] = nodes.keys[i]
            larger.values[j] = nodes.values[i]
    map_free(nodes)
    nodes[0] = larger
    return 0


cdef int map_put(NodeMap* nodes, Node* node, uint8_t value) except -1:
    cdef size_t i
    map_reserve(nodes)
    i = place_of(nodes, node)
    if nodes.keys[i] is NULL:
        nodes.keys[i] = node
        nodes.n += 1
    nodes.values[i] = value
    return 0


cdef int map_get(NodeMap* nodes, Node* node) noexcept:
    cdef size_t i
    if nodes.n == 0:
        return -1
    i = place_of(nodes, node)
    return -1 if nodes.keys[i] is NULL else nodes.values[i]
