/* Threads that help with loops over rows; starting threads for each loop would take as long as the loop. Compiled once.

   Helpers are started when loops first need them; they then wait for further loops. They do not use the GIL. A forked
   process has no helpers and starts its own. */

#include "threads.h"

#include <string.h>

#define LOOPS 16     /* at the same time; further loops have no helpers */
#define HELPERS 1024 /* at most */
#ifndef SPINS
#define SPINS 500    /* polls before a thread sleeps: about as long as waking a thread takes */
#endif

/* `state` of a loop: helpers in it, helpers that may still join, and whether the caller sleeps until they have left. */
#define INSIDE 0xffffLL
#define VACANT (INSIDE + 1)
#define AWAITED (VACANT << 16)

struct loop {
    rows_function function;
    const void *arguments;
    int64_t n, grain, in_use;
    int64_t next __attribute__((aligned(64))); /* row */
    int64_t state __attribute__((aligned(64)));
};

static struct loop loops[LOOPS] __attribute__((aligned(64)));
static int64_t opened;                  /* number of loops so far */
static int64_t wanted, started, asleep; /* helpers; the last two change under the lock */

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define ADD(x, y) __atomic_add_fetch(&(x), y, __ATOMIC_SEQ_CST)

static void help(void);

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
static SRWLOCK mutex = SRWLOCK_INIT;
static CONDITION_VARIABLE call = CONDITION_VARIABLE_INIT, done = CONDITION_VARIABLE_INIT;
static void lock(void) { AcquireSRWLockExclusive(&mutex); }
static void unlock(void) { ReleaseSRWLockExclusive(&mutex); }
static void sleep_until(CONDITION_VARIABLE *event) { SleepConditionVariableSRW(event, &mutex, INFINITE, 0); }
static void wake_one(CONDITION_VARIABLE *event) { WakeConditionVariable(event); }
static void wake_all(CONDITION_VARIABLE *event) { WakeAllConditionVariable(event); }
static DWORD WINAPI run_thread(LPVOID unused)
{
    (void)unused;
    help();
    return 0;
}
static int start_thread(void)
{
    HANDLE thread = CreateThread(NULL, 0, run_thread, NULL, 0, NULL);
    return thread != NULL && CloseHandle(thread);
}
#else
#include <pthread.h>
#include <signal.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t call = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }
static void sleep_until(pthread_cond_t *event) { pthread_cond_wait(event, &mutex); }
static void wake_one(pthread_cond_t *event) { pthread_cond_signal(event); }
static void wake_all(pthread_cond_t *event) { pthread_cond_broadcast(event); }
static void *run_thread(void *unused)
{
    help();
    return unused;
}
static void forget_helpers(void)
{
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    call = done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    memset(loops, 0, sizeof loops);
    opened = wanted = started = asleep = 0;
}
/* Signals are blocked, so that Python's threads handle them. */
static int start_thread(void)
{
    static int watching;
    pthread_attr_t detached;
    pthread_t thread;
    sigset_t all, before;
    if (!watching)
        watching = pthread_atfork(NULL, NULL, forget_helpers) == 0;
    if (!watching || pthread_attr_init(&detached))
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &detached, run_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    return !failed;
}
#endif

static inline void pause_shortly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Takes rows, `grain` at a time, until none are left. */
static void take_rows(struct loop *loop)
{
    for (;;) {
        int64_t first = ADD(loop->next, loop->grain) - loop->grain, rest = loop->n - first;
        if (rest <= 0)
            return;
        loop->function(loop->arguments, first, first + (rest < loop->grain ? rest : loop->grain));
    }
}

static int join(struct loop *loop)
{
    int64_t state = LOAD(loop->state);
    while ((state & ~AWAITED) >= VACANT)
        if (__atomic_compare_exchange_n(&loop->state, &state, state - VACANT + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return 1;
    return 0;
}

static void leave(struct loop *loop)
{
    if (ADD(loop->state, -1) == AWAITED) {
        lock();
        wake_all(&done);
        unlock();
    }
}

/* A helper: joins loops forever. */
static void help(void)
{
    for (;;) {
        int64_t seen = LOAD(opened);
        for (int i = 0; i < LOOPS; i++)
            if (join(&loops[i])) {
                take_rows(&loops[i]);
                leave(&loops[i]);
            }
        for (int i = 0; i < SPINS && LOAD(opened) == seen; i++)
            pause_shortly();
        if (LOAD(opened) != seen)
            continue;
        lock();
        ADD(asleep, 1);
        while (LOAD(opened) == seen)
            sleep_until(&call);
        ADD(asleep, -1);
        unlock();
    }
}

/* A loop that is not in use, or NULL. */
static struct loop *unused_loop(void)
{
    for (int i = 0; i < LOOPS; i++)
        if (!LOAD(loops[i].in_use) && !__atomic_exchange_n(&loops[i].in_use, 1, __ATOMIC_SEQ_CST))
            return &loops[i];
    return NULL;
}

/* Lets up to `helpers` threads join the loop. */
static void open_loop(struct loop *loop, int64_t helpers)
{
    __atomic_store_n(&loop->state, helpers * VACANT, __ATOMIC_SEQ_CST);
    ADD(opened, 1);
    if (ADD(wanted, helpers) > LOAD(started)) {
        lock();
        while (started < LOAD(wanted) && started < HELPERS && start_thread())
            ADD(started, 1);
        unlock();
    }
    if (LOAD(asleep)) {
        lock();
        for (int64_t i = asleep < helpers ? asleep : helpers; i > 0; i--)
            wake_one(&call);
        unlock();
    }
}

/* Waits until all helpers have left the loop. */
static void close_loop(struct loop *loop, int64_t helpers)
{
    ADD(wanted, -helpers);
    __atomic_and_fetch(&loop->state, INSIDE, __ATOMIC_SEQ_CST);
    for (int i = 0; i < SPINS && LOAD(loop->state); i++)
        pause_shortly();
    if (__atomic_or_fetch(&loop->state, AWAITED, __ATOMIC_SEQ_CST) != AWAITED) {
        lock();
        while (LOAD(loop->state) != AWAITED)
            sleep_until(&done);
        unlock();
    }
    __atomic_store_n(&loop->in_use, 0, __ATOMIC_SEQ_CST);
}

void for_rows(int64_t n_threads, int64_t n, int64_t grain, rows_function function, const void *arguments)
{
    const int64_t parts = (n + grain - 1) / grain, most = n_threads < parts ? n_threads : parts;
    const int64_t helpers = (most < HELPERS ? most : HELPERS) - 1;
    struct loop *shared = helpers > 0 ? unused_loop() : NULL, alone = {0}, *loop = shared ? shared : &alone;
    loop->function = function;
    loop->arguments = arguments;
    loop->n = n;
    loop->grain = grain;
    loop->next = 0;
    if (shared)
        open_loop(shared, helpers);
    take_rows(loop);
    if (shared)
        close_loop(shared, helpers);
}
