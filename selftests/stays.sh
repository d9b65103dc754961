#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# sroce-netdev, called as udev calls it, while netdevs come, are renamed, go and come again: those that the configuration
# names have their device, no other has; a device that another rule of udev has renamed gets its name back; and what is wrong
# with a line, a name or a device is said.
# shellcheck disable=SC2016,SC1003 # names of netdevs
. "$(dirname "$0")/lib.sh"

HELPER=$SELF/../tools/host/sroce-netdev
[ "$DRIVER" = sroce ] || bail "sroce-netdev is about sroce"
[ -x "$HELPER" ] || bail "no $HELPER"
conf=$TMP/sroce.conf

# It looks for its programs in the system's folders alone. What it has for modprobe is in the lab's way of loading.
driver_load

# event NETDEV : as udev's rule calls it, with nothing but udev's environment; what it says is in $TMP/said
event() { in_ns $A env -i INTERFACE="$1" ACTION=add SUBSYSTEM=net "$HELPER" --config "$conf" --udev >"$TMP/said" 2>&1; }
# came DEVICE : the same, for an RDMA device that has come by this name
came() {
	in_ns $A env -i DEVPATH="/devices/virtual/infiniband/$1" ACTION=add SUBSYSTEM=infiniband "$HELPER" --config "$conf" --udev \
		>"$TMP/said" 2>&1
}
rename_device() { in_ns $A rdma dev set "$1" name "$2"; }
by_hand() { in_ns $A env -i "$HELPER" --config "$conf" >"$TMP/said" 2>&1; }
says() { grep -qF -- "$1" "$TMP/said" || { notes <"$TMP/said"; return 1; }; }
on() { [ "$(in_ns $A rdma link show "$2/1" 2>/dev/null | sed -n 's/.* netdev \(.*[^ ]\) *$/\1/p')" = "$1" ]; }
gone() { ! in_ns $A rdma link show "$1/1" >/dev/null 2>&1; }
number() { in_ns $A rdma link show | wc -l; }
dummy() { ip -n $A link add name "$1" type dummy; }

hosts_down
host_ns $A || bail "cannot make network namespaces"
cat >"$conf" <<'END_CONF'
# a comment

first
second   storage   # a comment
second   later
	third	a_name.of-63:letters.012345678901234567890123456789012345678901
lan.7#7
late
END_CONF
printf last >>"$conf"

# --- names ---------------------------------------------------------------------------------------------------

for pair in first:sroce-first second:storage third:a_name.of-63:letters.012345678901234567890123456789012345678901 last:sroce-last; do
	dummy "${pair%%:*}" && event "${pair%%:*}" && on "${pair%%:*}" "${pair#*:}"
	result $? "${pair%%:*} has its device, ${pair#*:}"
done
gone later
result $? "of two lines for one netdev the first counts"
event first && [ "$(number)" -eq 4 ] && [ ! -s "$TMP/said" ]
result $? "the same event once more changes nothing"
dummy other && event other && [ "$(number)" -eq 4 ] && [ ! -s "$TMP/said" ]
result $? "a netdev that is not named has none, and nothing is said"

# --- netdevs that go and come, or are renamed ----------------------------------------------------------------

good=0
for try in 1 2 3 4 5 6 7 8; do
	ip -n $A link add late type veth peer name late_peer && event late && on late sroce-late || { good=1; notes <"$TMP/said"; }
	ip -n $A link del late
done
wait_for 10 gone sroce-late || good=1
result $good "a veth that comes and goes eight times has its device each time"
ip -n $A link add link first name late type macvlan mode bridge && event late && on late sroce-late
result $? "a macvlan in its place"
ip -n $A link del late
wait_for 10 gone sroce-late
ip -n $A link add link first name late type vlan id 7 && ! event late && says "no device sroce-late on late"
result $? "a VLAN, which the driver refuses: that is said"
ip -n $A link del late
wait_for 10 gone sroce-late
ip -n $A link set other name late && event late && on late sroce-late
result $? "a netdev that is renamed"
dummy short && ip -n $A link del short && event short
result $? "a netdev that has gone before it is its turn is no error"
sed -i 's/^late$/short/' "$conf" && event short
result $? "nor is it one that is named"

# --- devices that are renamed before it is called, as rdma-core's rule does on Debian 12 -----------------------

quiet() { [ ! -s "$TMP/said" ] || { notes <"$TMP/said"; return 1; }; }
rename_device storage rocep0s5 && came storage && on second storage && gone rocep0s5 && says "which had been renamed to rocep0s5"
result $? "a device that was renamed while it came has its name again"
came storage && on second storage && quiet
result $? "one that has its name is left alone, and nothing is said"
rename_device sroce-first rocex5254 && came sroce-first && on first sroce-first && on second storage
result $? "the same with the name that a device has without one in the file"
rename_device storage other && came other && on second other && quiet
result $? "a name that somebody has chosen is left alone"
rename_device other later && came later && on second later && quiet
result $? "also where it is that of a line that does not count"
dummy other && rename_device later rocep0s5 && in_ns $A rdma link add storage type sroce netdev other && ! came storage &&
	says "second has rocep0s5, and not storage" && on second rocep0s5 && on other storage
