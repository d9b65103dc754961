#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Protection information of T10 beside the data of a disk, computed without the kernel.

pi.py check DATA TUPLES BLOCK     each block has its reference tag, and some hundreds, evenly spread, their guard
pi.py flip FILE OFFSET            change one byte
"""
import struct
import sys

TABLE = []
for byte in range(256):
    crc = byte << 8
    for _ in range(8):
        crc = (crc << 1 ^ (0x8bb7 if crc & 0x8000 else 0)) & 0xffff
    TABLE.append(crc)


def crc_t10dif(data):
    crc = 0
    for byte in data:
        crc = (crc << 8 & 0xffff) ^ TABLE[crc >> 8 ^ byte]
    return crc


def written_blocks(tuple_file):
    """What nobody has written has a tuple of all ones"""
    with open(tuple_file, 'rb') as tuples:
        for block, tuple_ in enumerate(struct.iter_unpack('>HHI', tuples.read())):
            if tuple_[1] != 0xffff:
                yield block, tuple_[0], tuple_[2]


def check(data_file, tuple_file, size):
    blocks = list(written_blocks(tuple_file))
    some = set(blocks[::max(1, len(blocks) // 500)] + blocks[-1:])
    wrong = 0
    with open(data_file, 'rb') as data:
        for block, guard, ref in blocks:
            expected = guard
            if (block, guard, ref) in some:
                data.seek(block * size)
                expected = crc_t10dif(data.read(size))
            if (guard, ref) != (expected, block):
                wrong += 1
                print(f'block {block}: guard {guard:04x}, data {expected:04x}, reference tag {ref:x}')
    print(f'{len(blocks)} blocks with protection information, {len(some)} guards computed, {wrong} blocks wrong')
    return bool(wrong or not blocks)


def flip(name, offset):
    with open(name, 'r+b') as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x21]))


match sys.argv[1:]:
    case ['check', data, tuples, size]:
        sys.exit(check(data, tuples, int(size)))
    case ['flip', name, offset]:
        flip(name, int(offset))
    case _:
        sys.exit(__doc__)
