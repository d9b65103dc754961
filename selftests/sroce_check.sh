#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# sroce-check: what is right is called right, and each thing that can be wrong with a host, a device or a path is made so
# and has to be found, by its name, with its level.
. "$(dirname "$0")/lib.sh"
. "$SELF/checked.sh"

down() {
	[ -z "${listener:-}" ] || kill "$listener" 2>/dev/null
	finish
}
trap down EXIT

# --- rules of firewalls --------------------------------------------------------------------------------------------

program_verdicts "rules" 30 python3 "$SELF/sroce_check_rules.py" "$SELF/../tools/host"
program_verdicts "hosts" 30 python3 "$SELF/sroce_check_hosts.py" "$SELF/../tools/host"

# --- a host --------------------------------------------------------------------------------------------------------

hosts_down
host_ns $A || bail "cannot make network namespaces"
driver_load
checked $A
finds "without a device that is said" warning device "there is no sroce device"
[ $status -ge 1 ]
result $? "and the exit status is not 0"
checked $A nothing
finds "a device that is not there" fault device "no sroce device nothing"
[ $status -eq 2 ]
result $? "and the exit status is 2"
limit 60 in_ns $A python3 "$CHECK" nothing >&- 2>&-
[ $? -eq 2 ]
result $? "also if it was started without an output"
limit 60 in_ns $A python3 "$CHECK" nothing >/dev/full 2>"$TMP/errors"
[ $? -eq 3 ]
result $? "and 3 if nobody can hear it"
in_ns $A python3 "$CHECK" --nonsense >/dev/null 2>&1
[ $? -eq 3 ]
result $? "wrong arguments: the exit status is 3"

devices_up 9000
checked $A $DEV_A
finds_no "nothing is wrong with a device that is as it should be" fault $DEV_A
finds_no "nor is there a warning" warning $DEV_A
finds "state" ok state "is active"
finds "IPv4 address" ok gid " is $IP_A"
finds "IPv6 address" ok gid " is $IP6_A"
finds "MTU" ok mtu "4096 bytes"
finds "firewall" ok firewall "4791 in and out"
[ -n "${KO:-}" ] || finds "module" ok module "is loaded"
finds "provider" ok provider "has a provider"
checked $A
finds_no "a device of another network namespace is none of this one's business" fault $DEV_B
checked $A -q
! grep -E '^(ok|info) ' "$TMP/found"
result $? "in JSON, too, only what is wrong where that is wanted"
if rdma system show 2>/dev/null | grep -q shared && ip netns add srt_empty; then
	checked srt_empty
	finds "a network namespace that sees others' devices only" warning device "there is no sroce device in this network namespace"
	ip netns del srt_empty
else
	ktap_skip "a network namespace that sees others' devices only" "there are none"
fi
limit 60 in_ns $A python3 "$CHECK" $DEV_A >"$TMP/text"
grep -q "^$DEV_A on veth0\$" "$TMP/text" && grep -q '^  ok  *the port is active$' "$TMP/text"
result $? "in words"

