#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# SRP: the kernel's SCSI target with ib_srpt, ib_srp on the other end of the link, connected by rdma_cm.
. "$(dirname "$0")/lib.sh"

T=$CONFIGFS/target
PORT=5555

need target_core_mod ib_srpt ib_srp
need_program fio mkfs.ext4 lsscsi
modprobe -q target_core_iblock

target_up() { # DEVICE
	mkdir -p /etc/target "$T/srpt" && echo $PORT >"$T/srpt/discovery_auth/rdma_cm_port" || return
	mkdir -p "$T/core/iblock_0/d0" && echo "udev_path=$1" >"$T/core/iblock_0/d0/control" &&
		echo 1 >"$T/core/iblock_0/d0/enable" || return
	mkdir -p "$TPG/lun/lun_0" && ln -s "$T/core/iblock_0/d0" "$TPG/lun/lun_0/d0" || return
	# The initiator is known by the address at which it has reached the target
	mkdir -p "$TPG/acls/$TGT/lun_0" && ln -s "$TPG/lun/lun_0" "$TPG/acls/$TGT/lun_0/l" || return
	echo 1 >"$TPG/enable"
}

target_down() {
	echo 0 >"$TPG/enable"
	rm "$TPG/acls/$TGT/lun_0/l" "$TPG/lun/lun_0/d0"
	rmdir "$TPG/acls/$TGT/lun_0" "$TPG/acls/$TGT" "$TPG/lun/lun_0" "$TPG" "${TPG%/*}" "$T/srpt" \
		"$T/core/iblock_0/d0" "$T/core/iblock_0"
}

login() { echo "id_ext=$GUID,ioc_guid=$GUID,dest=$TGT:$PORT,$1" >/sys/class/infiniband_srp/srp-rsi0-1/add_target; }

# The old host may still be on its way
login_again() { wait_for 20 login "$1"; }

no_host() { ! grep -qs ib_srp /sys/class/scsi_host/host*/proc_name; }

logout() {
	local r
	for r in /sys/class/srp_remote_ports/*/delete; do echo 1 >"$r"; done
	wait_for 20 no_host
}

protocol_down() {
	logout
	target_down
	rmmod ib_srp ib_srpt
	ram_disk_del sram0
}

disk() { lsscsi | awk '/IBLOCK/ { print $NF }' | grep -m 1 /dev/; }

running() { grep -q running /sys/class/srp_remote_ports/*/state; }

flap() {
	link_flap 0 $((4 * SLOW))
	wait_for 60 running
}

links_up 1
TPG=$T/srpt/$(cat /sys/class/infiniband/rst0/node_guid)
TPG=$TPG/${TPG##*/}
GUID=$(cat /sys/module/ib_srpt/parameters/srpt_service_guid)
RAM=$(ram_disk sram0 512) || bail "no RAM disk"
check "target" 20 target_up "$RAM"
for options in "queue_size=64" "queue_size=64,cmd_sg_entries=255,allow_ext_sg=1"; do
	check "$options: login" 60 login "$options"
	d=$(wait_disk disk) || bail "no disk"
	disk_checks "$options" "$d"
	under_io "$options: short link failures" 6 "$d" link_flap 0 1
	check "$options: logout" 60 logout
	[ "$SET" = full ] || break
done
check "login" 60 login_again "queue_size=64"
d=$(wait_disk disk) || bail "no disk"
under_io "link failure" 20 "$d" flap
check "the initiator's device removed" 60 device_again rsi0 si0 $INI
wait_for 20 no_host
result $? "its disks went with it"
check "login again" 60 login_again "queue_size=64"
d=$(wait_disk disk) || bail "no disk"
check "fio with verify, 4 KiB to 1 MiB" 120 fio_mixed "$d"
check "logout" 60 logout
check "target goes" 30 target_down
check "initiator module unloads" 30 rmmod ib_srp
check "target module unloads" 30 rmmod ib_srpt
ktap_end
