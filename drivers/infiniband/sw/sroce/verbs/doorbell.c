// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The private doorbell.
 *
 * Both the user context and the file hold the doorbell, so they may go in any
 * order. A QP names its doorbell as owner: the pointer is only compared, and it
 * cannot be that of a new context while somebody still has the old file.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/refcount.h>
#include <linux/slab.h>

#include "compat.h"
#include "transport/qp.h"
#include "verbs/doorbell.h"

/**
 * struct sroce_doorbell - what a user context and its doorbell file share
 * @refs: one of the context, one of the file
 * @shut: the context is gone, or its device
 */
struct sroce_doorbell {
	refcount_t refs;
	bool shut;
};

static void sroce_doorbell_put(struct sroce_doorbell *db)
{
	if (refcount_dec_and_test(&db->refs))
		kfree(db);
}

/*
 * The device goes, and another QP of the context has gone already. As long as this one has not,
 * what was posted is flushed like all that was before. What has not been taken when it is dead
 * never is, so that the provider may say that it was not posted.
 */
static long sroce_doorbell_late(struct sroce_qp *qp)
{
	sroce_qp_flush(qp);
	return READ_ONCE(qp->dead) ? -EIO : 0;
}

/* Was it shut just now, and the QP dead before it was rung? */
static bool sroce_doorbell_was_late(const struct sroce_doorbell *db, const struct sroce_qp *qp)
{
	bool dead = READ_ONCE(qp->dead);

	/* Pairs with sroce_doorbell_shut(), which comes first */
	smp_rmb();
	return dead && READ_ONCE(db->shut);
}

static long sroce_doorbell_ring(struct sroce_doorbell *db, unsigned long qpn)
{
	struct sroce_qp *qp;
	long ret = -ENOENT;

	if (qpn > SROCE_QPN_MASK)
		return -ENOENT;
	qp = sroce_qp_find(qpn);
	if (!qp) {
		/* Pairs with sroce_doorbell_shut(): it may have gone with the device */
		smp_rmb();
		return READ_ONCE(db->shut) ? -EIO : -ENOENT;
	}
	if (qp->owner == db && unlikely(READ_ONCE(db->shut))) {
		ret = sroce_doorbell_late(qp);
	} else if (qp->owner == db) {
		sroce_qp_doorbell(qp);
		ret = sroce_doorbell_was_late(db, qp) ? -EIO : 0;
	} else if (READ_ONCE(db->shut)) {
		/* The number is another one's now */
		ret = -EIO;
	}
	sroce_qp_put(qp);
	return ret;
}

static long sroce_doorbell_ioctl(struct file *file, unsigned int cmd,
				 unsigned long arg)
{
	if (cmd != SROCE_IOC_DOORBELL)
		return -ENOTTY;
	return sroce_doorbell_ring(file->private_data, arg);
}

static int sroce_doorbell_release(struct inode *inode, struct file *file)
{
	sroce_doorbell_put(file->private_data);
	return 0;
}

static const struct file_operations sroce_doorbell_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = sroce_doorbell_ioctl,
	/* the argument is a number */
	.compat_ioctl = sroce_doorbell_ioctl,
	.release = sroce_doorbell_release,
	.llseek = noop_llseek,
};

struct sroce_doorbell *sroce_doorbell_create(void)
{
	struct sroce_doorbell *db = kzalloc_obj(*db, GFP_KERNEL_ACCOUNT);

	if (db)
		refcount_set(&db->refs, 1);
	return db;
}

struct file *sroce_doorbell_file(struct sroce_doorbell *db)
{
	struct file *file;

	refcount_inc(&db->refs);
	file = anon_inode_getfile("[sroce-doorbell]", &sroce_doorbell_fops, db,
				  O_RDWR | O_CLOEXEC);
	if (IS_ERR(file))
		sroce_doorbell_put(db);
	return file;
}

void sroce_doorbell_shut(struct sroce_doorbell *db)
{
	WRITE_ONCE(db->shut, true);
	/* Pairs with sroce_doorbell_ring(), which may miss a QP that goes later */
	smp_wmb();
}

void sroce_doorbell_close(struct sroce_doorbell *db)
{
	sroce_doorbell_shut(db);
	sroce_doorbell_put(db);
}
