#!/usr/bin/env python3
"""Prints where the TensorBoard event files of two folders first part: "ITERATION TAG BITS BITS".

Shares no code with qualify: reads TFRecord and protobuf by hand, without checking CRCs, and leaves
out the metrics that measure time or memory. Prints "equal" where nothing differs.
"""
import os
import struct
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def scalars(folder):
    found = {}
    for name in os.listdir(folder):
        if "tfevents" not in name:
            continue
        data = open(os.path.join(folder, name), "rb").read()
        at = 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            event = list(fields(data[at + 12:at + 12 + size]))
            at += 16 + size
            step = dict(event).get(2, 0)
            for number, summary in event:
                if number != 5:
                    continue
                for _, value in fields(summary):
                    parts = dict(fields(value))
                    found[step, parts[1].decode()] = struct.unpack("<I", parts[2])[0]
    return found


a, b = (scalars(folder) for folder in sys.argv[1:3])
skipped = ("iteration-time", "throughput", "mem-")
keys = sorted(key for key in a.keys() | b.keys()
              if not key[1].startswith(skipped) and not key[1].endswith(" vs samples"))
for key in keys:
    if a.get(key) != b.get(key):
        print(f"{key[0]} {key[1]} {a[key]:08x} {b[key]:08x}")
        break
else:
    print("equal")
