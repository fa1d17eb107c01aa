/* To be preloaded: threads of the name in the file that BERNSTREAM_TEST_HANG names get no answer from a Kafka client. The file may
   change while they run. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static int hangs(void) {
    char wanted[16] = "", name[16] = "";
    const char *path = getenv("BERNSTREAM_TEST_HANG");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return 0;
    ssize_t size = read(file, wanted, sizeof wanted - 1);
    close(file);
    return size > 0 && !pthread_getname_np(pthread_self(), name, sizeof name) && !strcmp(name, wanted);
}

/* librdkafka waits here for everything; the program itself waits elsewhere. The types are those of pthread in the C library of GNU. */
int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    struct timespec later;
    int woken;
    do {
        woken = pthread_cond_clockwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, CLOCK_REALTIME, until);
        timespec_get(&later, TIME_UTC);
        later.tv_sec += 1;
        until = &later;
    } while (hangs());
    return woken == 0 ? thrd_success : woken == ETIMEDOUT ? thrd_timedout : thrd_error;
}
