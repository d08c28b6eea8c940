/* Fails or records what a process writes below one folder.

   Loaded with LD_PRELOAD, so that SQLite, native writers and child processes pass through it as
   well as Python does. What bypasses the C library (raw system calls, stores to mapped memory)
   is not seen. `__init__.py` beside this file sets the shared page and reads the recording. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, NAME = 2, SYNC = 4, KILLED = -9 };

/* One page, shared by every process of a trial; the order of `_FIELDS` in `__init__.py`. */
struct page {
    int64_t count;  /* operations of `kinds` so far */
    int64_t first;  /* the first that fails; 0 = none does */
    int64_t error;  /* its errno; KILLED = the process dies before it */
    int64_t kinds;  /* which kinds are counted and fail */
    int64_t halved; /* the first write lands by half, and only later ones fail */
    int64_t record; /* whether operations are recorded */
    char folder[1024];
};

static struct page *page;
static int tape = -1;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("OSLER_FAULTS");
    char log[1100];
    if (!path) return;
    int fd = REAL(open)(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *at = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) return;
    snprintf(log, sizeof log, "%s.log", path);
    tape = REAL(open)(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    page = at;
}

static int inside(const char *path) {
    size_t length = strlen(page->folder);
    return length && !strncmp(path, page->folder, length) &&
           (path[length] == '/' || !path[length]);
}

/* The absolute path of `path` beside `dir`; whether it is below the folder. */
static int resolve(int dir, const char *path, char *out) {
    char base[4096];
    if (!page || !path) return 0;
    if (path[0] == '/') {
        snprintf(out, 4096, "%s", path);
    } else {
        ssize_t got;
        if (dir == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
            if ((got = readlink(link, base, sizeof base - 1)) < 0) return 0;
            base[got] = 0;
        }
        snprintf(out, 4096, "%.2000s/%.2000s", base, path);
    }
    return inside(out);
}

static int of_file(int fd, char *out) {
    char link[64];
    if (!page) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, out, 4095);
    if (got < 0) return 0;
    out[got] = 0;
    return inside(out) && !strstr(out, " (deleted)");
}

/* 0, or the errno that this operation ends with; -1 = it lands by half. */
static int verdict(int kind) {
    if (!(page->kinds & kind)) return 0;
    int64_t now = __atomic_add_fetch(&page->count, 1, __ATOMIC_SEQ_CST);
    if (!page->first || now < page->first) return 0;
    if (page->error == KILLED) kill(getpid(), SIGKILL);
    if (page->halved && now == page->first) return kind == WRITE ? -1 : 0;
    return (int)page->error;
}

static void keep(char what, const char *path, const char *other, uint64_t at, const void *data,
                 uint64_t length) {
    if (!page->record || tape < 0) return;
    int saved = errno;
    uint32_t one = strlen(path), two = other ? strlen(other) : 0;
    size_t total = 1 + 4 + 4 + 8 + 8 + one + two + (data ? length : 0), put = 0;
    char *all = malloc(total);
#define PUT(from, size) (memcpy(all + put, from, size), put += (size))
    PUT(&what, 1);
    PUT(&one, 4);
    PUT(&two, 4);
    PUT(&at, 8);
    PUT(&length, 8);
    PUT(path, one);
    if (two) PUT(other, two);
    if (data) PUT(data, length);
    REAL(write)(tape, all, total);
    free(all);
    errno = saved;
}

#define FAIL(kind)                         \
    do {                                   \
        int said = verdict(kind);          \
        if (said > 0) {                    \
            errno = said;                  \
            return -1;                     \
        }                                  \
    } while (0)

/* Opening and creating */

static int opened(int dir, const char *path, int flags, mode_t mode) {
    char full[4096];
    int ours = (flags & (O_WRONLY | O_RDWR | O_CREAT)) && !(flags & O_DIRECTORY) &&
               resolve(dir, path, full);
    if (ours) FAIL(NAME);
    struct stat before;
    int there = ours && !fstatat(AT_FDCWD, full, &before, 0);
    int fd = REAL(openat)(dir, path, flags, mode);
    if (ours && fd >= 0) {
        if (!there) keep('C', full, NULL, 0, NULL, 0);
        if (there && (flags & O_TRUNC)) keep('T', full, NULL, 0, NULL, 0);
    }
    return fd;
}

#define MODE(last)                                   \
    mode_t mode = 0;                                 \
    if (flags & (O_CREAT | __O_TMPFILE)) {           \
        va_list more;                                \
        va_start(more, last);                        \
        mode = va_arg(more, int);                    \
        va_end(more);                                \
    }

