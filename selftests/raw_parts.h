/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * raw_parts: queue pairs that receive raw packets, the frames that come, and the flows that choose them.
 */
#ifndef RAW_PARTS_H
#define RAW_PARTS_H

#include "vt.h"

#define SLOTS 64
#define SLOT 2048
#define TYPE 0x88b5 /* for experiments (IEEE 802) */

/* of hosts that there are not */
extern const uint8_t mac_a[6], mac_b[6];

/* --- queues ------------------------------------------------------------------- */

struct queue {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_wq *wq;
	struct ibv_mr *mr;
	/* somebody reads that receive's memory */
	const uint8_t *looked_at;
};

/* a completion, with what has come */
struct got {
	int status;
	uint32_t len, tag, qpn;
	unsigned int flags;
	uint16_t vlan;
	const uint8_t *data;
};

/* post receive @slot */
void give_back(struct queue *q, uint64_t slot);
/* completion queue and memory, without a queue */
void queue_begin(struct queue *q, struct vt_dev *dev);
int to_state(struct ibv_qp *qp, enum ibv_qp_state state);
void bring_up(struct ibv_qp *qp);
/* NULL, and errno says why */
struct ibv_qp *make_qp(struct vt_dev *dev, struct ibv_cq *cq, uint32_t flags, uint64_t send_ops);
/* all of it, with all of its receives posted */
void queue_open(struct queue *q, struct vt_dev *dev, uint32_t flags);
void queue_close(struct queue *q);
/* the next completion, if one comes; its data stays until the next call of this, which gives the receive back */
bool next(struct queue *q, struct got *g, double seconds);
/* does nothing come for a while? */
bool nothing(struct queue *q);

/* this process goes on without CAP_NET_RAW */
void drop_net_raw(void);

/* --- frames -------------------------------------------------------------------- */

struct frame {
	uint8_t data[SLOT];
	uint32_t len;
};

/* a frame anew, with a VLAN tag unless that is negative; the others add to it */
void eth(struct frame *f, const uint8_t *dst, int vlan, uint16_t type);
void ipv4(struct frame *f, uint8_t proto, uint32_t src, uint32_t dst, uint16_t payload);
void ipv6(struct frame *f, uint8_t proto, const char *src, const char *dst, uint16_t payload);
void udp(struct frame *f, uint16_t sport, uint16_t dport, uint16_t payload);
void tcp(struct frame *f, uint16_t sport, uint16_t dport, uint32_t seq);
void put(struct frame *f, const void *data, uint32_t len);
/* bytes of vt_pattern() */
void pad(struct frame *f, uint32_t n, uint64_t key);
/* a whole one, for mac_b */
void udp_frame(struct frame *f, int vlan, uint16_t sport, uint16_t dport);

/* of an IPv4 frame without options and tag: both checksums are there, and right */
bool sums_right(const uint8_t *data, uint32_t len);

/* --- flows ------------------------------------------------------------------------ */

struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[512];
	size_t len;
} __attribute__((packed, aligned(8)));

struct rule rule(enum ibv_flow_attr_type type, uint16_t priority, uint32_t flags);
/* what is NULL, negative or 0 does not matter to the flow */
void spec_eth(struct rule *r, const uint8_t *dst, int vlan, uint16_t type);
void spec_ipv4(struct rule *r, uint32_t dst);
void spec_ipv6(struct rule *r, const char *dst);
void spec_port(struct rule *r, enum ibv_flow_spec_type type, uint16_t dport);
void spec_tag(struct rule *r, uint32_t tag);
void spec_drop(struct rule *r);
void spec_count(struct rule *r, struct ibv_counters *counters);
/* the frames of udp_frame() with that port */
struct rule port_rule(uint16_t priority, uint32_t flags, uint16_t dport);
/* they end the program if they cannot */
struct ibv_flow *flow(struct queue *q, struct rule *r);
void end_flow(struct ibv_flow *f);

#endif
