# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# RDS over its "ib" transport: a socket that serves, one that talks to it. Sourced, never run, after lib.sh.

target_modules="rds_rdma rds" target_programs=python3
initiator_modules=$target_modules initiator_programs=$target_programs

target_up() { server_start python3 "$SELF/storage/rds_talk.py" "$TGT" serve; }

target_down() { server_stop; }

target_again() { target_down && target_up; }

talk() { python3 "$SELF/storage/rds_talk.py" "$INI" "$TGT" "$@"; }

talk_all() {
	check "ping" 30 talk ping
	check "messages of 1 byte to 1 MiB" 60 talk sizes
	check "a stream of messages both ways" 60 talk stream 4000
	check "RDMA WRITE and READ of the peer's memory" 60 talk rdma
}
