/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * The contract between the sroce kernel driver and its user space provider.
 *
 * Rules: fixed-width fields, naturally aligned, no implicit padding; reserved
 * fields are zero when written and are checked when read by the kernel; an
 * optional feature has a bit in the capability mask of the user context.
 */
#ifndef SROCE_ABI_USER_H
#define SROCE_ABI_USER_H

#include <linux/types.h>
#ifndef __KERNEL__
#include <sys/ioctl.h>
#else
#include <linux/ioctl.h>
#endif

#define SROCE_ABI_VERSION 3

/* ib_device_ops.driver_id: not in the kernel's list, "sroc" in ASCII */
#define SROCE_DRIVER_ID 0x73726f63

#define SROCE_MAX_SGE 32
#define SROCE_MAX_INLINE 1024
/* Least rate limit of a queue pair, in kbit/s: a packet of 4 KiB takes a third of a second */
#define SROCE_MIN_RATE_LIMIT 100

/* Tag matching: elements of a tagged buffer */
#define SROCE_MAX_TAG_SGE 4
/* ... and bytes of a message that begins a rendezvous */
#define SROCE_MAX_RNDV_HEADER 64

/* --- user context ------------------------------------------------------- */

/* Bits of sroce_alloc_ucontext_resp.caps */
enum {
	/* doorbell_fd is valid and takes SROCE_IOC_DOORBELL */
	SROCE_CAP_DOORBELL_FD = 1 << 0,
	/* SROCE_NULL_LKEY is a key */
	SROCE_CAP_NULL_LKEY = 1 << 1,
	/* raw packets: queue pairs, work queues, flows */
	SROCE_CAP_RAW_PACKET = 1 << 2,
	/* shared receive queues that match tags, and SROCE_METHOD_SRQ_TAGS */
	SROCE_CAP_TAG_MATCHING = 1 << 3,
};

/*
 * L_Key of memory without an end, of every protection domain: what is written there is
 * lost, and zeros are read. Addresses do not matter. It is no R_Key.
 */
#define SROCE_NULL_LKEY 0xfe

struct sroce_alloc_ucontext_req {
	__aligned_u64 reserved;
};

struct sroce_alloc_ucontext_resp {
	__aligned_u64 caps;
	__s32 doorbell_fd;
	__u32 reserved;
};

/*
 * ioctl(doorbell_fd, SROCE_IOC_DOORBELL, qp_num): look at the send queue (and,
 * when the QP is in error, at the receive queue) of this QP now. A shared
 * receive queue has none: it is read when a message arrives.
 */
#define SROCE_IOC_MAGIC 0xB5
#define SROCE_IOC_DOORBELL _IO(SROCE_IOC_MAGIC, 1)

/* --- what ib_uverbs does not have: ids in the driver's own number spaces ------ */

/* What the driver's numbers of methods and attributes begin with (UVERBS_ID_NS_SHIFT) */
#define SROCE_UVERBS_ID_BASE 0x1000

/*
 * UVERBS_METHOD_QUERY_CONTEXT, by which a process takes over a device file from another
 * one, has this attribute in addition, which must be asked for: struct
 * sroce_query_context_resp. Each answer has a doorbell file of its own.
 */
enum {
	SROCE_ATTR_QUERY_CONTEXT_RESP = SROCE_UVERBS_ID_BASE,
};

struct sroce_query_context_resp {
	__aligned_u64 caps;
	__s32 doorbell_fd;
	__u32 reserved;
};

/*
 * Device memory: a method of UVERBS_OBJECT_DM that answers with struct
 * sroce_query_dm_resp. The memory is mapped as a ring is, for copies to and from it.
 */
enum {
	SROCE_METHOD_DM_QUERY = SROCE_UVERBS_ID_BASE,
};

enum {
	SROCE_ATTR_QUERY_DM_HANDLE = SROCE_UVERBS_ID_BASE,
	SROCE_ATTR_QUERY_DM_RESP,
};

struct sroce_query_dm_resp {
	__aligned_u64 mmap_offset;
	__aligned_u64 mmap_len;
	__aligned_u64 length;
};

/*
 * Tag matching: a method of UVERBS_OBJECT_SRQ that changes the list of tags of a queue,
 * which the kernel keeps. It takes up to SROCE_TAG_OPS operations, struct sroce_tag_op, and
 * carries them out in their order, up to one that it refuses. The answer says how many it
 * has carried out; also that one was refused is no error of the call.
 */
