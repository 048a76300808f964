"""overhead.py [PAIRS] [ITERATIONS] [LEVEL…]: what the tracer costs the quickstart's trainer, at each level.

Runs the trainer without traces and with, in pairs AB, BA, …, and takes the CPU time (user + system) of each: a step's
time on a machine that is not shared. Prints the median of the ratios, and the lowest and highest. The quickstart's
own settings (examples/quickstart/train.conf), one rank a thread. Needs the release preset built.
"""
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
        print(f"{level:5} costs {100 * (statistics.median(ratios) - 1):+.2f} % "
              f"(pairs {100 * (min(ratios) - 1):+.2f} to {100 * (max(ratios) - 1):+.2f}), "
              f"of {1000 * statistics.median(plain) / int(iterations):.2f} ms of CPU a step over all ranks")
