/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How many objects of each kind a device has. What it advertises is what there
 * is: without an end to it, one process could fill the table of keys, in which
 * everybody else's next registration would then look for a place for ever.
 */
#ifndef SROCE_VERBS_QUOTA_H
#define SROCE_VERBS_QUOTA_H

#include "device.h"

/**
 * sroce_quota_take() - count an object that is about to be made
 * @dev: device
 * @kind: what it is
 * @user: a process makes it. Of each kind some are for the kernel's own users and
 *	for processes with CAP_SYS_RESOURCE, so that the administrator is not shut
 *	out by whoever has taken all the others.
 *
 * Between processes, the RDMA controller of cgroups divides what there is.
 *
 * Context: any; a process only when @user.
 * Return: 0, or -ENOSPC when the device has no more of them.
 */
int sroce_quota_take(struct sroce_device *dev, enum sroce_object kind,
		     bool user);

/* An object is gone, or was not made after all. Context: any. */
void sroce_quota_give(struct sroce_device *dev, enum sroce_object kind);

/* The device ends: all were given back */
void sroce_quota_end(struct sroce_device *dev);

#endif
