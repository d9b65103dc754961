// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * tunpair: a tun netdev in each of two network namespaces, and what one sends arrives at the other.
 *
 *	tunpair NETDEV NAMESPACE NAMESPACE      (names in /run/netns)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vt.h"

static int open_tun(const char *netdev, const char *ns)
{
	struct ifreq ifr = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd;

	vt_enter_netns(ns);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (fd < 0)
		vt_die(VT_SKIP, "/dev/net/tun: %s", strerror(errno));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", netdev);
	if (ioctl(fd, TUNSETIFF, &ifr))
		vt_die(VT_SETUP, "%s: %s", netdev, strerror(errno));
	return fd;
}

/* what does not fit is lost, as on a wire */
static void carry(int from, int to)
{
	static char packet[65536];
	ssize_t len = read(from, packet, sizeof(packet));

	if (len > 0 && write(to, packet, len) < 0 && errno != EAGAIN && errno != EIO)
		vt_die(VT_GONE, "write: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct pollfd p[2] = {};
	int i;

	if (argc != 4)
		vt_die(VT_SETUP, "tunpair NETDEV NAMESPACE NAMESPACE");
	for (i = 0; i < 2; i++)
		p[i] = (struct pollfd){ .fd = open_tun(argv[1], argv[2 + i]), .events = POLLIN };
	while (poll(p, 2, -1) > 0)
		for (i = 0; i < 2; i++) {
			if (p[i].revents & POLLIN)
				carry(p[i].fd, p[!i].fd);
			else if (p[i].revents)
				return VT_GONE;
		}
	return VT_GONE;
}
