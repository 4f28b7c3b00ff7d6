/* The few things that differ between platforms: aligned blocks, huge pages, thread-local storage. */
#ifndef FASTGRAD_PLATFORM_H
#define FASTGRAD_PLATFORM_H

#include <stdlib.h>

#if defined(_MSC_VER)
#include <malloc.h>
#define FG_THREAD_LOCAL __declspec(thread)
static inline void *fg_aligned_alloc(size_t alignment, size_t nbytes) { return _aligned_malloc(nbytes, alignment); }
static inline void fg_aligned_free(void *block) { _aligned_free(block); }
#else
#define FG_THREAD_LOCAL __thread
static inline void *fg_aligned_alloc(size_t alignment, size_t nbytes)
{
    void *block = NULL;
    return posix_memalign(&block, alignment, nbytes) == 0 ? block : NULL;
}
static inline void fg_aligned_free(void *block) { free(block); }
#endif

/* What each thread decides for itself. Zero is the state of a new thread: recording is on. */
typedef struct {
    int grad_disabled;   /* no_grad */
    int inference;       /* inference_mode; recording is off as well */
    void *pack_hooks;    /* BORROWED tuple (pack, unpack) of the innermost saved_tensors_hooks, or NULL */
} FgThreadMode;

#if defined(__linux__)
#include <stdint.h>
#include <sys/mman.h>
/* Advice only: where huge pages are off or the range is unaligned the kernel says no, and nothing is lost. A 2 MiB page
 * instead of 512 small ones saves the page faults that dominate the first touch of a deep graph. */
static inline void fg_prefer_huge_pages(void *block, size_t nbytes)
{
    uintptr_t start = ((uintptr_t)block + 4095) & ~(uintptr_t)4095;
    uintptr_t end = ((uintptr_t)block + nbytes) & ~(uintptr_t)4095;
    if (end > start)
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}
#else
static inline void fg_prefer_huge_pages(void *block, size_t nbytes) { (void)block; (void)nbytes; }
#endif

#endif
