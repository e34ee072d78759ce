/* A disk that fails on demand, loaded before libc (LD_PRELOAD). It reads its instructions from the file named
 * by DISK_FAULT. If the first line is "sync" or "write", that operation fails for files whose path contains
 * the second line, or ends with it if a dollar sign follows. If the first line is "kill", the process is killed
 * at the end of the first sync after it wrote the text in the second line. The disk works normally while the file doesn't exist. */
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

/* Whether the instruction is of this kind. Stores its second line in rest. */
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
    char part[64], link[64], path[4096];
    if (!is_ordered(what, part)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    char *end = strchr(part, '$');
    if (!end) return strstr(path, part) != NULL;
    return length >= end - part && memcmp(path + length - (end - part), part, end - part) == 0;
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

#define PWRITEV(name, offset_t)                                                               \
    ssize_t name(int fd, const struct iovec *parts, int count, offset_t offset) {             \
        if (fails(fd, "write")) { errno = ENOSPC; return -1; }                                \
        ssize_t (*next)(int, const struct iovec *, int, offset_t) =                           \
            (ssize_t (*)(int, const struct iovec *, int, offset_t))dlsym(RTLD_NEXT, #name);   \
        return next(fd, parts, count, offset);                                                \
    }
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)
