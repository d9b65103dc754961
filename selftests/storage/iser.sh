#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# iSER: the kernel's SCSI target with ib_isert, open-iscsi with ib_iser on the other end of the link.
. "$(dirname "$0")/lib.sh"

. "$SELF/storage/iser_lib.sh"
need_both

portal_again() {
	target_again || return
	wait_for 60 session_up
}

initiator_device_again() {
	device_again rsi0 si0 "$INI" || return
	wait_for 60 session_up
}

# Not by taking the link down: since rdma_cm tells of neighbours that cannot be reached, ib_iser of Linux 7.2
# takes that for a connection that never came up, leaves its queue pair alive, and crashes.
silence() {
	link_silent 0 $((8 * SLOW))
	wait_for 60 session_up
}

ram_target "target" 20 512
session
# Without t10_pi: each connection would cost some megabytes
! rdma resource show mr -dd 2>/dev/null | grep -q integrity
result $? "no regions with protection information"
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
