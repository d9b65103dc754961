// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A stream of a TCP socket, which copies into the socket or does not: iperf3 has messages of 1 MiB at most, and none that are
 * not copied but those of a file.
 *
 *	tcp [-z] [-t] [-c CONGESTION] PORT					receive one stream
 *	tcp [-z | -f] [-c CONGESTION] PORT ADDRESS SECONDS BYTES	send one, in messages of BYTES from one buffer
 *
 * -c	the congestion control, at both ends: dctcp is one of receivers, too
 * -t	tell every 10 ms what has arrived, "at TIME BYTES", in seconds since 1970
 * -z	MSG_ZEROCOPY; the receiver, TCP_ZEROCOPY_RECEIVE
 * -f	sendfile() from a file in memory
 *
 * The receiver prints "rate MB/s" (10^6 bytes) of what has arrived from the first byte to the last, and with -z "mapped PERCENT",
 * how much of it was not copied. The sender prints, with -z, "copied PERCENT": of how many of its messages the kernel says that
 * it has copied them after all.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const size_t receive_bytes = 1 << 20;

static enum { COPY, ZEROCOPY, FROM_FILE } how;
static bool tell;
static const char *congestion;
static unsigned long sent_zerocopy, told, told_copied;

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* What arrives on @c, copied to @buf. Return: how much, 0 at the end */
static size_t take_copied(int c, char *buf)
{
	ssize_t n = read(c, buf, receive_bytes);

	if (n < 0)
		die("read");
	return n;
}

/* The same, mapped to @map as far as it is whole pages, and the rest copied; *@mapped: how much of it */
static size_t take_mapped(int c, char *buf, void *map, uint64_t *mapped)
{
	struct tcp_zerocopy_receive zc = { .address = (uintptr_t)map, .length = receive_bytes };
	struct pollfd fd = { .fd = c, .events = POLLIN };
	socklen_t len = sizeof(zc);
	ssize_t n = 0;

	poll(&fd, 1, -1);
	if (getsockopt(c, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &zc, &len)) {
		/* so says Linux at the end */
		if (errno == EIO)
			return 0;
		die("TCP_ZEROCOPY_RECEIVE");
	}
	*mapped += zc.length;
	if (zc.recv_skip_hint || !zc.length) {
		n = read(c, buf, zc.recv_skip_hint && zc.recv_skip_hint < receive_bytes ? zc.recv_skip_hint : receive_bytes);
		if (n < 0)
			die("read");
	}
	return zc.length + n;
}

static int choose_congestion(int s)
{
	return congestion ? setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion)) : 0;
}

static void tell_arrived(uint64_t bytes)
{
	static double last;
	struct timespec t;
	double at;

	clock_gettime(CLOCK_REALTIME, &t);
	at = t.tv_sec + t.tv_nsec / 1e9;
	if (at < last + 0.01)
		return;
	last = at;
	printf("at %.4f %llu\n", at, (unsigned long long)bytes);
	fflush(stdout);
}

static int accept_one(uint16_t port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, s = socket(AF_INET, SOCK_STREAM, 0), c;

	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) || choose_congestion(s) ||
	    bind(s, (struct sockaddr *)&any, sizeof(any)) || listen(s, 1))
		die("listen");
	c = accept(s, NULL, NULL);
	if (c < 0)
		die("accept");
	return c;
}

static void receive(uint16_t port)
{
	int c = accept_one(port);
	char *buf = calloc(1, receive_bytes);
	void *map = how == ZEROCOPY ? mmap(NULL, receive_bytes, PROT_READ, MAP_SHARED, c, 0) : NULL;
	uint64_t bytes = 0, mapped = 0;
	double start = 0, last = 0;
	size_t n;

	if (!buf || map == MAP_FAILED)
		die("buffer");
	while ((n = map ? take_mapped(c, buf, map, &mapped) : take_copied(c, buf))) {
		last = now();
		if (!start)
			start = last;
		else
			bytes += n;
		if (tell)
			tell_arrived(bytes);
	}
	if (last <= start)
		die("nothing came");
	printf("rate %.1f\n", bytes / (last - start) / 1e6);
	if (map)
		printf("mapped %.0f\n", 100.0 * mapped / bytes);
}

