/* A disk that fails on demand: loaded before libc (LD_PRELOAD), it refuses to sync or to write files whose
 * path ends as the file named by DISK_FAULT says. Its first line is "sync" or "write", its second the ending;
 * while that file isn't there, the disk is well. With "kill" and a word, the process is killed at the end of the
 * first sync after that word was written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile int kills;

/* Whether the order is of this kind; what stands behind it. */
static int is_ordered(const char *what, char *rest) {
    char kind[16];
    const char *order = getenv("DISK_FAULT");
    FILE *file = order ? fopen(order, "r") : NULL;
    if (!file) return 0;
    int read = fscanf(file, "%15s %63s", kind, rest);
    fclose(file);
    return read == 2 && strcmp(kind, what) == 0;
}

static void notice(const void *bytes, size_t count) {
    char word[64];
    if (is_ordered("kill", word) && memmem(bytes, count, word, strlen(word))) kills = 1;
}

static int fails(int fd, const char *what) {
    char ending[64], link[64], path[4096];
    if (!is_ordered(what, ending)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    size_t wanted = strlen(ending);
    return length >= (ssize_t)wanted && memcmp(path + length - wanted, ending, wanted) == 0;
}

#define SYNC(name)                                                        \
    int name(int fd) {                                                    \
        if (fails(fd, "sync")) { errno = EIO; return -1; }                \
        int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name);         \
        int done = next(fd);                                              \
        if (kills && done == 0) kill(getpid(), SIGKILL);                  \
        return done;                                                      \
    }
SYNC(fsync)
SYNC(fdatasync)

ssize_t write(int fd, const void *bytes, size_t count) {
    if (fails(fd, "write")) { errno = ENOSPC; return -1; }
    ssize_t (*next)(int, const void *, size_t) =
        (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return next(fd, bytes, count);
}

#define PWRITE(name, offset_t)                                                            \
    ssize_t name(int fd, const void *bytes, size_t count, offset_t offset) {              \
        if (fails(fd, "write")) { errno = ENOSPC; return -1; }                            \
        notice(bytes, count);                                                             \
        ssize_t (*next)(int, const void *, size_t, offset_t) =                            \
            (ssize_t (*)(int, const void *, size_t, offset_t))dlsym(RTLD_NEXT, #name);    \
        return next(fd, bytes, count, offset);                                            \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)
