// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * To be preloaded (LD_PRELOAD): an address handle is destroyed some time after the program has asked for it.
 *
 * mckey destroys its address handle as soon as it has posted, without asking for completions. rdma_rxe sends from a
 * worker, and drops what has no address handle any more when that has its turn.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#define LINGER_USEC 500000

int ibv_destroy_ah(struct ibv_ah *ah)
{
	int (*destroy)(struct ibv_ah *ah) = dlvsym(RTLD_NEXT, "ibv_destroy_ah", "IBVERBS_1.1");

	usleep(LINGER_USEC);
	return destroy ? destroy(ah) : ENOSYS;
}
