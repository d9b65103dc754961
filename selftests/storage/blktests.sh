#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The NVMe tests of blktests, the kernel's own suite for block devices, over sroce, each beside itself over TCP: what passes
# there has to pass here. No package carries blktests:
#	git clone https://github.com/linux-blktests/blktests
#	BLKTESTS=FOLDER selftests/run_selftests.sh storage/blktests
# and in the lab
#	selftests/lab-with selftests/storage/blktests.packages --ro-bind FOLDER selftests/lab-guest BLKTESTS=FOLDER full storage/blktests
# ONLY="nvme/003 nvme/004": some of them.
. "$(dirname "$0")/lib.sh"

[ -x "${BLKTESTS:-}/check" ] || {
	ktap_skip "blktests" "BLKTESTS names no folder with blktests"
	ktap_end
}
[ "$DRIVER" != sroce ] || links_up 1
driver_load
cp -r "$BLKTESTS" "$TMP/blktests" && cd "$TMP/blktests" || bail "blktests cannot be copied"
make -C src >"$TMP/make" 2>&1
# It knows two software drivers and takes one of them down after each test, with all devices
sed -i "s/modprobe siw || return \$?/true/; s/type=siw/type=$DRIVER/" common/multipath-over-rdma
sed -i 's/_have_driver siw/_have_driver nvme-rdma/' tests/nvme/rc
: "${ONLY:=nvme}"

# run TRANSPORT : "TEST VERDICT" of each in $TMP/TRANSPORT
run() {
	# shellcheck disable=SC2086 # several
	NVMET_TRTYPES=$1 NVMET_BLKDEV_TYPES=device nvme_img_size=64M nvme_num_iter=20 \
		limit $((5400 * SLOW)) ./check -o "$TMP/results.$1" $ONLY >"$TMP/log.$1" 2>&1
	sed -n 's/^\(nvme\/[0-9]*\) .*\[\([a-z ]*\)\].*/\1 \2/p' "$TMP/log.$1" >"$TMP/$1"
	note "$1: $(cut -d ' ' -f 2- "$TMP/$1" | sort | uniq -c | tr -s ' \n' ' ')"
}
verdict() { sed -n "s|^$2 ||p" "$TMP/$1" | tail -n 1; }
# What it says of a test after its line
said() { sed -n "\\|^$2 .*\\[[a-z ]*\\]|,\\|^nvme/|{\\|^nvme/|d;/^ *runtime /d;p}" "$TMP/log.$1"; }

run tcp
run rdma
[ -s "$TMP/rdma" ] || notes 30 <"$TMP/log.rdma"
while read -r name _; do
	case $(verdict rdma "$name")/$(verdict tcp "$name") in
	passed/*)
		result 0 "$name"
		;;
	*/passed)
		said rdma "$name" | notes 20
		result 1 "$name ($(verdict rdma "$name"); TCP: passed)"
		;;
	*)
		ktap_skip "$name" "$(verdict rdma "$name"), over TCP $(verdict tcp "$name"): $(said rdma "$name" | head -n 1 | tr -s '[:space:]' ' ')"
		;;
	esac
done < <(cat "$TMP/rdma" "$TMP/tcp" | cut -d ' ' -f 1 | sort -u)
ktap_end
