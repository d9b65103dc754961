# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034 # most of what is set here is for those who source it
# What the test scripts share. Sourced, never run. It needs nothing but the driver, rdma-core's
# tools, perftest and iproute2, so the tests run in a virtual machine and on a real one alike.
#
# The knobs, all from the environment:
#   DRIVER=sroce|rxe     the driver under test (rxe: to validate the tests themselves)
#   SET=quick|full       how much
#   SHORT=1              of the quick set even less: what `make test` leaves to the other kernels of `make test-full`
#   BIN=FOLDER           where the compiled programs are
#   KO=FILE              the module, where it is not installed (insmod instead of modprobe)
#   SLOW=N               the machine is N times slower than usual: every time limit is that much longer
#
# Everything happens on two hosts that a test makes for itself and takes down again: the network
# namespaces $A and $B, each with the netdev "veth0", joined, and with the RDMA device $DEV_A and
# $DEV_B. Nothing of the machine's own network is touched.

DRIVER=${DRIVER:-sroce}
SET=${SET:-quick}
SHORT=${SHORT:-}
SLOW=${SLOW:-1}
SELF=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
A=srtest_a B=srtest_b MOVED=srtest_moved
DEV_A=srt_a DEV_B=srt_b
IP_A=10.98.0.1 IP_B=10.98.0.2
IP6_A=fd98::1 IP6_B=fd98::2

# What rdma_rxe 7.2 does not survive in "verify": it stalls on IBV_SEND_FENCE, and never frees a queue
# pair that has received a SEND with invalidate.
VERIFY_OPTIONS=
[ "$DRIVER" != rxe ] || VERIFY_OPTIONS="-F -o send,send_imm,write,write_imm,read,cas,fadd,count"

TMP=$(mktemp -d "${TMPDIR:-/tmp}/sroce-selftest.XXXXXX")
export LC_ALL=C

# --- how much -------------------------------------------------------------------------------------

# amount NAME QUICK FULL : a number from the environment; without that, the one of the set
amount() {
	local value=$2
	[ "$SET" != full ] || value=$3
	printf -v "$1" %s "${!1:-$value}"
}

# seeded NAME... : $SEED, from the environment or any, for this shell's choices, too; told with those amounts
seeded() {
	local name told
	: "${SEED:=$RANDOM}"
	RANDOM=$SEED
	told="SEED=$SEED"
	for name; do told+=" $name=${!name}"; done
	note "$told"
}

# --- KTAP -----------------------------------------------------------------------------------------

# ktap_prefix: before the name of each result
ktap_passed=0 ktap_failed=0 ktap_skipped=0 ktap_planned='' ktap_prefix=''

# note TEXT... : a diagnostic line
note() { printf '# %s\n' "$*"; }

# notes : standard input as diagnostics, the last lines of it
notes() { tail -n "${1:-12}" | sed 's/^/# | /'; }

# ktap_plan N : say how many results there will be (without it the plan comes at the end)
ktap_plan() {
	ktap_planned=$1
	echo "1..$1"
}

ktap_count() { echo $((ktap_passed + ktap_failed + ktap_skipped)); }

ktap_pass() {
	ktap_passed=$((ktap_passed + 1))
	echo "ok $(ktap_count) $ktap_prefix$*"
}

ktap_fail() {
	ktap_failed=$((ktap_failed + 1))
	echo "not ok $(ktap_count) $ktap_prefix$*"
}

# ktap_skip NAME REASON...
ktap_skip() {
	local name=$1
	shift
	ktap_skipped=$((ktap_skipped + 1))
	echo "ok $(ktap_count) $ktap_prefix$name # SKIP $*"
}

# result STATUS NAME : pass or fail
result() {
	local status=$1
	shift
	if [ "$status" -eq 0 ]; then ktap_pass "$@"; else ktap_fail "$@"; fi
}

# ktap_end : the totals; the status of the script
ktap_end() {
	local n
	n=$(ktap_count)
	[ -n "$ktap_planned" ] || echo "1..$n"
	if [ -n "$ktap_planned" ] && [ "$n" -ne "$ktap_planned" ]; then
		note "planned $ktap_planned results, got $n"
		ktap_failed=$((ktap_failed + 1))
	fi
	echo "# Totals: pass:$ktap_passed fail:$ktap_failed xfail:0 xpass:0 skip:$ktap_skipped error:0"
	[ "$ktap_failed" -eq 0 ] || exit 1
	# kselftest's status for "nothing could be tested"
	[ "$ktap_passed" -gt 0 ] || exit 4
	exit 0
}

