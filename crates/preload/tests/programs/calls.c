/* Opens a file through every replaced function, in the folder given, and prints for each:
 * name, result (ok or errno), hint read back, access mode, permission bits. */
#define _GNU_SOURCE
#define _LARGEFILE64_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);

static void say(const char *name, int fd)
{
	uint64_t hint = 99;
	struct stat st;
	if (fd < 0) {
		printf("%s error %d\n", name, errno);
		return;
	}
	fcntl(fd, 1035, &hint);
	fstat(fd, &st);
	printf("%s ok hint %d mode %d perm %o\n", name, (int)hint, fcntl(fd, F_GETFL) & O_ACCMODE,
	       (unsigned)st.st_mode & 0777);
	close(fd);
}

static void say_stream(const char *name, FILE *f)
{
	if (!f) {
		printf("%s error %d\n", name, errno);
		return;
	}
	say(name, dup(fileno(f)));
	fclose(f);
}

int main(int argc, char **argv)
{
	char t[64];
	int dir;
	(void)argc;
	umask(022);
	if (chdir(argv[1]))
		return 2;
	dir = open(".", O_RDONLY | O_DIRECTORY);
	say("open", open("open.s", O_RDWR | O_CREAT, 0640));
	say("open64", open64("open64.s", O_WRONLY | O_CREAT, 0604));
	say("openat", openat(AT_FDCWD, "openat.s", O_RDWR | O_CREAT, 0600));
	say("openat64", openat64(AT_FDCWD, "openat64.s", O_RDWR | O_CREAT, 0600));
	say("openat-dir", openat(dir, "openat-dir.s", O_RDWR | O_CREAT, 0600));
	say("creat", creat("creat.s", 0644));
	say("creat64", creat64("creat64.s", 0644));
	say("__open_2", __open_2("open.s", O_RDWR));
	say("__open64_2", __open64_2("open64.s", O_RDWR));
	say("__openat_2", __openat_2(AT_FDCWD, "openat.s", O_RDWR));
	say("__openat64_2", __openat64_2(AT_FDCWD, "openat64.s", O_RDWR));
	say_stream("fopen", fopen("fopen.s", "w"));
	say_stream("fopen64", fopen64("fopen64.s", "a+"));
	say_stream("fopen-r+", fopen("fopen.s", "r+"));
	say_stream("freopen", freopen("freopen.s", "w", fopen("/dev/null", "r")));
	say_stream("freopen64", freopen64("freopen64.s", "w", fopen("/dev/null", "r")));
	say("mkstemp", mkstemp(strcpy(t, "mkstemp.s.XXXXXX")));
	say("mkstemp64", mkstemp64(strcpy(t, "mkstemp64.s.XXXXXX")));
	say("mkostemp", mkostemp(strcpy(t, "mkostemp.s.XXXXXX"), O_APPEND));
	say("mkostemp64", mkostemp64(strcpy(t, "mkostemp64.s.XXXXXX"), O_APPEND));
	say("mkstemps", mkstemps(strcpy(t, "mkstempsXXXXXX.s"), 2));
	say("mkstemps64", mkstemps64(strcpy(t, "mkstemps64XXXXXX.s"), 2));
	say("mkostemps", mkostemps(strcpy(t, "mkostempsXXXXXX.s"), 2, 0));
	say("mkostemps64", mkostemps64(strcpy(t, "mkostemps64XXXXXX.s"), 2, 0));
	say("tmpfile", open("sub.s", O_TMPFILE | O_RDWR, 0600));

	/* left alone */
	say("other-name", open("other", O_RDWR | O_CREAT, 0644));
	say("read-only", open("untouched.s", O_RDONLY));
	say_stream("fopen-r", fopen("untouched.s", "r"));
	say("missing", open("missing.s", O_RDWR));
	say_stream("fopen-missing", fopen("nowhere/x.s", "w"));
	say("missing-folder", openat(dir, "nowhere/x.s", O_RDWR | O_CREAT, 0600));
	say("device", open("null.s", O_WRONLY));
	errno = 0;
	close(open("open.s", O_RDWR));
	printf("errno %d\n", errno);
	return 0;
}
