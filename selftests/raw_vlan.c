// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * raw_vlan: VLAN tags that the device puts into frames of raw packets. No call of libibverbs asks for one, so work requests
 * are written here.
 *
 *	raw_vlan -d DEVICE -i IP -D PEER -I IP
 *
 * In the network namespace of the peer, whose netdev is veth0 with an MTU of 1500. What comes there is compared by two queue
 * pairs, of which one strips tags, and by a packet socket.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "raw_parts.h"
#include "uverbs.h"

enum {
	TCI = 0x6005, /* priority 3, VLAN 5 */
	OWN_TCI = 7, /* of a frame that has a tag itself */
	TAG = 4,
	MOST = 14 + 1500, /* bytes of a frame without a tag */
	ROOM = 65536,
};

static struct vt_dev devs[2];

/* --- a sender ------------------------------------------------------------------- */

struct sender {
	uint32_t handle, qpn;
	struct uv_ring ring;
};

static struct uv_context own;
static uint32_t cq_handle;
static struct uv_ring completions;
static uint8_t *memory;
static uint32_t lkey;

static void own_open(void)
{
	struct sroce_create_cq_req in = {};
	struct sroce_create_cq_resp out;
	struct ib_uverbs_reg_mr_resp mr;
	char path[300];

	if (!uv_path(ibv_get_device_name(devs[0].ctx->device), path, sizeof(path)))
		vt_die(VT_SETUP, "no file of the device");
	own = uv_open(path);
	memory = aligned_alloc(4096, ROOM);
	if (uv_create_cq(own.fd, 64, &in, sizeof(in), &cq_handle, &out, sizeof(out)) ||
	    uv_reg_mr(own.fd, own.pd, (uintptr_t)memory, ROOM, (uintptr_t)memory, 0, &mr))
		vt_die(VT_SETUP, "set-up: %s", strerror(errno));
	completions = uv_map_ring(own.fd, &out.ring);
	lkey = mr.lkey;
}

/* A new one: what is wrong with a work request ends its queue pair. One that is connected is so with itself. */
static struct sender sender_of(uint8_t type)
{
	struct uv_route route = { .gid_index = devs[0].gid_index, .psn = 1, .mtu = IBV_MTU_1024 };
	struct sroce_create_qp_req in = {};
	struct ib_uverbs_create_qp_resp resp;
	struct sroce_create_qp_resp out;
	struct ib_uverbs_create_qp cmd;
	int rc;

	uv_qp_command(&cmd, own.pd, cq_handle, type);
	cmd.max_inline_data = 256;
	rc = uv_create_qp(own.fd, &cmd, &in, sizeof(in), &resp, &out, sizeof(out));
	if (rc)
		vt_die(rc == EPERM ? VT_SETUP : VT_WRONG, "queue pair: %s", strerror(rc));
	memcpy(route.dgid, devs[0].gid.raw, 16);
	route.dest_qpn = resp.qpn;
	rc = uv_connect(own.fd, resp.qp_handle, type, &route);
	if (rc)
		vt_die(VT_WRONG, "to RTS: %s", strerror(rc));
	return (struct sender){ resp.qp_handle, resp.qpn, uv_map_ring(own.fd, &out.sq) };
}

static int completed(void)
{
	struct sroce_ring_hdr *hdr = completions.hdr;
	double end = vt_now() + 10;
	uint32_t cons = hdr->cons;
	int status;

	while (__atomic_load_n(&hdr->prod, __ATOMIC_ACQUIRE) == cons) {
		if (vt_now() > end)
			vt_die(VT_STALLED, "no completion of a send");
		usleep(50);
	}
	status = ((struct sroce_cqe *)uv_entry(&completions, cons))->status;
	__atomic_store_n(&hdr->cons, cons + 1, __ATOMIC_RELEASE);
	return status;
}

