# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# A link that netem spoils, in both directions, and whether what is sent again because of that stays in proportion.
# Sourced after lib.sh. DRIVER_B: the driver of host B, where it is not that of host A.
# shellcheck disable=SC2086 # names without spaces

# impair NETEM... : both directions
impair() {
	local ns
	for ns in $A $B; do
		tc -n "$ns" qdisc replace dev veth0 root netem limit 100000 "$@" || return
	done
}
unimpair() {
	local ns
	for ns in $A $B; do tc -n "$ns" qdisc del dev veth0 root; done
}

# netem_did NAMESPACE : packets that netem has seen, and those that it has lost, since it is there
netem_did() { tc -n "$1" -s qdisc show dev veth0 | awk '/dropped/ { sub(",", "", $7); print $4, $7 }'; }

# of both hosts: frames that have left, and how often something was sent again or asked for again
all_packets() {
	local ns n=0
	for ns in $A $B; do n=$((n + $(in_ns "$ns" cat /sys/class/net/veth0/statistics/tx_packets))); done
	echo $n
}
all_retries() { echo $(($(retransmissions $A $DEV_A) + $(DRIVER=${DRIVER_B:-$DRIVER} retransmissions $B $DEV_B))); }

# how many of them there may be for each hundred packets, at an impairment of 1 %, with some room for few packets
most=4

# plausible NAME PACKETS_BEFORE RETRIES_BEFORE : every impaired packet may cause a few events of recovery, not hundreds
plausible() {
	local name=$1 sent retries
	sent=$(($(all_packets) - $2))
	retries=$(($(all_retries) - $3))
	note "$sent frames, $retries retransmissions or requests for one"
	note "netem (packets, dropped): A $(netem_did $A) B $(netem_did $B)"
	[ $retries -le $((sent * most / 100 + 50)) ]
	result $? "$name: no storm"
}

# setting NAME VALUE : of each device that has it
setting() {
	local dev file
	for dev in $DEV_A $DEV_B; do
		file=/sys/class/infiniband/$dev/ports/1/roce_accl/$1
		[ ! -e "$file" ] || echo "$2" >"$file" || return
	done
}
