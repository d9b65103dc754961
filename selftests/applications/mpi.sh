#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# MPI between two hosts, as the distribution has built it: Open MPI over UCX and over libfabric, by connections (ofi_rxm) and
# by datagrams (ofi_rxd), MPICH over UCX; two and four ranks, each told its device and nothing else. The program is mpi.c.
# (Over libfabric without windows, which Open MPI 5.0.7 refuses to make there, over TCP as well: see
# Documentation/applications.md.)
. "$(dirname "$0")/lib.sh"
needs "MPI" gcc mpicc.openmpi mpirun.openmpi mpicc.mpich mpirun.mpich

# What differs from host to host has to be said there: a launcher gives all ranks the same environment
cat >"$TMP/rank" <<END
#!/bin/bash
case \$(uname -n) in host-a) dev=$DEV_A ;; *) dev=$DEV_B ;; esac
export UCX_NET_DEVICES=\$dev:1 FI_VERBS_DEVICE_NAME=\$dev FI_VERBS_IFACE=veth0
exec "\$@"
END
chmod +x "$TMP/rank"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# openmpi PARTS RANKS OPTION... : half of them on each host
openmpi() {
	local parts=$1 each=$(($2 / 2))
	shift 2
	limit "$LIMIT" "$TMP/at" host-a mpirun.openmpi --host "host-a:$each,host-b:$each" --prtemca plm_ssh_agent "$TMP/at" \
		--prtemca prte_if_include veth0 --oversubscribe --bind-to none "$@" "$TMP/rank" "$TMP/mpi.openmpi" "$parts"
}

mpich() {
	limit "$LIMIT" "$TMP/at" host-a mpirun.mpich -n "$1" -ppn $(($1 / 2)) -hosts host-a,host-b -launcher rsh \
		-launcher-exec "$TMP/at" -iface veth0 "$TMP/rank" "$TMP/mpi.mpich" all
}

devices_up 9000
for kind in openmpi mpich; do
	mpicc.$kind -O2 -Wall -o "$TMP/mpi.$kind" "$APPS/mpi.c" >"$TMP/cc" 2>&1 || { notes <"$TMP/cc"; bail "mpicc.$kind"; }
done
# What the two halves have to tell each other, at the very least
LEAST=8000000
[ -n "$SHORT" ] && numbers=2 || numbers="2 4"
for ranks in $numbers; do
	application "Open MPI over UCX, $ranks ranks" 120 $LEAST openmpi all "$ranks" --mca pml ucx --mca osc ucx
	for provider in rxm rxd; do
		application "Open MPI over libfabric (verbs;ofi_$provider), $ranks ranks" 120 $LEAST openmpi two-sided "$ranks" \
			--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "'verbs;ofi_$provider'"
	done
	application "MPICH over UCX, $ranks ranks" 120 $LEAST mpich "$ranks"
done
ktap_end
