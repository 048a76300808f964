"""generate.py FOLDER MEGABYTES FILES: the input of the benchmark.

FOLDER/image.sqsh: a squashfs image, filled up with bytes that do not compress, as images are.
FOLDER/code: a git repository of FILES source-like files (2 to 14 KiB), committed.
FOLDER/bundle.yaml: the spec over both."""
import os
import pathlib
import random
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
megabytes, files = int(sys.argv[2]), int(sys.argv[3])
code = folder / "code"
code.mkdir(parents=True)
(folder / "root").mkdir()
(folder / "root/etc").write_text("image")


def run(*argv, **more):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, **more)


run("mksquashfs", folder / "root", folder / "image.sqsh", "-quiet", "-no-progress")
with open(folder / "image.sqsh", "ab") as image:
    left = (megabytes << 20) - image.tell()
    image.flush()
    stream = subprocess.Popen(
        ["openssl", "enc", "-aes-128-ctr", "-nosalt", "-K", "00" * 16, "-iv", "00" * 16],
        stdin=open("/dev/zero", "rb"), stdout=subprocess.PIPE)
    while left > 0:
        piece = stream.stdout.read(min(left, 1 << 22))
        image.write(piece)
        left -= len(piece)
    stream.kill()

random.seed(1)
words = [f"def {n}(self, {n}_rank):\n    return self.{n} + {n}_rank\n" for n in
         ("tensor", "pipeline", "expert", "context", "forward", "backward", "reduce", "gather")]
for number in range(files):
    path = code / f"p{number % 97}" / f"m{number % 13}" / f"f{number}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(random.choice(words) for _ in range(random.randint(30, 220)))
    path.write_text(f"# file {number}\n{text}")
git = ["git", "-C", code, "-c", "user.name=bench", "-c", "user.email=bench@localhost",
       "-c", "gc.auto=0"]
run("git", "init", "-q", code)
run(*git, "add", "-A")
run(*git, "commit", "-q", "-m", "bench")
run(*git, "repack", "-a", "-d", "-q")  # as a clone has it
(folder / "bundle.yaml").write_text("""schema_version: 1
name: bench
recipe: debug
code: {tree: {repository: code}}
container: {kind: sqsh, file: image.sqsh}
arms: {deterministic: }
launch: {argv: ['{code.tree}/run']}
""")