# elsewhere FOLDER COMMAND... : what it finds with a copy of a folder, changed by a command, mounted over that folder
# shellcheck disable=SC2016 # for the inner shell
elsewhere() {
	local folder=$1
	shift
	rm -rf "$TMP/elsewhere" && mkdir "$TMP/elsewhere" && cp -a "$folder/." "$TMP/elsewhere" 2>/dev/null
	(cd "$TMP/elsewhere" && "$@") && limit 60 in_ns $A unshare -m sh -c \
		'mount --bind "$0" "$1" && shift && exec "$@"' "$TMP/elsewhere" "$folder" python3 "$CHECK" --json >"$TMP/json" 2>"$TMP/errors"
	named
}
# without PROGRAM... : what it finds where these are not installed
# shellcheck disable=SC2016 # for the inner shell
without() {
	limit 60 in_ns $A unshare -m sh -c 'check=$1 && shift && for name; do
		file=$(readlink -f "$(command -v "$name")") && mount --bind /dev/null "$file"; done; exec python3 "$check" --json' \
		sh "$CHECK" "$@" >"$TMP/json" 2>"$TMP/errors"
	named
}
# first_user NAME TEXT FOLDER COMMAND... : what a program says that wants a device, with a changed copy of a folder as above.
# No device, and why is on standard error.
# shellcheck disable=SC2016 # for the inner shell
first_user() {
	local name=$1 text=$2 folder=$3
	shift 3
	rm -rf "$TMP/elsewhere" && mkdir "$TMP/elsewhere" && cp -a "$folder/." "$TMP/elsewhere" && rm -f "$TMP/said" "$TMP/errors"
	(cd "$TMP/elsewhere" && "$@") && ! limit 60 in_ns $A unshare -m sh -c 'mount --bind "$0" "$1" && exec ibv_devinfo' \
		"$TMP/elsewhere" "$folder" >"$TMP/said" 2>"$TMP/errors" && ! grep -q $DEV_A "$TMP/said" && grep -qF "$text" "$TMP/errors"
	set -- $?
	[ "$1" -eq 0 ] || cat "$TMP/said" "$TMP/errors" | notes
	result "$1" "$name"
}
# of_another_abi FILE NUMBER : a provider that speaks this version of the ABI, as it tells libibverbs (from, to), and no other
of_another_abi() {
	python3 - "$1" "$2" "$(cat /sys/class/infiniband_verbs/uverbs0/abi_version)" <<-'END'
		import glob, struct, sys
		name, new, old = glob.glob(sys.argv[1])[0], int(sys.argv[2]), int(sys.argv[3])
		text = open(name, "rb").read()
		says = struct.pack("=II", old, old)
		assert text.count(says) == 1, "%d places that could be it" % text.count(says)
		open(name, "wb").write(text.replace(says, struct.pack("=II", new, new)))
	END
}
host_cases() {
	local folder libraries
	for folder in /usr/lib/*/libibverbs /usr/lib64/libibverbs; do
		ls "$folder"/libsroce-rdmav*.so >/dev/null 2>&1 && libraries=$folder
	done
	if [ -n "$libraries" ]; then
		elsewhere "$libraries" sh -c 'rm -f libsroce-rdmav*'
		finds "a provider that is missing" fault provider "has no provider for sroce"
		elsewhere "$libraries" sh -c 'mv libsroce-rdmav*.so libsroce-rdmav7.so'
		finds "a provider for another rdma-core" fault provider "for another libibverbs (interface 7"
		first_user "and the first program that wants a device is told" "couldn't load driver 'libsroce-rdmav" "$libraries" \
			sh -c 'mv libsroce-rdmav*.so libsroce-rdmav7.so'
		first_user "with the provider of another ABI it is told, too" "Driver sroce does not support the kernel ABI of" "$libraries" \
			of_another_abi 'libsroce-rdmav*.so' 77
		elsewhere /etc/libibverbs.d rm -f sroce.driver
		finds "a provider that libibverbs is not told of" fault provider "not told of the provider"
	else
		ktap_skip "a provider that is missing" "no folder of libibverbs with one"
	fi
	mkdir -p /etc/rdma
	elsewhere /etc/rdma sh -c 'printf "lo\nveth0\nnot_there\n" >sroce.conf'
	finds "a netdev that is named and has no device" fault configuration "wants a device on lo"
	elsewhere /etc/rdma sh -c 'printf "# lo\nveth0\nnot_there\n" >sroce.conf'
	finds "all that are named have theirs" ok configuration "have their device"
	limit 60 in_ns $A sh -c "ulimit -l 8192 && exec setpriv --reuid 65534 --regid 65534 --clear-groups python3 $CHECK --json" \
		>"$TMP/json" 2>/dev/null
	grep -q 'in this login, may register 8 MiB' "$TMP/json"
	result $? "little memory may be registered"
	limit 60 in_ns $A sh -c "ulimit -l 8192 && exec python3 $CHECK --json" >"$TMP/json" 2>/dev/null
	grep -q 'may register any amount of memory (CAP_IPC_LOCK)' "$TMP/json"
	result $? "as much as they like for those whom no limit binds"
	elsewhere /dev/infiniband sh -c 'rm -f uverbs*'
	finds "a container without the device's file" warning files "there is no /dev/infiniband/uverbs"
	! grep -q '^fault [^ ]* provider' "$TMP/found"
	result $? "and nothing is said against the provider"
	without rdma modinfo ethtool nft
	finds "a container without rdma" info rdma "is not installed"
	finds "and modinfo: the module is loaded" ok module "is loaded"
	finds "and what its devices are is not guessed" warning device "cannot be seen here without rdma"
	! grep '^fault ' "$TMP/found" && [ ! -s "$TMP/errors" ]
	result $? "and nothing is wrong"
}
[ -n "$SHORT" ] || host_cases

# --- a device --------------------------------------------------------------------------------------------------------

ip -n $A link set veth0 down
checked $A $DEV_A
finds "the netdev is down" fault state "veth0 is down"
# told_of_marks 0|1 : of a device in the first namespace: in others that share it, sysfs may have what ib_core says and no more
told_of_marks() {
	echo "$1" >/sys/class/infiniband/srt_marks/ports/1/cc_params/rp_enable
	limit 150 python3 "$CHECK" --json srt_marks >"$TMP/json" 2>"$TMP/errors"
	named
}
marks_cases() {
	ip link add srt_marks type dummy && ip link set srt_marks up && ip addr add 10.98.6.1/24 dev srt_marks &&
		rdma link add srt_marks type sroce netdev srt_marks
	told_of_marks 0
	finds "no answer to marks" info ecn "for a network that marks (ECN): off"
	told_of_marks 1
	finds "an answer to marks" info ecn "for a network that marks (ECN): on"
	ip link del srt_marks
}
netdev_cases() {
	ip -n $A link set veth0 up && ip -n $B link set veth0 down
	checked $A $DEV_A
	finds "no carrier" fault state "no carrier"
	ip -n $B link set veth0 up
	ip -n $A link set veth0 mtu 1500
	checked $A $DEV_A
	finds "a small MTU" info mtu "1024 bytes, of 4096"
	ip -n $A addr flush dev veth0 scope global
	checked $A $DEV_A
	finds "no address" warning gid "has no address"
	devices_up 9000
	if in_ns $A ethtool -K veth0 gro off 2>/dev/null; then
		checked $A $DEV_A
		finds "no GRO" info gro "(GRO)"
	else
		ktap_skip "no GRO" "ethtool cannot set it"
	fi
	if in_ns $A ethtool -K veth0 rx off 2>/dev/null; then
		checked $A $DEV_A
		finds "no checksums" info checksum "the processor checks the checksums"
		in_ns $A ethtool -K veth0 rx on
		checked $A $DEV_A
		! grep -q '^info [^ ]* checksum ' "$TMP/found"
		result $? "and with them nothing is said"
	else
		ktap_skip "no checksums" "ethtool cannot set it"
	fi
	marks_cases
	if ip -n $A link add srt_br type bridge 2>/dev/null; then
		ip -n $A link set veth0 master srt_br
		checked $A $DEV_A
		finds "a port of a bridge" warning master "belongs to srt_br"
		ip -n $A addr flush dev veth0 scope global
		ip -n $A addr add 10.97.0.1/24 dev srt_br && ip -n $A link set srt_br up
		wait_for 20 gid_index $A $DEV_A 10.97.0.1 >"$TMP/gid"
		checked $A $DEV_A
		finds "a port of a bridge that has the addresses" info master "has the addresses of srt_br"
		ip -n $A link del srt_br
	else
		ktap_skip "a port of a bridge" "no bridges in this kernel"
	fi
	devices_up 9000
	if ip -n $A link add srt_vrf type vrf table 10 2>/dev/null; then
		ip -n $A link set srt_vrf up && ip -n $A link set veth0 master srt_vrf
		checked $A $DEV_A
		finds_no "a netdev in a VRF" warning $DEV_A
		ip -n $A link del srt_vrf
	else
		ktap_skip "a netdev in a VRF" "no VRFs in this kernel"
	fi
	devices_up 9000
	if ip -n $A link add link veth0 name veth0.7 type vlan id 7 2>/dev/null; then
		ip -n $A addr add 10.97.0.1/24 dev veth0.7
		wait_for 20 gid_index $A $DEV_A 10.97.0.1 >"$TMP/gid"
		checked $A $DEV_A
		finds "a VLAN that is down" warning gid "10.97.0.1 on veth0.7, which is down"
		ip -n $A link set veth0.7 mtu 1500 up
		checked $A $DEV_A
		finds "a VLAN with a smaller MTU" warning mtu "veth0.7 has MTU 1500, for packets of 1024 bytes"
		ip -n $A link del veth0.7
	else
		ktap_skip "a VLAN that is down" "no VLANs in this kernel"
	fi
}
# beside_rxe : a device of rdma_rxe has the port of this network namespace, and goes again
beside_rxe() {
	devices_up 9000
	link_del $A $DEV_A
	if modprobe -q rdma_rxe && in_ns $A rdma link add srt_rxe type rxe netdev veth0 2>/dev/null; then
		checked $A
		finds "rdma_rxe has the port" warning rxe "rdma_rxe has UDP port 4791 of this network namespace (srt_rxe)"
		checked $B
		finds_no "and not that of others" warning "this_host rxe"
		link_del $A srt_rxe
	else
		ktap_skip "rdma_rxe has the port" "there is no rdma_rxe"
	fi
}
if [ -z "$SHORT" ]; then
	netdev_cases
	beside_rxe
fi
devices_up 9000

rules() { in_ns $A nft -f - 2>"$TMP/nft"; }

more_firewalls() {
	rules <<<'flush ruleset; table inet srt { chain input { type filter hook input priority 0; policy drop; ip saddr 10.0.0.0/8 udp dport 4791 accept; ip6 nexthdr udp accept; }; }'
	checked $A $DEV_A
	finds "a firewall that lets some peers in" warning firewall "lets RoCE packets of some peers only into veth0 (IPv4; "
	rules <<<'flush ruleset; table ip srt { chain output { type filter hook output priority 0; oifname "veth*" udp dport 4000-5000 reject; }; }'
	checked $A $DEV_A
	finds "a firewall that lets none out" fault firewall "drops RoCE packets out of veth0 (IPv4; nftables, table ip srt, chain output)"
	rules <<<'flush ruleset; table ip raw { chain PREROUTING { type filter hook prerouting priority -300; ip daddr 172.17.0.2 iifname != "docker0" drop; }; }'
	checked $A $DEV_A
	finds "Docker's rule for a container's address" ok firewall "4791 in and out"
	rules <<<"flush ruleset; table ip raw { chain PREROUTING { type filter hook prerouting priority -300; ip daddr $IP_A drop; }; }"
	checked $A $DEV_A
	finds "such a rule for the device's address" fault firewall "drops RoCE packets into veth0 (IPv4; "
	if ip -n $A link add link veth0 name veth0.7 type vlan id 7 2>/dev/null; then
		ip -n $A addr add 10.97.0.1/24 dev veth0.7 && ip -n $A link set veth0.7 up
		wait_for 20 gid_index $A $DEV_A 10.97.0.1 >"$TMP/gid"
		rules <<<'flush ruleset; table inet srt { chain input { type filter hook input priority 0; iifname "veth0.7" drop; }; }'
		checked $A $DEV_A
		finds "a rule for a VLAN above the netdev" fault firewall "drops RoCE packets into veth0.7 (IPv4; "
		ip -n $A link del veth0.7
	else
		ktap_skip "a rule for a VLAN above the netdev" "no VLANs in this kernel"
	fi
	if rules <<<'flush ruleset; table netdev srt { chain in { type filter hook ingress device "veth0" priority 0; udp dport 4791 drop; }; }'; then
		checked $A $DEV_A
		finds "a rule at the netdev" fault firewall "nftables, table netdev srt, chain in"
	else
		ktap_skip "a rule at the netdev" "no such rules in this kernel"
	fi
}

if rules <<<'table inet srt { chain input { type filter hook input priority 0; policy drop; ct state established,related accept; tcp dport 22 accept; }; }'; then
	checked $A $DEV_A
	finds "a firewall that lets established connections in" fault firewall "drops RoCE packets into veth0 (IPv4 and IPv6; nftables, table inet srt, chain input)"
	rules <<<'flush ruleset; table inet srt { chain other { udp dport { 53, 4791 } accept; }; chain input { type filter hook input priority 0; policy drop; ct state vmap { established : accept, invalid : drop }; jump other; }; }'
	checked $A $DEV_A
	finds "a firewall that lets port 4791 in" ok firewall "4791 in and out"
	[ -n "$SHORT" ] || more_firewalls
	rules <<<'flush ruleset'
	firewall=yes
else
	ktap_skip "firewalls" "no nftables here: $(tail -n 1 "$TMP/nft")"
fi

# --- a path ----------------------------------------------------------------------------------------------------------

ip netns exec "$B" python3 "$CHECK" --listen >"$TMP/listen" 2>&1 &
listener=$!
waiting() { grep -q waiting "$TMP/listen"; }
wait_for 20 waiting || bail "--listen does not: $(cat "$TMP/listen")"
checked $A --peer $IP_B
finds "IPv4: RDMA works" ok reach "RDMA works"
finds "and for large messages" ok mtu "large messages pass"
finds_no "nothing is wrong" fault path
[ $status -eq 0 ]
result $? "and the exit status is 0"
checked $A --peer $IP6_B
finds "IPv6: RDMA works" ok reach "RDMA works"
checked $A --port 18600 --peer $IP_B
finds "nobody listens" fault peer "TCP port 18600"
if [ -n "${firewall:-}" ] && [ -z "$SHORT" ]; then
	in_ns $B nft 'table inet srt { chain input { type filter hook input priority 0; udp dport 4791 drop; }; }'
	checked $A --peer $IP_B
	finds "a firewall there" fault reach "packets leave $IP_A and do not come to $IP_B"
	in_ns $B nft flush ruleset
	in_ns $A nft 'table inet srt { chain input { type filter hook input priority 0; udp dport 4791 drop; }; }'
	checked $A --peer $IP_B
	finds "a firewall here" fault reach "packets come to $IP_B, and its answers do not come to $IP_A"
	in_ns $A nft flush ruleset
	in_ns $A nft 'table inet srt { chain output { type filter hook output priority 0; meta l4proto udp meta length > 1500 drop; }; }'
	checked $A --peer $IP_B
	finds "an MTU on the way" fault mtu "small packets come through and large ones do not"
	in_ns $A nft flush ruleset
fi
if [ -n "$SHORT" ]; then
	note "paths with faults: left out"
elif tc -n $A qdisc add dev veth0 root netem loss 4% limit 10000 2>/dev/null; then
	# rping's server is the one that READs and WRITEs
	checked $A --peer $IP_B
	finds "losses" warning loss "packets again"
	tc -n $A qdisc del dev veth0 root
	checked $B $DEV_B
	finds "and the counters tell of them afterwards, without a warning" info resent "were sent again since the device was made"
else
	ktap_skip "losses" "no netem in this kernel"
fi
# Nothing that comes to the listener's port ends it
limit 60 in_ns $A python3 -c 'import socket, sys
for what in (b"{\"ask\": \"take\", \"size\": -1, \"number\": 1}\n", b"[" * 16000 + b"\n", b"[" * 99999 + b"\n", b"\"\n", b"\xff\n",
             b"{\"ask\": 1}\n", b"1\n", b""):
    with socket.create_connection((sys.argv[1], 18514)) as s:
        try:
            s.sendall(what)
            s.shutdown(socket.SHUT_WR)
            s.recv(100)
        except OSError:
            pass' $IP_B
checked $A --peer $IP_B
finds "after nonsense: RDMA works" ok reach "RDMA works"
kill $listener
listener=
# A listener that lies
cat >"$TMP/liar.py" <<'END'
import json, socket
answers = [b"nothing\n", b"[" * 16000 + b"\n", b'{"device": "\\u001b[2J", "mtu": "9000", "tool": 1, "kernel": []}\n',
           b'{"device": "x", "mtu": 9000, "tool": true}\n{"a": "b"}\n{"ready": 1}\n{}\n{}\n']
with socket.create_server(("", 18514)) as server:
    print("waiting", flush=True)
    for answer in answers:
        connection, _ = server.accept()
        connection.recv(100)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
END
ip netns exec "$B" python3 "$TMP/liar.py" >"$TMP/listen" 2>&1 &
listener=$!
wait_for 20 waiting
for try in 1 2 3 4; do
	limit 60 in_ns $A python3 "$CHECK" --peer $IP_B >"$TMP/text" 2>"$TMP/errors"
	status=$?
	[ $status -ge 1 ] && [ $status -le 2 ] && [ ! -s "$TMP/errors" ] && ! grep -q $'\033' "$TMP/text"
	result $? "lie $try of a listener (status $status)"
	notes 3 <"$TMP/errors"
done

# --- any rules -----------------------------------------------------------------------------------------------------

link_del $A $DEV_A
link_del $B $DEV_B
hosts_up
amount SECONDS_OF_RULES 15 300
# Any set may find something that nobody has seen; where everybody waits for the answer it is always the same ones
amount RULES_SEED 1 ""
if in_ns $A nft list ruleset >/dev/null 2>&1; then
	program_verdicts "random rules" $((SECONDS_OF_RULES + 60)) python3 "$SELF/sroce_check_random.py" "$SELF/../tools/host" $A $B "$SECONDS_OF_RULES" ${RULES_SEED:+"$RULES_SEED"}
else
	ktap_skip "random rules" "no nftables here"
fi
ktap_end
