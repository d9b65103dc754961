/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a process may ask for. Every count and size that comes from user space
 * is compared with one of these before anything is computed from it.
 */
#ifndef SROCE_VERBS_LIMITS_H
#define SROCE_VERBS_LIMITS_H

#include <linux/sizes.h>
#include <rdma/sroce-abi.h>

/* --- numbers of objects, each per device ------------------------------------ */

#define SROCE_MAX_QP SZ_1M
#define SROCE_MAX_CQ SZ_1M
#define SROCE_MAX_SRQ SZ_1M
#define SROCE_MAX_PD SZ_64K
#define SROCE_MAX_XRCD SZ_64K
#define SROCE_MAX_DM SZ_64K
/* ib_core keeps up to 4 KiB for each, which no cgroup is charged for */
#define SROCE_MAX_IND_TABLE SZ_4K
#define SROCE_MAX_COUNTERS SZ_64K
/*
 * Regions and windows have one table of keys. With a quarter of its 2^24 indices
 * in use, a random one is free three times out of four.
 */
#define SROCE_MAX_MR SZ_2M
#define SROCE_MAX_MW SZ_2M
/* Of each kind one in so many is kept for the kernel and CAP_SYS_RESOURCE (quota.h) */
#define SROCE_RESERVED_PART 8
/* Multicast groups of one QP */
#define SROCE_MAX_QP_GROUPS 1024

/* --- sizes of one object ----------------------------------------------------- */

/* Work requests of a send, receive or shared receive queue; a power of two */
#define SROCE_MAX_QP_WR SZ_32K
#define SROCE_MAX_SRQ_WR SZ_32K
/* Tagged buffers of a shared receive queue: a message may be compared with each */
#define SROCE_MAX_NUM_TAGS 1024
/* ... and operations on them that are posted at once: the library does them in parts */
#define SROCE_MAX_TAG_OPS 1024
/* Completions of a queue, 64 bytes each (80 for kernel users); a power of two */
#define SROCE_MAX_CQE SZ_4M
/* Bytes of one region: 512 GiB with pages of 4 KiB, of which a table takes 1 GiB */
#define SROCE_MAX_MR_SIZE ((u64)SZ_128M * PAGE_SIZE)
/* Largest block of one entry of that table: a bio_vec counts bytes in 32 bits */
#define SROCE_MAX_MR_BLOCK SZ_1G
/* Bytes of one piece of device memory, which is the kernel's and has no huge pages */
#define SROCE_MAX_DM_SIZE SZ_64M
/* Blocks of a fast-register region */
#define SROCE_MAX_FRWR_PAGES 1024
/*
 * ... and bytes of the smallest. Initiators of storage protocols register in units of
 * their own, mostly 4 KiB, whatever pages the machine has.
 */
#define SROCE_MIN_FRWR_BLOCK 512
/* Bytes of one message (C9-94) */
#define SROCE_MAX_MSG_SIZE SZ_2G

/* --- tables of the port ------------------------------------------------------- */

#define SROCE_PORT 1
#define SROCE_GID_TABLE_LEN 1024

/* --- 5 and 3 bit fields of a QP's attributes ------------------------------------ */

#define SROCE_MAX_TIMEOUT 31
#define SROCE_MAX_RNR_TIMER 31
#define SROCE_MAX_RETRY 7

#endif
