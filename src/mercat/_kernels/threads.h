/* A loop over rows on several threads, which all end with the loop: the GIL is not needed, and the process may be
   forked at any time. */

#ifndef MERCAT_THREADS_H
#define MERCAT_THREADS_H

#include <stdint.h>

#define HELPERS 4 /* started by each thread, at most */
#define ROWS 512  /* per thread at a time, if they take little time each */

/* Processes rows first <= i < last. */
typedef void (*rows_function)(const void *arguments, int64_t first, int64_t last);

struct loop {
    rows_function function;
    const void *arguments;
    int64_t n, grain, next, n_threads; /* next row; number of threads that may still start */
};

static void take_rows(struct loop *loop);

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#undef near /* macros of this header that are names here */
#undef far
typedef HANDLE thread;
static DWORD WINAPI run_thread(LPVOID loop)
{
    take_rows(loop);
    return 0;
}
static int start_thread(thread *t, struct loop *loop) { return (*t = CreateThread(NULL, 0, run_thread, loop, 0, NULL)) != NULL; }
static void end_thread(thread t)
{
    WaitForSingleObject(t, INFINITE);
    CloseHandle(t);
}
#else
#include <pthread.h>
typedef pthread_t thread;
static void *run_thread(void *loop)
{
    take_rows(loop);
    return NULL;
}
static int start_thread(thread *t, struct loop *loop) { return pthread_create(t, NULL, run_thread, loop) == 0; }
static void end_thread(thread t) { pthread_join(t, NULL); }
#endif

/* Whether a thread may start, and would find work. */
static int may_start(struct loop *loop)
{
    return __atomic_load_n(&loop->next, __ATOMIC_RELAXED) < loop->n &&
           __atomic_fetch_sub(&loop->n_threads, 1, __ATOMIC_RELAXED) > 0;
}

/* Takes rows, `grain` at a time, until none are left. Starting a thread takes as long as many rows, so each starts
   others, between its own rows, while there is work. If one cannot be started, the others do its work. */
static void take_rows(struct loop *loop)
{
    thread helpers[HELPERS];
    int started = 0;
    for (;;) {
        int64_t first = __atomic_fetch_add(&loop->next, loop->grain, __ATOMIC_RELAXED), rest = loop->n - first;
        if (rest <= 0)
            break;
        if (started < HELPERS && may_start(loop) && start_thread(&helpers[started], loop))
            started++;
        loop->function(loop->arguments, first, first + (rest < loop->grain ? rest : loop->grain));
    }
    while (started > 0)
        end_thread(helpers[--started]);
}

/* Calls the function for all n rows, `grain` at a time, on up to n_threads threads. */
static void for_rows(int64_t n_threads, int64_t n, int64_t grain, rows_function function, const void *arguments)
{
    struct loop loop = {function, arguments, n, grain, 0, n_threads - 1};
    take_rows(&loop);
}

#endif
