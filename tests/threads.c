/* Loops of many threads at the same time, for ThreadSanitizer (tools/sanitize.py). */

#include "../src/mercat/_kernels/threads.c"

#include <stdio.h>
#include <stdlib.h>

#define CALLERS 24 /* more than LOOPS */
#define REPEATS 300
#define N 20000

static void add_index(const void *arguments, int64_t first, int64_t last)
{
    int64_t *sums = *(int64_t *const *)arguments;
    for (int64_t i = first; i < last; i++)
        sums[i] += i;
}

static void *run_loops(void *wrong)
{
    int64_t *sums = calloc(N, sizeof *sums);
    for (int r = 0; r < REPEATS; r++)
        for_rows(2 + r % 7, N, 64 + r, add_index, &sums);
    for (int64_t i = 0; i < N; i++)
        if (sums[i] != REPEATS * i)
            __atomic_store_n((int *)wrong, 1, __ATOMIC_SEQ_CST);
    free(sums);
    return NULL;
}

int main(void)
{
    pthread_t callers[CALLERS];
    int wrong = 0;
    for (int i = 0; i < CALLERS; i++)
        pthread_create(&callers[i], NULL, run_loops, &wrong);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    if (wrong)
        fprintf(stderr, "Some rows were not processed exactly once.\n");
    return wrong;
}
