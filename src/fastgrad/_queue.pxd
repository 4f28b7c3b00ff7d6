"""Floor 2: the two collections of a backward pass, as plain structs: the ready queue, and a set of nodes.

Neighbours: a Node (`_node`) carries the sequence number that orders the
queue; a Pass (`_pass`) has one of each. All nodes here are BORROWED: whoever
puts them in keeps them alive until they are out.
"""
from libc.stdint cimport uint8_t

from ._node cimport Node

# The ready nodes, by sequence number. Zeroed memory is an empty queue.
cdef struct ReadyQueue:
    Node* top            # the highest sequence number; NULL <=> the queue is empty. A chain uses nothing but this
    Node** heap          # OWNED: the other nodes, heap[(i - 1) / 2] above heap[i]
    size_t n             # nodes in the heap
    size_t capacity

# A set of nodes with one byte each: open addressing, no deletion. Zeroed memory is "no set", see map_reserve.
cdef struct NodeMap:
    Node** keys          # OWNED; NULL marks a free place
    uint8_t* values      # OWNED
    size_t capacity      # a power of two; at most half full
    size_t n

# What push and pop do when there is more than one node.
cdef int queue_insert(ReadyQueue* queue, Node* node) except -1
cdef void queue_promote(ReadyQueue* queue) noexcept

cdef inline int queue_push(ReadyQueue* queue, Node* node) except -1:
    if queue.top is not NULL:
        return queue_insert(queue, node)
    queue.top = node               # the heap is empty then, too
    return 0

# The ready node of the highest sequence number; NULL when there is none.
cdef inline Node* queue_pop(ReadyQueue* queue) noexcept:
    cdef Node* node = queue.top
    queue.top = NULL
    if queue.n:
        queue_promote(queue)
    return node

cdef void queue_free(ReadyQueue* queue) noexcept

# Room for one more; from here on there is a set.
cdef int map_reserve(NodeMap* nodes) except -1
cdef int map_put(NodeMap* nodes, Node* node, uint8_t value) except -1
# The node's value, -1 if it has none.
cdef int map_get(NodeMap* nodes, Node* node) noexcept
cdef void map_free(NodeMap* nodes) noexcept