# bail REASON... : nothing can be tested; the reason is a failure, not a skip
bail() {
	ktap_fail "$*"
	ktap_planned=
	ktap_end
}

echo "KTAP version 1"

# --- hosts ----------------------------------------------------------------------------------------

# in_ns NAMESPACE COMMAND...
in_ns() { ip netns exec "$@"; }
on_a() { in_ns $A "$@"; }
on_b() { in_ns $B "$@"; }

driver_module() { [ "$DRIVER" = rxe ] && echo rdma_rxe || echo "$DRIVER"; }
driver_loaded() { [ -d "/sys/module/$(driver_module)" ]; }

# driver_load : with all that the stock tools need
driver_load() {
	# shellcheck disable=SC2046 # a list
	modprobe -aq ib_uverbs rdma_ucm ib_umad $([ -z "${KO:-}" ] || modinfo -F depends "$KO" | tr , ' ')
	driver_loaded && return
	if [ -n "${KO:-}" ]; then insmod "$KO"; else modprobe "$(driver_module)"; fi || bail "no module for $DRIVER"
}

driver_unload() { limit 30 rmmod "$(driver_module)"; }

# splats_in FILE : complaints of the kernel, but for its own: of an exporter of dma-bufs that has no memory, and of data races
# (KCSAN) in which the driver takes no part
splats_in() {
	awk -v driver="[$(driver_module)]" '
		/======/ { race = "" }
		race != "" && index($0, driver) { print race; race = "" }
		/BUG: KCSAN/ { race = $0; next }
		/dma-buf\.c:[0-9]+ (at )?dma_buf_vmap\+0x/ { next }
		/WARNING:|BUG:|UBSAN|Oops|general protection|refcount_t|INFO: task/' "$1"
}

# splats : how many there are in the kernel's log
splats() { splats_in <(dmesg) | wc -l; }

# unharmed SPLATS : the end of a test that tried to break something, when the kernel log held so many
unharmed() {
	[ "$(splats)" -eq "$1" ]
	result $? "the kernel log is clean"
	hosts_down
	driver_unload
	result $? "the module can be removed"
	# Whatever goes last has its say, too.
	[ "$(splats)" -eq "$1" ]
	result $? "the kernel log is clean after that"
	ktap_end
}

# host_ns NAMESPACE : empty, with lo up
host_ns() {
	ip netns add "$1" && ip -n "$1" link set lo up
}

# hosts_up [MTU] : both namespaces and the link between them
hosts_up() {
	local mtu=${1:-9000} ns n=0
	hosts_down
	host_ns $A && host_ns $B || bail "cannot make network namespaces"
	ip link add veth0 netns $A mtu "$mtu" type veth peer name veth0 netns $B mtu "$mtu" || bail "no veth"
	for ns in $A $B; do
		n=$((n + 1))
		# The addresses are ours alone: no two seconds of duplicate address detection.
		in_ns "$ns" sh -c 'echo 0 >/proc/sys/net/ipv6/conf/veth0/accept_dad' 2>/dev/null
		ip -n "$ns" link set veth0 up
		ip -n "$ns" addr add 10.98.0.$n/24 dev veth0
		ip -n "$ns" addr add fd98::$n/64 dev veth0 nodad
	done
}

# link_add NAMESPACE DEVICE [NETDEV] : an RDMA device, with the GIDs of its addresses
link_add() {
	local ns=$1 dev=$2 netdev=${3:-veth0}
	limit 20 in_ns "$ns" rdma link add "$dev" type "$DRIVER" netdev "$netdev" || return
	wait_gids "$ns" "$dev" "$netdev"
}

link_del() { limit 20 in_ns "$1" rdma link del "$2"; }

# A device that goes with its netdev, and that with a namespace, has its name for a moment longer.
link_add_soon() {
	wait_for 20 limit 20 in_ns "$1" rdma link add "$2" type "$DRIVER" netdev veth0 && wait_gids "$1" "$2" veth0 ||
		bail "no device $2: $(in_ns "$1" rdma link add "$2" type "$DRIVER" netdev veth0 2>&1)"
}

# devices_up [MTU] : two hosts, two devices
devices_up() {
	driver_load
	hosts_up "$@"
	link_add_soon $A $DEV_A
	link_add_soon $B $DEV_B
}

