// Measures the bandwidth of memory: a[i] = b[i] + s * c[i] over arrays of SIZE numbers, which THREADS threads
// share, PASSES times. Prints the seconds of all passes. Small arrays stay in a cache; large ones show how many
// threads the memory can feed.
//
// measure-bandwidth THREADS SIZE PASSES

#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_THREADS = 1024 };
static const double SCALE = 3.0;

static double *a, *b, *c;
static long size, threads, passes;
static pthread_barrier_t barrier;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The part of a thread, over and over. The memory clobber keeps every pass.
static void pass(long first, long end)
{
    for (long n = 0; n < passes; n++) {
        for (long i = first; i < end; i++)
            a[i] = b[i] + SCALE * c[i];
        __asm__ volatile("" ::: "memory");
    }
}

// A round of all threads begins and ends at the barrier. It has no passes when all is over.
static void *work(void *number)
{
    long at = (long)(size_t)number;
    long first = size / threads * at, end = at == threads - 1 ? size : first + size / threads;
    for (;;) {
        pthread_barrier_wait(&barrier);
        if (passes == 0)
            return NULL;
        pass(first, end);
        pthread_barrier_wait(&barrier);
    }
}

static double measure_round(void)
{
    double begin = now();
    pthread_barrier_wait(&barrier);
    pass(size / threads * (threads - 1), size);
    pthread_barrier_wait(&barrier);
    return now() - begin;
}

static long whole(const char *text, long most, const char *what)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != 0 || value < 1 || value > most) {
        fprintf(stderr, "%s is not a whole number from 1 to %ld: %s\n", what, most, text);
        exit(1);
    }
    return value;
}

static void *checked(void *memory)
{
    if (memory == NULL) {
        fputs("there is not enough memory for arrays of this size\n", stderr);
        exit(1);
    }
    return memory;
}

int main(int count, char **argument)
{
    if (count != 4) {
        fputs("expected THREADS SIZE PASSES\n", stderr);
        return 1;
    }
    threads = whole(argument[1], MOST_THREADS, "threads");
    size = whole(argument[2], 1L << 40, "size");
    long wanted = whole(argument[3], 1L << 40, "passes");
    size_t bytes = (size_t)size * sizeof *a;
    a = checked(malloc(bytes)), b = checked(malloc(bytes)), c = checked(malloc(bytes));
    for (long i = 0; i < size; i++)
        a[i] = 0.0, b[i] = (double)(i % 7), c[i] = (double)(i % 5);

    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t others[MOST_THREADS];
    for (long at = 0; at < threads - 1; at++) {
        if (pthread_create(&others[at], NULL, work, (void *)(size_t)at) != 0) {
            fputs("cannot start a thread\n", stderr);
            return 1;
        }
    }
    passes = 1; // warms the caches
    measure_round();
    passes = wanted;
    double seconds = measure_round();
    passes = 0;
    pthread_barrier_wait(&barrier);
    for (long at = 0; at < threads - 1; at++)
        pthread_join(others[at], NULL);

    for (long i = 0; i < size; i++) {
        if (a[i] != (double)(i % 7) + SCALE * (double)(i % 5)) {
            fprintf(stderr, "element %ld is wrong\n", i);
            return 1;
        }
    }
    printf("%.9f\n", seconds);
    return 0;
}
