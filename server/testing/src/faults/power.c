/* A disk whose power can be cut, loaded before libc (LD_PRELOAD).
 *
 * A killed process loses nothing that it wrote, because the kernel has it. After a power cut, only synced
 * bytes are certain. This library records them for the files below the folder POWER_DATA: it passes every
 * write on, remembers the range, and copies the ranges of a file to the folder POWER_DISK when the process
 * syncs the file. Syncing a folder stores its names. So POWER_DISK always is what a power cut leaves:
 *
 * - NUMBER.bytes: the synced bytes of the file with this inode number
 * - NUMBER.names: the synced names of the folder with this inode number, one "INODE NAME" per line
 *
 * Syncs of files whose path ends with POWER_IGNORED succeed and do nothing. testing::power restores the
 * files. Writes to memory maps aren't watched: SQLite maps only the index of its log, which it rebuilds. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define PATH_BYTES 4096
/* The end of a range that reaches to the end of the file. */
#define TO_END INT64_MAX

struct range { int64_t from, to; };

/* A file with the ranges that were written since its last sync. */
struct tracked {
    ino_t number;
    /* Never closed. While it is open, no new file gets the inode number. Closing it would drop the locks
     * that SQLite holds on the file (POSIX). */
    int own_fd;
    struct range *ranges;
    size_t count, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tracked *files;
static size_t files_count;

#define NEXT(name, type) ((type)dlsym(RTLD_NEXT, name))
typedef ssize_t (*write_type)(int, const void *, size_t);
typedef ssize_t (*pwrite_type)(int, const void *, size_t, off64_t);
typedef int (*truncate_type)(int, off64_t);

/* The test can't go on without its record. */
static void must(int succeeded, const char *what) {
    if (succeeded) return;
    perror(what);
    abort();
}

static void record_path(char *path, ino_t number, const char *kind) {
    snprintf(path, PATH_BYTES, "%s/%ju.%s", getenv("POWER_DISK"), (uintmax_t)number, kind);
}

/* Whether this is a file or folder in the data folder. Stores its path and status. */
static int is_watched(int fd, char *path, struct stat *status) {
    const char *data = getenv("POWER_DATA");
    char link[64];
    int before = errno, watched = 0;
    if (data && getenv("POWER_DISK") && fstat(fd, status) == 0 &&
        (S_ISREG(status->st_mode) || S_ISDIR(status->st_mode))) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, PATH_BYTES - 1);
        if (length > 0) {
            path[length] = 0;
            watched = strncmp(path, data, strlen(data)) == 0;
        }
    }
    errno = before;
    return watched;
}

/* Returns the file behind a descriptor. The caller has the lock. */
static struct tracked *find(int fd, ino_t number) {
    for (size_t i = 0; i < files_count; i++)
        if (files[i].number == number) return &files[i];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int own_fd = open64(link, O_RDONLY | O_CLOEXEC);
    must(own_fd >= 0, "open64");
    files = realloc(files, (files_count + 1) * sizeof *files);
    must(files != NULL, "realloc");
    files[files_count] = (struct tracked){.number = number, .own_fd = own_fd};
    return &files[files_count++];
}

static void note(int fd, int64_t from, int64_t to) {
    char path[PATH_BYTES];
    struct stat status;
    if (!is_watched(fd, path, &status)) return;
    pthread_mutex_lock(&lock);
    struct tracked *file = find(fd, status.st_ino);
    struct range *last = file->count ? &file->ranges[file->count - 1] : NULL;
    if (last && last->to == from) {
        last->to = to;
    } else {
        if (file->count == file->room) {
            file->room = file->room ? 2 * file->room : 64;
            file->ranges = realloc(file->ranges, file->room * sizeof *file->ranges);
            must(file->ranges != NULL, "realloc");
        }
        file->ranges[file->count++] = (struct range){from, to};
    }
    pthread_mutex_unlock(&lock);
}

