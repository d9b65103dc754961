/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a queue pair does, for perf, trace-cmd and bpftrace. The events and their fields
 * are documented (Documentation/tracing.md): one may get more fields, but none goes or
 * becomes something else.
 *
 * qpn is the number that "rdma resource show qp" has as lqpn; it is unique on a host, so
 * that no event needs the device's name. PSNs are decimal, as there.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM sroce

#if !defined(SROCE_TRANSPORT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SROCE_TRANSPORT_TRACE_H

#include <linux/tracepoint.h>

#include "counters.h"
#include "transport/qp.h"
#include "wire/opcode.h"
#include "wire/train.h"

/* Their values, for programs that read the events' formats */
TRACE_DEFINE_ENUM(SROCE_OP_SEND);
TRACE_DEFINE_ENUM(SROCE_OP_WRITE);
TRACE_DEFINE_ENUM(SROCE_OP_READ);
TRACE_DEFINE_ENUM(SROCE_OP_CMP_SWAP);
TRACE_DEFINE_ENUM(SROCE_OP_FETCH_ADD);
TRACE_DEFINE_ENUM(SROCE_OP_FLUSH);
TRACE_DEFINE_ENUM(SROCE_OP_ATOMIC_WRITE);
TRACE_DEFINE_ENUM(SROCE_OP_READ_RESP);
TRACE_DEFINE_ENUM(SROCE_OP_ACK);
TRACE_DEFINE_ENUM(SROCE_OP_ATOMIC_ACK);
TRACE_DEFINE_ENUM(SROCE_OP_NOTIFY);
TRACE_DEFINE_ENUM(SROCE_RC);
TRACE_DEFINE_ENUM(SROCE_UC);
TRACE_DEFINE_ENUM(SROCE_UD);
TRACE_DEFINE_ENUM(SROCE_XRC);
TRACE_DEFINE_ENUM(SROCE_CNP);
TRACE_DEFINE_ENUM(IB_QPS_RESET);
TRACE_DEFINE_ENUM(IB_QPS_INIT);
TRACE_DEFINE_ENUM(IB_QPS_RTR);
TRACE_DEFINE_ENUM(IB_QPS_RTS);
TRACE_DEFINE_ENUM(IB_QPS_SQD);
TRACE_DEFINE_ENUM(IB_QPS_SQE);
TRACE_DEFINE_ENUM(IB_QPS_ERR);
TRACE_DEFINE_ENUM(SROCE_CNT_PACKET_SEQ_ERR);
TRACE_DEFINE_ENUM(SROCE_CNT_IMPLIED_NAK_SEQ_ERR);
TRACE_DEFINE_ENUM(SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR);
TRACE_DEFINE_ENUM(SROCE_CNT_ROCE_ADP_RETRANS);

#define sroce_trace_show_op(op)					\
	__print_symbolic(op,						\
			 { SROCE_OP_SEND, "SEND" },			\
			 { SROCE_OP_WRITE, "WRITE" },			\
			 { SROCE_OP_READ, "READ" },			\
			 { SROCE_OP_CMP_SWAP, "CMP_SWAP" },		\
			 { SROCE_OP_FETCH_ADD, "FETCH_ADD" },		\
			 { SROCE_OP_FLUSH, "FLUSH" },			\
			 { SROCE_OP_ATOMIC_WRITE, "ATOMIC_WRITE" },	\
			 { SROCE_OP_READ_RESP, "READ_RESPONSE" },	\
			 { SROCE_OP_ACK, "ACK" },			\
			 { SROCE_OP_ATOMIC_ACK, "ATOMIC_ACK" },		\
			 { SROCE_OP_NOTIFY, "CNP" })

#define sroce_trace_show_service(service)				\
	__print_symbolic(service,					\
			 { SROCE_RC, "RC" },				\
			 { SROCE_UC, "UC" },				\
			 { SROCE_UD, "UD" },				\
			 { SROCE_XRC, "XRC" },				\
			 { SROCE_CNP, "CNP" })

