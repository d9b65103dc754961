#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# NVMe over RDMA: nvmet-rdma on RAM disks and a file, nvme-rdma on the other end of the link.
. "$(dirname "$0")/lib.sh"

. "$SELF/storage/nvme_lib.sh"
. "$SELF/storage/nvme_cases.sh"
need_both

protocol_down() {
	disconnect
	target_down
	rmmod nvmet-rdma nvme-rdma
	ram_disk_del sram0
}

links_up 2
ram_disk_ready || bail "no RAM disk"
nvme_cases "$@"
check "target module unloads" 30 rmmod nvmet-rdma
check "initiator module unloads" 30 rmmod nvme-rdma
ktap_end