int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE(flags) return opened(dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE(flags) return opened(dir, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

FILE *fopen(const char *path, const char *how) {
    char full[4096];
    if (strpbrk(how, "wa+") && resolve(AT_FDCWD, path, full)) {
        int said = verdict(NAME);
        if (said > 0) {
            errno = said;
            return NULL;
        }
    }
    return REAL(fopen)(path, how);
}
FILE *fopen64(const char *path, const char *how) { return fopen(path, how); }

/* Writing */

static ssize_t written(int fd, const void *data, size_t size, off_t at, int placed) {
    char path[4096];
    int ours = of_file(fd, path);
    if (ours) {
        int said = verdict(WRITE);
        if (said > 0) {
            errno = said;
            return -1;
        }
        if (said < 0 && size > 1) size /= 2;
        if (!placed && page->record) {
            struct stat now;
            at = fcntl(fd, F_GETFL) & O_APPEND ? (fstat(fd, &now), now.st_size)
                                               : lseek(fd, 0, SEEK_CUR);
        }
    }
    ssize_t done = placed ? REAL(pwrite64)(fd, data, size, at) : REAL(write)(fd, data, size);
    if (ours && done > 0) keep('W', path, NULL, at, data, done);
    return done;
}

ssize_t write(int fd, const void *data, size_t size) { return written(fd, data, size, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return written(fd, data, size, at, 1); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return written(fd, data, size, at, 1); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[4096];
    if (!of_file(fd, path)) return REAL(writev)(fd, parts, count);
    ssize_t all = 0;
    for (int n = 0; n < count; n++) {
        if (!parts[n].iov_len) continue;
        ssize_t done = written(fd, parts[n].iov_base, parts[n].iov_len, 0, 0);
        if (done < 0) return all ? all : done;
        all += done;
        if ((size_t)done < parts[n].iov_len) break;
    }
    return all;
}

int ftruncate(int fd, off_t size) {
    char path[4096];
    int ours = of_file(fd, path);
    if (ours) FAIL(WRITE);
    int done = REAL(ftruncate)(fd, size);
    if (ours && !done) keep('T', path, NULL, size, NULL, 0);
    return done;
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int posix_fallocate(int fd, off_t at, off_t size) {
    char path[4096];
    if (of_file(fd, path)) {
        int said = verdict(WRITE);
        if (said > 0) return said;
    }
    return REAL(posix_fallocate)(fd, at, size);
}
int posix_fallocate64(int fd, off64_t at, off64_t size) { return posix_fallocate(fd, at, size); }

int fallocate(int fd, int mode, off_t at, off_t size) {
    char path[4096];
    if (of_file(fd, path)) FAIL(WRITE);
    return REAL(fallocate)(fd, mode, at, size);
}
int fallocate64(int fd, int mode, off64_t at, off64_t size) { return fallocate(fd, mode, at, size); }

/* Whoever meets EXDEV copies by reading and writing, which is seen. */
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags) {
    char path[4096];
    if (of_file(out, path)) {
        errno = EXDEV;
        return -1;
    }
    return REAL(copy_file_range)(in, from, out, to, size, flags);
}

ssize_t sendfile64(int out, int in, off64_t *from, size_t size) {
    char path[4096];
    if (of_file(out, path)) {
        errno = EINVAL;
        return -1;
    }
    return ((ssize_t(*)(int, int, off64_t *, size_t))real("sendfile64"))(out, in, from, size);
}
ssize_t sendfile(int out, int in, off_t *from, size_t size) { return sendfile64(out, in, from, size); }

/* Flushing: the recording gets the whole file, so that what was stored to mapped memory is in. */

static int flushed(int fd, int (*flush)(int)) {
    char path[4096];
    int ours = of_file(fd, path);
    if (ours) FAIL(SYNC);
    int done = flush(fd);
    if (ours && !done && page->record) {
        struct stat now;
        if (!fstat(fd, &now) && S_ISREG(now.st_mode)) {
            int again = REAL(open)(path, O_RDONLY | O_CLOEXEC);
            char *data = malloc(now.st_size + 1);
            ssize_t got = again < 0 ? -1 : pread(again, data, now.st_size, 0);
            if (got >= 0) keep('F', path, NULL, 0, data, got);
            free(data);
            if (again >= 0) close(again);
        } else {
            keep('D', path, NULL, 0, NULL, 0);
        }
    }
    return done;
}

int fsync(int fd) { return flushed(fd, REAL(fsync)); }
int fdatasync(int fd) { return flushed(fd, REAL(fdatasync)); }

/* Names */

int mkdirat(int dir, const char *path, mode_t mode) {
    char full[4096];
    int ours = resolve(dir, path, full);
    if (ours) FAIL(NAME);
    int done = REAL(mkdirat)(dir, path, mode);
    if (ours && !done) keep('M', full, NULL, 0, NULL, 0);
    return done;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    char one[4096], two[4096];
    int ours = resolve(from, old, one) & resolve(to, new, two);
    if (ours) FAIL(NAME);
    int done = REAL(renameat2)(from, old, to, new, flags);
    if (ours && !done) keep('R', one, two, 0, NULL, 0);
    return done;
}
int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    char one[4096], two[4096];
    int ours = resolve(from, old, one) & resolve(to, new, two);
    if (ours) FAIL(NAME);
    int done = REAL(linkat)(from, old, to, new, flags);
    if (ours && !done) keep('L', one, two, 0, NULL, 0);
    return done;
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

/* Deleting needs no room, and a disk that fails for good fails here too. */
int unlinkat(int dir, const char *path, int flags) {
    char full[4096];
    int ours = resolve(dir, path, full);
    if (ours && page->error != ENOSPC) FAIL(NAME);
    int done = REAL(unlinkat)(dir, path, flags);
    if (ours && !done) keep('U', full, NULL, 0, NULL, 0);
    return done;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