#define sroce_trace_show_state(state)					\
	__print_symbolic(state,						\
			 { IB_QPS_RESET, "RESET" },			\
			 { IB_QPS_INIT, "INIT" },			\
			 { IB_QPS_RTR, "RTR" },				\
			 { IB_QPS_RTS, "RTS" },				\
			 { IB_QPS_SQD, "SQD" },				\
			 { IB_QPS_SQE, "SQE" },				\
			 { IB_QPS_ERR, "ERR" })

/* Why a requester sends again, or later */
#define sroce_trace_show_reason(why)					\
	__print_symbolic(why,						\
			 { SROCE_CNT_PACKET_SEQ_ERR, "nak" },		\
			 { SROCE_CNT_IMPLIED_NAK_SEQ_ERR, "implied_nak" }, \
			 { SROCE_CNT_LOCAL_ACK_TIMEOUT_ERR, "timeout" }, \
			 { SROCE_CNT_ROCE_ADP_RETRANS, "probe" })

/* --- trains ------------------------------------------------------------------ */

/* direct: to or from a queue pair of this host, without a packet */
DECLARE_EVENT_CLASS(sroce_train,
	TP_PROTO(const struct sroce_qp *qp, const struct sroce_train *t,
		 bool direct),
	TP_ARGS(qp, t, direct),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, dqpn)
		__field(u32, psn)
		__field(u32, packets)
		__field(u32, bytes)
		__field(u8, op)
		__field(u8, service)
		__field(u8, syndrome)
		__field(bool, direct)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		__entry->dqpn = t->dqpn;
		__entry->psn = t->psn;
		__entry->packets = t->npkts;
		__entry->bytes = t->bi.bi_size;
		__entry->op = t->op;
		__entry->service = t->service;
		__entry->syndrome = sroce_op_is_response(t->op) ? t->syndrome : 0;
		__entry->direct = direct;
	),
	TP_printk("qpn=%u dqpn=%u %s %s psn=%u packets=%u bytes=%u syndrome=%#x direct=%d",
		  __entry->qpn, __entry->dqpn,
		  sroce_trace_show_service(__entry->service),
		  sroce_trace_show_op(__entry->op), __entry->psn,
		  __entry->packets, __entry->bytes, __entry->syndrome,
		  __entry->direct)
);

DEFINE_EVENT(sroce_train, sroce_train_sent,
	TP_PROTO(const struct sroce_qp *qp, const struct sroce_train *t,
		 bool direct),
	TP_ARGS(qp, t, direct)
);

DEFINE_EVENT(sroce_train, sroce_train_received,
	TP_PROTO(const struct sroce_qp *qp, const struct sroce_train *t,
		 bool direct),
	TP_ARGS(qp, t, direct)
);

/* --- the requester ------------------------------------------------------------ */

/* una_psn: the oldest PSN that is not acknowledged, before this one counts */
DECLARE_EVENT_CLASS(sroce_answer,
	TP_PROTO(const struct sroce_qp *qp, const struct sroce_train *t),
	TP_ARGS(qp, t),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, psn)
		__field(u32, una_psn)
		__field(u32, next_psn)
		__field(u32, msn)
		__field(u8, syndrome)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		__entry->psn = t->psn;
		__entry->una_psn = qp->req.una_psn;
		__entry->next_psn = qp->req.next_psn;
		__entry->msn = t->msn;
		__entry->syndrome = t->syndrome;
	),
	TP_printk("qpn=%u psn=%u una_psn=%u next_psn=%u msn=%u syndrome=%#x",
		  __entry->qpn, __entry->psn, __entry->una_psn,
		  __entry->next_psn, __entry->msn, __entry->syndrome)
);

DEFINE_EVENT(sroce_answer, sroce_ack,
	TP_PROTO(const struct sroce_qp *qp, const struct sroce_train *t),
	TP_ARGS(qp, t)
);

DEFINE_EVENT(sroce_answer, sroce_nak,
	TP_PROTO(const struct sroce_qp *qp, const struct sroce_train *t),
	TP_ARGS(qp, t)
);

