/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * faults: what the files of this program share.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include "ends.h"

/*
 * Each function returns 0 or an errno; without @undo the call may be made again and again. What is @sure succeeds
 * whatever happens. @after must succeed each time that the call was made, whatever that has met. @undo must not fail for
 * want of memory, but where it @undo_takes some: it is a request then, and no end of an object.
 */
struct call {
	const char *name;
	int (*make)(void);
	int (*undo)(void);
	int (*after)(void);
	bool sure;
	bool undo_takes;
};

#define SIZE (256 * 1024)

extern struct vt_dev devs[2];
/* that many bytes, locked */
extern void *memory;
/* what a call makes, where another one goes on with it */
extern struct ibv_mr *mr;
extern struct ibv_qp *qp;

/* 0 or an errno for what a library has returned */
static inline int made(const void *object)
{
	return object ? 0 : errno ?: EIO;
}

int undo_mr(void);
int undo_qp(void);
/* a queue pair in RTS, connected to the other host */
int connect_qp(void);

/* --- faults_objects.c ---------------------------------------------------------------- */

/* what the calls below need */
void objects_begin(void);
void objects_end(void);
/* ends with one that has no name */
extern const struct call object_calls[];
/* a kernel that has udmabuf only */
bool objects_have(const struct call *c);

/* --- faults_tags.c ------------------------------------------------------------------- */

/* The connected pair has the queue with tags meanwhile */
void tags_begin(void);
void tags_end(void);
/* ends with one that has no name */
extern const struct call tag_calls[];

#endif
