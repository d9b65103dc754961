// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * forge: may a process speak for another one's queue pair, with a UDP socket and what
 * "rdma resource" tells everybody?
 *
 *	forge -s OUR_IP -D TARGET_IP -c HOST
 *
 * badpackets_target runs on HOST and has the queue pair, whose peer is on this host. Its
 * next SEND is sent by somebody with CAP_NET_RAW, who may: that shows that it is right.
 * Then by nobody in particular, who must not.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "badpackets.h"
#include "vt.h"
#include "wire.h"

#define NOBODY 65534
#define SPORT 0xc321

static int ctl;
static struct wire_path path = { .sport = SPORT };
static struct sockaddr_storage ours, theirs;
static socklen_t addr_len;

static struct bp_report ask(enum bp_command command)
{
	struct bp_request req = { .command = command }, ignored;
	struct bp_report none = {}, report;

	vt_ctl_swap(ctl, &req, &ignored, sizeof(req));
	vt_ctl_swap(ctl, &none, &report, sizeof(report));
	return report;
}

static void parse_ip(const char *s, uint8_t *addr, struct sockaddr_storage *sa, uint16_t port)
{
	struct sockaddr_in6 *in6 = (void *)sa;
	struct sockaddr_in *in = (void *)sa;

	path.v6 = strchr(s, ':');
	if (inet_pton(path.v6 ? AF_INET6 : AF_INET, s, addr) != 1)
		vt_die(VT_SETUP, "'%s' is no address", s);
	addr_len = path.v6 ? sizeof(*in6) : sizeof(*in);
	sa->ss_family = path.v6 ? AF_INET6 : AF_INET;
	if (path.v6) {
		memcpy(&in6->sin6_addr, addr, 16);
		in6->sin6_port = htons(port);
	} else {
		memcpy(&in->sin_addr, addr, 4);
		in->sin_port = htons(port);
	}
}

/* Each datagram has a routing header in front of it, which names the receiver as its only segment, and has been there */
static bool behind_header;

static void put_header(int fd)
{
	/* RFC 8754: of 24 bytes, no segments are left, and the last one is number 0 */
	uint8_t srh[24] = { 0, 2, 4 };

	memcpy(srh + 8, &((struct sockaddr_in6 *)&theirs)->sin6_addr, 16);
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_RTHDR, srh, sizeof(srh)))
		vt_die(VT_SETUP, "IPV6_RTHDR: %s", strerror(errno));
}

/* A socket whose packets all have identification 0, which the ICRC covers: DF, and no peer */
static int open_socket(void)
{
	int fd = socket(ours.ss_family, SOCK_DGRAM, 0), never = IP_PMTUDISC_DO;

	if (fd < 0 || bind(fd, (struct sockaddr *)&ours, addr_len))
		vt_die(VT_SETUP, "socket: %s", strerror(errno));
	if (!path.v6 && setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &never, sizeof(never)))
		vt_die(VT_SETUP, "IP_MTU_DISCOVER: %s", strerror(errno));
	if (behind_header)
		put_header(fd);
	return fd;
}

/* The SEND that the queue pair expects next. 0 or an errno */
static int send_through(int fd, uint32_t qpn)
{
	uint8_t roce[BTH_LEN + 4] = {}, frame[256];
	struct bth bth = { .opcode = 0x04, .migreq = true, .pkey = 0xffff, .qpn = qpn, .ackreq = true, .psn = BP_PSN };
	size_t hdr = ETH_LEN + (path.v6 ? 40 : 20) + UDP_LEN, len;
	int err;

	bth_put(roce, &bth);
	len = wire_frame(frame, &path, roce, sizeof(roce));
	err = sendto(fd, frame + hdr, len - hdr, 0, (struct sockaddr *)&theirs, addr_len) < 0 ? errno : 0;
	close(fd);
	return err;
}

static int send_next(uint32_t qpn)
{
	return send_through(open_socket(), qpn);
}

/* As a setuid program does whose output somebody has sent there */
static int send_through_nobodys(uint32_t qpn)
{
	int fd;

	if (seteuid(NOBODY))
		vt_die(VT_SETUP, "seteuid: %s", strerror(errno));
	fd = open_socket();
	if (seteuid(0))
		vt_die(VT_SETUP, "seteuid: %s", strerror(errno));
	return send_through(fd, qpn);
}

static int send_as_nobody(uint32_t qpn)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(255);
		_exit(send_next(qpn));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) == 255)
		vt_die(VT_SETUP, "no unprivileged process");
	return WEXITSTATUS(status);
}

/* How many messages the queue pair receives */
static uint32_t received(int (*send)(uint32_t qpn), int *err)
{
	struct bp_report report;

	ask(BP_RESET);
	report = ask(BP_QUERY);
	*err = send(report.rc_qpn);
	usleep(300000);
	return ask(BP_QUERY).rc_received;
}

int main(int argc, char **argv)
{
	const char *host = NULL;
	uint32_t n;
	int c, err;

	while ((c = getopt(argc, argv, "s:D:c:")) != -1) {
		switch (c) {
		case 's': parse_ip(optarg, path.saddr, &ours, SPORT); break;
		case 'D': parse_ip(optarg, path.daddr, &theirs, ROCE_PORT); break;
		case 'c': host = optarg; break;
		default: vt_die(VT_SETUP, "see the top of forge.c");
		}
	}
	ctl = vt_ctl_connect(host, BP_PORT, 30);
	n = received(send_next, &err);
	vt_check(!err && n == 1, "with CAP_NET_RAW a message is sent for a queue pair (errno %d, %u received)", err, n);
	n = received(send_as_nobody, &err);
	vt_check(!n, "without, none arrives (%u received)", n);
	vt_check(err == EPERM, "and sendto() says so (errno %d)", err);
	n = received(send_through_nobodys, &err);
	vt_check(!n && err == EPERM, "nor through a socket that somebody without has opened (errno %d, %u received)", err, n);
	behind_header = path.v6;
	if (behind_header) {
		n = received(send_as_nobody, &err);
		vt_check(!n && err == EPERM, "nor behind a routing header (errno %d, %u received)", err, n);
	}
	ask(BP_END);
	return vt_failures ? VT_WRONG : VT_OK;
}
