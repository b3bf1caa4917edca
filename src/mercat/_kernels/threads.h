/* Loops over rows on several threads (threads.c). */

#ifndef MERCAT_THREADS_H
#define MERCAT_THREADS_H

#include <stdint.h>

#define ROWS 512 /* per thread at a time, if each takes little time */

/* Processes rows first <= i < last. */
typedef void (*rows_function)(const void *arguments, int64_t first, int64_t last);

/* Calls the function for all n rows, `grain` at a time, on up to n_threads threads. */
void for_rows(int64_t n_threads, int64_t n, int64_t grain, rows_function function, const void *arguments);

#endif
