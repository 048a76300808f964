"""overhead.py [PAIRS] [ITERATIONS] [LEVEL…]: what the tracer costs the quickstart's trainer, at each level.

Runs the trainer without traces and with, in pairs AB, BA, …, and takes the CPU time (user + system) of each: a step's
time on a machine that is not shared. Prints the median of the ratios, the 95 % interval of that median (by order
statistics, from 6 pairs on), and the lowest and highest. The quickstart's own settings (examples/quickstart/train.conf),
one rank a thread. Needs the release preset built.
"""
import math
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[3]
trainer = root / "build/release/examples/quickstart/trainer/quickstart_trainer"
pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 6
iterations = sys.argv[2] if len(sys.argv) > 2 else "100"


def cpu(trace, folder):
    shutil.rmtree(folder / "out", ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([trainer, "--config", root / "examples/quickstart/train.conf", "--text", folder / "text",
                    "--output", folder / "out", "--train-iters", iterations, "--save-interval", "0", "--trace", trace],
                   check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def median_interval(values):
    """The widest order statistics that leave the median outside with at most 5 %: it lies above each value as often
    as a coin falls."""
    values, n = sorted(values), len(values)
    outside, below = 0, 0.0
    while below + math.comb(n, outside) / 2**n <= 0.025:
        below += math.comb(n, outside) / 2**n
        outside += 1
    return values[max(outside - 1, 0)], values[min(n - outside, n - 1)]


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "text").write_text((root / "LICENSE").read_text() * 4)
    cpu("none", folder)
    for level in sys.argv[3:] or ("L0", "L1", "full"):
        ratios, plain = [], []
        for pair in range(pairs):
            order = ("none", level) if pair % 2 == 0 else (level, "none")
            took = {trace: cpu(trace, folder) for trace in order}
            ratios.append(took[level] / took["none"])
            plain.append(took["none"])
        low, high = median_interval(ratios)
        print(f"{level:5} costs {100 * (statistics.median(ratios) - 1):+.2f} % "
              f"(95 %: {100 * (low - 1):+.2f} to {100 * (high - 1):+.2f}; {pairs} pairs, "
              f"{100 * (min(ratios) - 1):+.2f} to {100 * (max(ratios) - 1):+.2f}), "
              f"of {1000 * statistics.median(plain) / int(iterations):.2f} ms of CPU a step over all ranks")