/* What the kernel says of messages that it need not keep any more; false: nothing for now */
static bool take_notice(int s)
{
	char control[128];
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	struct sock_extended_err *e;
	struct cmsghdr *c;

	if (recvmsg(s, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return false;
	c = CMSG_FIRSTHDR(&msg);
	e = c ? (struct sock_extended_err *)CMSG_DATA(c) : NULL;
	if (e && e->ee_origin == SO_EE_ORIGIN_ZEROCOPY) {
		unsigned long n = e->ee_data - e->ee_info + 1;

		told += n;
		if (e->ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
			told_copied += n;
	}
	return true;
}

/* Sent without a copy: the pages are the kernel's until it says otherwise, and it remembers a bounded number of them */
static void send_zerocopy(int s, const char *buf, size_t size)
{
	struct pollfd fd = { .fd = s };
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = send(s, buf + done, size - done, MSG_ZEROCOPY);
		if (n < 0 && errno != ENOBUFS)
			die("send");
		if (n < 0) {
			poll(&fd, 1, 1000);
		} else {
			done += n;
			sent_zerocopy++;
		}
		while (take_notice(s))
			;
	}
}

static void send_copied(int s, const char *buf, size_t size)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = write(s, buf + done, size - done);
		if (n < 0)
			die("write");
		done += n;
	}
}

static void send_file(int s, int file, size_t size)
{
	off_t done = 0;

	while ((size_t)done < size)
		if (sendfile(s, file, &done, size - done) < 0)
			die("sendfile");
}

static void transmit(uint16_t port, const char *address, double seconds, size_t size)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, s = socket(AF_INET, SOCK_STREAM, 0), file = memfd_create("message", 0);
	char *buf = malloc(size);
	double end;

	if (s < 0 || file < 0 || !buf || inet_pton(AF_INET, address, &to.sin_addr) != 1 || choose_congestion(s) ||
	    connect(s, (struct sockaddr *)&to, sizeof(to)) ||
	    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("connect");
	if (how == ZEROCOPY && setsockopt(s, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		die("SO_ZEROCOPY");
	memset(buf, 1, size);
	if (write(file, buf, size) != (ssize_t)size)
		die("file");
	for (end = now() + seconds; now() < end;) {
		switch (how) {
		case COPY: send_copied(s, buf, size); break;
		case ZEROCOPY: send_zerocopy(s, buf, size); break;
		case FROM_FILE: send_file(s, file, size); break;
		}
	}
	shutdown(s, SHUT_WR);
	for (end = now() + 2; told < sent_zerocopy && now() < end;)
		if (!take_notice(s))
			usleep(1000);
	if (told)
		printf("copied %.0f\n", 100.0 * told_copied / told);
}

int main(int argc, char **argv)
{
	int c, n;

	while ((c = getopt(argc, argv, "zftc:")) != -1) {
		switch (c) {
		case 'z': how = ZEROCOPY; break;
		case 'f': how = FROM_FILE; break;
		case 't': tell = true; break;
		case 'c': congestion = optarg; break;
		default: optind = argc;
		}
	}
	n = argc - optind;
	if (n == 1 && how != FROM_FILE) {
		receive(atoi(argv[optind]));
	} else if (n == 4 && atof(argv[optind + 2]) > 0 && atoi(argv[optind + 3]) > 0) {
		transmit(atoi(argv[optind]), argv[optind + 1], atof(argv[optind + 2]), atoi(argv[optind + 3]));
	} else {
		fprintf(stderr, "arguments: [-z] [-t] [-c CONGESTION] PORT, or [-z | -f] [-c CONGESTION] PORT ADDRESS SECONDS BYTES\n");
		return 2;
	}
	return 0;
}
