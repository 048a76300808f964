#!/usr/bin/env python3
"""Checks rank_*.jsonl traces against the public schema of Megatron-LM's pull request 6610, version 1.

Usage: check_trace.py FOLDER
Prints "RANK RECORDS TENSORS" a file. Exit 1, with the place, at the first thing that is wrong.
Standard library only: an independent reader.
"""
import json
import math
import pathlib
import re
import sys

KEY = ("rank", "iteration", "microbatch", "phase", "event", "name", "occurrence")
PAYLOAD = {"event": {"fields"}, "tensor": {"metadata", "tensor"}}
TENSOR = {"all_finite", "captured_numel", "device_type", "dtype", "exact_value_certificate", "layout",
          "mode", "numel", "requires_grad", "sha256", "shape", "stride", "value_observed"}


def check(condition, where, what):
    if not condition:
        sys.exit(f"check_trace: {where}: {what}")


def count(value):
    return type(value) is int and value >= 0


def check_tensor(t, where):
    check(set(t) == TENSOR, where, f"tensor fields {sorted(set(t) ^ TENSOR)}")
    check(t["mode"] == "full" and t["exact_value_certificate"] is True and t["value_observed"] is True,
          where, "not full mode")
    check(math.prod(t["shape"]) == t["numel"] == t["captured_numel"], where, "numel")
    check(len(t["stride"]) == len(t["shape"]) and t["layout"] == "strided", where, "stride")
    check(re.fullmatch("[0-9a-f]{64}", t["sha256"]), where, "sha256")
    check(type(t["all_finite"]) is bool and type(t["requires_grad"]) is bool, where, "flags")


def unique(pairs):
    check(len({k for k, _ in pairs}) == len(pairs), "record", "a key twice")
    return dict(pairs)


files = sorted(pathlib.Path(sys.argv[1]).glob("rank_*.jsonl"))
check(files, sys.argv[1], "no traces")
for file in files:
    rank = int(re.fullmatch(r"rank_(\d{6})\.jsonl", file.name)[1])
    last, keys, occurrences, tensors = -1, set(), {}, 0
    lines = file.read_text("utf-8").split("\n")
    check(lines.pop() == "", file, "cut off")
    for number, line in enumerate(lines, 1):
        where = f"{file.name}:{number}"
        r = json.loads(line, object_pairs_hook=unique)
        check(json.dumps(r, sort_keys=True, separators=(",", ":")) == line, where, "not compact, sorted")
        check(set(r) == {*KEY, "schema_version", "sequence", *PAYLOAD[r["event"]]}, where, "fields")
        check(r["schema_version"] == 1 and r["rank"] == rank, where, "version or rank")
        check(count(r["sequence"]) and r["sequence"] > last, where, "sequence")
        check(all(r[k] is None or count(r[k]) for k in ("iteration", "microbatch")), where, "numbers")
        last = r["sequence"]
        key = tuple(r[k] for k in KEY)
        check(key not in keys, where, "a key twice")
        keys.add(key)
        check(r["occurrence"] == occurrences.get(key[:-1], 0), where, "occurrence")
        occurrences[key[:-1]] = r["occurrence"] + 1
        if r["event"] == "tensor":
            check_tensor(r["tensor"], where)
            tensors += 1
    check(keys, file, "empty")
    print(rank, len(keys), tensors)
