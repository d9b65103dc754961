/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * vt: what the verbs test programs share: opening a device by name and address,
 * bringing up queue pairs, a TCP control connection, and a random generator
 * that gives the same sequence on both sides.
 */
#ifndef VT_H
#define VT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* exit statuses of all programs; 1 is the one that means "the device is wrong" */
enum {
	VT_OK = 0,
	VT_WRONG = 1, /* wrong data, wrong completion, wrong error code */
	VT_SETUP = 2, /* bad arguments or no device: nothing was tested */
	VT_GONE = 3, /* the peer or the device went away */
	VT_STALLED = 4, /* no progress within the time limit */
	VT_SKIP = 5, /* the device does not offer what this would test */
};

void vt_die(int status, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* KiB that this process has pinned; -1: the kernel does not say */
long vt_pinned(void);
/* This process goes on as nobody, whose RLIMIT_MEMLOCK is @memlock bytes, or ends */
void vt_be_nobody(unsigned long memlock);
/* @fn in a process of its own, which says itself what is wrong; that anything was is one result here, called @what */
void vt_in_child(const char *what, void (*fn)(void *arg), void *arg);

/* This process goes on in a network namespace that "ip netns" has named, or ends */
void vt_enter_netns(const char *name);

/*
 * One result: prints "ok: ..." or "WRONG: ...", which the shell turns into KTAP, and
 * counts what was wrong. With rdma_rxe, a name that contains one of
 * vt_rxe_deviates (ends with NULL) is skipped instead.
 */
void vt_check(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
extern int vt_failures;
extern const char *const *vt_rxe_deviates;

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
/* each argument is evaluated once */
#define min(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })

double vt_now(void);

/* the tests are being validated against rdma_rxe, whose known deviations they then excuse */
bool vt_is_rxe(void);

/* --- random numbers ------------------------------------------------------- */

uint64_t vt_mix(uint64_t x);

struct vt_rng {
	uint64_t state;
};

uint64_t vt_rand(struct vt_rng *rng);
/* 0 .. n - 1 */
uint32_t vt_below(struct vt_rng *rng, uint32_t n);

/* bytes [pos, pos + len) of the endless pattern that belongs to @key */
void vt_pattern(void *buf, uint64_t key, size_t pos, size_t len);

/* --- device ----------------------------------------------------------------- */

struct vt_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
	/* of its address handles */
	uint8_t sl, tclass;
};

/*
 * Open @name and choose a RoCE v2 GID (with ROCE=v1 in the environment, one of RoCE v1): number @gid_index, or (when negative)
 * the one of address @ip, or (when NULL) an IPv4 one, or any global one.
 */
bool vt_is_roce_v1(void);
void vt_open(struct vt_dev *dev, const char *name, const char *ip, int gid_index);
/*
 * Open what -d DEVICE -i IP [-D DEVICE_OF_PEER -I IP_OF_PEER] names, with asynchronous events that do not block, and
 * return how many devices that is. With @less there is an option -s, which sets it.
 */
int vt_open_hosts(int argc, char **argv, struct vt_dev devs[2], bool *less);
void vt_close(struct vt_dev *dev);
union ibv_gid vt_gid_of_ip(const char *ip);
/* The device's counter of that name, after the time for which the kernel does not look at it again */
long vt_counter(struct vt_dev *dev, const char *name);

/* What "rdma ..." prints, up to the next call; empty when it fails */
const char *vt_rdma(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The number @name of the first object with @wanted in it, of a list by "rdma -j"; -1: none */
long long vt_shown(const char *list, const char *wanted, const char *name);

/* a page-aligned buffer and its memory region */
struct ibv_mr *vt_mr(struct vt_dev *dev, size_t size, int access);
void vt_mr_free(struct ibv_mr *mr);

/* --- queue pairs ------------------------------------------------------------ */

#define VT_QKEY 0x11111111

/* what the peer must know */
struct vt_addr {
	uint32_t qpn;
	uint32_t psn;
	union ibv_gid gid;
};

struct vt_conn {
	struct vt_addr peer;
	uint32_t sq_psn;
	enum ibv_mtu mtu;
	uint8_t rd_atomic;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t sl;
	uint8_t tclass;
};

#define VT_REMOTE_ACCESS \
	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* each returns what ibv_modify_qp() returned: 0 or an errno */
int vt_to_init(struct ibv_qp *qp, int access);
int vt_to_rtr(struct ibv_qp *qp, struct vt_dev *dev, const struct vt_conn *c);
int vt_to_rts(struct ibv_qp *qp, const struct vt_conn *c);
/* these three, from RESET; the errno of the first that fails */
int vt_bring_up(struct ibv_qp *qp, struct vt_dev *dev, int access, const struct vt_conn *c);
int vt_to_state(struct ibv_qp *qp, enum ibv_qp_state state);
enum ibv_qp_state vt_state(struct ibv_qp *qp);
const char *vt_state_name(enum ibv_qp_state state);

struct ibv_ah *vt_ah(struct vt_dev *dev, const union ibv_gid *dgid);

/* each ends the program when the device refuses */
struct ibv_cq *vt_create_cq(struct vt_dev *dev, int entries);
/* one whose events go to @channel (NULL: nowhere) */
struct ibv_cq *vt_create_channel_cq(struct vt_dev *dev, int entries, struct ibv_comp_channel *channel, int vector);
struct ibv_srq *vt_create_srq(struct vt_dev *dev, uint32_t entries, uint32_t sges);
struct ibv_qp *vt_create_qp(struct vt_dev *dev, struct ibv_qp_init_attr *init);
/* one that has one completion queue, and work requests of one element */
struct ibv_qp *vt_new_qp(struct vt_dev *dev, enum ibv_qp_type type, struct ibv_cq *cq, uint32_t sends, uint32_t recvs);
/* for datagrams, in RTS, with that many work requests of one element each way */
struct ibv_qp *vt_create_ud_qp(struct vt_dev *dev, struct ibv_cq *send_cq, struct ibv_cq *recv_cq, uint32_t depth);

/* A signalled request of one element, to be completed by the caller */
struct ibv_send_wr vt_request(struct ibv_sge *sge, uint64_t id, enum ibv_wr_opcode opcode);

/* --- completions and events ------------------------------------------------- */

/* the next completion of @cq, when one comes within that time */
bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc, double seconds);
/* nothing is in @cq, and nothing comes for a moment */
bool vt_silent(struct ibv_cq *cq);
/* throw away what is in @cq by now */
void vt_drain_cq(struct ibv_cq *cq);
/* the queue that the next event of @channel is about; NULL when none comes within that time */
struct ibv_cq *vt_cq_event(struct ibv_comp_channel *channel, double seconds);
/* the next asynchronous event, acknowledged, when one comes within that time; for events that do not block */
bool vt_async_event(struct vt_dev *dev, struct ibv_async_event *event, double seconds);
/* one of @type comes within that time, about @qp (NULL: about whatever); others are passed over */
bool vt_event_comes(struct vt_dev *dev, enum ibv_event_type type, const struct ibv_qp *qp, double seconds);
/* throw away those that have come by now; a queue pair with one cannot be destroyed */
void vt_drain_events(struct vt_dev *dev);

/* --- control connection ----------------------------------------------------- */

/* -1 on the first call's failure is fatal inside; the result is a connected socket */
int vt_ctl_accept(uint16_t port, int timeout_s);
int vt_ctl_connect(const char *host, uint16_t port, int timeout_s);
/* both sides send @len bytes and receive as many */
void vt_ctl_swap(int fd, const void *out, void *in, size_t len);
/*
 * The same between machines whose byte order may differ: numbers travel as little-endian. @layout has a digit for each field, in
 * their order, and the last one stands for all that follow: 8 or 4, a number of so many bytes; 1, a GID. So messages have no
 * padding, which 32-bit machines do not have everywhere where others have it.
 */
void vt_ctl_swap_numbers(int fd, const void *out, void *in, size_t len, const char *layout);

#endif
