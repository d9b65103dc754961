// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A file system of two files whose pages come from here: those of "late" after a while, those of "never" not at all.
 * This is what an unprivileged process can make the kernel wait for; userfaultfd is for root unless he allows it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

enum { ROOT = FUSE_ROOT_ID, LATE, NEVER };

static int device;
static char mount_point[] = "/tmp/fuzz_verbs.XXXXXX";

static void reply(const struct fuse_in_header *in, int error, const void *data, size_t len)
{
	static uint8_t buf[(1 << 20) + 4096];
	struct fuse_out_header out = { .len = sizeof(out) + len, .error = error, .unique = in->unique };
	ssize_t n;

	memcpy(buf, &out, sizeof(out));
	memcpy(buf + sizeof(out), data, len);
	/* of a request that nobody waits for any more nothing is known */
	n = write(device, buf, out.len);
	(void)n;
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == ROOT ? S_IFDIR | 0755 : S_IFREG | 0666,
		.nlink = 1,
		.size = node == ROOT ? 0 : FZ_ZONE,
		.blksize = 4096,
	};
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = { .attr_valid = 1000, .entry_valid = 1000 };

	out.nodeid = !strcmp(name, "late") ? LATE : !strcmp(name, "never") ? NEVER : 0;
	out.attr = attributes(out.nodeid);
	reply(in, out.nodeid ? 0 : -ENOENT, &out, out.nodeid ? sizeof(out) : 0);
}

static void tell_attributes(const struct fuse_in_header *in)
{
	struct fuse_attr_out out = { .attr_valid = 1000, .attr = attributes(in->nodeid) };

	reply(in, 0, &out, sizeof(out));
}

static void start(const struct fuse_in_header *in, const struct fuse_init_in *init)
{
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_readahead = 65536, .max_write = 65536, .max_background = 64,
				     .congestion_threshold = 60 };

	reply(in, 0, &out, sizeof(out));
}

static void serve_read(const struct fuse_in_header *in, const struct fuse_read_in *r, struct vt_rng *rng)
{
	static const uint8_t zeros[1 << 20];

	if (in->nodeid == NEVER)
		return;
	usleep(vt_below(rng, 4) ? vt_below(rng, 500) : vt_below(rng, 30000));
	reply(in, 0, zeros, min((size_t)r->size, sizeof(zeros)));
}

static void serve_one(const struct fuse_in_header *in, const void *arg, struct vt_rng *rng)
{
	struct fuse_write_out written = { .size = ((const struct fuse_write_in *)arg)->size };
	struct fuse_open_out opened = {};

	switch (in->opcode) {
	case FUSE_INIT: start(in, arg); break;
	case FUSE_LOOKUP: look_up(in, arg); break;
	case FUSE_GETATTR:
	case FUSE_SETATTR: tell_attributes(in); break;
	case FUSE_OPEN: reply(in, 0, &opened, sizeof(opened)); break;
	case FUSE_READ: serve_read(in, arg, rng); break;
	case FUSE_WRITE: reply(in, 0, &written, sizeof(written)); break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break;
	case FUSE_FLUSH:
	case FUSE_FSYNC:
	case FUSE_RELEASE: reply(in, 0, NULL, 0); break;
	default: reply(in, -ENOSYS, NULL, 0);
	}
}

static void serve(uint64_t seed, pid_t warden)
{
	static uint8_t buf[(1 << 20) + 4096];
	struct pollfd p = { .fd = device, .events = POLLIN };
	const struct fuse_in_header *in = (void *)buf;
	struct vt_rng rng = { seed };
	ssize_t n;

	while (!kill(warden, 0)) {
		if (poll(&p, 1, 1000) <= 0)
			continue;
		n = read(device, buf, sizeof(buf));
		if (n < 0 && errno == ENODEV)
			break;
		if (n >= (ssize_t)sizeof(*in))
			serve_one(in, in + 1, &rng);
	}
	_exit(0);
}

static int open_file(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", mount_point, name);
	return open(path, O_RDWR);
}

pid_t fz_fuse_start(int *late, int *never)
{
	char options[80];
	pid_t pid, warden = getpid();

	*late = *never = -1;
	device = open("/dev/fuse", O_RDWR);
	if (device < 0 || !mkdtemp(mount_point))
		return 0;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
	if (mount("fuzz_verbs", mount_point, "fuse", MS_NOSUID | MS_NODEV, options)) {
		rmdir(mount_point);
		return 0;
	}
	pid = fork();
	if (!pid)
		serve(board->seed, warden);
	/* the file system is there as long as somebody has the device open */
	close(device);
	*late = open_file("late");
	*never = open_file("never");
	umount2(mount_point, MNT_DETACH);
	rmdir(mount_point);
	return pid;
}
