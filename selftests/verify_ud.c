// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * verify_ud: datagrams of all sizes up to the MTU, with and without immediate,
 * from several senders into one queue pair. The receiver checks length,
 * sender, immediate, every byte, that nothing was written beyond the message,
 * and the 40 bytes in front of it; then that a wrong Q_Key is not delivered.
 *
 *	verify_ud -d DEVICE [-i IP] [-p PORT] [-n COUNT] [-l] [-L SL] [-C TCLASS] [HOST]
 *
 * -l: datagrams may get lost (but never be wrong).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "vt.h"

#define GRH 40
#define BURST 32
#define SENDERS 3
#define GUARD 0x5a
#define WRONG_QKEY (VT_QKEY ^ 1)

struct hello {
	uint32_t qpn[SENDERS], reserved;
	union ibv_gid gid;
	uint32_t count, mtu;
	uint64_t seed;
};

static struct vt_dev dev;
static struct ibv_cq *cq;
static struct ibv_qp *qps[SENDERS];
static struct ibv_mr *send_mr, *recv_mr;
static struct hello me, peer;
static uint32_t slot;
static int ctl;
static bool client, may_lose;

/* message @i of the stream: the same on both sides */
static uint64_t key_of(uint32_t i)
{
	return vt_mix(me.seed ^ vt_mix(i));
}

static uint32_t len_of(uint32_t i)
{
	uint64_t key = key_of(i);

	return key & 7 ? (key >> 8) % (me.mtu + 1) : key & 8 ? me.mtu : 0;
}

static bool has_imm(uint32_t i)
{
	return key_of(i) & 16;
}

static struct ibv_qp *ud_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = BURST, .max_recv_wr = BURST,
			 .max_send_sge = 2, .max_recv_sge = 2 },
	};
	struct vt_conn conn = {};
	struct ibv_qp *qp = vt_create_qp(&dev, &init);

	if (vt_bring_up(qp, &dev, 0, &conn))
		vt_die(VT_SETUP, "qp to RTS: %s", strerror(errno));
	return qp;
}

static void set_up(uint16_t port, const char *host)
{
	int i;

	ctl = client ? vt_ctl_connect(host, port, 20) : vt_ctl_accept(port, 20);
	cq = vt_create_cq(&dev, 4 * SENDERS * BURST);
	for (i = 0; i < SENDERS; i++) {
		qps[i] = ud_qp();
		me.qpn[i] = qps[i]->qp_num;
	}
	me.gid = dev.gid;
	me.mtu = 128 << dev.port.active_mtu;
	vt_ctl_swap_numbers(ctl, &me, &peer, sizeof(me), "44441448");
	if (!client) {
		me.seed = peer.seed;
		me.count = peer.count;
	}
	me.mtu = min(me.mtu, peer.mtu);
	slot = GRH + me.mtu + 64;
	send_mr = vt_mr(&dev, BURST * slot, 0);
	recv_mr = vt_mr(&dev, BURST * slot, IBV_ACCESS_LOCAL_WRITE);
}

static void wrong(uint32_t i, const char *what, uint32_t got, uint32_t wanted)
{
	vt_die(VT_WRONG, "WRONG %s: message %u of %u bytes: %#x, not %#x", what, i, len_of(i),
	       got, wanted);
}

/* --- receiver ------------------------------------------------------------------ */

static uint8_t *recv_slot(uint32_t n)
{
	return (uint8_t *)recv_mr->addr + n * slot;
}

/* in two pieces that do not part at the end of the GRH */
static void post_recv(uint32_t n)
{
	struct ibv_sge sge[] = {
		{ (uintptr_t)recv_slot(n), 31, recv_mr->lkey },
		{ (uintptr_t)recv_slot(n) + 31, GRH - 31 + me.mtu, recv_mr->lkey },
	};
	struct ibv_recv_wr *bad, wr = { .wr_id = n, .sg_list = sge, .num_sge = 2 };
	int rc;

	memset(recv_slot(n), GUARD, slot);
	rc = ibv_post_recv(qps[0], &wr, &bad);
	if (rc)
		vt_die(VT_WRONG, "post recv: %s", strerror(rc));
}

static uint16_t ip_sum(const uint8_t *p)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/*
 * the network header: IPv4 in the last 20 bytes, after zeros, or IPv6 in all of them, or that of RoCE v1, which looks the
 * same, but comes without UDP
 */
