/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The private doorbell: a file whose only operation is one ioctl, so that
 * ringing costs little more than the system call itself.
 */
#ifndef SROCE_VERBS_DOORBELL_H
#define SROCE_VERBS_DOORBELL_H

struct file;
struct sroce_doorbell;

/* Make a doorbell, which sroce_doorbell_close() ends. Return: NULL without memory. */
struct sroce_doorbell *sroce_doorbell_create(void);

/* A file that holds @db. Return: the file or an ERR_PTR. */
struct file *sroce_doorbell_file(struct sroce_doorbell *db);

/* From now on the file answers -EIO */
void sroce_doorbell_shut(struct sroce_doorbell *db);

/* The context is gone: shut, and drop its reference */
void sroce_doorbell_close(struct sroce_doorbell *db);

#endif
