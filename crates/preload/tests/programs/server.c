/* Stands for a server: named `postgres`, works in a data folder, opens relative paths. Each
 * argument is a step: cd:DIR, fork, vfork, in:PATH (opens it for writing and prints its hint),
 * sh:COMMAND (a child that is no server). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void in(const char *path)
{
	uint64_t hint = 99;
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	fcntl(fd, 1035, &hint);
	printf("%s %d\n", path, fd < 0 ? -1 : (int)hint);
	fflush(stdout);
	close(fd);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		if (!strncmp(a, "cd:", 3)) {
			if (chdir(a + 3))
				return 2;
		} else if (!strncmp(a, "in:", 3)) {
			in(a + 3);
		} else if (!strncmp(a, "fork:", 5)) {
			pid_t p = fork();
			if (p == 0) {
				in(a + 5);
				_exit(0);
			}
			waitpid(p, 0, 0);
		} else if (!strncmp(a, "vfork-elsewhere:", 16)) {
			/* a child that shares our memory, moves, and opens there */
			pid_t p = vfork();
			if (p == 0) {
				if (chdir(a + 16))
					_exit(2);
				int fd = open("base/5/16384", O_RDWR | O_CREAT, 0600);
				close(fd);
				_exit(0);
			}
			waitpid(p, 0, 0);
		} else if (!strncmp(a, "sh:", 3)) {
			if (system(a + 3))
				return 3;
		} else {
			return 4;
		}
	}
	return 0;
}
