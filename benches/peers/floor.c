/*
 * The floor: what the operating system takes for the same work, without anybody who thinks about it.
 *
 *   floor run PROGRAM JOBS GRAPH   starts PROGRAM A B OUT for each line "READER A B OUT" of GRAPH when its
 *                                  inputs are there, JOBS at a time. READER is the number of the line
 *                                  that reads OUT, or -1; lines come leaves first.
 *   floor stat LIST                stats each file named in LIST.
 *   floor walk DIR                 reads each file below DIR.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct call {
    int reader, awaited;
    char *a, *b, *out;
};

static struct call *calls;
static int *ready;
static int count, first, last;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static FILE *open_text(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path);
    return file;
}

static void load(const char *path)
{
    FILE *file = open_text(path);
    struct call call = {0};
    while (fscanf(file, "%d %ms %ms %ms", &call.reader, &call.a, &call.b, &call.out) == 4) {
        if ((count & (count - 1)) == 0 &&
            !(calls = realloc(calls, (count ? 2 * count : 1) * sizeof *calls)))
            fail("realloc");
        calls[count++] = call;
    }
    if (!(ready = calloc(count, sizeof *ready)))
        fail("calloc");
    for (int at = 0; at < count; at++)
        if (calls[at].reader >= 0)
            calls[calls[at].reader].awaited++;
    for (int at = 0; at < count; at++)
        if (calls[at].awaited == 0)
            ready[last++] = at;
}

static void run(char *program, int jobs)
{
    struct { pid_t process; int call; } running[jobs];
    memset(running, 0, sizeof running);
    for (int over = 0; over < count; over++) {
        for (int slot = 0; slot < jobs && first < last; slot++) {
            if (running[slot].process)
                continue;
            struct call *call = &calls[running[slot].call = ready[first++]];
            char *arguments[] = {program, call->a, call->b, call->out, NULL};
            if (posix_spawn(&running[slot].process, program, NULL, NULL, arguments, environ))
                fail(program);
        }
        int status, slot = 0;
        pid_t process = wait(&status);
        if (process < 0 || status)
            fail("a call failed");
        while (running[slot].process != process)
            slot++;
        running[slot].process = 0;
        int reader = calls[running[slot].call].reader;
        if (reader >= 0 && --calls[reader].awaited == 0)
            ready[last++] = reader;
    }
}

static void stat_all(const char *list)
{
    FILE *file = open_text(list);
    char *path;
    struct stat status;
    while (fscanf(file, "%ms", &path) == 1) {
        if (stat(path, &status))
            fail(path);
        free(path);
    }
}

static int read_whole(const char *path, const struct stat *status, int type, struct FTW *place)
{
    static char buffer[65536];
    (void)status, (void)place;
    if (type != FTW_F)
        return 0;
    int file = open(path, O_RDONLY);
    if (file < 0)
        fail(path);
    while (read(file, buffer, sizeof buffer) > 0)
        ;
    return close(file);
}

int main(int number, char **arguments)
{
    if (number == 5 && !strcmp(arguments[1], "run")) {
        load(arguments[4]);
        run(arguments[2], atoi(arguments[3]));
    } else if (number == 3 && !strcmp(arguments[1], "stat")) {
        stat_all(arguments[2]);
    } else if (number == 3 && !strcmp(arguments[1], "walk")) {
        if (nftw(arguments[2], read_whole, 64, FTW_PHYS))
            fail(arguments[2]);
    } else {
        fprintf(stderr, "floor: see the beginning of floor.c\n");
        return 2;
    }
    return 0;
}
