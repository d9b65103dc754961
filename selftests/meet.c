// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * meet: two scripts on two machines wait for each other, and tell each other a number.
 *
 *	meet PORT SECONDS NUMBER [HOST]     prints the other's number
 */
#include "vt.h"

int main(int argc, char **argv)
{
	uint32_t mine, theirs;
	int fd;

	if (argc < 4)
		vt_die(VT_SETUP, "meet PORT SECONDS NUMBER [HOST]");
	mine = atoi(argv[3]);
	fd = argc > 4 ? vt_ctl_connect(argv[4], atoi(argv[1]), atoi(argv[2])) :
			vt_ctl_accept(atoi(argv[1]), atoi(argv[2]));
	vt_ctl_swap_numbers(fd, &mine, &theirs, sizeof(mine), "4");
	printf("%u\n", theirs);
	return VT_OK;
}
