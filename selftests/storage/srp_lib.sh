# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# Target and initiator of SRP: LIO with ib_srpt, ib_srp, connected by rdma_cm. Sourced, never run, after lib.sh.

T=$CONFIGFS/target
PORT=5555
GUID=0002c90300005353
target_modules="ib_srpt target_core_mod null_blk" target_programs=
initiator_modules="ib_srp" initiator_programs="lsscsi fio mkfs.ext4"

# --- target ---------------------------------------------------------------------------------------

tpg() {
	local guid
	guid=$(cat /sys/class/infiniband/rst0/node_guid)
	echo "$T/srpt/$guid/$guid"
}

target_up() { # DEVICE
	modprobe -aq target_core_iblock
	# one that the initiator knows, and not that of the first device that there was
	modprobe -r ib_srpt && modprobe ib_srpt srpt_service_guid=$GUID || return
	TPG=$(tpg)
	mkdir -p /etc/target "$T/srpt" && echo $PORT >"$T/srpt/discovery_auth/rdma_cm_port" || return
	mkdir -p "$T/core/iblock_0/d0" && echo "udev_path=$1" >"$T/core/iblock_0/d0/control" &&
		echo 1 >"$T/core/iblock_0/d0/enable" || return
	mkdir -p "$TPG/lun/lun_0" && ln -s "$T/core/iblock_0/d0" "$TPG/lun/lun_0/d0" || return
	# The initiator is known by the address at which it has reached the target
	mkdir -p "$TPG/acls/$TGT/lun_0" && ln -s "$TPG/lun/lun_0" "$TPG/acls/$TGT/lun_0/l" || return
	echo 1 >"$TPG/enable"
}

target_down() {
	[ -n "${TPG:-}" ] || return 0
	echo 0 >"$TPG/enable"
	rm "$TPG/acls/$TGT/lun_0/l" "$TPG/lun/lun_0/d0"
	rmdir "$TPG/acls/$TGT/lun_0" "$TPG/acls/$TGT" "$TPG/lun/lun_0" "$TPG" "${TPG%/*}" "$T/srpt" \
		"$T/core/iblock_0/d0" "$T/core/iblock_0"
}

# --- initiator ------------------------------------------------------------------------------------

login() {
	modprobe -aq sd_mod
	echo "id_ext=$GUID,ioc_guid=$GUID,dest=$TGT:$PORT,$1" >/sys/class/infiniband_srp/srp-rsi0-1/add_target
}

# The old host may still be on its way
login_again() { wait_for 20 login "$1"; }

no_host() { ! grep -qs ib_srp /sys/class/scsi_host/host*/proc_name; }

logout() {
	local r
	for r in /sys/class/srp_remote_ports/*/delete; do echo 1 >"$r"; done
	wait_for 20 no_host
}

initiator_down() { logout; }

disk() { lsscsi | awk '/IBLOCK/ { print $NF }' | grep -m 1 /dev/; }

running() { grep -q running /sys/class/srp_remote_ports/*/state; }
