# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions for scripts that run inside a guest of the lab: . /sroce/tools/lab/guest.sh
#
# Two hosts on one machine are the network namespaces "a" and "b", joined by the veth "eth0" at both
# ends.  Whatever driver is asked for (sroce, rxe or siw), its device in namespace a is called
# "rdma_a", in b "rdma_b".

# lab_load DRIVER : the module, what it depends on, and for sroce the provider
lab_load() {
	case $1 in
	sroce)
		[ -d /sys/module/sroce ] || {
			# shellcheck disable=SC2046 # a list
			modprobe -a rdma_cm rdma_ucm ib_umad $(modinfo -F depends "$(lab_module)" | tr , ' ') || return
			insmod "$(lab_module)" || return
		}
		lab_provider
		;;
	rxe) modprobe -a rdma_rxe rdma_ucm ib_umad ;;
	siw) modprobe -a siw rdma_ucm ;;
	*) echo "lab_load: no driver '$1'" >&2 && return 1 ;;
	esac
}

# lab_module : path of the module that was built for this kernel
lab_module() { find "/sroce-build/$LAB_TARGET" -name sroce.ko -print -quit | grep .; }

# lab_built selftests|provider : the folder of what was built of these for this machine
lab_built() { case $LAB_TARGET in arm64* | s390x) echo "/sroce-build/$1-${LAB_TARGET%-*k}" ;; *) echo "/sroce-build/$1" ;; esac; }

# lab_32bit : let 32-bit programs run, too, and find the stock RDMA tools of that kind first
lab_32bit() {
	[ -d /sroce-build/programs-i386 ] || { echo "lab: there are no 32-bit programs" >&2; return 1; }
	cp -a /sroce-build/programs-i386/. / &&
		cp /sroce-build/provider-i386/libsroce-rdmav*.so /usr/lib/i386-linux-gnu/libibverbs/ || return
	PATH=/opt/i386:$PATH
}

# lab_newest_rdma_core : the newest rdma-core in place of the root's, for what is started from here (rdma-core-newest)
lab_newest_rdma_core() {
	local tree=/sroce-build/rdma-core-newest
	[ -e $tree/build/lib/libibverbs.so.1 ] || { echo "lab: the newest rdma-core was not built" >&2; return 1; }
	export LD_LIBRARY_PATH=$tree/build/lib PYTHONPATH=$tree/build/python PYVERBS=$tree/tests PATH=$tree/build/bin:$PATH
}

# lab_slow : how many times slower than the plain UML kernel this guest is, for the limits of tests
lab_slow() {
	case $LAB_TARGET in
	uml | uml-cheap-irq) echo 1 ;;
	uml-sanitizer | uml-kcsan) echo 4 ;;
	*) echo 3 ;;
	esac
}

# lab_provider : make libibverbs know sroce
lab_provider() {
	local provider
	provider=$(lab_built provider)
	[ -e "$provider/sroce.driver" ] || { echo "lab: no provider was built" >&2; return 1; }
	cp "$provider"/libsroce-rdmav*.so "/usr/lib/$(uname -m)-linux-gnu/libibverbs/"
	cp "$provider/sroce.driver" /etc/libibverbs.d/
}

# RDMA devices are visible in all namespaces (rdma system's mode "shared"): in mode "exclusive" the
# kernel puts a new one into the first namespace, wherever its netdev is.
# lab_link DRIVER NAME NETDEV [NAMESPACE] : add an RDMA device and wait for its GIDs
lab_link() {
	local driver=$1 name=$2 netdev=$3 ns=${4:-}
	lab_in "$ns" rdma link add "$name" type "$driver" netdev "$netdev" || return
	lab_wait_gids "$name" "$netdev" "$ns"
}

# lab_in NAMESPACE COMMAND... : run there; an empty name is the first namespace
lab_in() {
	local ns=$1
	shift
	if [ -n "$ns" ]; then ip netns exec "$ns" "$@"; else "$@"; fi
}

