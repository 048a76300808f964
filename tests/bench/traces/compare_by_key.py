"""compare_by_key.py A B: the straightforward way. Every record of both runs by its key (rank, iteration,
microbatch, phase, event, name, occurrence), the first difference by sequence. Peer of the benchmark."""
import json
import pathlib
import sys

KEY = ("rank", "iteration", "microbatch", "phase", "event", "name", "occurrence")


def read(folder):
    records = {}
    for path in sorted(pathlib.Path(folder).glob("rank_*.jsonl")):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                role = (record.get("metadata") or record.get("fields") or {}).get("role")
                records[(*(record[k] for k in KEY), role)] = record
    return records


def content(record):
    if "tensor" in record:
        return record["tensor"]
    return {k: v for k, v in record["fields"].items() if not k.endswith("_ns")}


a, b = read(sys.argv[1]), read(sys.argv[2])
different = [r for k, r in a.items() if k not in b or content(r) != content(b[k])]
different += [r for k, r in b.items() if k not in a]
print(len(a) + len(b), "records,", len(different), "different")
if different:
    first = min(different, key=lambda r: (r["iteration"], r["sequence"]))
    print({k: first[k] for k in KEY})
