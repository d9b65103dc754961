#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# NFS over RDMA, versions 3 and 4.2: the kernel's server on a RAM disk, the client on the other end of the link.
. "$(dirname "$0")/lib.sh"

. "$SELF/storage/nfs_lib.sh"
need_both

failures() { # NAME FILE
	under_io "$1: link failure" 8 "$2" link_flap 0 3
	excuse=einval under_io "$1: the client's device removed" 10 "$2" device_again rsi0 si0 "$INI"
	under_io "$1: the server's device removed" 10 "$2" device_again rst0 st0 "$TGT"
	check "$1: fio with verify, 4 KiB to 1 MiB, once more" 180 fio_mixed "$2"
}

ram_target "server" 60 768
mounted_each failures
check "server ends" 60 target_down
check "the module unloads" 30 rmmod rpcrdma
ktap_end
