#!/usr/bin/env python3
"""generate.py KIND MEGABYTES > FILE: a metric file of about that size.

KIND: log         Megatron's stdout, 20,000 iterations among the ranks' other lines
      log-dense   nothing but iteration lines
      json-lines  20,000 iterations of metrics among records of events without a step
      json-dense  nothing but metrics
      events      TensorBoard scalars
"""
import struct
import sys

kind, size = sys.argv[1], int(sys.argv[2]) * 1_000_000
out = sys.stdout.buffer


def log_line(n):
    return (f" [2026-11-30 04:{n // 60 % 60:02}:{n % 60:02}.{n % 1000000:06}] iteration {n:8}/ 5000000 | "
            f"consumed samples: {n * 16:12} | elapsed time per iteration (ms): {150 + n % 100 / 10:.1f} | "
            f"throughput per GPU (TFLOP/s/GPU): 54.0 | learning rate: {1e-4 / (1 + n / 1e5):.6E} | "
            f"global batch size:    16 | lm loss: {2 + 8 / (1 + n / 500):.6E} | loss scale: 1.0 | "
            f"grad norm: {1 + n % 977 / 1000:.3f} | num zeros: {9000 + n % 1000}.0 | params norm: 187.374 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |\n").encode()


NOISE = (b"[rank%d]:[W1130 04:07:33.046496 ProcessGroupNCCL.cpp:4561] [PG ID 0 PG GUID 0 Rank %d] using GPU %d "
         b"to perform barrier as devices used by this process are currently unknown. This can potentially cause a "
         b"hang if this rank to GPU mapping is incorrect.\n")


def json_line(n):
    return (f'{{"iteration": {n}, "lm loss": {2 + 8 / (1 + n / 500)!r}, "grad-norm": {1 + n % 977 / 977!r}, '
            f'"num-zeros": {9000 + n % 1000}, "learning-rate": {1e-4 / (1 + n / 1e5)!r}, "timestamp": {1764475654 + n * 0.15!r}}}\n').encode()


EVENT = (b'{"event": "dataloader", "rank": %d, "files": ["/data/shard_%d.bin", "/data/shard_%d.idx"], "bytes": %d, '
         b'"seconds": 0.00173, "worker": {"pid": %d, "queue": [1, 2, 3, 4]}, "message": "prefetched a block of documents"}\n')


def crc_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


def masked(data, table=crc_table()):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    text = b""
    while value > 127:
        text += bytes([value & 127 | 128])
        value >>= 7
    return text + bytes([value])


def event(tag, step, value):
    one = b"\n" + varint(len(tag)) + tag + b"\x15" + struct.pack("<f", value)
    summary = b"\n" + varint(len(one)) + one
    data = b"\x09" + struct.pack("<d", 1764475654 + step * 0.15) + b"\x10" + varint(step) + b"*" + varint(len(summary)) + summary
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked(head)) + data + struct.pack("<I", masked(data))


TAGS = [b"learning-rate", b"batch-size", b"lm loss", b"loss-scale", b"grad-norm", b"num-zeros", b"params-norm", b"iteration-time"]


def blocks():
    n = 0
    if kind in ("log", "json-lines"):
        line = log_line if kind == "log" else json_line
        each = max(1, size // 20_000 // 230)
        while True:
            n += 1
            yield line(n)
            noise = (NOISE % (n % 8, n % 8, n % 8) if kind == "log" else
                     EVENT % (n % 8, n, n, n * 4096, n))
            yield noise * (each - 1)
    while True:
        n += 1
        if kind == "events":
            for tag in TAGS:
                yield event(tag, n, 1 + n % 977 / 977)
        else:
            yield log_line(n) if kind == "log-dense" else json_line(n)


written = 0
batch = []
pending = 0
for block in blocks():
    batch.append(block)
    pending += len(block)
    if pending > 1 << 20:
        out.write(b"".join(batch))
        written += pending
        batch, pending = [], 0
        if written >= size:
            break
