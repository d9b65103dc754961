/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Per-CPU event counters. Names and meanings are those that mlx5 made common
 * (see Documentation/counters.md).
 */
#ifndef SROCE_COUNTERS_H
#define SROCE_COUNTERS_H

#include <linux/percpu.h>
#include <linux/types.h>

/* X(constant, name in hw_counters) */
#define SROCE_COUNTERS(X)						\
	/* responder */							\
	X(RX_WRITE_REQUESTS, "rx_write_requests")			\
	X(RX_READ_REQUESTS, "rx_read_requests")				\
	X(RX_ATOMIC_REQUESTS, "rx_atomic_requests")			\
	X(RX_DCT_CONNECT, "rx_dct_connect")				\
	X(OUT_OF_BUFFER, "out_of_buffer")				\
	X(OUT_OF_SEQUENCE, "out_of_sequence")				\
	X(DUPLICATE_REQUEST, "duplicate_request")			\
	X(RX_HELD, "rx_held_packets")					\
	X(RX_HELD_DROPS, "rx_held_dropped_packets")			\
	X(RX_REORDERED, "rx_reordered_gaps")				\
	X(PAGE_FAULTS, "odp_page_faults")				\
	X(RESP_LOCAL_LENGTH_ERROR, "resp_local_length_error")		\
	X(RESP_CQE_ERROR, "resp_cqe_error")				\
	X(RESP_CQE_FLUSH_ERROR, "resp_cqe_flush_error")			\
	X(RESP_REMOTE_ACCESS_ERRORS, "resp_remote_access_errors")	\
	/* requester */							\
	X(RNR_NAK_RETRY_ERR, "rnr_nak_retry_err")			\
	X(PACKET_SEQ_ERR, "packet_seq_err")				\
	X(IMPLIED_NAK_SEQ_ERR, "implied_nak_seq_err")			\
	X(LOCAL_ACK_TIMEOUT_ERR, "local_ack_timeout_err")		\
	X(REQ_TRANSPORT_RETRIES_EXCEEDED, "req_transport_retries_exceeded") \
	X(REQ_RNR_RETRIES_EXCEEDED, "req_rnr_retries_exceeded")		\
	X(REQ_CQE_ERROR, "req_cqe_error")				\
	X(REQ_CQE_FLUSH_ERROR, "req_cqe_flush_error")			\
	X(REQ_REMOTE_INVALID_REQUEST, "req_remote_invalid_request")	\
	X(REQ_REMOTE_ACCESS_ERRORS, "req_remote_access_errors")		\
	X(RETRANS_PACKETS, "retrans_packets")				\
	/* congestion notification and adaptive retransmission */	\
	X(NP_ECN_MARKED, "np_ecn_marked_roce_packets")			\
	X(NP_CNP_SENT, "np_cnp_sent")					\
	X(RP_CNP_HANDLED, "rp_cnp_handled")				\
	X(RP_CNP_IGNORED, "rp_cnp_ignored")				\
	X(ROCE_ADP_RETRANS, "roce_adp_retrans")				\
	X(ROCE_ADP_RETRANS_TO, "roce_adp_retrans_to")			\
	X(ROCE_SLOW_RESTART, "roce_slow_restart")			\
	X(ROCE_SLOW_RESTART_CNPS, "roce_slow_restart_cnps")		\
	X(ROCE_SLOW_RESTART_TRANS, "roce_slow_restart_trans")		\
	/* packets */							\
	X(RX_ICRC_ENCAPSULATED, "rx_icrc_encapsulated")			\
	X(RX_MALFORMED, "rx_malformed_packets")				\
	X(RX_NO_QP, "rx_no_qp_packets")					\
	X(RX_WRONG_PATH, "rx_wrong_path_packets")			\
	X(RX_BAD_PKEY, "rx_bad_pkey_packets")				\
	X(RX_BAD_QKEY, "rx_bad_qkey_packets")				\
	X(RX_DISCARDS, "rx_discarded_packets")				\
	X(TX_DROPS, "tx_dropped_packets")				\
	X(TX_PACKETS, "rdma_tx_packets")				\
	X(TX_BYTES, "rdma_tx_bytes")					\
	X(RX_PACKETS, "rdma_rx_packets")				\
	X(RX_BYTES, "rdma_rx_bytes")					\
	X(DIRECT_PACKETS, "direct_packets")				\
	X(DIRECT_BYTES, "direct_bytes")					\
	X(TX_TRAINS, "tx_trains")					\
	X(RX_TRAINS, "rx_trains")					\
	X(RX_MCAST_PACKETS, "rx_multicast_packets")			\
	X(TX_MCAST_PACKETS, "tx_multicast_packets")

enum sroce_counter {
#define X(id, name) SROCE_CNT_##id,
	SROCE_COUNTERS(X)
#undef X
	SROCE_CNT_NUM
};

struct sroce_counters {
	u64 v[SROCE_CNT_NUM];
};

/* Names in the order of enum sroce_counter */
extern const char *const sroce_counter_names[SROCE_CNT_NUM];

/*
 * Bottom halves off. Every CPU has its own sum, and no interrupt handler counts,
 * so nothing is locked: an operation that is safe against interrupts would turn
 * them off where there is no instruction for it. Where tasks that have bottom halves
 * off preempt each other, it has to be safe.
 */
static inline void sroce_count(struct sroce_counters __percpu *c,
			       enum sroce_counter id, u64 n)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		this_cpu_add(c->v[id], n);
	else
		__this_cpu_add(c->v[id], n);
}

/**
 * sroce_counters_alloc() - a set of counters, all 0
 *
 * Freed by free_percpu(). Context: process.
 * Return: the set, or NULL.
 */
static inline struct sroce_counters __percpu *sroce_counters_alloc(void)
{
	return alloc_percpu_gfp(struct sroce_counters, GFP_KERNEL_ACCOUNT);
}

/* Sum over the CPUs */
u64 sroce_counter_read(struct sroce_counters __percpu *c,
		       enum sroce_counter id);

#endif
