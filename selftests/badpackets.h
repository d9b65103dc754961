/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What badpackets (it sends) and badpackets_target (it has the queue pairs) say to each other. */
#ifndef BADPACKETS_H
#define BADPACKETS_H

#include <stdint.h>

#define BP_PORT 18602
/* the queue pair that the target believes to talk to; nobody has it */
#define BP_PEER_QPN 0x123456
#define BP_QKEY 0x11111111
#define BP_PSN 0xfffff0
#define BP_MTU 1024
/* of the target's receives and of the memory that it lets others read and write */
#define BP_ROOM 4096

enum bp_command {
	BP_QUERY,
	/* the RC queue pair: once through RESET, to RTS, with BP_PSN expected next */
	BP_RESET,
	BP_END,
};

struct bp_request {
	uint32_t command;
};

struct bp_report {
	/* the states: of the RC and the UD queue pair */
	uint32_t rc_qpn, ud_qpn, state, ud_state;
	/* successful receives since the last report */
	uint32_t rc_received, ud_received;
	uint32_t rkey;
	/* of the memory that may be read and written */
	uint64_t addr;
	/* 0 when a byte around that memory, or around a receive buffer, was changed */
	uint32_t intact;
	/* the first byte of the memory */
	uint32_t first;
};

#endif