static void check_grh(uint32_t i, const uint8_t *grh)
{
	static const uint8_t zeros[20];
	/* rxe leaves the checksum out when a packet does not leave the device */
	bool no_sum = vt_is_rxe() && !memcmp(&me.gid, &peer.gid, sizeof(me.gid));
	const uint8_t *ip = grh + 20;
	uint32_t wire = 8 + 12 + 8 + (has_imm(i) ? 4 : 0) + ((len_of(i) + 3) & ~3) + 4;

	if (!vt_is_roce_v1() && IN6_IS_ADDR_V4MAPPED((struct in6_addr *)me.gid.raw)) {
		if (memcmp(grh, zeros, sizeof(zeros)))
			wrong(i, "bytes before the IPv4 header", grh[0], 0);
		if (ip[0] != 0x45 || (ip_sum(ip) != 0xffff && !no_sum))
			wrong(i, "IPv4 header", ip[0], 0x45);
		if ((ip[2] << 8 | ip[3]) != (int)(20 + wire))
			wrong(i, "IPv4 length", ip[2] << 8 | ip[3], 20 + wire);
		if (ip[9] != IPPROTO_UDP || memcmp(ip + 12, peer.gid.raw + 12, 4) ||
		    memcmp(ip + 16, me.gid.raw + 12, 4))
			wrong(i, "IPv4 address or protocol", ip[9], IPPROTO_UDP);
		return;
	}
	if (vt_is_roce_v1())
		wire -= 8;
	if (grh[0] >> 4 != 6 || grh[6] != (vt_is_roce_v1() ? 0x1b : IPPROTO_UDP))
		wrong(i, "IPv6 header", grh[6], IPPROTO_UDP);
	if ((grh[4] << 8 | grh[5]) != (int)wire)
		wrong(i, "IPv6 length", grh[4] << 8 | grh[5], wire);
	if (memcmp(grh + 8, peer.gid.raw, 16) || memcmp(grh + 24, me.gid.raw, 16))
		wrong(i, "IPv6 address", grh[8], peer.gid.raw[0]);
}

static void check_message(uint32_t i, const struct ibv_wc *wc)
{
	const uint8_t *buf = recv_slot(wc->wr_id), *p;
	uint32_t len = len_of(i);
	uint8_t want[4096];

	if (wc->opcode != IBV_WC_RECV || wc->qp_num != me.qpn[0])
		wrong(i, "completion", wc->opcode, IBV_WC_RECV);
	if (wc->byte_len != len + GRH)
		wrong(i, "byte_len", wc->byte_len, len + GRH);
	if (!(wc->wc_flags & IBV_WC_GRH))
		wrong(i, "GRH flag", wc->wc_flags, IBV_WC_GRH);
	if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != has_imm(i))
		wrong(i, "immediate flag", wc->wc_flags, has_imm(i));
	if (has_imm(i) && wc->imm_data != htonl(i))
		wrong(i, "immediate", ntohl(wc->imm_data), i);
	if (wc->src_qp != peer.qpn[i % SENDERS])
		wrong(i, "source qp", wc->src_qp, peer.qpn[i % SENDERS]);
	check_grh(i, buf);
	vt_pattern(want, key_of(i), 0, len);
	for (p = buf + GRH; p < buf + GRH + len; p++)
		if (*p != want[p - buf - GRH])
			wrong(i, "data", *p, want[p - buf - GRH]);
	for (; p < buf + slot; p++)
		if (*p != GUARD)
			wrong(i, "byte after the message", *p, GUARD);
}

/* could this be message @i? */
static bool could_be(uint32_t i, const struct ibv_wc *wc)
{
	uint32_t len = len_of(i), head = min(len, 8u);
	uint8_t want[8];

	vt_pattern(want, key_of(i), 0, head);
	return wc->byte_len == len + GRH && wc->src_qp == peer.qpn[i % SENDERS] &&
	       !!(wc->wc_flags & IBV_WC_WITH_IMM) == has_imm(i) && (!has_imm(i) || wc->imm_data == htonl(i)) &&
	       !memcmp(recv_slot(wc->wr_id) + GRH, want, head);
}

/*
 * which message of the burst is it? They may come in another order, or not at all; where a link may do whatever it
 * likes, also twice, the second time in a later burst.
 */
static uint32_t identify(uint32_t first, uint32_t n, const struct ibv_wc *wc, uint32_t *seen)
{
	uint32_t i;

	for (i = first; i < first + n; i++) {
		if (*seen & 1u << (i - first) || !could_be(i, wc))
			continue;
		*seen |= 1u << (i - first);
		return i;
	}
	for (i = 0; may_lose && i < first + n; i++)
		if (could_be(i, wc))
			return i;
	vt_die(VT_WRONG, "WRONG message: %u bytes from qp %u, flags %x: not one of %u..%u",
	       wc->byte_len, wc->src_qp, wc->wc_flags, first, first + n - 1);
}

/* at most @n completions within @seconds; the number of them */
static uint32_t receive(uint32_t first, uint32_t n, double seconds)
{
	double end = vt_now() + seconds;
	uint32_t got = 0, seen = 0;
	struct ibv_wc wc;

	while (got < n && vt_now() < end) {
		if (!ibv_poll_cq(cq, 1, &wc))
			continue;
		if (wc.status)
			vt_die(VT_WRONG, "WRONG receive completion: %s", ibv_wc_status_str(wc.status));
		check_message(identify(first, n, &wc, &seen), &wc);
		got++;
	}
	return got;
}

/* --- sender -------------------------------------------------------------------- */

