// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The delays of RNR NAKs and their codes.
 *
 * A responder names one (responder_verdict.c, responder_reply.c), and a requester that is
 * told waits for so long (retransmit.c).
 */
#include <linux/kernel.h>
#include <linux/time64.h>

#include "transport/rnr.h"

/* IBA 9.7.5.2.8, in microseconds. The longest has the code 0. */
static const u32 sroce_rnr_usec[32] = {
	655360, 10, 20, 30, 40, 60, 80, 120,
	160, 240, 320, 480, 640, 960, 1280, 1920,
	2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720,
	40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

u64 sroce_rnr_ns(u8 code)
{
	return (u64)sroce_rnr_usec[code % ARRAY_SIZE(sroce_rnr_usec)] *
	       NSEC_PER_USEC;
}

u8 sroce_rnr_at_least(u8 code, u64 ns)
{
	code %= ARRAY_SIZE(sroce_rnr_usec);
	while (code && sroce_rnr_ns(code) < ns)
		code = (code + 1) % ARRAY_SIZE(sroce_rnr_usec);
	return code;
}