hosts_down() {
	local ns pids
	for ns in $A $B; do
		ip netns list 2>/dev/null | grep -qw "$ns" || continue
		pids=$(ip netns pids "$ns")
		# shellcheck disable=SC2086 # a list
		[ -z "$pids" ] || kill -9 $pids 2>/dev/null
		[ "$ns" = $A ] && link_del $A $DEV_A 2>/dev/null
		[ "$ns" = $B ] && link_del $B $DEV_B 2>/dev/null
		ip -n "$ns" link del veth0 2>/dev/null
		ip netns del "$ns"
	done
	return 0
}

finish() {
	local jobs mode
	jobs=$(jobs -p)
	# shellcheck disable=SC2086 # a list
	[ -z "$jobs" ] || kill -9 $jobs 2>/dev/null
	hosts_down
	ip netns del $MOVED 2>/dev/null
	# a test that died in the middle
	mode=$(rdma system show 2>/dev/null)
	[[ $mode != *"netns exclusive"* ]] || wait_for 5 rdma system set netns shared
	rm -rf "$TMP"
}
trap finish EXIT

# What the stack takes out of a queue on several processors in turn, a queue discipline's or that of a bond's or a
# team's port, can be overtaken in the queues that it has for each of them. Where the order is looked at there, a
# sender runs with $ONE_CPU, and workers are kept there, too, until workers_anywhere. Timeouts are to be long then: a
# slow kernel has to share one processor among all.
# shellcheck disable=SC2034 # for tests
ONE_CPU="taskset -c 0"
WORKERS=/sys/devices/virtual/workqueue/cpumask
workers_on_one_cpu() {
	WORKER_CPUS=$(cat $WORKERS)
	trap 'workers_anywhere; finish' EXIT
	echo 1 >$WORKERS
}
workers_anywhere() {
	echo "$WORKER_CPUS" >$WORKERS
	trap finish EXIT
}

# huge_pages N : so many of 2 MiB until the script ends, where the platform has any
huge_pages() {
	local file=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages before
	[ -w $file ] && before=$(cat $file) && [ "$before" -lt "$1" ] || return 0
	# shellcheck disable=SC2064 # what there was before
	trap "echo $before >$file; finish" EXIT
	echo "$1" >$file
	note "$(cat $file) huge pages"
}

# --- GIDs -----------------------------------------------------------------------------------------

