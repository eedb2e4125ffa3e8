/* Opens and closes the files of its arguments for writing, in threads, until killed; each is left
 * as the hook left it. Prints "ready" once running. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static char **files;
static int count;

static void tick(int sig)
{
	(void)sig;
	close(open(files[0], O_RDWR));
}

static void *work(void *arg)
{
	long n = (long)arg;
	for (;;) {
		int fd = open(files[n++ % count], O_RDWR);
		if (fd < 0)
			_exit(3);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	struct itimerval every = { { 0, 500 }, { 0, 500 } };
	files = argv + 1;
	count = argc - 1;
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &every, 0);
	for (long i = 0; i < 3; i++) {
		pthread_t t;
		pthread_create(&t, 0, work, (void *)i);
	}
	printf("ready\n");
	fflush(stdout);
	work((void *)7);
	return 0;
}