enum {
	SROCE_METHOD_SRQ_TAGS = SROCE_UVERBS_ID_BASE,
};

enum {
	SROCE_ATTR_SRQ_TAGS_HANDLE = SROCE_UVERBS_ID_BASE,
	SROCE_ATTR_SRQ_TAGS_OPS,
	SROCE_ATTR_SRQ_TAGS_RESP,
};

#define SROCE_TAG_OPS 64

/* sroce_tag_op.opcode; the numbers are those of ibv_ops_wr_opcode */
enum {
	SROCE_TAG_ADD = 0,
	SROCE_TAG_DEL = 1,
	SROCE_TAG_SYNC = 2,
};

/* sroce_tag_op.flags; the numbers are those of ibv_ops_flags */
enum {
	/* it has a completion */
	SROCE_TAG_SIGNALED = 1 << 0,
	/* @unexpected_cnt is valid */
	SROCE_TAG_SYNCS = 1 << 1,
};

/* --- rings --------------------------------------------------------------- */

/*
 * Every queue is this header, then the entries, each of a stride that is a
 * multiple of 16 bytes. The number of entries is a power of two.
 * @prod and @cons run freely through all 32 bits; entry number = index &
 * (entries - 1). The side that owns an index stores it with release
 * semantics after it has written (or read) the entry.
 */
struct sroce_ring_hdr {
	__u32 prod;
	__u32 reserved0[15];
	__u32 cons;
	__u32 flags;
	__u32 until;
	__u32 reserved1[13];
};

#define SROCE_RING_ENTRIES_OFFSET 128

/*
 * Where a ring is: mmap() it on the command fd with this offset and length; the
 * header is @start bytes from the beginning, a multiple of 64. The two queues
 * of a QP are in one mapping, and other QPs of the same process may be, too.
 */
struct sroce_ring_info {
	__aligned_u64 mmap_offset;
	__aligned_u64 mmap_len;
	__u32 entries;
	__u32 stride;
	__u32 start;
	__u32 reserved;
};

/*
 * sroce_ring_hdr.flags of a send queue (written by the kernel). After storing
 * prod the poster issues a full memory barrier and reads flags:
 * with SROCE_SQ_ACTIVE set it may leave out the doorbell, because the kernel
 * promises to look at prod again by itself. With SROCE_SQ_GATHERING set as well
 * the kernel waits some microseconds for more; a process rings to end that when
 * it has nothing more to post and waits (it finds its completion queue empty,
 * say), or when its index has come to sroce_ring_hdr.until.
 */
enum {
	SROCE_SQ_ACTIVE = 1 << 0,
	SROCE_SQ_GATHERING = 1 << 1,
};

/*
 * sroce_ring_hdr.flags of a receive queue (written by the kernel). After
 * storing prod the poster issues a full memory barrier and reads flags: with
 * SROCE_RQ_DOORBELL set (the QP is in error) it rings the QP's doorbell, so
 * that the new work requests are flushed.
 */
enum {
	SROCE_RQ_DOORBELL = 1 << 0,
};

/*
 * sroce_ring_hdr.flags of a completion queue: the arm word. The application
 * stores one of these values, issues a full memory barrier and polls once
 * more; the kernel exchanges it for SROCE_CQ_IDLE when it raises the event. When
 * the queue has moved to another ring, the word of the one that it had says so: a
 * process whose SROCE_RESIZE_MOVE came to nothing, because the kernel's answer
 * could not be stored, knows from it which ring is the queue's.
 */
enum {
	SROCE_CQ_IDLE = 0,
	SROCE_CQ_ARM_SOLICITED = 1,
	SROCE_CQ_ARM_ANY = 2,
	SROCE_CQ_MOVED = 3,
};

/* --- work requests -------------------------------------------------------- */

struct sroce_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/*
 * One change of the list of tags. SROCE_TAG_ADD adds a buffer that messages match whose
 * tag has the bits of @tag that are set in @mask; their work request is @recv_wr_id. Its
 * @handle is in the answer, and names it for SROCE_TAG_DEL. What an operation does not use
 * is reserved.
 */
