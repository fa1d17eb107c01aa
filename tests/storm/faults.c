/* To be preloaded: a process that dies at a chosen system call, in one of several ways, or is refused it.

   BERNSTREAM_STORM_FAULT is `WAY CALL COUNT SEED`: at the COUNT-th CALL of the process
     before   it dies instead of making the call,
     after    it dies when the call is made,
     torn     it dies in the middle of it: a part of the bytes is written, SEED says which,
     cut      the power fails: it dies, and the disk keeps of what was not synced what SEED says: of every sector the old or the
              new bytes, of every file the old or the new length, of the changes to a folder the first few.
     eio, enospc, erofs   it is not killed: this call fails with that error, and so do the next ones of its kind, SEED in all.
   CALL is write, sync, truncate, unlink, rename or create, of a file in the folder BERNSTREAM_STORM_FOLDER; or send, receive, of
   any socket; or log, a write to the standard error; read, of a file in that folder, fails but never kills. A call that has failed
   leaves a file `refused` in BERNSTREAM_STORM_KEPT. What is unlinked or replaced is kept in BERNSTREAM_STORM_KEPT until the
   folder is synced, a folder of the same disk.

   `lie` is `cut` of a disk that syncs nothing, ever. No file is synced really: the kernel outlives the process. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum way { NEVER, BEFORE, AFTER, TORN, CUT, LIE, REFUSE };
enum { SECTOR = 512 };

static enum way way;
static char wanted[16];
static uint64_t left, seed;
static int refusal; /* The error of the calls that fail. */
static const char *folder, *kept;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* What a file was at its last sync: its length, and the sectors that were written since. */
struct sector { off_t at; char old[SECTOR]; struct sector *next; };
struct file { dev_t device; ino_t number; int handle; off_t length; struct sector *sectors; struct file *next; };
static struct file *files;

/* A change to the folder that is not synced; the newest first. `saved` is another name of what was there before, if anything. */
struct change { char path[PATH_MAX], from[PATH_MAX], saved[PATH_MAX]; struct change *next; };
static struct change *changes;
static unsigned saves;

__attribute__((constructor)) static void start(void) {
    const char *fault = getenv("BERNSTREAM_STORM_FAULT");
    char how[16];
    folder = getenv("BERNSTREAM_STORM_FOLDER");
    kept = getenv("BERNSTREAM_STORM_KEPT");
    if (!fault || !folder || !kept) return;
    if (sscanf(fault, "%15s %15s %lu %lu", how, wanted, &left, &seed) != 4) abort();
    const char *ways[] = {"never", "before", "after", "torn", "cut", "lie"};
    for (int i = 0; i < 6; i++) if (!strcmp(how, ways[i])) way = i;
    const char *refusals[] = {"eio", "enospc", "erofs"};
    const int errors[] = {EIO, ENOSPC, EROFS};
    for (int i = 0; i < 3; i++) if (!strcmp(how, refusals[i])) way = REFUSE, refusal = errors[i];
}

