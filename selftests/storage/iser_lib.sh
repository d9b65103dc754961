# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# Target and initiator of iSER: LIO with ib_isert, open-iscsi with ib_iser. Sourced, never run, after lib.sh.

T=$CONFIGFS/target
IQN=iqn.2026-01.test:sroce
PORTAL=$TGT:3260
TPG=$T/iscsi/$IQN/tpgt_1
target_modules="ib_isert iscsi_target_mod target_core_mod null_blk" target_programs=
initiator_modules="ib_iser" initiator_programs="iscsid iscsiadm lsscsi fio mkfs.ext4"

# --- target ---------------------------------------------------------------------------------------

target_up() { # DEVICE
	modprobe -aq target_core_iblock
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

# The target closes and opens its port, which ends the sessions
target_again() {
	echo 0 >"$TPG/enable"
	sleep 2
	echo 1 >"$TPG/enable"
}

# --- initiator ------------------------------------------------------------------------------------

node() { iscsiadm -m node -T $IQN -p "$PORTAL" "$@"; }

disk() { lsscsi -t | awk -v iqn=$IQN 'index($0, iqn) { print $NF }' | grep -m 1 /dev/; }

session_up() { iscsiadm -m session -P 1 | grep -q 'iSCSI Connection State: LOGGED IN'; }

daemon() {
	modprobe -aq sd_mod
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

# From discovery to a session, whose disk is $d
session() {
	check "iscsid" 20 daemon
	check "discovery" 30 iscsiadm -m discovery -t sendtargets -p "$PORTAL" -I iser
	grep -q $IQN "$TMP/out"
	result $? "the target is discovered"
	check "settings" 60 settings
	check "login" 60 node --login
	d=$(wait_disk disk) || bail "no disk"
	[ "$(cat /sys/class/iscsi_transport/iser/handle)" ] && iscsiadm -m session | grep -q '^iser:'
	result $? "the session is one of iSER"
}

initiator_down() {
	node --logout
	iscsiadm -k 0
}