struct sroce_tag_op {
	__aligned_u64 wr_id;
	__aligned_u64 recv_wr_id;
	__aligned_u64 tag;
	__aligned_u64 mask;
	__u32 opcode;
	__u32 flags;
	__u32 handle;
	/* messages that nothing matched, and that the process has handled; modulo 2^16 */
	__u32 unexpected_cnt;
	__u32 num_sge;
	__u32 reserved;
	struct sroce_sge sge[SROCE_MAX_TAG_SGE];
};

/* @err is why the operation behind the first @done was refused, a negative errno, or 0 */
struct sroce_tag_ops_resp {
	__u32 done;
	__s32 err;
	__u32 handles[SROCE_TAG_OPS];
};

/* Opcodes of a send work request; the numbers are those of ib_wr_opcode */
enum {
	SROCE_WR_RDMA_WRITE = 0,
	SROCE_WR_RDMA_WRITE_IMM = 1,
	SROCE_WR_SEND = 2,
	SROCE_WR_SEND_IMM = 3,
	SROCE_WR_RDMA_READ = 4,
	SROCE_WR_CMP_SWAP = 5,
	SROCE_WR_FETCH_ADD = 6,
	SROCE_WR_LOCAL_INV = 7,
	SROCE_WR_BIND_MW = 8,
	SROCE_WR_SEND_INV = 9,
	/* raw packets: one TCP packet that is cut into many */
	SROCE_WR_TSO = 10,
	SROCE_WR_FLUSH = 14,
	SROCE_WR_ATOMIC_WRITE = 15,
	/* only the kernel may post these */
	SROCE_WR_REG_MR = 32,
	/*
	 * tag matching: the READ of a rendezvous that was matched (SROCE_CQE_TAG_MATCH
	 * without SROCE_CQE_TAG_DATA), on the QP that it came to. The kernel knows from
	 * where and to where; wr_id and the completion are those of the tagged buffer
	 */
	SROCE_WR_TAG_READ = 40,
	/* ... and the SEND behind it, by which the peer learns. It has no completion */
	SROCE_WR_TAG_FIN = 41,
};

/* sroce_send_wqe.flags; the numbers are those of ib_send_flags */
enum {
	SROCE_SEND_FENCE = 1 << 0,
	SROCE_SEND_SIGNALED = 1 << 1,
	SROCE_SEND_SOLICITED = 1 << 2,
	SROCE_SEND_INLINE = 1 << 3,
	/* raw packets: fill in the checksums of IPv4, TCP and UDP */
	SROCE_SEND_IP_CSUM = 1 << 4,
	/* raw packets: insert a VLAN tag; not in ib_send_flags */
	SROCE_SEND_VLAN = 1 << 5,
};

/*
 * Bytes of the headers of SROCE_WR_TSO, Ethernet to TCP; elements and headers together may
 * have as many as inline data (sroce_create_qp_resp.max_inline)
 */
#define SROCE_MAX_TSO_HEADER 256
/* Bytes of the packet that SROCE_WR_TSO cuts, from its IP header on */
#define SROCE_MAX_TSO 65535

/*
 * A send work request: this header, then @num_sge scatter/gather elements or,
 * with SROCE_SEND_INLINE, @inline_len bytes of data (and num_sge 0). Behind the
 * elements of SROCE_WR_TSO are the @raw.header_len bytes of the headers. What its
 * operation and its type of QP do not use is reserved as well. One that has
 * something there, or an unknown flag, completes with IB_WC_LOC_QP_OP_ERR.
 */
struct sroce_send_wqe {
	__aligned_u64 wr_id;
	__u8 opcode;
	__u8 num_sge;
	__u16 flags;
	/* immediate data as it goes on the wire, or the R_Key to invalidate */
	union {
		__be32 imm_data;
		__u32 invalidate_rkey;
	};
	__u32 inline_len;
	__u32 reserved;
	union {
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 reserved;
		} rdma;
		struct {
			__aligned_u64 remote_addr;
			__aligned_u64 compare_add;
			__aligned_u64 swap;
			__u32 rkey;
			__u32 reserved;
		} atomic;
		struct {
			__u32 ahn;
			__u32 remote_qpn;
			__u32 remote_qkey;
			/* GSI of the kernel only, otherwise 0 */
			__u32 pkey_index;
		} ud;
		struct {
			__aligned_u64 addr;
			__aligned_u64 length;
			__u32 lkey;
			__u32 mw_rkey;
			__u32 new_rkey;
			__u32 access;
		} bind;
		struct {
			__aligned_u64 remote_addr;
			__aligned_u64 length;
			__u32 rkey;
			__u32 placement;
			__u32 selectivity;
			__u32 reserved;
		} flush;
		struct {
			/* SROCE_WR_TSO: bytes of TCP payload in each packet */
			__u32 mss;
			/* ... and bytes of the headers in front of the data */
			__u16 header_len;
			/* with SROCE_SEND_VLAN: the tag, of type 0x8100 */
			__u16 vlan_tci;
		} raw;
		struct {
			__u32 handle;
		} tag;
		/* SROCE_WR_REG_MR: a kernel pointer, refused from user space */
		struct {
			__aligned_u64 mr;
			__u32 key;
			__u32 access;
		} reg;
		__u8 room[32];
	};
	/* shared receive queue at the peer of an XRC QP */
	__u32 remote_srqn;
	__u32 reserved2;
	/* struct sroce_sge sge[num_sge] or __u8 data[inline_len] */
};