/* Post a request of @len bytes of the memory, with what is behind its element, and return the status that it ends with */
static int post(struct sender *s, struct sroce_send_wqe w, uint32_t len, const void *header)
{
	struct sroce_sge sge = { (uintptr_t)memory, len, lkey };
	uint32_t prod = s->ring.hdr->prod;
	uint8_t *entry = uv_entry(&s->ring, prod);

	w.num_sge = len ? 1 : 0;
	w.flags |= SROCE_SEND_SIGNALED;
	memcpy(entry, &w, sizeof(w));
	memcpy(entry + sizeof(w), &sge, sizeof(sge));
	if (header)
		memcpy(entry + sizeof(w) + sizeof(sge), header, w.raw.header_len);
	__atomic_store_n(&s->ring.hdr->prod, prod + 1, __ATOMIC_RELEASE);
	if (ioctl(own.doorbell, SROCE_IOC_DOORBELL, s->qpn))
		vt_die(VT_WRONG, "doorbell: %s", strerror(errno));
	return completed();
}

static int send_frame(struct sender *s, const struct frame *f, uint32_t flags, uint16_t tci)
{
	memcpy(memory, f->data, f->len);
	return post(s, (struct sroce_send_wqe){ .opcode = SROCE_WR_SEND, .flags = flags, .raw.vlan_tci = tci }, f->len, NULL);
}

/* --- receivers ------------------------------------------------------------------ */

static struct queue keep, strip;
static struct ibv_flow *flows[2];
static int fd;

static int packet_socket(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct timeval patience = { .tv_sec = 5 };
	int s = socket(AF_PACKET, SOCK_RAW, 0), on = 1;

	at.sll_ifindex = if_nametoindex("veth0");
	if (s < 0 || !at.sll_ifindex || setsockopt(s, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) ||
	    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    bind(s, (struct sockaddr *)&at, sizeof(at)))
		vt_die(VT_SETUP, "packet socket: %s", strerror(errno));
	return s;
}

/* Frames to mac_b with the tag in them, whatever tag they have beside it */
static void receivers_open(void)
{
	struct rule r = rule(IBV_FLOW_ATTR_NORMAL, 0, 0);

	queue_open(&keep, &devs[1], 0);
	queue_open(&strip, &devs[1], IBV_QP_CREATE_CVLAN_STRIPPING);
	spec_eth(&r, mac_b, TCI & 0xfff, 0);
	flows[0] = flow(&keep, &r);
	flows[1] = flow(&strip, &r);
	fd = packet_socket();
}

static void receivers_close(void)
{
	end_flow(flows[0]);
	end_flow(flows[1]);
	queue_close(&keep);
	queue_close(&strip);
	close(fd);
}

static void tag_at(uint8_t *at, uint16_t type, uint16_t tci)
{
	uint16_t tag[2] = { htons(type), htons(tci) };

	memcpy(at, tag, sizeof(tag));
}

static struct frame tagged(const struct frame *f)
{
	struct frame t = { .len = f->len + TAG };

	memcpy(t.data, f->data, 12);
	tag_at(t.data + 12, 0x8100, TCI);
	memcpy(t.data + 12 + TAG, f->data + 12, f->len - 12);
	return t;
}

/* The tag that the kernel has taken off is put back */
static void tag_back(struct msghdr *msg, uint8_t *frame, ssize_t *len)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	struct tpacket_auxdata aux = {};

	if (c && c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
		return;
	memmove(frame + 12 + TAG, frame + 12, *len - 12);
	tag_at(frame + 12, aux.tp_vlan_tpid, aux.tp_vlan_tci);
	*len += TAG;
}

/* The next frame for mac_b that the socket sees, which may be one that nobody has cut yet; 0: none */
static ssize_t socket_next(uint8_t *frame, size_t room)
{
	char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct iovec iov = { frame, room - TAG };
	ssize_t len;

	do {
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				      .msg_controllen = sizeof(control) };

		len = recvmsg(fd, &msg, 0);
		if (len >= 14 && !memcmp(frame, mac_b, 6))
			tag_back(&msg, frame, &len);
	} while (len >= 14 && memcmp(frame, mac_b, 6));
	return len > 0 ? len : 0;
}

/* --- tests -------------------------------------------------------------------------- */

static bool alike(const uint8_t *data, uint32_t len, const struct frame *e)
{
	return len == e->len && !memcmp(data, e->data, len);
}

/* Sooner or later: frames without the tag are there, too */
static bool socket_sees(const struct frame *e)
{
	uint8_t seen[SLOT];
	ssize_t len;

	do {
		len = socket_next(seen, sizeof(seen));
		if (alike(seen, len, e))
			return true;
	} while (len);
	return false;
}

