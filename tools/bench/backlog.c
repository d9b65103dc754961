// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How much waits in the queue of a netdev: looks at its root queueing discipline every 5 ms until it gets SIGTERM, and prints
 * then, one a line, "queue PERCENTILE kB" (10^3 bytes) for 50, 99 and 100, of all looks from 200 ms after the first that found
 * something.
 *
 *	backlog NETDEV
 *
 * tc would say the same, but it would have to be started each time, on processors that are to carry packets.
 */
#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1 << 17, EVERY_US = 5000, SETTLED = 200000 / EVERY_US };

static volatile sig_atomic_t enough;

static void stop(int sig)
{
	enough = sig;
}

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "backlog: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void ask(int sock, int ifindex)
{
	struct {
		struct nlmsghdr head;
		struct tcmsg tc;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETQDISC, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex },
	};

	if (send(sock, &request, sizeof(request), 0) < 0)
		die("send");
}

/* Return: the attribute of that type among those, NULL if there is none */
static const struct rtattr *find(const struct rtattr *attr, int bytes, int type)
{
	for (; RTA_OK(attr, bytes); attr = RTA_NEXT(attr, bytes))
		if ((attr->rta_type & NLA_TYPE_MASK) == type)
			return attr;
	return NULL;
}

/* Return: whether that message is about the root of that netdev, with the bytes that wait at @bytes */
static bool is_root(const struct nlmsghdr *head, int ifindex, unsigned int *bytes)
{
	const struct tcmsg *tc = NLMSG_DATA(head);
	const struct rtattr *stats, *queue = NULL;

	if (head->nlmsg_type != RTM_NEWQDISC || tc->tcm_ifindex != ifindex || tc->tcm_parent != TC_H_ROOT)
		return false;
	stats = find(TCA_RTA(tc), TCA_PAYLOAD(head), TCA_STATS2);
	if (stats)
		queue = find(RTA_DATA(stats), RTA_PAYLOAD(stats), TCA_STATS_QUEUE);
	if (queue)
		*bytes = ((const struct gnet_stats_queue *)RTA_DATA(queue))->backlog;
	return queue;
}

/* What the kernel says of all queueing disciplines of all netdevs. Return: bytes that wait */
static unsigned int answer(int sock, int ifindex)
{
	char buf[65536] __attribute__((aligned(NLMSG_ALIGNTO)));
	unsigned int bytes = 0;
	bool found = false;

	for (;;) {
		const struct nlmsghdr *head = (const struct nlmsghdr *)buf;
		ssize_t n = recv(sock, buf, sizeof(buf), 0);

		if (n < 0)
			die("recv");
		for (; NLMSG_OK(head, n); head = NLMSG_NEXT(head, n)) {
			if (head->nlmsg_type == NLMSG_DONE && found)
				return bytes;
			if (head->nlmsg_type == NLMSG_DONE || head->nlmsg_type == NLMSG_ERROR) {
				errno = ENOENT;
				die("no queueing discipline");
			}
			found |= is_root(head, ifindex, &bytes);
		}
	}
}

static int compare(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static const int percentiles[] = { 50, 99, 100 };
	static unsigned int found[MOST];
	int sock = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), ifindex = argc == 2 ? if_nametoindex(argv[1]) : 0;
	size_t n = 0, skip = SETTLED;

	if (sock < 0 || !ifindex)
		die("argument: a netdev");
	/* a kernel that does not answer keeps nobody waiting */
	if (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 1 }, sizeof(struct timeval)))
		die("timeout");
	signal(SIGTERM, stop);
	while (!enough && n < MOST) {
		ask(sock, ifindex);
		found[n] = answer(sock, ifindex);
		/* nothing has begun yet: that is no empty queue */
		if (n || found[n])
			n++;
		usleep(EVERY_US);
	}
	if (skip >= n)
		skip = 0;
	qsort(found + skip, n - skip, sizeof(*found), compare);
	for (size_t i = 0; n && i < sizeof(percentiles) / sizeof(*percentiles); i++)
		printf("queue %d %.1f\n", percentiles[i], found[skip + (n - skip - 1) * percentiles[i] / 100] / 1e3);
	return 0;
}