/* What was in flight when something is to be sent again, from una_psn on at most */
TRACE_EVENT(sroce_retransmit,
	TP_PROTO(const struct sroce_qp *qp, enum sroce_counter why),
	TP_ARGS(qp, why),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, una_psn)
		__field(u32, next_psn)
		__field(u32, window)
		__field(u32, retries)
		__field(u32, why)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		__entry->una_psn = qp->req.una_psn;
		__entry->next_psn = qp->req.next_psn;
		__entry->window = qp->req.window;
		__entry->retries = qp->req.retries;
		__entry->why = why;
	),
	TP_printk("qpn=%u reason=%s una_psn=%u next_psn=%u window=%u retries=%u",
		  __entry->qpn, sroce_trace_show_reason(__entry->why),
		  __entry->una_psn, __entry->next_psn, __entry->window,
		  __entry->retries)
);

/* The peer is not ready; delay_ns: until the requester tries again */
TRACE_EVENT(sroce_rnr_wait,
	TP_PROTO(const struct sroce_qp *qp, u64 delay_ns),
	TP_ARGS(qp, delay_ns),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, psn)
		__field(u32, retries)
		__field(u64, delay_ns)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		__entry->psn = qp->req.una_psn;
		__entry->retries = qp->req.rnr_retries;
		__entry->delay_ns = delay_ns;
	),
	TP_printk("qpn=%u psn=%u delay_ns=%llu retries=%u", __entry->qpn,
		  __entry->psn, __entry->delay_ns, __entry->retries)
);

/* The most packets that may be in flight from now on, and the smoothed round trip */
TRACE_EVENT(sroce_window,
	TP_PROTO(const struct sroce_qp *qp),
	TP_ARGS(qp),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, window)
		__field(u64, srtt_ns)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		__entry->window = qp->req.window;
		__entry->srtt_ns = qp->req.rtt.srtt;
	),
	TP_printk("qpn=%u window=%u srtt_ns=%llu", __entry->qpn,
		  __entry->window, __entry->srtt_ns)
);

/* --- congestion ------------------------------------------------------------------ */

/*
 * A notification has cut the rate, or there is one from now on, or none any more (0).
 * Rates are in bytes per second; alpha is in 1/65536.
 */
TRACE_EVENT(sroce_rate,
	TP_PROTO(const struct sroce_qp *qp),
	TP_ARGS(qp),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, alpha)
		__field(u64, rate)
		__field(u64, target)
	),
	TP_fast_assign(
		const struct sroce_reaction *r = &qp->congestion.reaction;

		__entry->qpn = qp->qpn;
		__entry->alpha = r->limited ? r->alpha : 0;
		__entry->rate = r->limited ? r->rate : 0;
		__entry->target = r->limited ? r->target : 0;
	),
	TP_printk("qpn=%u rate=%llu target=%llu alpha=%u", __entry->qpn,
		  __entry->rate, __entry->target, __entry->alpha)
);

/* --- the queue pair ---------------------------------------------------------------- */

TRACE_EVENT(sroce_qp_state,
	TP_PROTO(const struct sroce_qp *qp, u32 from, u32 to),
	TP_ARGS(qp, from, to),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, from)
		__field(u32, to)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("qpn=%u from=%s to=%s", __entry->qpn,
		  sroce_trace_show_state(__entry->from),
		  sroce_trace_show_state(__entry->to))
);

/* Memory on demand: from here on one half of the queue pair waits for pages */
TRACE_EVENT(sroce_page_fault,
	TP_PROTO(const struct sroce_qp *qp, bool responder, u64 va, u64 len,
		 bool write),
	TP_ARGS(qp, responder, va, len, write),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(bool, responder)
		__field(bool, write)
		__field(u64, va)
		__field(u64, len)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		__entry->responder = responder;
		__entry->write = write;
		__entry->va = va;
		__entry->len = len;
	),
	TP_printk("qpn=%u side=%s va=%#llx len=%llu write=%d", __entry->qpn,
		  __entry->responder ? "responder" : "requester",
		  __entry->va, __entry->len, __entry->write)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH transport
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
