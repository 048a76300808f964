#!/usr/bin/env python3
"""Reads a TensorBoard event file by hand: TFRecord frames, masked CRC-32C, protobuf wire format.

Prints one line an event: "version TEXT", or "scalar STEP FLOAT32-BITS-IN-HEX TAG".
Standard library only, and none of the code under test: an independent reader.
Exit 1, with the reason on stderr, for anything that is not well-formed.
"""
import struct
import sys


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


assert masked_crc(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frames(data):
    at = 0
    while at < len(data):
        if len(data) - at < 12:
            raise ValueError(f"cut off in a header at byte {at}")
        length, crc = struct.unpack_from("<QI", data, at)
        if masked_crc(data[at:at + 8]) != crc:
            raise ValueError(f"wrong CRC of the length at byte {at}")
        body = data[at + 12:at + 12 + length]
        end = at + 12 + length
        if len(data) < end + 4:
            raise ValueError(f"cut off in a record at byte {at}")
        if masked_crc(body) != struct.unpack_from("<I", data, end)[0]:
            raise ValueError(f"wrong CRC of the record at byte {at}")
        yield body
        at = end + 4


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def main():
    with open(sys.argv[1], "rb") as stream:
        data = stream.read()
    for body in frames(data):
        event = dict(fields(body))
        if struct.unpack("<d", event[1])[0] < 1e9:
            raise ValueError("an event without wall time")
        if 3 in event:
            print("version", event[3].decode())
        for number, value in fields(event.get(5, b"")):
            if number == 1:
                scalar = dict(fields(value))
                bits = struct.unpack("<I", scalar[2])[0]
                print("scalar", event.get(2, 0), f"{bits:08x}", scalar[1].decode())


try:
    main()
except (ValueError, KeyError, IndexError, struct.error) as error:
    sys.exit(f"read_tfevents: {error!r}")