# gid_of ADDRESS : as sysfs writes it
gid_of() {
	local a=$1 left right n i out=
	if [[ $a != *:* ]]; then
		# shellcheck disable=SC2046,SC2183 # four numbers
		printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n' $(tr . ' ' <<<"$a")
		return
	fi
	left=${a%%::*} right=
	[[ $a == *::* ]] && right=${a##*::}
	IFS=: read -ra left <<<"$left"
	IFS=: read -ra right <<<"$right"
	n=$((8 - ${#left[@]} - ${#right[@]}))
	for ((i = 0; i < n; i++)); do left+=(0); done
	for i in "${left[@]}" "${right[@]}"; do out+=$(printf ':%04x' "0x$i"); done
	echo "${out#:}"
}

# gid_table NAMESPACE DEVICE : index, GID and type of every entry in use
gid_table() {
	# shellcheck disable=SC2016 # for the inner shell
	in_ns "$1" bash -c '
		cd "/sys/class/infiniband/$0/ports/1" 2>/dev/null || exit
		grep -sv 0000:0000:0000:0000:0000:0000:0000:0000 gids/* | sort -t / -k 2 -n |
		while IFS=/: read -r _ i gid; do
			read -r type 2>/dev/null <"gid_attrs/types/$i" && echo "$i $gid $type"
		done' "$2"
}

# gid_index NAMESPACE DEVICE ADDRESS : of the RoCE v2 entry, or with ROCE=v1 of that one, as our programs choose, too
gid_index() {
	gid_table "$1" "$2" | awk -v gid="$(gid_of "$3")" -v roce="${ROCE:-v2}\$" '
		$2 == gid && $0 ~ roce { print $1; found = 1; exit } END { exit !found }'
}

# netdev_addresses NAMESPACE NETDEV
netdev_addresses() {
	ip -n "$1" -o addr show dev "$2" | awk '$3 ~ /^inet/ { sub("/.*", "", $4); print $4 }'
}

# wait_for SECONDS COMMAND... : until it succeeds. What another program is to say is awaited in a file that was emptied
# before that program was started: by itself it does so only when it runs, and until then the last one's words are there.
wait_for() {
	local end=$((SECONDS + $1 * SLOW))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

has_all_gids() {
	local a table
	table=$(gid_table "$1" "$2")
	for a in $(netdev_addresses "$1" "$3"); do
		grep -q "$(gid_of "$a") .*v2" <<<"$table" || return
	done
	! ip -n "$1" -o addr show dev "$3" | grep -q tentative
}

wait_gids() {
	wait_for 10 has_all_gids "$@" && return
	note "$2 lacks GIDs of $3: $(gid_table "$1" "$2" | tr '\n' ';')"
	return 1
}

# --- counters -------------------------------------------------------------------------------------

# counters NAMESPACE DEVICE : "name value" lines, through netlink
counters() {
	in_ns "$1" rdma statistic show link "$2/1" | tr -s ' ' '\n' |
		awk '/\// || /^link$/ { next } { if (name == "") name = $1; else { print name, $1; name = "" } }'
}

# counter NAMESPACE DEVICE NAME... : the sum of those that exist
counter() {
	local ns=$1 dev=$2
	shift 2
	counters "$ns" "$dev" | awk -v names=" $* " 'index(names, " " $1 " ") { sum += $2 } END { print sum + 0 }'
}

# what says that something was sent again, or had to be asked for again
retransmissions() {
	if [ "$DRIVER" = rxe ]; then
		counter "$1" "$2" completer_retry_err rcvd_seq_err out_of_seq_request
	else
		counter "$1" "$2" local_ack_timeout_err packet_seq_err implied_nak_seq_err
	fi
}

# wire_bytes NAMESPACE : sent by its netdev; what went over the wire whatever the driver says
wire_bytes() { in_ns "$1" cat /sys/class/net/veth0/statistics/tx_bytes; }

# changed_counters FILE_BEFORE FILE_AFTER : one line of "name +difference"
changed_counters() {
	awk 'NR == FNR { before[$1] = $2; next } $2 != before[$1] { printf "%s +%d ", $1, $2 - before[$1] }' "$1" "$2"
}

# --- running programs -----------------------------------------------------------------------------

# program NAME : the path of a compiled test program
program() {
	local dir
	for dir in "${BIN:-}" "$SELF"; do
		[ -n "$dir" ] && [ -x "$dir/$1" ] && echo "$dir/$1" && return
	done
	# a read-only checkout where nothing was built yet
	BIN=${TMPDIR:-/tmp}/sroce-selftests-bin
	mkdir -p "$BIN"
	make -s -C "$SELF" OUT="$BIN" >&2 && [ -x "$BIN/$1" ] && echo "$BIN/$1"
}

# limit SECONDS COMMAND... : killed after that, which is a failure. A function of ours is only called:
# what may take long in it has limits of its own.
limit() {
	local seconds=$(($1 * SLOW))
	shift
	[ "$1" != in_ns ] || set -- ip netns exec "${@:2}"
	if [ "$(type -t "$1")" = function ]; then "$@"; else timeout -k 2 "$seconds" "$@"; fi
}

# returns SECONDS COMMAND... : its status; 124 when it has not ended by then, even if it cannot be killed
returns() {
	local seconds=$1 pid
	shift
	"$@" &
	pid=$!
	if ! wait_for "$seconds" eval "! kill -0 $pid"; then
		kill -9 $pid
		return 124
	fi
	wait $pid
}

# settings DEVICE : each file of sysfs in which the driver has settings is read, and what it says is written there; there are
# 21 of them or more
settings() {
	local port=/sys/class/infiniband/$1/ports/1 file value n=0
	for file in "$port"/{cc_params,roce_accl,qos}/* "$port/pkey_table"; do
		value=$(cat "$file") || return
		[ -z "$(find "$file" -perm -200)" ] || echo "$value" >"$file" || return
		n=$((n + 1))
	done
	cat "$port"/pkeys/* "$port"/hw_counters/* >/dev/null || return
	[ $n -ge 21 ]
}

# refused SECONDS COMMAND... : it ends within that time, whatever it says
refused() {
	returns "$@"
	[ $? -ne 124 ]
}

# administered NAME : whoever waits for what, what an administrator asks of $DEV_A and its netdev ends, and well
administered() {
	local name=$1 command
	check "$name: settings in sysfs" 20 returns 20 settings $DEV_A
	# the mode is shared, and cannot be another one while there are other namespaces; so the device cannot move (see "moves")
	check "$name: rdma system set netns exclusive ends" 20 refused 20 rdma system set netns exclusive
	check "$name: rdma system set netns shared" 20 returns 20 rdma system set netns shared
	check "$name: rdma dev set netns ends" 20 refused 20 rdma dev set $DEV_A netns $A
	while read -r command; do
		# shellcheck disable=SC2086 # words
		check "$name: $command" 20 returns 20 ip netns exec $A $command
	done <<-END
		ethtool -i veth0
		ethtool -S veth0
		rdma link show $DEV_A/1
		rdma resource show qp link $DEV_A/1
		rdma resource show mr dev $DEV_A
		rdma resource show cq dev $DEV_A
		rdma resource show pd dev $DEV_A
		rdma statistic show link $DEV_A/1
		rdma statistic mode
		rdma statistic qp set link $DEV_A/1 auto type on
		rdma statistic qp show link $DEV_A/1
		rdma statistic qp set link $DEV_A/1 auto off
		rdma dev set $DEV_A name ${DEV_A}_new
		rdma dev set ${DEV_A}_new name $DEV_A
		ip link set veth0 mtu 4200
		ip link set veth0 mtu 9000
		ip link set veth0 down
		ip link set veth0 up
		ip link set veth0 address 02:98:00:00:00:01
		ethtool -K veth0 gro off
		ethtool -K veth0 gro on
		ethtool -K veth0 tx-udp-segmentation off
		ethtool -K veth0 tx-udp-segmentation on
		ip address add 10.97.0.1/24 dev veth0
		ip address del 10.97.0.1/24 dev veth0
		ip link add srt_more type veth peer name srt_more2
		ip link set srt_more up
		rdma link add ${DEV_A}_more type $DRIVER netdev srt_more
		rdma link show ${DEV_A}_more/1
		rdma link del ${DEV_A}_more
		rdma link add ${DEV_A}_more type $DRIVER netdev srt_more
		ip link del srt_more
	END
}

# check NAME SECONDS COMMAND... : passes if the command succeeds in time
check() {
	local name=$1 seconds=$2 status
	shift 2
	limit "$seconds" "$@" >"$TMP/out" 2>&1
	status=$?
	[ $status -ne 124 ] && [ $status -ne 137 ] || note "killed after $((seconds * SLOW)) s"
	[ $status -eq 0 ] || { note "status $status: $*"; notes <"$TMP/out"; }
	result $status "$name"
	return $status
}

# verdicts NAME FILE : one result for each line "ok: ...", "WRONG: ..." or "skip: ... [reason" of a program
verdicts() {
	local verdict text
	# not in a pipe, which would count in a subshell
	while IFS=: read -r verdict text; do
		case $verdict in
		ok) ktap_pass "$1:$text" ;;
		skip) ktap_skip "$1:${text% [*}" "${text##* [}" ;;
		WRONG)
			grep -A 1 -F "$text" "$2" | notes 2
			ktap_fail "$1:$text"
			;;
		esac
	done < <(grep -E '^(ok|WRONG|skip): ' "$2")
}

# program_verdicts NAME SECONDS COMMAND... : run one of our programs, take over its results; its last line
# says how many were wrong
program_verdicts() {
	local name=$1 seconds=$2 status
	shift 2
	limit "$seconds" "$@" >"$TMP/verdicts" 2>&1
	status=$?
	grep '^# ' "$TMP/verdicts"
	verdicts "$name" "$TMP/verdicts"
	tail -n 1 "$TMP/verdicts" | grep -q ' wrong$'
	result $? "$name: came to its end (status $status)"
	tail -n 1 "$TMP/verdicts" | notes
}

# two_ways PROGRAM [SECONDS [OPTION...]] : one of our programs with both ends on one device, then between the two hosts,
# for which it holds both devices: RDMA devices are visible in all namespaces
two_ways() {
	local file seconds=${2:-120}
	file=$(program "$1") || bail "$1 was not built"
	program_verdicts "one device" "$seconds" in_ns $A "$file" -d $DEV_A -i $IP_A "${@:3}"
	program_verdicts "two hosts" "$seconds" "$file" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B "${@:3}"
}

# undisturbed NAME BYSTANDER PEER : the two ends of a connection beside what is tested, process numbers of children
# of this shell whose output is in $TMP/bystander and $TMP/peer, came to a good end
undisturbed() {
	local status
	wait "$3" && wait "$2"
	status=$?
	note "$(tail -n 1 "$TMP/bystander")"
	note "$(tail -n 1 "$TMP/peer")"
	result $status "$1"
}

# listening NAMESPACE : is any program there waiting for a TCP or an rdma_cm connection?
listening() {
	in_ns "$1" grep -qs '^ *[0-9]*: [0-9A-F]*:[0-9A-F]* 0*:0000 0A' /proc/net/tcp /proc/net/tcp6 ||
		in_ns "$1" rdma resource show cm_id 2>/dev/null | grep -q LISTEN
}

# run_pair SECONDS SERVER_NS SERVER CLIENT_NS CLIENT : two commands (strings) that talk to each other.
# The server must exit 0 like the client; with FOREVER=1 it is one that never exits by itself. READY is a command that
# succeeds when the server is ready for the client, if that is not when it listens. Output is in $TMP/server and
# $TMP/client.
run_pair() {
	local start=$SECONDS status
	run_pair_once "$@"
	status=$?
	[ $((SECONDS - start)) -lt 5 ] || note "took $((SECONDS - start)) s"
	return $status
}

# end_of_rping STATUS COMMAND OUTPUT : the status that counts. When all is done rping closes the file from which its
# other thread reads events; if that one notices, it ends the program with 255. Nothing else may have been said.
end_of_rping() {
	if [[ $1 -eq 255 && $2 == rping* ]] && grep -q '^rdma_get_cm_event: Bad file descriptor' "$3" &&
		! grep -qvE '^(rdma_get_cm_event: Bad file descriptor|(client|server) DISCONNECT EVENT.*|(server )?ping data: .*|)$' "$3"
	then
		note "rping ended while one of its threads still read events: ${2%% -a*}"
		return 0
	fi
	return "$1"
}

run_pair_once() {
	local seconds=$1 sns=$2 server=$3 cns=$4 client=$5 spid status sstatus=0
	limit "$seconds" ip netns exec "$sns" bash -c "exec $server" >"$TMP/server" 2>&1 &
	spid=$!
	wait_for 5 eval "{ ${READY:-listening $sns}; } || ! kill -0 $spid"
	limit "$seconds" ip netns exec "$cns" bash -c "exec $client" >"$TMP/client" 2>&1
	end_of_rping $? "$client" "$TMP/client"
	status=$?
	if [ -n "${FOREVER:-}" ]; then
		kill -0 $spid 2>/dev/null || sstatus=1
		kill $spid 2>/dev/null
		wait $spid 2>/dev/null
	else
		# A client that failed leaves the server waiting for ever.
		[ $status -eq 0 ] || { sleep 0.5; kill $spid 2>/dev/null; }
		wait $spid 2>/dev/null
		end_of_rping $? "$server" "$TMP/server"
		sstatus=$?
	fi
	[ $status -eq 0 ] && [ $sstatus -eq 0 ] && return
	# our own programs: the device does not offer this
	[ $status -eq 5 ] && [ $sstatus -eq 5 ] && return 5
	note "client status $status, server status $sstatus (124: killed after $((seconds * SLOW)) s)"
	note "server: $server"
	notes 6 <"$TMP/server"
	note "client: $client"
	notes 12 <"$TMP/client"
	return 1
}

# pair NAME SECONDS SERVER CLIENT : the server on host A, the client on host B (or $CLIENT_NS)
pair() {
	local name=$1 status
	run_pair "$2" $A "$3" "${CLIENT_NS:-$B}" "$4"
	status=$?
	if [ $status -eq 5 ]; then
		ktap_skip "$name" "$(tail -n 1 "$TMP/client")"
	else
		result $status "$name"
	fi
	return $status
}

# mckey_pair RECEIVER_NS IP SENDER_NS IP GROUP [OPTIONS] : five datagrams to a multicast group. The receiver waits for
# ever for one that is lost, as it may be on a machine that is busy: but not three times in a row. The sender takes its
# address handle away at once, sent or not, and so is not given more than what leaves at once; with LINGER it keeps that
# for a while (linger.c), for a driver that sends later.
mckey_pair() {
	local receiver=$1 rip=$2 sender=$3 sip=$4 group=$5 try
	shift 5
	for try in 1 2 3; do
		READY="grep -q joined $TMP/server && sleep 0.5" run_pair 10 "$receiver" "stdbuf -oL mckey -b $rip -m $group -C 5 $*" \
			"$sender" "${LINGER:+env LD_PRELOAD=$LINGER }mckey -s -b $sip -m $group -C 5 $*" >"$TMP/mckey" && return
		note "mckey, attempt $try:"
		cat "$TMP/mckey"
	done
	return 1
}
