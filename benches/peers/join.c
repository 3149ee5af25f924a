/* join A B OUT: writes the contents of A and of B to OUT. The program of every call that is measured. */

#include <fcntl.h>
#include <unistd.h>

static char buffer[65536];

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    int out = open(arguments[3], O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (out < 0)
        return 1;
    for (int at = 1; at <= 2; at++) {
        int in = open(arguments[at], O_RDONLY);
        ssize_t length;
        while (in >= 0 && (length = read(in, buffer, sizeof buffer)) > 0)
            if (write(out, buffer, length) != length)
                return 1;
        if (in < 0 || length < 0)
            return 1;
    }
    return 0;
}
