#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# SRP: the kernel's SCSI target with ib_srpt, ib_srp on the other end of the link, connected by rdma_cm.
. "$(dirname "$0")/lib.sh"

. "$SELF/storage/srp_lib.sh"
need_both

failure() {
	link_flap 0 $((4 * SLOW))
	wait_for 60 running
}

ram_target "target" 20 512
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
under_io "link failure" 20 "$d" failure
check "the initiator's device removed" 60 device_again rsi0 si0 "$INI"
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
