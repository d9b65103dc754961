# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034 # what is set here is for those who source it
# What the two hosts of a demo share: each runs the same script, and they wait for each other between the steps.
# Sourced, never run.
# shellcheck source=lab/guest.sh
. /sroce/tools/lab/guest.sh
set -o pipefail

# The name and the addresses of this host and of the other one
name=$(sed 's/1/A/; s/2/B/' <<<"$LAB_NODE")
me=10.77.0.$LAB_NODE peer=10.77.0.$((3 - LAB_NODE))
steps=0

# give_up TEXT... : what is not true in this demo must not look as if it were
give_up() {
	echo "FAILED: $*"
	dmesg | tail -n 5
	exit 1
}

# step TITLE : one host says it, both begin it together
step() {
	steps=$((steps + 1))
	lab_barrier "end-of-step-$((steps - 1))" || exit 1
	[ "$LAB_NODE" -ne 1 ] || echo "@$*"
	lab_barrier "step-$steps" || exit 1
}

# run COMMAND... : shown as typed at a prompt
run() {
	echo "# $*"
	"$@" 2>&1 || give_up "status $?"
}

# part_of FILTER COMMAND... : run, and show less of what it prints
part_of() {
	local filter=$1
	shift
	echo "# $*"
	"$@" 2>&1 | grep -E "$filter" || give_up "$*"
}

# talk SERVER CLIENT [FILTER] : a program on host A, and its partner on host B
talk() {
	local filter=${3:-.}
	# shellcheck disable=SC2086 # commands are several words
	if [ "$LAB_NODE" -eq 1 ]; then
		echo "# $1"
		touch "/out/.server-$steps"
		timeout 120 $1 >/tmp/server 2>&1 || { cat /tmp/server; give_up "status $?"; }
		[ ! -s /tmp/server ] || grep -E "$filter" /tmp/server
	else
		until [ -e "/out/.server-$steps" ]; do sleep 0.2; done
		sleep 1.5
		echo "# $2"
		timeout 120 $2 >/tmp/client 2>&1 || { cat /tmp/client; give_up "status $?"; }
		grep -E "$filter" /tmp/client
	fi
}

# install_module [MODULE...] : a small /lib/modules with sroce.ko in it and these, where modprobe finds it.
# (On a real machine, make modules_install does this.)
install_module() {
	local tree module path
	tree=/run/modules/$(uname -r)
	mkdir -p "$tree/updates"
	for module in ib_umad rdma_ucm crypto-crc32 "$@" $(modinfo -F depends "$(lab_module)" | tr , ' '); do
		modprobe --show-depends "$module" 2>/dev/null | while read -r _ path _; do
			cp -n "$path" "$tree/"
		done
	done
	cp "$(lab_module)" "$tree/updates/"
	touch "$tree"/modules.{order,builtin,builtin.modinfo}
	mount --bind /run/modules /usr/lib/modules
	depmod
}
