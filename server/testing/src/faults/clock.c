/* A clock that fails on demand, loaded before libc (LD_PRELOAD). It reads its instructions from the file named
 * by CLOCK_FAULT. "panic NAME": the next time that the thread of this name reads the time of day, the call
 * fails, and no call fails after that. "shift SECONDS": the time of day is ahead by so many seconds, or behind
 * if the number is negative. The clock works normally while the file doesn't exist. PostgreSQL reads the time in
 * signal handlers, so only functions that are safe there are called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int (*next)(clockid_t, struct timespec *);
static char order[4096];
static int failed;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CLOCK_FAULT");
    if (path && strlen(path) < sizeof order) strcpy(order, path);
    next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

/* Reads the instruction. Returns its text after `kind` and a space, or NULL if it is of another kind. */
static const char *ordered(const char *kind, char text[64]) {
    int before = errno, file = order[0] ? open(order, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t length = file < 0 ? 0 : read(file, text, 63);
    if (file >= 0) close(file);
    errno = before;
    text[length > 0 ? length : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    size_t start = strlen(kind);
    return strncmp(text, kind, start) == 0 && text[start] == ' ' ? text + start + 1 : NULL;
}

static int is_to_panic(const char *thread) {
    char own[16] = "";
    return prctl(PR_GET_NAME, own) == 0 && strcmp(own, thread) == 0 && !__atomic_exchange_n(&failed, 1, __ATOMIC_SEQ_CST);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    char text[64];
    const char *rest;
    if (!next) begin();
    if (clock != CLOCK_REALTIME) return next(clock, time);
    if ((rest = ordered("panic", text)) && is_to_panic(rest)) {
        errno = EINVAL;
        return -1;
    }
    int result = next(clock, time);
    if (result == 0 && (rest = ordered("shift", text))) time->tv_sec += atol(rest);
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}
