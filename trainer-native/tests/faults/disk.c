// Stands between the trainer and the disk: LD_PRELOAD. It numbers the changes below DISK_FOLDER, writes each to DISK_LOG, and
// lets change number DISK_FAULT_AT fail with the error DISK_ERRNO (and all that follow, if DISK_STAYS is set).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long changes;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static int watched(const char *path) {
    const char *folder = getenv("DISK_FOLDER");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, 4095);
    if (length < 0) return 0;
    path[length] = 0;
    return watched(path);
}

static void put(int fd, const void *bytes, size_t length) {
    while (length > 0) {
        ssize_t done = REAL(write)(fd, bytes, length);
        if (done <= 0) abort();
        bytes = (const char *)bytes + done;
        length -= done;
    }
}

// Numbers a change and logs it: kind, path, second path, place, length, bytes. Returns whether it has to fail.
static int change(char kind, const char *path, const char *other, long place, const void *bytes, long length) {
    pthread_mutex_lock(&lock);
    long at = number("DISK_FAULT_AT");
    changes++;
    int fails = at > 0 && (changes == at || (changes > at && getenv("DISK_STAYS")));
    const char *log = getenv("DISK_LOG");
    if (log && !fails) {
        int fd = REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        char head[9000];
        int size = snprintf(head, sizeof head, "%c\t%s\t%s\t%ld\t%ld\n", kind, path, other, place, length);
        if (fd < 0) abort();
        put(fd, head, size);
        put(fd, bytes, bytes ? length : 0);
        close(fd);
    }
    if (fails) errno = (int)number("DISK_ERRNO");
    pthread_mutex_unlock(&lock);
    return fails;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    char path[4096];
    if (path_of(fd, path)) {
        struct stat file;
        fstat(fd, &file);
        long place = fcntl(fd, F_GETFL) & O_APPEND ? file.st_size : lseek(fd, 0, SEEK_CUR);
        if (change('W', path, "", place, bytes, (long)length)) {
            // A disk that fills up takes a part of what it is given.
            if (errno == ENOSPC && length > 1) REAL(write)(fd, bytes, length / 2), errno = ENOSPC;
            return -1;
        }
    }
    return REAL(write)(fd, bytes, length);
}

#define SYNC(name)                                                              \
    int name(int fd) {                                                          \
        char path[4096];                                                        \
        if (path_of(fd, path) && change('S', path, "", 0, NULL, 0)) return -1;  \
        return REAL(name)(fd);                                                  \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name, type)                                                          \
    int name(int fd, type length) {                                                   \
        char path[4096];                                                              \
        if (path_of(fd, path) && change('T', path, "", length, NULL, 0)) return -1;   \
        return REAL(name)(fd, length);                                                \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
    if (watched(to) && change('R', from, to, 0, NULL, 0)) return -1;
    return REAL(rename)(from, to);
}

int unlink(const char *path) {
    if (watched(path) && access(path, F_OK) == 0 && change('U', path, "", 0, NULL, 0)) return -1;
    return REAL(unlink)(path);
}

int mkdir(const char *path, mode_t mode) {
    if (watched(path) && access(path, F_OK) != 0 && change('M', path, "", 0, NULL, 0)) return -1;
    return REAL(mkdir)(path, mode);
}

#define OPEN(name)                                                                                      \
    int name(const char *path, int flags, ...) {                                                        \
        mode_t mode = 0;                                                                                \
        if (flags & O_CREAT) {                                                                          \
            va_list rest;                                                                               \
            va_start(rest, flags);                                                                      \
            mode = va_arg(rest, mode_t);                                                                \
            va_end(rest);                                                                               \
        }                                                                                               \
        int makes = (flags & O_TRUNC) || ((flags & O_CREAT) && access(path, F_OK) != 0);                \
        if (makes && watched(path) && change('C', path, "", 0, NULL, 0)) return -1;                     \
        return REAL(name)(path, flags, mode);                                                           \
    }
OPEN(open)
OPEN(open64)
