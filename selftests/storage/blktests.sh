#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# blktests, the kernel's own suite for block devices, over sroce: its NVMe tests beside themselves over TCP, and those of SRP
# beside themselves over siw or rdma_rxe, which is what they are made for. What passes there has to pass here; what is in
# blktests_expected has to be run and to pass, by name, but for what blktests_lacking says that this kernel has not. No package
# carries blktests:
#	BLKTESTS=$(selftests/storage/blktests_source) selftests/run_selftests.sh storage/blktests
# and in the lab, of which user mode Linux has not all that SRP's tests want (tools/test has both as steps),
#	selftests/lab-with selftests/storage/blktests.packages --kernel 6.12 --ro-bind FOLDER \
#		selftests/lab-guest BLKTESTS=FOLDER ONLY=srp full storage/blktests
# ONLY="nvme/003 srp": some of them. What is asked for by name has to be possible.
. "$(dirname "$0")/lib.sh"

[ -x "${BLKTESTS:-}/check" ] || {
	ktap_skip "blktests" "BLKTESTS names no folder with blktests"
	ktap_end
}
asked=${ONLY:-}
: "${ONLY:=nvme srp}"
driver_load
# Another driver's are as they are; for ours, the names of the software drivers that it knows are taken for names of ours. It
# takes them down after each test, with all devices.
cp -r "$BLKTESTS" "$TMP/theirs" && make -C "$TMP/theirs/src" >"$TMP/make" 2>&1
cp -r "$TMP/theirs" "$TMP/ours" && cd "$TMP/ours" || bail "blktests cannot be copied"
sed -i -E "s/modprobe (siw|rdma_rxe) \|\| return \\$\?/true/; s/type=(siw|rxe)/type=$DRIVER/" common/multipath-over-rdma
sed -i 's/_have_driver siw/_have_driver nvme-rdma/' tests/nvme/rc
sed -i -E 's/_have_module (siw|rdma_rxe)/_have_module ib_srp/' tests/srp/rc

# cleared : the target that a failed test leaves behind, which the next ones take for one of theirs
cleared() {
	local target=/sys/kernel/config/nvmet
	[ -d $target ] || return 0
	nvme disconnect-all
	rm -f $target/ports/*/subsystems/* $target/subsystems/*/allowed_hosts/*
	rmdir $target/ports/* $target/subsystems/*/namespaces/* $target/subsystems/* $target/hosts/*
} >/dev/null 2>&1

refusals() { dmesg | grep -c 'nvme.*Connect for subsystem .* is not allowed, hostnqn'; }

# run NAME FOLDER TEST... : "TEST VERDICT" of each in $TMP/NAME
run() {
	local name=$1
	cleared
	refused=$(refusals)
	cd "$TMP/$2" || return
	shift 2
	limit $((5400 * SLOW)) ./check -o "$TMP/results.$name" "$@" >"$TMP/log.$name" 2>&1
	sed -n 's/^\([a-z]*\/[0-9]*\) .*\[\([a-z ]*\)\].*/\1 \2/p' "$TMP/log.$name" >"$TMP/$name"
	note "$name: $(cut -d ' ' -f 2- "$TMP/$name" | sort | uniq -c | tr -s ' \n' ' ')"
	[ -s "$TMP/$name" ] || notes 30 <"$TMP/log.$name"
}
verdict() { sed -n "s|^$2 ||p" "$TMP/$1" | tail -n 1; }
# What it says of a test after its line
said() { sed -n "\\|^$2 .*\\[[a-z ]*\\]|,\\|^[a-z]*/[0-9]|{\\|^[a-z]*/[0-9]|d;/^ *runtime /d;p}" "$TMP/log.$1"; }

is_expected() { grep -qxF "$1" "$SELF/storage/blktests_expected"; }
# lacking TEST : what this kernel has not, for a test that is expected
lacking() {
	local kernel=debian
	[[ $(uname -r) != *-lab ]] || kernel=uml
	sed -n "s|^$kernel $1 ||p" "$SELF/storage/blktests_lacking" | grep .
}

