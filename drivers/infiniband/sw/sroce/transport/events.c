// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Whether events wait to be read only ib_core knows. Its lists are in structs that
 * it does not show to drivers, the same ones from 5.8 on; what is below repeats their
 * beginnings. Before the first event of an object its list must be an empty one. If
 * that is not what is found there, the structs have changed, and nothing is held back.
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

bool sroce_events_may_wait(struct sroce_events *e,
			   const struct list_head *unread)
{
	if (!e->checked) {
		e->checked = true;
		e->known = unread->next == unread && unread->prev == unread;
	}
	if (!e->known)
		return true;
	if (list_empty(unread))
		e->raised = 0;
	if (e->raised == SROCE_MAX_UNREAD)
		return false;
	e->raised++;
	return true;
}

bool sroce_events_of_cq(struct sroce_events *e, const struct ib_cq *cq)
{
	const struct sroce_ucq_object *obj = (const void *)cq->uobject;

	return !obj || sroce_events_may_wait(e, &obj->comp_list);
}

bool sroce_events_async(struct sroce_events *e, const void *uobject)
{
	const struct sroce_uevent_object *obj = uobject;

	return !obj || sroce_events_may_wait(e, &obj->event_list);
}
