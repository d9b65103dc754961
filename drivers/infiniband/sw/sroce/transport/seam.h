/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The seam between the transport and the network: trains go out through struct
 * sroce_xmit_ops and come in through sroce_receive() and sroce_receive_group(). It is all
 * that the network layer knows of the transport; unit tests put another network there.
 */
#ifndef SROCE_TRANSPORT_SEAM_H
#define SROCE_TRANSPORT_SEAM_H

#include <linux/types.h>

#include "wire/train.h"

struct bio_vec;
struct sroce_netport;
struct sroce_path;
struct sroce_qp;
struct sroce_rx_info;
struct sroce_txq;

/* --- out ------------------------------------------------------------------- */

/**
 * struct sroce_tx - trains on their way into one packet buffer
 * @open: the buffer that the next train may join; belongs to the network layer
 *
 * Lives on the stack of whoever sends; zeroed before the first send, flushed
 * after the last.
 */
struct sroce_tx {
	void *open;
};

/* Bytes of the longest Ethernet frame: those of the loopback, with a VLAN tag */
#define SROCE_RAW_FRAME_MOST (65536 + 18)

/**
 * struct sroce_raw_tx - an Ethernet frame on its way out
 * @bv: its bytes, or those behind @header
 * @len: of @bv
 * @header: headers, of a TCP packet that is to be cut; a process may be changing them
 * @header_len: bytes of @header, or 0
 * @mss: bytes of TCP payload of each part
 * @csum: fill in the checksums of IPv4, TCP and UDP
 * @vlan: insert @vlan_tci
 * @vlan_tci: tag, of type 0x8100
 * @net_cookie: network namespace that it is sent in
 * @owner: of its QP
 */
struct sroce_raw_tx {
	const struct bio_vec *bv;
	u32 len;
	const void *header;
	u16 header_len;
	u16 vlan_tci;
	u32 mss;
	bool csum;
	bool vlan;
	u64 net_cookie;
	const void *owner;
};

/**
 * struct sroce_xmit_ops - the network below the transport
 * @send: take one train. May keep it in @tx to couple it with the next one, or
 *	send what is there first. The payload is read before it returns.
 *	A failure to transmit is a lost packet: it is counted, not returned.
 * @flush: send what @tx still holds
 * @path_back: make a path to where packets came from, for the answer to a datagram; NULL
 *	without memory, or when the device goes away
 *
 * They are called with bottom halves off and a QP's requester or responder
 * lock held.
 */
struct sroce_xmit_ops {
	void (*send)(struct sroce_tx *tx, struct sroce_path *path,
		     const struct sroce_train *t, struct sroce_txq *txq);
	void (*flush)(struct sroce_tx *tx);
	struct sroce_path *(*path_back)(struct sroce_netport *port,
					const struct sroce_rx_info *info);
};

/* --- in -------------------------------------------------------------------- */

/**
 * struct sroce_rx_spread - how far the packets of a buffer have come in a multicast group
 * @served: number of the last member that has got the current packet; 0: none has
 * @last: number of the last member that is to get it
 * @delivered: bytes to members so far, or what counts as such
 * @own: one of these has counted it, because it has counters of its own
 */
struct sroce_rx_spread {
	u64 served;
	u64 last;
	u32 delivered;
	bool own;
};

/**
 * struct sroce_rx - packets that arrived together
 * @t: the current packet, or train of such: checked (lengths, ICRC) and decoded
 * @info: where all of them came from
 * @len: bytes of the current train, from BTH to ICRC of each packet
 * @packets: that the port counts: the good ones so far, but for those that a QP
 *	has counted, because it has counters of its own
 * @bytes: their bytes
 * @spread: to members of multicast groups
 * @next: move on to the next train; false when there is none (then @t is no
 *	longer valid)
 *
 * The network layer embeds this in what it needs to walk its buffer.
 */
struct sroce_rx {
	struct sroce_train t;
	const struct sroce_rx_info *info;
	u32 len;
	u32 packets;
	u32 bytes;
	struct sroce_rx_spread spread;
	bool (*next)(struct sroce_rx *rx);
};

/**
 * sroce_receive() - take packets from the network
 * @qp: held by the caller, QP of @rx->t.dqpn
 * @rx: at its first packet for this QP
 *
 * Handles the trains of @rx one after another under one lock, as long as they
 * are for this QP; copies their payload, sends at most one ACK.
 *
 * Context: softirq or bottom halves off.
 * Return: true when @rx->t is for another QP, false at the end.
 */
bool sroce_receive(struct sroce_qp *qp, struct sroce_rx *rx);

/**
 * sroce_receive_group() - take a packet that was sent to a multicast group
 * @port: device it arrived at
 * @rx: at the packet, and still there afterwards
 *
 * Every QP of the device that is attached to the group gets it, unless that would be
 * too much for one buffer (@rx->spread.delivered).
 *
 * Context: softirq or bottom halves off.
 * Return: false when the turn is overdue and members are left, which get it when this is
 *	called again; at least one has got it meanwhile.
 */
bool sroce_receive_group(struct sroce_netport *port, struct sroce_rx *rx);

/* Bytes of a frame in front of its type: addresses, and a VLAN tag */
#define SROCE_RAW_ADDRESSES 12
#define SROCE_RAW_VLAN 4

/**
 * struct sroce_raw_rx - an Ethernet frame that was received
 * @head: addresses, and behind them the VLAN tag with its type, if there is one
 * @bv: the rest: its type and what follows that
 * @len: of @bv
 * @vlan_tci: of the tag
 * @has_vlan: there is one
 * @csum_ok: the checksums of IPv4, TCP and UDP are right
 * @tag: of the flow
 * @net_cookie: network namespace that it was received in
 */
struct sroce_raw_rx {
	u8 head[SROCE_RAW_ADDRESSES + SROCE_RAW_VLAN];
	const struct bio_vec *bv;
	u32 len;
	u32 tag;
	u16 vlan_tci;
	bool has_vlan;
	bool csum_ok;
	u64 net_cookie;
};

/**
 * sroce_raw_receive() - give a frame to a queue
 * @qp: QP of raw packets or work queue, held by the caller
 * @rx: frame
 *
 * One that finds no receive work request, or does not fit into it, is lost and counted.
 *
 * Context: softirq or bottom halves off; no QP's lock held.
 */
void sroce_raw_receive(struct sroce_qp *qp, const struct sroce_raw_rx *rx);

/**
 * sroce_qp_find() - look a QP number up
 * @qpn: number
 *
 * QP numbers are unique over all devices of the module; 1 is in no table
 * (sroce_qp_find_gsi()).
 *
 * Context: any.
 * Return: the QP, held (sroce_qp_put()), or NULL.
 */
struct sroce_qp *sroce_qp_find(u32 qpn);

/* QP 1 of a port, held, or NULL */
struct sroce_qp *sroce_qp_find_gsi(struct sroce_netport *port);

/* Hold a QP that the caller knows to be there. Context: any. */
void sroce_qp_hold(struct sroce_qp *qp);

void sroce_qp_put(struct sroce_qp *qp);

#endif