# lab_addresses NETDEV [NAMESPACE] : its addresses, and one with doubts about it is no address yet
lab_addresses() {
	lab_in "${2:-}" ip -o addr show dev "$1" | awk '/tentative/ { next } $3 ~ /^inet/ { sub("/.*", "", $4); print $4 }'
}

# lab_gid ADDRESS : the address as sysfs writes a GID
lab_gid() {
	python3 -c 'import ipaddress, sys
b = ipaddress.ip_address(sys.argv[1]).packed
b = bytes.fromhex("00000000000000000000ffff") + b if len(b) == 4 else b
print(":".join(b[i:i + 2].hex() for i in range(0, 16, 2)))' "$1"
}

# lab_gid_index DEVICE ADDRESS [NAMESPACE] : which GID to use to send from an address
# The same address may be there as RoCE v1 too: the v2 one is meant.
lab_gid_index() {
	local gid
	gid=$(lab_gid "$2") || return
	# shellcheck disable=SC2016 # for the inner shell
	lab_in "${3:-}" bash -c '
		cd "/sys/class/infiniband/$0/ports/1" || exit
		for f in $(ls gids | sort -n); do
			[ "$(cat "gids/$f" 2>/dev/null)" = "$1" ] || continue
			grep -q v2 "gid_attrs/types/$f" 2>/dev/null && echo "$f" && exit
		done
		exit 1' "$1" "$gid"
}

# lab_wait_gids DEVICE NETDEV [NAMESPACE] : until every address has its GID (an iWARP device has one GID for all)
lab_wait_gids() {
	local tries a missing
	lab_in "${3:-}" grep -qs RNIC "/sys/class/infiniband/$1/node_type" && return
	for ((tries = 0; tries < 100; tries++)); do
		missing=
		lab_in "${3:-}" ip -o addr show dev "$2" | grep -q tentative && missing=1
		for a in $(lab_addresses "$2" "${3:-}"); do
			[ -n "$missing" ] && break
			lab_gid_index "$1" "$a" "${3:-}" >/dev/null || missing=1
		done
		lab_in "${3:-}" grep -qs 4: "/sys/class/infiniband/$1/ports/1/state" || missing=1
		[ -z "$missing" ] && return
		sleep 0.1
	done
	echo "lab: $1 did not get the GIDs of $2" >&2
	return 1
}

# lab_pair [MTU] : namespaces a and b with a link between them: 10.77.0.1 and .2, fd77::1 and ::2
lab_pair() {
	local mtu=${1:-9000} ns n=0
	ip netns add a && ip netns add b || return
	ip link add eth0 netns a mtu "$mtu" type veth peer name eth0 netns b mtu "$mtu" || return
	for ns in a b; do
		n=$((n + 1))
		ip -n $ns link set lo up
		# No duplicate address detection: there is nobody else, and it takes two seconds.
		ip netns exec $ns sysctl -qw net.ipv6.conf.eth0.accept_dad=0
		ip -n $ns link set eth0 up
		ip -n $ns addr add 10.77.0.$n/24 dev eth0
		ip -n $ns addr add fd77::$n/64 dev eth0 nodad
	done
}

# lab_pair_devices DRIVER : rdma_a and rdma_b on the two ends of lab_pair
lab_pair_devices() {
	lab_load "$1" && lab_link "$1" rdma_a eth0 a && lab_link "$1" rdma_b eth0 b
}

# lab_unpair : take down what lab_pair and lab_pair_devices made
lab_unpair() {
	local ns
	for ns in a b; do
		lab_in $ns rdma link del rdma_$ns 2>/dev/null
		ip netns del $ns 2>/dev/null
	done
	return 0
}

# lab_barrier NAME [SECONDS] : with two machines, wait until both are here
lab_barrier() {
	local tries
	touch "/out/.barrier-$1-$LAB_NODE"
	for ((tries = 0; tries < ${2:-120} * 5; tries++)); do
		[ -e "/out/.barrier-$1-1" ] && [ -e "/out/.barrier-$1-2" ] && return
		[ -e "/out/.finished-$((3 - LAB_NODE))" ] && break
		sleep 0.2
	done
	echo "lab: the other machine did not reach '$1'" >&2
	return 1
}
