// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The P_Key table. On InfiniBand the subnet manager writes it; on Ethernet there is
 * none, so it is the administrator who does, in ports/1/pkey_table of the device:
 *
 *	echo 0xffff 0x8005 0x0006 >ports/1/pkey_table
 *
 * The first entry is the default P_Key, which the kernel's users and rdma_cm take for
 * granted; what is not named is empty. The top bit says full member: two of which
 * neither has it do not hear each other (IBA 10.9.3).
 *
 * There is no netlink command for this, or it would be used: ib_core does not want
 * new attributes of drivers in sysfs.
 */
#include <linux/ctype.h>
#include <linux/kstrtox.h>
#include <linux/nospec.h>
#include <linux/string.h>
#include <rdma/ib_sysfs.h>

#include "verbs/limits.h"
#include "verbs/verbs.h"

int sroce_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (port != SROCE_PORT || index >= SROCE_PKEYS)
		return -EINVAL;
	index = array_index_nospec(index, SROCE_PKEYS);
	*pkey = READ_ONCE(to_sroce_device(ibdev)->port.pkeys[index]);
	return 0;
}

/* QPs read the table at each packet; the event has ib_core renew its copy */
static void sroce_pkeys_set(struct sroce_device *dev,
			    const u16 pkeys[SROCE_PKEYS])
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = IB_EVENT_PKEY_CHANGE,
		.element.port_num = SROCE_PORT,
	};
	int i;

	mutex_lock(&dev->pkey_lock);
	for (i = 0; i < SROCE_PKEYS; i++)
		WRITE_ONCE(dev->port.pkeys[i], pkeys[i]);
	mutex_unlock(&dev->pkey_lock);
	ib_dispatch_event(&event);
}

static int sroce_pkeys_parse(char *text, u16 pkeys[SROCE_PKEYS])
{
	int n = 0;
	char *word;
	int err;

	while ((word = strsep(&text, " \t\n"))) {
		if (!*word)
			continue;
		if (n == SROCE_PKEYS)
			return -ENOSPC;
		err = kstrtou16(word, 0, &pkeys[n++]);
		if (err)
			return err;
	}
	return pkeys[0] == SROCE_DEFAULT_PKEY ? 0 : -EINVAL;
}

static ssize_t pkey_table_store(struct ib_device *ibdev, u32 port,
				struct ib_port_attribute *attr,
				const char *buf, size_t count)
{
	u16 pkeys[SROCE_PKEYS] = {};
	char *text;
	int err;

	text = kstrndup(buf, count, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	err = sroce_pkeys_parse(text, pkeys);
	kfree(text);
	if (err)
		return err;
	sroce_pkeys_set(to_sroce_device(ibdev), pkeys);
	return count;
}

static ssize_t pkey_table_show(struct ib_device *ibdev, u32 port,
			       struct ib_port_attribute *attr, char *buf)
{
	const u16 *pkeys = to_sroce_device(ibdev)->port.pkeys;
	int len = 0;
	int i;

	for (i = 0; i < SROCE_PKEYS; i++)
		len += sysfs_emit_at(buf, len, "0x%04x%c", READ_ONCE(pkeys[i]),
				     i < SROCE_PKEYS - 1 ? ' ' : '\n');
	return len;
}

static IB_PORT_ATTR_RW(pkey_table);

static struct attribute *sroce_pkey_attrs[] = {
	&ib_port_attr_pkey_table.attr,
	NULL
};

const struct attribute_group sroce_pkey_group = {
	.attrs = sroce_pkey_attrs,
};
