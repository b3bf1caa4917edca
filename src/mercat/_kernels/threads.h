/* A loop over rows on several threads, which all end with the loop: the GIL is not needed, and the process may be
   forked at any time. */

#ifndef MERCAT_THREADS_H
#define MERCAT_THREADS_H

#include <stdint.h>

#define MOST_THREADS 256
#define ROWS 512 /* per thread at a time, if they take little time each */

/* Processes rows first <= i < last. */
typedef void (*rows_function)(const void *arguments, int64_t first, int64_t last);

struct loop {
    rows_function function;
    const void *arguments;
    int64_t n, grain, next;
};

static void take_rows(struct loop *loop)
{
    for (;;) {
        int64_t first = __atomic_fetch_add(&loop->next, loop->grain, __ATOMIC_RELAXED);
        if (first >= loop->n)
            return;
        int64_t rest = loop->n - first;
        loop->function(loop->arguments, first, first + (rest < loop->grain ? rest : loop->grain));
    }
}

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

/* Calls the function for all n rows, `grain` at a time. If a thread cannot be started, the others do its work. */
static void for_rows(int64_t n_threads, int64_t n, int64_t grain, rows_function function, const void *arguments)
{
    struct loop loop = {function, arguments, n, grain, 0};
    thread threads[MOST_THREADS];
    int64_t wanted = (n + grain - 1) / grain, started = 0;
    wanted = (wanted < n_threads ? wanted : n_threads) - 1;
    wanted = wanted < MOST_THREADS ? wanted : MOST_THREADS;
    while (started < wanted && start_thread(&threads[started], &loop))
        started++;
    take_rows(&loop);
    while (started > 0)
        end_thread(threads[--started]);
}

#endif