/* A frame comes with the tag at all three receivers */
static void comes(const char *what, const struct frame *f)
{
	const struct frame e = tagged(f);
	struct got g = {};
	bool came = next(&keep, &g, 5);

	vt_check(came && !g.status && alike(g.data, g.len, &e), "%s: with its tag, %u bytes of %u", what, g.len, e.len);
	g = (struct got){};
	came = next(&strip, &g, 5);
	vt_check(came && !g.status && alike(g.data, g.len, f) && g.vlan == TCI, "%s: stripped, %u bytes of %u, tag %#x", what,
		 g.len, f->len, g.vlan);
	vt_check(socket_sees(&e), "%s: a packet socket sees the same", what);
}

static void frames(void)
{
	struct sender s = sender_of(IB_UVERBS_QPT_RAW_PACKET);
	struct frame f;

	eth(&f, mac_b, -1, TYPE);
	pad(&f, 50, 1);
	vt_check(!send_frame(&s, &f, SROCE_SEND_VLAN, TCI), "a frame and a tag: sent");
	comes("a frame and a tag", &f);
	eth(&f, mac_b, OWN_TCI, TYPE);
	pad(&f, 50, 2);
	vt_check(!send_frame(&s, &f, SROCE_SEND_VLAN, TCI), "a tag in front of the frame's own: sent");
	comes("a tag in front of the frame's own", &f);
}

static struct frame without_tag(const struct got *g)
{
	struct frame f = { .len = g->len - TAG };

	memcpy(f.data, g->data, 12);
	memcpy(f.data + 12, g->data + 12 + TAG, f.len - 12);
	return f;
}

static bool has_tag(const uint8_t *data)
{
	uint8_t tag[TAG];

	tag_at(tag, 0x8100, TCI);
	return !memcmp(data + 12, tag, TAG);
}

static void checksums(void)
{
	struct sender s = sender_of(IB_UVERBS_QPT_RAW_PACKET);
	uint8_t seen[SLOT];
	struct got g = {};
	struct frame f;
	ssize_t len;

	udp_frame(&f, -1, 1, 11);
	vt_check(!send_frame(&s, &f, SROCE_SEND_VLAN | SROCE_SEND_IP_CSUM, TCI), "checksums and a tag: sent");
	if (next(&keep, &g, 5) && g.len == f.len + TAG && has_tag(g.data))
		f = without_tag(&g);
	vt_check(sums_right(f.data, f.len), "checksums and a tag: both");
	vt_check(next(&strip, &g, 5) && g.vlan == TCI && g.flags & IBV_WC_IP_CSUM_OK, "stripped, and said to be right");
	/* The sums themselves are not there yet where nobody needs them */
	len = socket_next(seen, sizeof(seen));
	vt_check(len == f.len + TAG && has_tag(seen), "checksums and a tag: a packet socket sees the tag");
}

enum { BYTES = 20000, MSS = 1000, HEAD = 54 };

/* One part of what was cut, with the tag that it has in front of its IP header, or without */
static bool part_right(const uint8_t *data, uint32_t len, uint32_t tag, uint32_t at)
{
	uint8_t expected[BYTES];

	vt_pattern(expected, 3, 0, BYTES);
	return len > HEAD + tag && at + len - HEAD - tag <= BYTES &&
	       ntohl(*(uint32_t *)(data + 38 + tag)) == 1000 + at &&
	       !memcmp(data + HEAD + tag, expected + at, len - HEAD - tag);
}

static bool parts_kept(void)
{
	bool right = true;
	struct frame bare;
	uint32_t n = 0;
	struct got g;

	while (n < BYTES && right && next(&keep, &g, 5)) {
		right = g.len == HEAD + TAG + MSS && has_tag(g.data) && part_right(g.data, g.len, TAG, n);
		bare = without_tag(&g);
		right &= sums_right(bare.data, bare.len);
		n += MSS;
	}
	return right && n == BYTES;
}

static bool parts_stripped(void)
{
	bool right = true;
	uint32_t n = 0;
	struct got g;

	while (n < BYTES && right && next(&strip, &g, 5)) {
		right = g.len == HEAD + MSS && g.vlan == TCI && part_right(g.data, g.len, 0, n);
		n += MSS;
	}
	return right && n == BYTES;
}

