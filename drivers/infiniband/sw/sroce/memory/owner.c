// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Whose it is what a process makes the kernel hold: the user of the host behind it.
 */
#include <linux/cred.h>
#include <linux/user_namespace.h>

#include "memory/owner.h"

/*
 * Users of a namespace whom the host does not know count as its maker. If root has made
 * it, it is a container, and they count as the container's root, where that is a user of
 * the host other than root; otherwise as @user.
 */
static kuid_t sroce_owner_of_ns(struct user_namespace *ns, kuid_t user)
{
	kuid_t root;

	if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
		return ns->owner;
	root = make_kuid(ns, 0);
	return uid_valid(root) && !uid_eq(root, GLOBAL_ROOT_UID) ? root : user;
}

/*
 * In a namespace of users a process can be as many users as it likes; the outermost one
 * in which that is so decides.
 */
kuid_t sroce_owner(void)
{
	struct user_namespace *ns;
	kuid_t user = current_uid();

	for (ns = current_user_ns(); ns != &init_user_ns; ns = ns->parent)
		user = sroce_owner_of_ns(ns, user);
	return user;
}