result $? "where another device has the name, that is said, and both stay"
in_ns $A rdma link del storage && conf=$TMP/nothing came storage && on second rocep0s5 && quiet
result $? "without a configuration it stays renamed"
came storage && on second storage
result $? "with one it has its name when the other one has gone"
in_ns $A rdma link add mine type sroce netdev other && rename_device mine rocex5255 && came mine && on other rocex5255 && quiet
result $? "a device that the file does not name stays renamed"
ip -n $A link del other
wait_for 10 gone rocex5255

# --- Wi-Fi: a radio that the kernel pretends to have, which is this machine's and no other namespace's ---------------

wifi() {
	local file
	for file in /sys/class/net/*/phy80211; do [ -e "$file" ] && basename "${file%/phy80211}" && return; done
	return 1
}
wifi_event() { env -i INTERFACE="$1" ACTION=add SUBSYSTEM=net "$HELPER" --config "$conf" --udev >"$TMP/said" 2>&1; }
on_wifi() { rdma link show wifi/1 2>/dev/null | grep -q " netdev $1 *\$"; }
wifi_gone() { ! rdma link show wifi/1 >/dev/null 2>&1; }
if modprobe -q mac80211_hwsim radios=1; then
	cp "$conf" "$TMP/before_wifi"
	for try in first second; do
		wait_for 20 wifi && netdev=$(wifi) && echo "$netdev wifi" >"$conf" && wifi_event "$netdev" && on_wifi "$netdev"
		result $? "a Wi-Fi netdev has its device ($try time)"
		modprobe -r mac80211_hwsim && wait_for 20 wifi_gone
		result $? "which goes with the radio ($try time)"
		[ "$try" = second ] || modprobe -q mac80211_hwsim radios=1
	done
	cp "$TMP/before_wifi" "$conf"
else
	ktap_skip "a Wi-Fi netdev has its device" "no mac80211_hwsim in this kernel"
fi

# --- what is wrong -------------------------------------------------------------------------------------------

wrong() { # wrong NAME LINE NETDEV WORDS
	printf '%s\n' "$2" >"$conf"
	dummy "$3"
	! event "$3" && says "$4" && ! on "$3" "$3"
	result $? "$1: said, and an error"
	ip -n $A link del "$3"
}
wrong "three words" "wrong a b" wrong "a line is"
for name in -x .x 'a/b' 'a;b' '$(id)' 'a%d' "$(printf 'x%.0s' {1..64})"; do
	wrong "the name $name" "wrong $name" wrong "no name for the device"
done
wrong "the default name would be no good" 'a$b' 'a$b' "no name for the device"
wrong "the name of another netdev's device" "wrong storage" wrong "File exists"
printf '%s\n' '../etc' 'nowhere x' 'a_name_that_is_too_long x' first >"$conf"
! by_hand
says "nowhere is not there" && says "not '../etc" && says "not 'a_name_that_is_too_long" && says "first has sroce-first"
result $? "by hand: something is said of each line"
echo first >"$conf" && by_hand && says "first has sroce-first"
result $? "by hand: the status is 0 when each has its device"
ip -n $A link add rdma0 type dummy && in_ns $A rdma link add mine type sroce netdev rdma0 && echo "rdma0 other" >"$conf" &&
	event rdma0 && on rdma0 mine && gone other
result $? "a netdev that has a device already keeps it"
conf=$TMP/nothing event first && [ ! -s "$TMP/said" ]
result $? "without a configuration udev's call does nothing"
! conf=$TMP/nothing by_hand && says "cannot be read"
result $? "by hand it is said that there is none"

# --- names that somebody chose who wants to be root -------------------------------------------------------------

before=$(number)
printf '%s\n' '* x' 'f* y' '? z' '[a-z]* w' 'first' >"$conf"
cd "$TMP" || exit
good=0
for name in '$(>owned)' '`>owned`' ';>owned;' '|>owned' "'" '"' '-h' '--udev' '(' '!' '=' '-o' '\' 'a\nb' '~' '{a,b}' '$PATH'; do
	dummy "$name" && event "$name" && [ ! -s "$TMP/said" ] || { good=1; note "$name" && notes <"$TMP/said"; }
done
[ ! -e owned ] && [ "$(number)" -eq "$before" ] || good=1
result $good "such a name is nothing but a name"
dummy '*' && event '*' && on '*' x && [ "$(number)" -eq $((before + 1)) ]
result $? "a star in the configuration is the netdev of that name, and no other"
ip -n $A link del '*'
printf '%s\n' '-V option' >"$conf"
dummy -V && ! by_hand && says "a line is" && [ "$(number)" -eq "$before" ]
result $? "a netdev whose name rdma takes for an option gets no device, and that is said"
ktap_end
