/* What `status` takes for a PostgreSQL server: it works in the folder after -D and says so in
 * postmaster.pid. For builds of the server that the installed one is not (static). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 3 || strcmp(argv[1], "-D") != 0 || chdir(argv[2]) != 0)
        return 1;
    FILE *file = fopen("postmaster.pid", "w");
    if (!file || fprintf(file, "%d\n%s\n", (int)getpid(), argv[2]) < 0 || fclose(file) != 0)
        return 1;
    for (;;)
        pause();
}
