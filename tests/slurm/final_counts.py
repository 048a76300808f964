#!/usr/bin/env python3
"""final_counts.py CLUSTER-FOLDER

Counts, after all stories on a cluster, by the controller's own record of every job that ended
(JobCompType=jobcomp/filetxt), and by its log:

  jobs of qualify that ever ran outside a grant   must be 0
  attempts with two jobs                          must be 0

A grant is a reservation as it was when a test granted it (grants.jsonl). Jobs of qualify are told by
their names, "qualify:GATE:RUN:NONCE". Exit 1 when a count is not 0, 77 when nothing ran.
"""
import collections
import datetime
import json
import pathlib
import re
import sys


AT_ONCE = datetime.timedelta(seconds=30)


def expand(text):
    """"gpu[0001-0002,0004],x" -> names."""
    names = []
    for name, ranges in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?,?", text):
        if not ranges:
            names.append(name)
            continue
        for part in ranges.split(","):
            low, _, high = part.partition("-")
            for number in range(int(low), int(high or low) + 1):
                names.append(f"{name}{number:0{len(low)}d}")
    return names


def time_of(text):
    return datetime.datetime.fromisoformat(text.rstrip("Z"))


def main():
    folder = pathlib.Path(sys.argv[1])
    grants = collections.defaultdict(list)
    granted = folder / "grants.jsonl"
    if not granted.exists():
        print("nothing was granted: nothing is proven")
        return 77
    for line in granted.read_text().splitlines():
        grant = json.loads(line)
        grants[grant["name"]].append(grant)
    jobs = []
    for line in (folder / "log/jobcomp.txt").read_text().splitlines():
        fields = dict(re.findall(r"(\w+)=(\S*)", line))
        if fields["Name"].startswith("qualify:"):
            jobs.append(fields)

    notes = folder / "taken_out.txt"
    taken_out = set(notes.read_text().split()) if notes.exists() else set()
    outside = []
    late = []
    ran = 0
    for job in jobs:
        # "StartTime" of a job that was cancelled while it waited is its end, and it has no nodes.
        if job["NodeList"] in ("(null)", "") or job["NodeCnt"] == "0":
            continue
        ran += 1
        start = time_of(job["StartTime"])
        fits = any(
            time_of(grant["start"]) <= start <= time_of(grant["end"])
            and set(expand(job["NodeList"])) <= set(grant["nodes"])
            for grant in grants.get(job["ReservationName"], []))
        if job["JobId"] in taken_out:
            # An operator took it out, and qualify has to end it.
            if job["JobState"] != "CANCELLED" or time_of(job["EndTime"]) - start > AT_ONCE:
                late.append(job)
        elif not fits:
            outside.append(job)

    ids = collections.defaultdict(set)
    for job in jobs:
        ids[job["Name"].rsplit(":", 1)[1]].add(job["JobId"])
    doubled = {nonce: sorted(numbers) for nonce, numbers in ids.items() if len(numbers) > 1}

    log = (folder / "log/slurmctld.log").read_text(errors="replace")
    submitted = len(re.findall(r"_slurm_rpc_submit_batch_job: JobId=", log))
    print(f"jobs that the controller took, all in all: {submitted}")
    print(f"jobs of qualify that ended: {len(jobs)}, of which ran: {ran}")
    print(f"jobs of qualify that ever ran outside a grant: {len(outside)}")
    for job in outside:
        print("  ", job)
    print(f"jobs that an operator took out of their grant: {len(taken_out)}, "
          f"of which not ended at once: {len(late)}")
    print(f"attempts with two jobs: {len(doubled)}")
    for nonce, numbers in doubled.items():
        print("  ", nonce, *numbers)
    if ran == 0:
        print("nothing ran: nothing is proven")
        return 77
    return 1 if outside or doubled or late else 0


sys.exit(main())