static uint64_t dice(void) { /* splitmix64 */
    uint64_t z = (seed += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static int inside(const char *path) {
    size_t length = strlen(folder);
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int raw_open(const char *path, int flags, mode_t mode) { return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode); }

static int ours(int handle) {
    char link[64], path[PATH_MAX];
    if (!way) return 0;
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return inside(path);
}

/* Whether a call on one of our files fails; `errno` then says why. */
static int is_refused(const char *call) {
    if (way != REFUSE || strcmp(call, wanted)) return 0;
    pthread_mutex_lock(&mutex);
    int is_it = left <= 1 && seed;
    if (left > 1) left--;
    else if (seed) seed--;
    pthread_mutex_unlock(&mutex);
    if (!is_it) return 0;
    char mark[PATH_MAX];
    snprintf(mark, sizeof mark, "%s/refused", kept);
    int handle = raw_open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (handle >= 0) close(handle);
    errno = refusal;
    return 1;
}

static int cuts(void) { return way == CUT || way == LIE; }

/* The file of a handle, as it is if it was not written since its last sync. */
static struct file *file_of(int handle) {
    struct stat about;
    char link[64];
    if (fstat(handle, &about)) return NULL;
    for (struct file *f = files; f; f = f->next) if (f->device == about.st_dev && f->number == about.st_ino) return f;
    struct file *f = calloc(1, sizeof *f);
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    *f = (struct file){about.st_dev, about.st_ino, raw_open(link, O_RDWR | O_CLOEXEC, 0), about.st_size, NULL, files};
    return files = f;
}

/* Keeps what the bytes from `at` to `end` are, before they change. */
static void keep(struct file *f, off_t at, off_t end) {
    for (at -= at % SECTOR; f && at < end; at += SECTOR) {
        struct sector *s = f->sectors;
        while (s && s->at != at) s = s->next;
        if (s) continue;
        s = calloc(1, sizeof *s);
        s->at = at;
        s->next = f->sectors;
        f->sectors = s;
        syscall(SYS_pread64, f->handle, s->old, SECTOR, at);
    }
}

static void synced(struct file *f) {
    struct stat about;
    if (!f || fstat(f->handle, &about)) return;
    f->length = about.st_size;
    while (f->sectors) {
        struct sector *s = f->sectors;
        f->sectors = s->next;
        free(s);
    }
}

static void changed(const char *path, const char *from) {
    struct change *c = calloc(1, sizeof *c);
    snprintf(c->path, sizeof c->path, "%s", path);
    snprintf(c->from, sizeof c->from, "%s", from ? from : "");
    snprintf(c->saved, sizeof c->saved, "%s/%d-%u", kept, getpid(), saves++);
    if (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, c->saved, 0)) c->saved[0] = 0;
    c->next = changes;
    changes = c;
}

static void folder_synced(void) {
    while (changes) {
        struct change *c = changes;
        changes = c->next;
        if (c->saved[0]) syscall(SYS_unlinkat, AT_FDCWD, c->saved, 0);
        free(c);
    }
    /* Nothing brings back a file that has no name. */
    for (struct file **at = &files; *at;) {
        struct file *f = *at;
        struct stat about;
        if (fstat(f->handle, &about) || about.st_nlink) {
            at = &f->next;
            continue;
        }
        synced(f);
        close(f->handle);
        *at = f->next;
        free(f);
    }
}

static void undo(struct change *c) {
    if (c->from[0]) syscall(SYS_renameat2, AT_FDCWD, c->path, AT_FDCWD, c->from, 0);
    else syscall(SYS_unlinkat, AT_FDCWD, c->path, 0);
    if (c->saved[0]) syscall(SYS_renameat2, AT_FDCWD, c->saved, AT_FDCWD, c->path, 0);
}

static void power_fails(void) {
    int lies = way == LIE;
    uint64_t count = 0;
    for (struct change *c = changes; c; c = c->next) count++;
    count = lies ? count : dice() % (count + 1);
    for (struct change *c = changes; c && count; c = c->next, count--) undo(c);
    for (struct file *f = files; f; f = f->next) {
        struct stat about;
        if (fstat(f->handle, &about)) continue;
        int is_old = lies || dice() % 2, is_cut = about.st_size < f->length;
        for (struct sector *s = f->sectors; s; s = s->next)
            if (lies || (is_old && is_cut) || dice() % 2) syscall(SYS_pwrite64, f->handle, s->old, SECTOR, s->at);
        /* A sector that was restored may lie behind the end. */
        syscall(SYS_ftruncate, f->handle, is_old ? f->length : about.st_size);
    }
    die();
}

/* Before a call: counts it, and holds the others up until `made`. Returns whether it is the one. */
static int comes(const char *call) {
    if (!way) return 0;
    pthread_mutex_lock(&mutex);
    if (way == REFUSE || strcmp(call, wanted) || !left || --left) return 0;
    if (way == BEFORE) die();
    return 1;
}

static void made(int is_it) {
    if (!way) return;
    int before = errno;
    if (is_it) {
        if (cuts()) power_fails();
        die();
    }
    pthread_mutex_unlock(&mutex);
    errno = before;
}

static ssize_t written(int handle, const void *bytes, size_t length, off_t at, int is_at) {
    if (is_refused("write")) return -1;
    int is_it = comes("write");
    off_t from = is_at ? at : lseek(handle, 0, fcntl(handle, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
    if (way && cuts()) keep(file_of(handle), from, from + (off_t)length);
    if (is_it && way == TORN && length) length = dice() % length;
    ssize_t done = is_at ? syscall(SYS_pwrite64, handle, bytes, length, at) : syscall(SYS_write, handle, bytes, length);
    made(is_it);
    return done;
}

ssize_t write(int handle, const void *bytes, size_t length) {
    if (ours(handle)) return written(handle, bytes, length, 0, 0);
    int is_it = handle == 2 && comes("log");
    ssize_t done = syscall(SYS_write, handle, bytes, length);
    if (handle == 2) made(is_it);
    return done;
}

static ssize_t written_at(int handle, const void *bytes, size_t length, off_t at) {
    if (ours(handle)) return written(handle, bytes, length, at, 1);
    return syscall(SYS_pwrite64, handle, bytes, length, at);
}
/* Only where reads fail: a process reads often. */
static int fails_to_read(int handle) { return way == REFUSE && !strcmp(wanted, "read") && ours(handle) && is_refused("read"); }
ssize_t read(int handle, void *bytes, size_t length) {
    return fails_to_read(handle) ? -1 : syscall(SYS_read, handle, bytes, length);
}
static ssize_t read_at(int handle, void *bytes, size_t length, off_t at) {
    return fails_to_read(handle) ? -1 : syscall(SYS_pread64, handle, bytes, length, at);
}
ssize_t pread(int handle, void *bytes, size_t length, off_t at) { return read_at(handle, bytes, length, at); }
ssize_t pread64(int handle, void *bytes, size_t length, off_t at) { return read_at(handle, bytes, length, at); }

ssize_t pwrite(int handle, const void *bytes, size_t length, off_t at) { return written_at(handle, bytes, length, at); }
ssize_t pwrite64(int handle, const void *bytes, size_t length, off_t at) { return written_at(handle, bytes, length, at); }

static int sync_of(int handle, long call) {
    if (!ours(handle)) return (int)syscall(call, handle);
    if (is_refused("sync")) return -1;
    int is_it = comes("sync");
    struct stat about;
    /* The one that the power fails in has not happened. */
    if (cuts() && !is_it && way != LIE && !fstat(handle, &about)) {
        if (S_ISDIR(about.st_mode)) folder_synced();
        else synced(file_of(handle));
    }
    made(is_it);
    return 0;
}
int fsync(int handle) { return sync_of(handle, SYS_fsync); }
int fdatasync(int handle) { return sync_of(handle, SYS_fdatasync); }

static int cut_to(int handle, off_t length) {
    if (!ours(handle)) return (int)syscall(SYS_ftruncate, handle, length);
    if (is_refused("truncate")) return -1;
    int is_it = comes("truncate");
    struct stat about;
    if (cuts() && !fstat(handle, &about)) keep(file_of(handle), length, about.st_size);
    int failed = (int)syscall(SYS_ftruncate, handle, length);
    made(is_it);
    return failed;
}
int ftruncate(int handle, off_t length) { return cut_to(handle, length); }
int ftruncate64(int handle, off_t length) { return cut_to(handle, length); }

int unlink(const char *path) {
    if (!way || !inside(path)) return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (is_refused("unlink")) return -1;
    int is_it = comes("unlink");
    if (cuts() && !access(path, F_OK)) changed(path, NULL);
    int failed = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    made(is_it);
    return failed;
}

int rename(const char *from, const char *to) {
    if (!way || !inside(to)) return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (is_refused("rename")) return -1;
    int is_it = comes("rename");
    if (cuts()) changed(to, from);
    int failed = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    made(is_it);
    return failed;
}

static int opened(const char *path, int flags, mode_t mode) {
    if (!way || !inside(path) || !(flags & O_CREAT)) return raw_open(path, flags, mode);
    if (is_refused("create")) return -1;
    int is_it = comes("create");
    int is_there = !access(path, F_OK);
    if (cuts() && !is_there) changed(path, NULL);
    int handle;
    if (cuts() && is_there && flags & O_TRUNC) {
        struct stat about;
        handle = raw_open(path, flags & ~O_TRUNC, mode);
        if (handle >= 0 && !fstat(handle, &about)) {
            keep(file_of(handle), 0, about.st_size);
            syscall(SYS_ftruncate, handle, 0);
        }
    } else {
        handle = raw_open(path, flags, mode);
    }
    if (cuts() && handle >= 0) file_of(handle);
    made(is_it);
    return handle;
}

#define OPEN(name)                                               \
    int name(const char *path, int flags, ...) {                 \
        va_list rest;                                            \
        va_start(rest, flags);                                   \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                            \
        return opened(path, flags, mode);                        \
    }
OPEN(open)
OPEN(open64)

/* Of a socket. What is received has come before the call is counted: the process may wait for it. */
#define SOCKET(call, count, ...)                       \
    int is_it = !strcmp(count, "send") && comes(count); \
    ssize_t done = syscall(__VA_ARGS__);               \
    if (!strcmp(count, "receive")) is_it = comes(count); \
    made(is_it);                                       \
    return done;

ssize_t send(int handle, const void *bytes, size_t length, int flags) {
    SOCKET(send, "send", SYS_sendto, handle, bytes, length, flags, NULL, 0)
}
ssize_t sendmsg(int handle, const struct msghdr *message, int flags) { SOCKET(sendmsg, "send", SYS_sendmsg, handle, message, flags) }
ssize_t recv(int handle, void *bytes, size_t length, int flags) {
    SOCKET(recv, "receive", SYS_recvfrom, handle, bytes, length, flags, NULL, NULL)
}
ssize_t recvmsg(int handle, struct msghdr *message, int flags) { SOCKET(recvmsg, "receive", SYS_recvmsg, handle, message, flags) }
