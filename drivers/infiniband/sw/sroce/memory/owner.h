/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Whose it is what a process makes the kernel hold, or do, and is not charged for.
 *
 * Not the process's: somebody can have as many of these as he likes.
 */
#ifndef SROCE_MEMORY_OWNER_H
#define SROCE_MEMORY_OWNER_H

#include <linux/uidgid.h>

/**
 * sroce_owner() - the user whom the calling process counts as
 *
 * That is the user of the process, but in a namespace of users everybody counts as whoever
 * has made it. If root has, it is a container: its users count as its root.
 *
 * Context: process.
 * Return: a user of the host.
 */
kuid_t sroce_owner(void);

#endif
