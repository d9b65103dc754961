/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Buffers of a round that wait for their turn (net/backlog.c), are taken by a worker
 * on another CPU while more of their flow come on this one, and some of which come on
 * two CPUs at once.
 */
#ifndef SROCE_TESTS_FUZZ_WAIT_H
#define SROCE_TESTS_FUZZ_WAIT_H

#include <linux/skbuff.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#include "net/receive.h"
#include "transport/port.h"
#include "turn.h"

#define FUZZ_PORTS 64
/* An attacker changes the last byte of a sender's address only */
#define FUZZ_FLOWS (FUZZ_PORTS * 2 * 256)

/**
 * struct fuzz_wait - what waits
 * @ports: devices that buffers arrive at
 * @nports: how many there are
 * @last: number of the last buffer taken of each flow
 * @number: of the last buffer sent
 * @kept: buffers that came out of a list
 * @disorder: those that came out before one that was sent earlier, or too late
 * @limits: the real ones
 * @sink: the real one
 * @echoes: buffers that come on another CPU
 * @echoing: of them, not taken yet
 * @wake: there are some
 * @task: sends @echoes
 */
struct fuzz_wait {
	struct sroce_port *ports[FUZZ_PORTS];
	u32 nports;
	u32 last[FUZZ_FLOWS];
	u32 number;
	atomic_t kept;
	atomic_t disorder;
	struct sroce_turn_limits limits;
	void (*sink)(struct sk_buff *skb, struct sroce_rx_place place);
	struct sk_buff_head echoes;
	atomic_t echoing;
	wait_queue_head_t wake;
	struct task_struct *task;
};

/*
 * Receive a buffer from a place on, to its end. Context: RCU, bottom halves off.
 * Return: in how many parts.
 */
u32 fuzz_receive(struct sroce_netport *port, struct sk_buff *skb,
		 struct sroce_rx_place place);

/**
 * fuzz_wait_begin() - from here on what arrives may be made to wait
 * @cpu: where the caller stays
 *
 * Return: NULL when memory ran out.
 */
struct fuzz_wait *fuzz_wait_begin(unsigned int cpu);

/* All has been taken. Turns are again what they were. */
void fuzz_wait_end(struct fuzz_wait *w);

/**
 * fuzz_wait_send() - have a buffer come, in a turn that is overdue or not
 * @w: what waits
 * @port: device that it arrives at
 * @src: its sender, who counts as its flow
 * @skb: the buffer; now owned by the driver
 * @overdue: the turn is
 *
 * Context: process.
 */
void fuzz_wait_send(struct fuzz_wait *w, struct sroce_port *port,
		    const union ib_gid *src, struct sk_buff *skb, bool overdue);

/* As fuzz_wait_send(), but from another CPU, and some time */
void fuzz_wait_echo(struct fuzz_wait *w, struct sroce_port *port,
		    const union ib_gid *src, struct sk_buff *skb);

/* Return: false when there is no end of what waits. Context: process. */
bool fuzz_wait_settle(struct fuzz_wait *w);

#endif