struct sroce_recv_wqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
	/* struct sroce_sge sge[num_sge] */
};

/* --- completions ----------------------------------------------------------- */

/* sroce_cqe.flags; the numbers are those of ib_wc_flags but for INV */
enum {
	SROCE_CQE_GRH = 1 << 0,
	SROCE_CQE_IMM = 1 << 1,
	SROCE_CQE_INV = 1 << 2,
	/* raw packets: the checksums of IPv4, TCP and UDP are right */
	SROCE_CQE_IP_CSUM_OK = 1 << 3,
	SROCE_CQE_SMAC = 1 << 4,
	SROCE_CQE_VLAN = 1 << 5,
	SROCE_CQE_NETWORK_HDR = 1 << 6,
	/* solicited: not in ib_wc_flags */
	SROCE_CQE_SOLICITED = 1 << 16,
	/* tag matching: IBV_WC_TM_SYNC_REQ, IBV_WC_TM_MATCH, IBV_WC_TM_DATA_VALID */
	SROCE_CQE_TAG_SYNC_REQ = 1 << 17,
	SROCE_CQE_TAG_MATCH = 1 << 18,
	SROCE_CQE_TAG_DATA = 1 << 19,
};

/* sroce_cqe.opcode of tag matching, in libibverbs' numbers: the kernel has none */
enum {
	SROCE_WC_TAG_ADD = 130,
	SROCE_WC_TAG_DEL = 131,
	SROCE_WC_TAG_SYNC = 132,
	SROCE_WC_TAG_RECV = 133,
	SROCE_WC_NO_TAG = 134,
};

/* sroce_cqe.status of SROCE_TAG_DEL when there is no such buffer: IBV_WC_TM_ERR */
#define SROCE_WC_STATUS_TAG 22

/* sroce_cqe.qpn of an operation that is no QP's */
#define SROCE_QPN_NONE 0xffffff

/* network_hdr_type: what carried a datagram, in the kernel's numbers */
enum {
	SROCE_NETWORK_ROCE_V1 = 1,
	SROCE_NETWORK_IPV4 = 2,
	SROCE_NETWORK_IPV6 = 3,
};

/* @status is an ib_wc_status, @opcode an ib_wc_opcode (both < 256) */
struct sroce_cqe {
	__aligned_u64 wr_id;
	/* completion time, CLOCK_MONOTONIC nanoseconds; 0 where not asked for */
	__aligned_u64 timestamp;
	__u32 qpn;
	__u32 byte_len;
	union {
		__be32 imm_data;
		__u32 invalidate_rkey;
	};
	__u32 flags;
	__u32 src_qp;
	__u8 status;
	__u8 opcode;
	__u8 sl;
	__u8 network_hdr_type;
	union {
		struct {
			__u16 pkey_index;
			__u16 vlan_id;
			__u8 smac[6];
			__u16 reserved0;
			__u32 vendor_err;
		};
		/* of a message that matches: what its header has, in the host's order */
		struct {
			__aligned_u64 tag;
			__u32 app_ctx;
			__u32 reserved;
		} tm;
	};
	union {
		/* raw packets: of the flow that has steered it here; 0: it has none */
		__u32 flow_tag;
		/* a rendezvous that was matched: for SROCE_WR_TAG_READ */
		__u32 tag_handle;
	};
	__u32 reserved1;
};

/* --- objects ----------------------------------------------------------------- */

enum {
	/* completions carry timestamps */
	SROCE_CREATE_CQ_TIMESTAMP = 1 << 0,
};