# raced TEST : nvme/061 makes the target's port before it lets its initiator in, which tries again each second: on a slow machine
# it may come between the two, and is refused for good. In the last run no other test has the kernel say so.
raced() { [ "$1" = nvme/061 ] && [ "$(refusals)" -gt "$refused" ]; }

# compare NAME OTHER WORDS TEST... : of these tests, what passed in the run OTHER, "over WORDS", has to have passed in NAME
compare() {
	local test words
	[ -s "$TMP/$1" ]
	result $? "$1: tests are run"
	while read -r test _; do
		if [ "$(verdict "$1" "$test")" = failed ] && raced "$test"; then
			ktap_skip "$test" "its own race: the initiator connected before it was allowed to"
			continue
		fi
		case $(verdict "$1" "$test")/$(verdict "$2" "$test") in
		passed/*)
			result 0 "$test"
			;;
		*/passed)
			said "$1" "$test" | notes 20
			result 1 "$test ($(verdict "$1" "$test"); $3: passed)"
			;;
		failed/*)
			said "$1" "$test" | notes 20
			words="failed, over $3 $(verdict "$2" "$test")"
			if is_expected "$test"; then
				result 1 "$test ($words)"
			else
				ktap_skip "$test" "$words"
			fi
			;;
		*)
			words="$(verdict "$1" "$test"), over $3 $(verdict "$2" "$test")"
			words+=": $(said "$1" "$test" | head -n 1 | tr -s '[:space:]' ' ')"
			if ! is_expected "$test"; then
				ktap_skip "$test" "$words"
			elif ! lacking "$test" >/dev/null; then
				result 1 "$test ($words)"
			else
				ktap_skip "$test" "$(lacking "$test")"
			fi
			;;
		esac
	done < <({ cut -d ' ' -f 1 "$TMP/$1" "$TMP/$2" && expected "${@:4}"; } | sort -u)
}

# of GROUP : which of its tests are wanted
of() { tr ' ' '\n' <<<"$ONLY" | grep "^$1\(/\|\$\)"; }
# expected GROUP|TEST... : which of these are to be run, so that one of which nothing is said is seen
expected() {
	local what
	for what; do
		grep -E "^$what(/|\$)" "$SELF/storage/blktests_expected"
	done
}

if tests=$(of nvme); then
	[ "$DRIVER" != sroce ] || links_up 1
	export NVMET_BLKDEV_TYPES=device nvme_img_size=64M nvme_num_iter=20
	# shellcheck disable=SC2086 # several
	NVMET_TRTYPES=tcp run tcp ours $tests
	# shellcheck disable=SC2086
	NVMET_TRTYPES=rdma run rdma ours $tests
	# shellcheck disable=SC2086
	compare rdma tcp TCP $tests
	[ "$DRIVER" != sroce ] || links_down
fi

# srp_up : what these find on a machine: a netdev with an address that is no loopback's, and udev, which names the disks
srp_up() {
	reference=siw
	modinfo siw >/dev/null 2>&1 || reference=rxe
	[ "$DRIVER" != "$reference" ] && ip link add blk0 type veth peer name blk1 && ip addr add 10.98.0.1/24 dev blk0 &&
		ip link set blk0 up && ip link set blk1 up || return
	pidof systemd-udevd >/dev/null || /lib/systemd/systemd-udevd --daemon || return
	udevadm trigger --action=add && udevadm settle
}
if tests=$(of srp); then
	if srp_up >"$TMP/srp_up" 2>&1; then
		# shellcheck disable=SC2086
		USE_RXE=${reference/#siw/} run srp-reference theirs $tests
		# shellcheck disable=SC2086
		USE_RXE=1 run srp ours $tests
		# shellcheck disable=SC2086
		compare srp srp-reference $reference $tests
		ip link del blk0
	else
		notes 5 <"$TMP/srp_up"
		if [ -n "$asked" ]; then result 1 "srp: no udev here"; else ktap_skip "srp" "no udev here"; fi
	fi
fi
ktap_end
