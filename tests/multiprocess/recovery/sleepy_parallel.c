/* Put before libgomp, it makes a worker go to sleep in an operation, once, when a file in the run directory says so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

typedef void (*Parallel)(void (*)(void*), void*, unsigned, unsigned);

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  if (unlink("sleep") == 0)
    while (1) pause();
  ((Parallel)dlsym(RTLD_NEXT, "GOMP_parallel"))(body, data, threads, flags);
}
