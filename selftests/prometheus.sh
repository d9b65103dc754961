#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What Prometheus sees of sroce: its node exporter reads what is in sysfs, for devices that work, go and are not to be
# seen; sroce-metrics adds the driver's counters as Prometheus wants them; and each panel of the dashboard has data, when
# Prometheus has watched traffic, losses and congestion for a while. Wants Debian's prometheus-node-exporter and
# prometheus; lab-with installs what "watching.packages" says. PICTURE=FILE.svg draws the panels.
. "$(dirname "$0")/lib.sh"
. "$SELF/stock.sh"

[ "$DRIVER" = sroce ] || bail "sroce-metrics is about sroce"
METRICS=$SELF/../tools/host/sroce-metrics
BOARD=$SELF/../tools/host/grafana/sroce.json
for wanted in python3 prometheus-node-exporter prometheus promtool; do
	command -v $wanted >/dev/null || { ktap_skip "what Prometheus sees" "no $wanted"; ktap_end; }
done
VERIFY=$(program verify) || bail "verify was not built"
export PYTHONDONTWRITEBYTECODE=1
# shellcheck disable=SC2034 # for stock.sh
SERVER_DEV=$DEV_A CLIENT_NS=$B CLIENT_DEV=$DEV_B SERVER_IP=$IP_A CLIENT_IP=$IP_B WHERE="two hosts"
EXPORTER=127.0.0.1:19100 PROMETHEUS=127.0.0.1:19090
# where it puts what it writes, and the exporter looks for it
FILES=$TMP/textfile
mkdir "$FILES"

# in the namespace of host A, where the names of its netdevs are known
metrics() { limit 60 in_ns $A python3 "$METRICS" "$@"; }
# scraped : what the exporter says now, in $TMP/page
scraped() {
	limit 30 in_ns "$where" python3 -c 'import sys, urllib.request
sys.stdout.write(urllib.request.urlopen("http://" + sys.argv[1] + "/metrics", timeout=20).read().decode())' $EXPORTER >"$TMP/page"
}
# sample FILE METRIC DEVICE : its value; exporters write large numbers as floating point
sample() {
	awk -v metric="$2{" -v device="device=\"$3\"" 'index($0, metric) == 1 && index($0, device) { printf "%.0f\n", $NF; exit }' "$1"
}
# shows METRIC DEVICE VALUE : on the page
shows() {
	local value
	value=$(sample "$TMP/page" "$1" "$2")
	[ "$value" = "$3" ] || note "$1 of $2 is ${value:-not there}, not $3"
	[ "$value" = "$3" ]
}
# shows_soon METRIC DEVICE VALUE : on the page, after a while
shows_soon() { scraped && shows "$@"; }
# collected : the collector has said nothing against what there is
collected() {
	grep -qx 'node_scrape_collector_success{collector="infiniband"} 1' "$TMP/page" && ! grep -qi infiniband "$TMP/exporter"
}
collected_well() {
	collected
	set -- $? "$1"
	[ "$1" -eq 0 ] || notes <"$TMP/exporter"
	result "$1" "$2"
}
# exporter_in NAMESPACE : start it
exporter_in() {
	where=$1
	ip netns exec "$where" prometheus-node-exporter --web.listen-address=$EXPORTER --collector.disable-defaults \
		--collector.infiniband --collector.textfile --collector.textfile.directory="$FILES" --log.level=warn >"$TMP/exporter" 2>&1 &
	exporter=$!
	wait_for 30 scraped || { notes <"$TMP/exporter"; bail "prometheus-node-exporter does not answer"; }
}

# This shell's own namespace by a name, as the others have one
HERE=srtest_here
ip netns attach $HERE $$ || bail "cannot name this network namespace"
clean_up() {
	ip netns del "$HERE"
	hosts_down
	wait_for 5 rdma system set netns shared
	finish
}
trap clean_up EXIT

# --- the node exporter reads sysfs -----------------------------------------------------------------------------

# Each device in one namespace: this mode can be chosen only while there is no other one
driver_load
if wait_for 15 rdma system set netns exclusive; then
	hosts_up 9000
	in_ns $A rdma link add $DEV_A type "$DRIVER" netdev veth0
	in_ns $A test -e /sys/class/infiniband/$DEV_A || rdma dev set $DEV_A netns $A
	exporter_in $A
	collected_well "the exporter of a namespace that has a device of its own"
	wait_for 10 shows_soon node_infiniband_state_id $DEV_A 4
	result $? "its state"
	[ "$(metrics | grep '^sroce_device_active')" = "sroce_device_active{device=\"$DEV_A\"} 1" ]
	result $? "sroce-metrics there"
	kill $exporter
	exporter_in $HERE
	! grep -q "\"$DEV_A\"" "$TMP/page" && ! grep -qi infiniband "$TMP/exporter"
	result $? "one outside does not see it, and does not complain"
	kill $exporter
	hosts_down
	wait_for 15 rdma system set netns shared
else
	ktap_skip "devices of other namespaces" "there are namespaces already"
fi

