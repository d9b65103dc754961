#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# iSER: the kernel's SCSI target with ib_isert, open-iscsi with ib_iser on the other end of the link.
. "$(dirname "$0")/lib.sh"

T=$CONFIGFS/target
IQN=iqn.2026-01.test:sroce
PORTAL=$TGT:3260
TPG=$T/iscsi/$IQN/tpgt_1

need target_core_mod iscsi_target_mod ib_isert ib_iser
need_program iscsid iscsiadm fio mkfs.ext4
modprobe -q target_core_iblock

target_up() { # DEVICE
	mkdir -p "$T/core/iblock_0/d0" && echo "udev_path=$1" >"$T/core/iblock_0/d0/control" &&
		echo 1 >"$T/core/iblock_0/d0/enable" || return
	mkdir -p "$TPG/lun/lun_0" && ln -s "$T/core/iblock_0/d0" "$TPG/lun/lun_0/d0" || return
	echo 0 >"$TPG/attrib/authentication"
	echo 1 >"$TPG/attrib/generate_node_acls"
	echo 1 >"$TPG/attrib/cache_dynamic_acls"
	echo 0 >"$TPG/attrib/demo_mode_write_protect"
	portal_up && echo 1 >"$TPG/enable"
}

portal_up() { mkdir "$TPG/np/$PORTAL" && echo 1 >"$TPG/np/$PORTAL/iser"; }
portal_down() { rmdir "$TPG/np/$PORTAL"; }

target_down() {
	echo 0 >"$TPG/enable"
	portal_down
	rm "$TPG/lun/lun_0/d0"
	rmdir "$TPG/lun/lun_0" "$TPG" "${TPG%/*}" "$T/iscsi" "$T/core/iblock_0/d0" "$T/core/iblock_0"
}

protocol_down() {
	node --logout
	iscsiadm -k 0
	target_down
	rmmod ib_iser ib_isert
	ram_disk_del sram0
}

node() { iscsiadm -m node -T $IQN -p $PORTAL "$@"; }

disk() { lsscsi -t | awk -v iqn=$IQN 'index($0, iqn) { print $NF }' | grep -m 1 /dev/; }

session_up() { iscsiadm -m session -P 1 | grep -q 'iSCSI Connection State: LOGGED IN'; }

daemon() {
	mkdir -p /run/lock/iscsi /etc/target /etc/iscsi
	echo "InitiatorName=iqn.2026-01.test:initiator" >/etc/iscsi/initiatorname.iscsi
	iscsid
}

settings() {
	node -I iser -o new || return
	# seconds until a lost connection is noticed, and for how long the disk waits for another one
	node -o update -n node.conn[0].timeo.noop_out_interval -v 2 &&
		node -o update -n node.conn[0].timeo.noop_out_timeout -v $((2 * SLOW)) &&
		node -o update -n node.session.timeo.replacement_timeout -v 300
}

# The target closes and opens its port, which ends the sessions
portal_again() {
	echo 0 >"$TPG/enable"
	sleep 2
	echo 1 >"$TPG/enable"
	wait_for 60 session_up
}

initiator_device_again() {
	device_again rsi0 si0 $INI || return
	wait_for 60 session_up
}

# Not by taking the link down: since rdma_cm tells of neighbours that cannot be reached, ib_iser of Linux 7.2
# takes that for a connection that never came up, leaves its queue pair alive, and crashes.
silence() {
	link_silent 0 $((8 * SLOW))
	wait_for 60 session_up
}

links_up 1
RAM=$(ram_disk sram0 512) || bail "no RAM disk"
check "target" 20 target_up "$RAM"
check "iscsid" 20 daemon
check "discovery" 30 iscsiadm -m discovery -t sendtargets -p $PORTAL -I iser
grep -q $IQN "$TMP/out"
result $? "the target is discovered"
check "settings" 20 settings
check "login" 60 node --login
d=$(wait_disk disk) || bail "no disk"
[ "$(cat /sys/class/iscsi_transport/iser/handle)" ] && iscsiadm -m session | grep -q '^iser:'
result $? "the session is one of iSER"
disk_checks "iSER" "$d"
under_io "short link failure" 6 "$d" link_flap 0 1
under_io "silence on the link" 20 "$d" silence
under_io "target restarted" 15 "$d" portal_again
under_io "the initiator's device removed" 15 "$d" initiator_device_again
check "fio with verify, 4 KiB to 1 MiB, once more" 120 fio_mixed "$d"
check "logout" 60 node --logout
iscsiadm -k 0
check "target goes" 30 target_down
check "initiator module unloads" 30 rmmod ib_iser
check "target module unloads" 30 rmmod ib_isert
ktap_end
