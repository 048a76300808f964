"""equal_roots.py QUALIFY A B [RUNS]: equality of two sealed traces by their roots, held against reading the roots.

All are whole processes, one after another in turn RUNS times (default 40), roots in the page cache; medians of wall time.
Both sides of a comparison start: reading is `cat` of both files less `cat` of nothing, comparing is `qualify localize`
less `qualify --version`. The whole processes are printed, too.
"""
import os
import pathlib
import shutil
import statistics
import sys
import time

qualify, a, b = sys.argv[1:4]
runs = int(sys.argv[4]) if len(sys.argv) > 4 else 40
roots = [str(pathlib.Path(side) / "roots.bin") for side in (a, b)]
cat = shutil.which("cat")
commands = {
    "nothing": [cat, os.devnull],
    "read": [cat, *roots],
    "start": [qualify, "--version"],
    "compare": [qualify, "localize", a, b],
}


def took(command):
    begin = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"{' '.join(command)} failed")
    return 1000 * (time.perf_counter() - begin)


times = {name: [] for name in commands}
for _ in range(runs):
    for name, command in commands.items():
        times[name].append(took(command))
median = {name: statistics.median(each) for name, each in times.items()}
size = sum(os.path.getsize(path) for path in roots)
print(f"equal by roots ({size / 1e6:.1f} MB of them, median of {runs}): "
      f"whole processes: cat {median['read']:.1f} ms, localize {median['compare']:.1f} ms")
read = median["read"] - median["nothing"]
compare = median["compare"] - median["start"]
print(f"  less their start (cat of nothing {median['nothing']:.1f} ms, --version {median['start']:.1f} ms): "
      f"reading {read:.2f} ms, comparing {compare:.2f} ms: {compare / read:.1f} x")
