#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# rsockets, which are streams of bytes over RDMA with the calls of sockets: rdma-core's programs that use them by name, rcopy
# and riostream; and HTTP between programs that know of TCP only, whose calls librspreload.so answers in place of the C library.
# That library has to have each call that a program makes of a socket: rdma-core 56.1 lacks some that all servers of Debian's make,
# and 65.0 has them (RDMA_CORE=newest of lab-guest). What a server lacks is said, and it is skipped.
. "$(dirname "$0")/lib.sh"
needs "rsockets" rcopy riostream
MIB=16
[ "$SET" = full ] && MIB=256

# stop PID : a server, which this shell has started and does not want to hear of
stop() { kill -9 "$1" && wait "$1" 2>/dev/null; }

# copies BYTES : a file from host B to the server on host A
copies() {
	head -c "$1" /dev/urandom >"$TMP/file"
	rm -f "$TMP/copy"
	limit "$LIMIT" in_ns "$B" rcopy "$TMP/file" "$IP_A:$TMP/copy" && cmp "$TMP/file" "$TMP/copy"
}

# streams IP OPTION... : each end writes into the other's memory, and waits for the last byte of what the other one writes. Both
# are told the same sizes.
streams() { run_pair "$LIMIT" "$A" "riostream -b $1 ${*:2}" "$B" "riostream -s $1 ${*:2}"; }

# --- programs of TCP ----------------------------------------------------------------------------------

# preload : librspreload.so of the rdma-core that programs find
preload() {
	local dir
	for dir in ${LD_LIBRARY_PATH:+"${LD_LIBRARY_PATH%%:*}"} /usr/lib/*/rsocket; do
		[ -e "$dir/librspreload.so" ] && echo "$dir/librspreload.so" && return
	done
	return 1
}

symbols() { nm -D "$@" | awk '{ sub("@.*", "", $NF); print $NF }' | sort -u; }

# unanswered PROGRAM : calls that make, change or wait for a socket, which the program makes and librspreload.so does not have
unanswered() {
	comm -23 <(symbols --undefined-only "$(readlink -f "$(command -v "$1")")" | grep -xE \
		'accept4?|connect|listen|fcntl(64)?|p?select|p?poll|epoll_(ctl|p?wait)|recv|send|sendfile(64)?|readv?|writev?') \
		<(symbols --defined-only "$PRELOAD") | tr '\n' ' '
}

tcp_on() { ip netns exec "$1" env LD_PRELOAD="$PRELOAD" "${@:2}"; }

# fetches PORT FILE : by wget on host B from the server on host A; for names a server of TCP would do
fetches() {
	rm -f "$TMP/fetched"
	tcp_on "$B" timeout -k 2 $((LIMIT * SLOW)) wget -nv --tries=1 -O "$TMP/fetched" "http://$IP_A:$1/$2" &&
		cmp "$TMP/www/$2" "$TMP/fetched"
}

# serves NAME PORT BYTES PROGRAM OPTION... : files of up to that size. Were the connection TCP's, no byte of them would go by RDMA,
# but the question for another one and its refusal, of 280 bytes each.
serves() {
	local name=$1 port=$2 most=$3 lacks size server
	shift 3
	command -v "$1" >/dev/null || { ktap_skip "HTTP: $name" "no $1"; return; }
	lacks=$(unanswered "$1")
	[ -z "$lacks" ] || { ktap_skip "HTTP: $name" "librspreload.so of this rdma-core has no ${lacks% }"; return; }
	tcp_on $A "$@" >"$TMP/server" 2>&1 &
	server=$!
	wait_for 30 listening $A
	for size in 0 1 "$most"; do
		head -c "$size" /dev/urandom >"$TMP/www/$size"
		application "HTTP: $name, $size bytes" 60 $((size + 500))/500 fetches "$port" "$size"
	done
	stop $server
}

# What lighttpd is told: to wait by poll(), and to send what it has read by writev(), not by sendfile(), which librspreload.so
# makes of a mapping that is neither shared nor private, and so of none. A poll() that waits for room to send takes half a second
# now and then, after which rsockets look again by themselves: so its file is a small one.
lighttpd_options() {
	cat >"$TMP/lighttpd" <<-END
		server.document-root = "$TMP/www"
		server.bind = "$IP_A"
		server.port = 8081
		server.event-handler = "poll"
		server.network-backend = "writev"
	END
}

devices_up 9000
ip netns exec $A rcopy >"$TMP/server" 2>&1 &
server=$!
wait_for 20 listening $A
for size in 1 4097 $((MIB << 20)); do
	application "rcopy, $size bytes" 60 100/$((size + 100)) copies $size
done
stop $server
application "riostream, 64 bytes" 60 1000 streams $IP_A -S 64 -C 50 -I 20 -T v
application "riostream, blocking" 60 1000000 streams $IP_A -S 4096 -C 50 -I 10 -T b -T v
application "riostream, waiting for events, IPv6" 60 1000000 streams $IP6_A -S 65536 -C 10 -I 4 -T a -T v
application "riostream, 1 MiB and a byte" 60 8000000 streams $IP_A -S 1048577 -C 4 -I 2 -T v

PRELOAD=$(preload)
if [ -z "$PRELOAD" ] || ! command -v wget >/dev/null; then
	ktap_skip "HTTP" "no librspreload.so or no wget"
	ktap_end
fi
lacks=$(unanswered wget)
[ -z "$lacks" ]
result $? "librspreload.so has what wget calls${lacks:+, but for $lacks}"
mkdir "$TMP/www"
lighttpd_options
serves "python3 -m http.server" 8080 "$((MIB << 20))" python3 -m http.server -b $IP_A -d "$TMP/www" 8080
serves "lighttpd" 8081 1000000 lighttpd -D -f "$TMP/lighttpd"
ktap_end
