/* To be preloaded: moves the wall clock of a process by the microseconds in the file that BERNSTREAM_TEST_CLOCK names, which
   may change while it runs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *shift;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("BERNSTREAM_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) shift = page;
    close(file);
}

int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, id, now);
    if (failed || !shift || id != CLOCK_REALTIME) return failed;
    int64_t nanos = now->tv_nsec + (*shift % 1000000) * 1000;
    now->tv_sec += *shift / 1000000 + (nanos >= 1000000000) - (nanos < 0);
    now->tv_nsec = nanos + (nanos < 0 ? 1000000000 : nanos >= 1000000000 ? -1000000000 : 0);
    return 0;
}
