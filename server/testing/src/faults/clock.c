/* A clock that fails on demand, loaded before libc (LD_PRELOAD). The file named by CLOCK_FAULT holds the name
 * of a thread. The next time that this thread reads the time of day, the call fails, and no call fails after
 * that. The clock works normally while the file doesn't exist. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static int failed;

static int is_ordered(void) {
    char own[16] = "", ordered[16] = "";
    const char *order = getenv("CLOCK_FAULT");
    FILE *file = order ? fopen(order, "r") : NULL;
    if (!file) return 0;
    int read = fscanf(file, "%15s", ordered);
    fclose(file);
    return read == 1 && prctl(PR_GET_NAME, own) == 0 && strcmp(own, ordered) == 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (clock == CLOCK_REALTIME && !__atomic_load_n(&failed, __ATOMIC_SEQ_CST) && is_ordered() &&
        !__atomic_exchange_n(&failed, 1, __ATOMIC_SEQ_CST)) {
        errno = EINVAL;
        return -1;
    }
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return next(clock, time);
}