static void copy_range(int from, int to, struct range range) {
    static char bytes[1 << 16];
    while (range.from < range.to) {
        int64_t wanted = range.to - range.from;
        if (wanted > (int64_t)sizeof bytes) wanted = sizeof bytes;
        ssize_t got = pread64(from, bytes, wanted, range.from);
        must(got >= 0, "pread64");
        if (got == 0) return;
        must(NEXT("pwrite64", pwrite_type)(to, bytes, got, range.from) == got, "pwrite64");
        range.from += got;
    }
}

/* If another write comes while the ranges are copied, a part of it may be copied too. A disk may also keep
 * unsynced bytes. */
static void sync_file(int fd, ino_t number) {
    char record[PATH_BYTES];
    struct stat status;
    record_path(record, number, "bytes");
    pthread_mutex_lock(&lock);
    struct tracked *file = find(fd, number);
    int to = open64(record, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(to >= 0 && fstat(fd, &status) == 0, record);
    for (size_t i = 0; i < file->count; i++) copy_range(file->own_fd, to, file->ranges[i]);
    must(NEXT("ftruncate64", truncate_type)(to, status.st_size) == 0, record);
    close(to);
    file->count = 0;
    pthread_mutex_unlock(&lock);
}

static void sync_folder(const char *path, ino_t number) {
    char record[PATH_BYTES], draft[PATH_BYTES];
    struct stat status;
    record_path(record, number, "names");
    record_path(draft, number, "draft");
    pthread_mutex_lock(&lock);
    FILE *names = fopen(draft, "we");
    DIR *folder = opendir(path);
    must(names != NULL && folder != NULL, path);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        /* A file may be removed meanwhile. */
        if (entry->d_name[0] == '.' || fstatat(dirfd(folder), entry->d_name, &status, 0) != 0) continue;
        fprintf(names, "%ju %s\n", (uintmax_t)status.st_ino, entry->d_name);
    }
    closedir(folder);
    must(fclose(names) == 0 && rename(draft, record) == 0, record);
    pthread_mutex_unlock(&lock);
}

static int ends_with(const char *path, const char *ending) {
    size_t length = strlen(path), wanted = ending ? strlen(ending) : 0;
    return wanted > 0 && length >= wanted && strcmp(path + length - wanted, ending) == 0;
}

/* Nothing needs the real sync, which would only be slower. */
static int record_sync(int fd, const char *name) {
    char path[PATH_BYTES];
    struct stat status;
    if (!is_watched(fd, path, &status)) return NEXT(name, int (*)(int))(fd);
    if (ends_with(path, getenv("POWER_IGNORED"))) return 0;
    if (S_ISDIR(status.st_mode)) sync_folder(path, status.st_ino);
    else sync_file(fd, status.st_ino);
    return 0;
}

int fsync(int fd) { return record_sync(fd, "fsync"); }
int fdatasync(int fd) { return record_sync(fd, "fdatasync"); }

ssize_t write(int fd, const void *bytes, size_t count) {
    ssize_t done = NEXT("write", write_type)(fd, bytes, count);
    if (done > 0) {
        int64_t end = lseek64(fd, 0, SEEK_CUR);
        if (end >= done) note(fd, end - done, end);
    }
    return done;
}

#define PWRITE(name, offset_t)                                                     \
    ssize_t name(int fd, const void *bytes, size_t count, offset_t offset) {       \
        ssize_t done = NEXT(#name, pwrite_type)(fd, bytes, count, offset);         \
        if (done > 0) note(fd, offset, offset + done);                             \
        return done;                                                               \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* The bytes behind a shorter end are gone, and are zero if the file grows again. */
#define TRUNCATE(name, offset_t)                                                   \
    int name(int fd, offset_t length) {                                            \
        int done = NEXT(#name, truncate_type)(fd, length);                         \
        if (done == 0) note(fd, length, TO_END);                                   \
        return done;                                                               \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)
