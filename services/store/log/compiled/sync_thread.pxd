cdef extern from *:
    """
    #include <errno.h>
    #include <pthread.h>
    #include <signal.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <sys/eventfd.h>
    #include <unistd.h>

    /* What thread and loop share. It is the loop's, but from a write to `wake` to the one to `done`. */
    typedef struct {
        pthread_t thread;
        int wake, done;  /* eventfds */
        int* files;
        int count, begun, error;
        int ending;
    } tandem_sync;

    static void tandem_sync_tell(int fd) {
        uint64_t one = 1;
        while (write(fd, &one, 8) < 0 && errno == EINTR) {}
    }
    static void* tandem_sync_run(void* given) {
        tandem_sync* shared = (tandem_sync*)given;
        uint64_t told;
        int i;
        for (;;) {
            if (read(shared->wake, &told, 8) != 8) continue;
            if (shared->begun) {
                shared->begun = shared->error = 0;
                for (i = 0; i < shared->count && !shared->error; i++)
                    while (fdatasync(shared->files[i])) if (errno != EINTR) { shared->error = errno; break; }
            }
            if (__atomic_load_n(&shared->ending, __ATOMIC_ACQUIRE)) return NULL;
            tandem_sync_tell(shared->done);
        }
    }
    static void tandem_sync_free(tandem_sync* shared) {
        if (shared->wake >= 0) close(shared->wake);
        if (shared->done >= 0) close(shared->done);
        free(shared->files);
        free(shared);
    }
    /* NULL: there is no thread to be had; errno says why. */
    static tandem_sync* tandem_sync_start(void) {
        tandem_sync* shared = (tandem_sync*)calloc(1, sizeof(tandem_sync));
        sigset_t all, before;
        int failed;
        if (!shared) { errno = ENOMEM; return NULL; }
        shared->wake = eventfd(0, EFD_CLOEXEC);
        shared->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        failed = shared->wake < 0 || shared->done < 0 ? errno : 0;
        if (!failed) {
            sigfillset(&all);  /* signals are for the loop's thread */
            pthread_sigmask(SIG_SETMASK, &all, &before);
            failed = pthread_create(&shared->thread, NULL, tandem_sync_run, shared);
            pthread_sigmask(SIG_SETMASK, &before, NULL);
        }
        if (!failed) return shared;
        tandem_sync_free(shared);
        errno = failed;
        return NULL;
    }
    /* Gives the error of what was begun last, when that has ended. */
    static int tandem_sync_end(tandem_sync* shared) {
        int error;
        __atomic_store_n(&shared->ending, 1, __ATOMIC_RELEASE);
        tandem_sync_tell(shared->wake);
        pthread_join(shared->thread, NULL);
        error = shared->error;
        tandem_sync_free(shared);
        return error;
    }
    """
    ctypedef struct tandem_sync:
        int wake
        int done
        int* files
        int count
        int begun
        int error
    tandem_sync* tandem_sync_start() nogil
    void tandem_sync_tell(int fd) nogil
    int tandem_sync_end(tandem_sync* shared) nogil

cdef class SyncThread:
    cdef tandem_sync* _shared
    cdef bint _busy
    cdef int _room
    cdef int _end(self) noexcept