devices_up 9000
exporter_in $HERE
prometheus-node-exporter --version 2>&1 | head -n 1 | notes
scraped
collected_well "the exporter reads the devices"
for dev in $DEV_A $DEV_B; do
	# 4: active, 5: link up
	shows node_infiniband_state_id "$dev" 4 && shows node_infiniband_physical_state_id "$dev" 5 &&
		[ "$(sample "$TMP/page" node_infiniband_rate_bytes_per_second "$dev")" -gt 0 ]
	result $? "$dev: state and rate ($(sample "$TMP/page" node_infiniband_rate_bytes_per_second "$dev") bytes per second)"
done
pair "verify between two hosts" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -T 18 -n 2 $IP_A"
scraped
for dev in $DEV_A $DEV_B; do
	shows node_infiniband_port_packets_transmitted_total "$dev" "$(counter $A "$dev" rdma_tx_packets)" &&
		shows node_infiniband_port_packets_received_total "$dev" "$(counter $A "$dev" rdma_rx_packets)"
	result $? "$dev: packets are those of the driver's counters"
	bytes=$(sample "$TMP/page" node_infiniband_port_data_transmitted_bytes_total "$dev")
	counted=$(counter $A "$dev" rdma_tx_bytes)
	note "$bytes bytes shown, $counted counted"
	# they are in words there; what is not a whole one may be missing in each packet
	[ "$bytes" -gt 0 ] && [ "$bytes" -le "$counted" ] && [ "$bytes" -ge $((counted * 9 / 10)) ]
	result $? "$dev: bytes, too"
done
note "samples of $DEV_A: $(sed -n "s/^node_infiniband_\([a-z_]*\){device=\"$DEV_A\".*/\1/p" "$TMP/page" | xargs)"
ip -n $B link set veth0 down
wait_for 10 shows_soon node_infiniband_state_id $DEV_A 1
result $? "a link that is down"
shows node_infiniband_physical_state_id $DEV_A 2 && shows node_infiniband_link_downed_total $DEV_A 1
result $? "its physical state, and how often it went down"
collected_well "it is no reason for a complaint"
ip -n $B link set veth0 up
wait_for 10 shows_soon node_infiniband_state_id $DEV_A 4
result $? "and up again"
kill $exporter

# ib_core has the counters' folder in sysfs only where a device is at home
exporter_in $A
note "in another network namespace (rdma system set netns shared) it shows $(grep -c "^node_infiniband" "$TMP/page") samples of devices," \
	"$(grep -o 'success{collector="infiniband"} .' "$TMP/page")"
kill $exporter

# --- sroce-metrics ---------------------------------------------------------------------------------------------

metrics >"$TMP/metrics"
promtool check metrics <"$TMP/metrics" >"$TMP/promtool" 2>&1 && [ ! -s "$TMP/promtool" ]
result $? "promtool has nothing against the metrics ($(grep -c '^# TYPE' "$TMP/metrics") of them)"
notes <"$TMP/promtool"
counters $A $DEV_A >"$TMP/counters"
unlike=
while read -r name value; do
	case $name in rx_dct_connect | roce_adp_retrans_to | roce_slow_restart*) continue ;; esac
	[ "$(sample "$TMP/metrics" "sroce_${name}_total" $DEV_A)" = "$value" ] || unlike+=" $name"
done <"$TMP/counters"
note "$(wc -l <"$TMP/counters") counters; other values:${unlike:- none}"
[ -z "$unlike" ] && [ "$(wc -l <"$TMP/counters")" -gt 40 ]
result $? "each counter of the driver is there with its value"
! grep '^# HELP .* The counter .* of the driver$' "$TMP/metrics"
result $? "and each is explained"
[ "$(sample "$TMP/metrics" sroce_device_active $DEV_A)" = 1 ] && grep -qF "sroce_device_info{device=\"$DEV_A\",netdev=\"veth0\"} 1" "$TMP/metrics"
result $? "devices and their netdevs"
[ "$(awk '/^sroce_queue_pairs/ { n += $NF } END { print n }' "$TMP/metrics")" = \
	"$(rdma -j resource show qp | python3 -c 'import json, sys; print(sum(one["ifname"].startswith("srt_") for one in json.load(sys.stdin)))')" ]
result $? "queue pairs"

metrics -o "$FILES/sroce.prom"
exec {old}<"$FILES/sroce.prom"
metrics -o "$FILES/sroce.prom"
# Whoever had it open before reads what was there then
promtool check metrics <&"$old" && [ "$(stat -c %a "$FILES/sroce.prom")" = 644 ] && [ "$(ls -A "$FILES")" = sroce.prom ]
result $? "a file is replaced, not written to, and nothing else is left"
exec {old}<&-
metrics -o "$TMP/no/folder.prom" 2>"$TMP/errors"
[ $? -eq 1 ] && [ "$(wc -l <"$TMP/errors")" -eq 1 ]
result $? "a folder that is not there is said in one line"
# Another user may have the folder, and put these there
mkfifo "$TMP/fifo" && touch "$TMP/victim" && ln -s victim "$TMP/link"
for name in fifo link; do
	metrics -o "$TMP/$name" 2>"$TMP/errors"
	[ $? -eq 1 ] && [ "$(wc -l <"$TMP/errors")" -eq 1 ] && [ -p "$TMP/fifo" ] && [ -L "$TMP/link" ] && [ ! -s "$TMP/victim" ]
	result $? "a $name stays what it is"