struct sroce_create_cq_req {
	__u32 flags;
	__u32 reserved;
};

struct sroce_create_cq_resp {
	struct sroce_ring_info ring;
};

/*
 * A queue is resized by two commands, so that whatever can fail comes first:
 * SROCE_RESIZE_PREPARE makes a ring of the new size, which the process maps;
 * SROCE_RESIZE_MOVE lets the queue go on there, with what is in the old one at the
 * same indices, and with its flags. A ring that the queue has not moved to goes
 * with SROCE_RESIZE_CANCEL, with the next one that is prepared, with a move that
 * fails, or with the queue.
 */
enum {
	SROCE_RESIZE_PREPARE = 1,
	SROCE_RESIZE_MOVE = 2,
	SROCE_RESIZE_CANCEL = 3,
};

struct sroce_resize_cq_req {
	__u32 step;
	__u32 reserved;
};

/* Of SROCE_RESIZE_PREPARE, otherwise zeros */
struct sroce_resize_cq_resp {
	struct sroce_ring_info ring;
};

/* sroce_create_qp_req.rx_hash_function; the numbers are those of libibverbs */
enum {
	SROCE_RX_HASH_TOEPLITZ = 1 << 0,
};

/* sroce_create_qp_req.rx_hash_fields; the numbers are those of libibverbs */
enum {
	SROCE_RX_HASH_SRC_IPV4 = 1 << 0,
	SROCE_RX_HASH_DST_IPV4 = 1 << 1,
	SROCE_RX_HASH_SRC_IPV6 = 1 << 2,
	SROCE_RX_HASH_DST_IPV6 = 1 << 3,
	SROCE_RX_HASH_SRC_PORT_TCP = 1 << 4,
	SROCE_RX_HASH_DST_PORT_TCP = 1 << 5,
	SROCE_RX_HASH_SRC_PORT_UDP = 1 << 6,
	SROCE_RX_HASH_DST_PORT_UDP = 1 << 7,
};

#define SROCE_RX_HASH_KEY_LEN 40
/* Entries of a table of work queues, as a power of two */
#define SROCE_MAX_LOG_IND_TABLE 9

/*
 * A queue pair for raw packets that has work queues in place of its own says how they
 * share the packets; for any other the fields of the hash are 0. All but @reserved is for
 * raw packets, and new with SROCE_CAP_RAW_PACKET.
 */
struct sroce_create_qp_req {
	__aligned_u64 reserved;
	__aligned_u64 rx_hash_fields;
	__u8 rx_hash_function;
	__u8 rx_hash_key_len;
	__u8 reserved1[6];
	__u8 rx_hash_key[SROCE_RX_HASH_KEY_LEN];
};

struct sroce_create_qp_resp {
	struct sroce_ring_info sq;
	/*
	 * In the same mapping as the send queue; entries 0 when the QP does not
	 * receive or uses a shared receive queue
	 */
	struct sroce_ring_info rq;
	__u32 max_inline;
	__u32 reserved;
};

/* Work queues: receive queues of raw packets, of which several share a queue pair's */
struct sroce_create_wq_req {
	__aligned_u64 reserved;
};

/* There is a send ring in the mapping, too, in front of this one: it is nobody's */
struct sroce_create_wq_resp {
	struct sroce_ring_info rq;
};

/*
 * What ibv_read_counters() reads of flows, in this order. A driver's own structures tell
 * an application where each goes.
 */
enum {
	SROCE_FLOW_PACKETS,
	SROCE_FLOW_BYTES,
	SROCE_FLOW_COUNTS,
};

struct sroce_create_srq_req {
	__aligned_u64 reserved;
};

struct sroce_create_srq_resp {
	struct sroce_ring_info ring;
	__u32 srqn;
	__u32 reserved;
};

/*
 * @step is as for a completion queue, in a command that changes the size and nothing
 * else; otherwise 0.
 * ib_core gives a driver no response buffer here: the answer to
 * SROCE_RESIZE_PREPARE is stored at @resp_addr.
 */
struct sroce_modify_srq_req {
	__aligned_u64 resp_addr;
	__u32 step;
	__u32 reserved;
};

struct sroce_modify_srq_resp {
	struct sroce_ring_info ring;
};

struct sroce_create_ah_resp {
	__u32 ahn;
	__u32 reserved;
};

#endif
