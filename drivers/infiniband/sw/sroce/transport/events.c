// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * May one more event of an object be raised, or do too many wait to be read? Asked by
 * whoever raises one (run.c for completion queues).
 *
 * Whether events wait to be read only ib_core knows. Its lists are in structs that
 * it does not show to drivers, the same ones from 5.8 on; what is below repeats their
 * beginnings. Before the first event of an object its list must be an empty one. If
 * that is not what is found there, the structs have changed, and nothing is held back.
 *
 * This is done here and nowhere else. The file can go when ib_uverbs itself has an end to
 * these lists, as in Documentation/upstream/uverbs-unread-events.patch.
 */
#include "transport/events.h"

/* struct ib_uevent_object, which those of all objects with events begin with */
struct sroce_uevent_object {
	struct ib_uobject uobject;
	void *event_file;
	struct list_head event_list;
	u32 events_reported;
};

/* struct ib_ucq_object */
struct sroce_ucq_object {
	struct sroce_uevent_object uevent;
	struct list_head comp_list;
};

/*
 * Is ib_core's list where we think it is? Asked before the first event, when it must be
 * empty; also of several first events at once, as each asks before it is raised.
 */
static void sroce_events_find(struct sroce_events *e,
			      const struct list_head *unread)
{
	bool empty = READ_ONCE(unread->next) == unread &&
		     READ_ONCE(unread->prev) == unread;

	cmpxchg(&e->list, SROCE_EVENTS_FRESH,
		empty ? SROCE_EVENTS_FOUND : SROCE_EVENTS_ELSEWHERE);
}

bool sroce_events_may_wait(struct sroce_events *e,
			   const struct list_head *unread)
{
	unsigned int raised = READ_ONCE(e->raised);

	if (READ_ONCE(e->list) == SROCE_EVENTS_FRESH)
		sroce_events_find(e, unread);
	if (READ_ONCE(e->list) == SROCE_EVENTS_ELSEWHERE)
		return true;
	if (list_empty(unread))
		raised = 0;
	if (raised >= SROCE_MAX_UNREAD)
		return false;
	WRITE_ONCE(e->raised, raised + 1);
	return true;
}

bool sroce_events_may_raise_cq(struct sroce_events *e, const struct ib_cq *cq)
{
	const struct sroce_ucq_object *obj = (const void *)cq->uobject;

	return !obj || sroce_events_may_wait(e, &obj->comp_list);
}

bool sroce_events_may_raise_async(struct sroce_events *e, const void *uobject)
{
	const struct sroce_uevent_object *obj = uobject;

	return !obj || sroce_events_may_wait(e, &obj->event_list);
}

/*
 * The creator's handle, which has a file of events, is the first and so the last in the list:
 * whoever has opened the QP since, as often as he likes, is not gone through. Context: the
 * device's lock of opened QPs held, so that no handle ends.
 */
static const struct sroce_uevent_object *
sroce_events_reader(const struct ib_qp *real)
{
	const struct sroce_uevent_object *obj;
	const struct ib_qp *handle;

	list_for_each_entry_reverse(handle, &real->open_list, open_list) {
		obj = (const void *)READ_ONCE(handle->uobject);
		if (obj && obj->event_file)
			return obj;
	}
	return NULL;
}

bool sroce_events_may_raise_target(struct sroce_events *e, struct ib_qp *real)
{
	struct ib_device *ibdev = real->device;
	const struct sroce_uevent_object *obj;
	unsigned long irq;
	bool may;

	spin_lock_irqsave(&ibdev->qp_open_list_lock, irq);
	obj = sroce_events_reader(real);
	may = !obj || sroce_events_may_wait(e, &obj->event_list);
	spin_unlock_irqrestore(&ibdev->qp_open_list_lock, irq);
	return may;
}