done
limit 60 in_ns $A setpriv --reuid 65534 --regid 65534 --clear-groups python3 "$METRICS" | promtool check metrics
result $? "a user without rights"
exporter_in $HERE
scraped
grep -qx 'node_textfile_scrape_error 0' "$TMP/page" && shows sroce_rdma_tx_packets_total $DEV_A "$(counter $A $DEV_A rdma_tx_packets)"
result $? "the exporter takes the file"

strange='q"b\x'
if ip -n $A link add "$strange" type dummy 2>/dev/null && ip -n $A link set "$strange" up && link_add $A srt_strange "$strange"; then
	metrics >"$TMP/metrics"
	promtool check metrics <"$TMP/metrics" && grep -qF 'netdev="q\"b\\x"' "$TMP/metrics"
	result $? "a netdev with a strange name"
	link_del $A srt_strange
	ip -n $A link del "$strange"
else
	ktap_skip "a netdev with a strange name" "no dummy"
fi

# --- Prometheus, and the dashboard -----------------------------------------------------------------------------

every=$((2 * SLOW))
cat >"$TMP/prometheus.yml" <<-END
	global: { scrape_interval: ${every}s, scrape_timeout: ${every}s }
	scrape_configs: [{ job_name: node, static_configs: [{ targets: ["$EXPORTER"] }] }]
END
promtool check config "$TMP/prometheus.yml" >/dev/null || bail "the configuration of Prometheus is wrong"
prometheus --config.file="$TMP/prometheus.yml" --storage.tsdb.path="$TMP/prometheus" --web.listen-address=$PROMETHEUS \
	--log.level=warn >"$TMP/prometheus.log" 2>&1 &
ready() { python3 -c "import urllib.request; urllib.request.urlopen('http://$PROMETHEUS/-/ready', timeout=5)"; }
wait_for 60 ready || { notes <"$TMP/prometheus.log"; bail "prometheus does not answer"; }
while sleep 1; do metrics -o "$FILES/sroce.prom"; done &
writing=$!
start=$(date +%s)

echo 1 >/sys/module/sroce/parameters/longest_turn
sleep "$every"
in_ns $A "$VERIFY" -d $DEV_A -i $IP_A >"$TMP/server" 2>&1 &
wait_for 20 listening $A
in_ns $A "$VERIFY" -d $DEV_A -i $IP_A -t $((6 * SLOW)) $IP_A >"$TMP/client" 2>&1
pair "traffic" 120 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -T 18 -t $((8 * SLOW)) $IP_A"
pair "traffic with receives posted late" 120 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -T 18 -r -t $((6 * SLOW)) $IP_A"
if tc -n $B qdisc replace dev veth0 root netem loss 2%; then
	pair "traffic with losses" 120 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -T 12 -t $((10 * SLOW)) $IP_A"
	tc -n $B qdisc del dev veth0 root
fi
for dev in $DEV_A $DEV_B; do echo 1 >"/sys/class/infiniband/$dev/ports/1/cc_params/rp_enable"; done
if tc -n $B qdisc replace dev veth0 clsact && tc -n $B filter add dev veth0 egress pref 1 protocol ip matchall \
	action pedit ex munge ip tos set 3 retain 3 pipe action csum ip4h; then
	stock_gids
	perftest ib_write_bw -s 65536 -D $((10 * SLOW))
	tc -n $B qdisc del dev veth0 clsact
fi
sleep $((every * 2))
kill $writing
end=$(date +%s)
scraped
collected_well "the exporter had nothing to complain of"
program_verdicts "dashboard" 120 python3 "$SELF/dashboard.py" "$BOARD" http://$PROMETHEUS "$start" "$end" $((every * 4))s ${PICTURE:+"$PICTURE"}
# What was made to happen is what is seen
python3 - "$PROMETHEUS" "$start" "$end" >"$TMP/verdicts" <<'END'
import json, sys, urllib.parse, urllib.request
address, start, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for name in ("rdma_tx_bytes", "direct_bytes", "out_of_buffer", "rnr_nak_retry_err", "packet_seq_err", "out_of_sequence", "retrans_packets",
             "np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled"):
    query = f"sum(increase(sroce_{name}_total[{end - start}s]))"
    with urllib.request.urlopen(f"http://{address}/api/v1/query?" + urllib.parse.urlencode({"query": query, "time": end})) as answer:
        found = json.load(answer)["data"]["result"]
    value = float(found[0]["value"][1]) if found else 0
    print(f"{'ok' if value > 0 else 'WRONG'}: {name} has grown\n  by {value:.0f}")
END
verdicts "Prometheus" "$TMP/verdicts"
! grep -q . "$TMP/prometheus.log"
result $? "Prometheus had nothing to complain of"
notes <"$TMP/prometheus.log"
ktap_end
