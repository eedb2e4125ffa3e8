/* Times open+close of relations in a data folder: bench DIR COUNT MODE, MODE `plain` or `fcntl`
 * (the call that the hook would make, made by hand). Prints nanoseconds per turn. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char names[16][32];
	struct timespec a, b;
	uint64_t hint = 4;
	long count = argc > 3 ? atol(argv[2]) : 0;
	int by_hand = argc > 3 && argv[3][0] == 'f';
	if (!count || chdir(argv[1]))
		return 2;
	for (int i = 0; i < 16; i++)
		snprintf(names[i], sizeof(names[i]), "base/5/%d", 16384 + i);
	for (long i = -1000; i < count; i++) {
		if (i == 0)
			clock_gettime(CLOCK_MONOTONIC, &a);
		int fd = open(names[i & 15], O_RDWR);
		if (fd < 0)
			return 3;
		if (by_hand)
			fcntl(fd, 1036, &hint);
		close(fd);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.1f\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / count);
	return 0;
}