/* Here they may still be in one piece */
static bool parts_seen(void)
{
	static uint8_t seen[ROOM];
	uint32_t n = 0;
	ssize_t len;

	while (n < BYTES) {
		len = socket_next(seen, sizeof(seen));
		if (!len || !has_tag(seen) || !part_right(seen, len, TAG, n))
			return false;
		n += len - HEAD - TAG;
	}
	return true;
}

static void tso(void)
{
	struct sender s = sender_of(IB_UVERBS_QPT_RAW_PACKET);
	struct sroce_send_wqe w = { .opcode = SROCE_WR_TSO, .flags = SROCE_SEND_VLAN,
				    .raw = { .mss = MSS, .header_len = HEAD, .vlan_tci = TCI } };
	struct frame head;

	eth(&head, mac_b, -1, 0x0800);
	ipv4(&head, 6, 0x0a620001, 0x0a620002, 20);
	tcp(&head, 1, 12, 1000);
	vt_pattern(memory, 3, 0, BYTES);
	vt_check(!post(&s, w, BYTES, head.data), "a packet to be cut, and a tag: sent");
	vt_check(parts_kept(), "each part has the tag");
	vt_check(parts_stripped(), "each part has it in its completion");
	vt_check(parts_seen(), "a packet socket sees it in all");
}

/* One tag may be on top of the MTU, whoever has put it there */
static void length(const char *what, int vlan, uint32_t len, uint32_t flags, bool fits)
{
	struct sender s = sender_of(IB_UVERBS_QPT_RAW_PACKET);
	struct frame f;
	int status;

	eth(&f, mac_b, vlan, TYPE);
	pad(&f, len - f.len, len);
	status = send_frame(&s, &f, flags, flags ? TCI : 0);
	vt_check(status == (fits ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR), "%u bytes, %s: %s", len, what,
		 ibv_wc_status_str(status));
	if (fits && flags)
		comes(what, &f);
}

static void lengths(void)
{
	length("and a tag", -1, MOST, SROCE_SEND_VLAN, true);
	length("and a tag", -1, MOST + 1, SROCE_SEND_VLAN, false);
	length("with a tag of its own", OWN_TCI, MOST + TAG, 0, true);
	length("with a tag of its own", OWN_TCI, MOST + TAG + 1, 0, false);
	length("with a tag of its own, and a tag", OWN_TCI, MOST, SROCE_SEND_VLAN, true);
	length("with a tag of its own, and a tag", OWN_TCI, MOST + 1, SROCE_SEND_VLAN, false);
	length("with a tag of its own, and a tag", OWN_TCI, MOST + TAG, SROCE_SEND_VLAN, false);
}

/* A WRITE of nothing, which a queue pair that is connected to itself completes whatever it has */
static void connected(const char *name, uint8_t type)
{
	struct sender s = sender_of(type);
	struct sroce_send_wqe w = { .opcode = SROCE_WR_RDMA_WRITE };
	int status = post(&s, w, 0, NULL);

	vt_check(!status, "%s, without a tag: %s", name, ibv_wc_status_str(status));
	w.flags = SROCE_SEND_VLAN;
	status = post(&s, w, 0, NULL);
	vt_check(status == IBV_WC_LOC_QP_OP_ERR, "%s, with one: %s", name, ibv_wc_status_str(status));
}

static void refusals(void)
{
	struct sender s = sender_of(IB_UVERBS_QPT_RAW_PACKET);
	struct frame f;
	int status;

	eth(&f, mac_b, -1, TYPE);
	pad(&f, 50, 1);
	status = send_frame(&s, &f, 0, TCI);
	vt_check(status == IBV_WC_LOC_QP_OP_ERR, "a tag that nobody asks for is refused: %s", ibv_wc_status_str(status));
	connected("a reliable connection", IB_UVERBS_QPT_RC);
	connected("an unreliable connection", IB_UVERBS_QPT_UC);
}

int main(int argc, char **argv)
{
	if (vt_open_hosts(argc, argv, devs, NULL) != 2)
		vt_die(VT_SETUP, "two devices are wanted");
	own_open();
	receivers_open();
	frames();
	checksums();
	tso();
	lengths();
	refusals();
	vt_check(nothing(&keep) && nothing(&strip), "nothing else comes");
	receivers_close();
	uv_close(&own);
	printf("%d wrong\n", vt_failures);
	return vt_failures ? VT_WRONG : VT_OK;
}