static void post_send(uint32_t i, struct ibv_ah *ah, uint32_t qkey)
{
	uint8_t *buf = (uint8_t *)send_mr->addr + i % BURST * slot;
	uint32_t len = len_of(i), head = len / 3;
	struct ibv_sge sge[] = {
		{ (uintptr_t)buf, head, send_mr->lkey },
		{ (uintptr_t)buf + head, len - head, send_mr->lkey },
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = i,
		.sg_list = sge,
		.num_sge = len ? 2 : 0,
		.opcode = has_imm(i) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm_data = htonl(i),
		.wr.ud = { .ah = ah, .remote_qpn = peer.qpn[0], .remote_qkey = qkey },
	};
	int rc;

	vt_pattern(buf, key_of(i), 0, len);
	rc = ibv_post_send(qps[i % SENDERS], &wr, &bad);
	if (rc)
		vt_die(VT_WRONG, "post send: %s", strerror(rc));
}

static void send_burst(uint32_t first, uint32_t n, struct ibv_ah *ah, uint32_t qkey)
{
	double end = vt_now() + 10;
	struct ibv_wc wc;
	uint32_t i;

	for (i = first; i < first + n; i++)
		post_send(i, ah, qkey);
	for (i = 0; i < n;) {
		if (vt_now() > end)
			vt_die(VT_STALLED, "STALLED: %u of %u datagrams were sent", i, n);
		if (!ibv_poll_cq(cq, 1, &wc))
			continue;
		if (wc.status || wc.opcode != IBV_WC_SEND)
			vt_die(VT_WRONG, "WRONG send completion: %s opcode %d",
			       ibv_wc_status_str(wc.status), wc.opcode);
		i++;
	}
}

/* --- both ---------------------------------------------------------------------- */

static void meet(void)
{
	uint32_t a = 1, b;

	vt_ctl_swap(ctl, &a, &b, sizeof(a));
}

static uint32_t run(struct ibv_ah *ah)
{
	uint32_t first, n, i, got = 0, now;

	for (first = 0; first < me.count; first += n) {
		n = min((uint32_t)BURST, me.count - first);
		if (client) {
			meet();
			send_burst(first, n, ah, VT_QKEY);
			meet();
			continue;
		}
		for (i = 0; i < n; i++)
			post_recv(i);
		meet();
		now = receive(first, n, may_lose ? 0.3 : 5);
		got += now;
		if (now < n && !may_lose)
			vt_die(VT_WRONG, "WRONG: %u of %u datagrams arrived on a link that loses none", now, n);
		meet();
		if (now < n) {
			/* start the next burst with an empty queue */
			vt_to_state(qps[0], IBV_QPS_RESET);
			vt_to_init(qps[0], 0);
			vt_to_rtr(qps[0], &dev, &(struct vt_conn){});
			vt_to_rts(qps[0], &(struct vt_conn){});
		}
	}
	return got;
}

/* a datagram with another Q_Key is dropped, and does not use up a receive */
static void wrong_qkey(struct ibv_ah *ah)
{
	struct ibv_wc wc;
	double end;

	if (!client)
		post_recv(0);
	meet();
	if (client)
		send_burst(0, 1, ah, WRONG_QKEY);
	meet();
	if (!client)
		for (end = vt_now() + 0.2; vt_now() < end;)
			if (ibv_poll_cq(cq, 1, &wc))
				vt_die(VT_WRONG, "WRONG: a datagram with a wrong Q_Key was delivered");
	meet();
	if (client)
		send_burst(0, 1, ah, VT_QKEY);
	else if (receive(0, 1, 5) != 1 && !may_lose)
		vt_die(VT_WRONG, "WRONG: nothing arrives after a wrong Q_Key");
	meet();
}

int main(int argc, char **argv)
{
	const char *device = NULL, *ip = NULL;
	uint16_t port = 18601;
	struct ibv_ah *ah;
	uint32_t got;
	int c;

	me.count = 500;
	me.seed = 1;
	while ((c = getopt(argc, argv, "d:i:p:n:s:lL:C:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'i': ip = optarg; break;
		case 'p': port = atoi(optarg); break;
		case 'n': me.count = atoi(optarg); break;
		case 's': me.seed = strtoull(optarg, NULL, 0); break;
		case 'l': may_lose = true; break;
		case 'L': dev.sl = atoi(optarg); break;
		case 'C': dev.tclass = strtoul(optarg, NULL, 0); break;
		default: vt_die(VT_SETUP, "see the top of verify_ud.c");
		}
	}
	client = optind < argc;
	vt_open(&dev, device, ip, -1);
	set_up(port, argv[optind]);
	ah = vt_ah(&dev, &peer.gid);
	if (!ah)
		vt_die(VT_SETUP, "create ah: %s", strerror(errno));
	got = run(ah);
	wrong_qkey(ah);
	if (client)
		printf("sent %u datagrams\n", me.count);
	else
		printf("verified %u of %u datagrams\n", got, me.count);
	if (!client && !got)
		vt_die(VT_WRONG, "nothing was verified");
	if (ibv_destroy_ah(ah) || ibv_destroy_qp(qps[0]) || ibv_destroy_qp(qps[1]) ||
	    ibv_destroy_qp(qps[2]) || ibv_destroy_cq(cq))
		vt_die(VT_WRONG, "tear-down: %s", strerror(errno));
	vt_mr_free(send_mr);
	vt_mr_free(recv_mr);
	vt_close(&dev);
	return VT_OK;
}
