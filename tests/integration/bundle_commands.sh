#!/usr/bin/env bash
# bundle_commands.sh QUALIFY
#
# Every bundle command with the program as built: what it prints, its exit code, and what is left.
set -euo pipefail
qualify=$1
folder=$(mktemp -d)
failed() {
  echo "FAILED: $1 (folder: $folder)" >&2
  exit 1
}
expect() { # CODE ARGUMENTS…
  local wanted=$1 got=0
  shift
  "$qualify" "$@" >"$folder/out" 2>"$folder/err" || got=$?
  ((got == wanted)) || {
    cat "$folder/out" "$folder/err"
    failed "'qualify $*' ended with $got, not $wanted"
  }
}
says() { grep -qF -- "$1" "$folder/out" || { cat "$folder/out"; failed "no '$1' in the output"; }; }

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME=$folder
commit() { git -C code -c user.name=t -c user.email=t@localhost commit --quiet -am "$1"; }
cd "$folder"
git init --quiet code
echo 'print(1)' >code/train.py
git -C code add train.py
commit one
cat >bundle.yaml <<'YAML'
schema_version: 1
name: demo
recipe: debug
code: {trainer: {repository: code}}
arms: {deterministic: }
launch: {argv: [python3, '{code.trainer}/train.py']}
YAML

expect 0 init
expect 0 bundle list
says 'No bundle has been sealed yet.'
expect 0 bundle seal --quiet bundle.yaml
first=$(<out)
echo 'print(2)' >code/train.py
expect 3 bundle seal bundle.yaml # dirty
commit two
expect 0 bundle seal --quiet bundle.yaml
second=$(<out)
expect 0 bundle list
says demo
expect 1 bundle diff "$first" demo
says 'changed train.py'
expect 0 bundle diff "$first" "$first"
expect 1 bundle diff "$first" "$second" --json
python3 -c 'import json; assert not json.load(open("out"))["equal"]'

expect 0 bundle export "$first" b.tar
expect 2 bundle export "$first" b.tar # there already
mkdir elsewhere && cd elsewhere
expect 0 init
expect 0 bundle import ../b.tar
says "$first"
expect 0 bundle verify demo
expect 0 bundle materialize demo job
[[ $(<job/code/trainer/train.py) == 'print(1)' ]] || failed "other content was laid out"
[[ ! -w job/code/trainer/train.py || $EUID == 0 ]] || failed "the laid-out file can be written"
expect 2 bundle materialize demo job # there already
head -c 5000 ../b.tar >cut.tar
expect 5 bundle import cut.tar
cd ..

echo orphan >orphan
name=$(sha256sum orphan | cut -d' ' -f1)
mv orphan ".qualify/store/blobs/sha256/$name"
touch -d '2 days ago' ".qualify/store/blobs/sha256/$name"
expect 0 bundle gc
says 'Would remove 1 files, 7 bytes'
expect 0 bundle gc --delete
[[ ! -e .qualify/store/blobs/sha256/$name ]] || failed "the orphan is still there"
expect 0 bundle gc --drop "$second"
says "Would take out $second, "
says 'Nothing was changed'
expect 0 bundle verify "$second"
expect 0 bundle gc --delete --drop "$second" --grace 1s
says "Took out $second, "
expect 2 bundle verify "$second" # it is not known any more
expect 0 bundle verify "$first"

# What a run and its certificate name stays, whatever is asked.
cat >code/train.py <<'PY'
import time
print(1)
open('m.jsonl', 'w').write('{"iteration": 1, "lm loss": "0x41293069", "time": %d}\n' % time.time_ns())
PY
commit three
sed -i 's/^name: demo/name: used\nenvironment: {NCCL_ALGO: Ring}\nrequired_environment: {NCCL_ALGO: Ring}/' bundle.yaml
cat >qualification.yaml <<'YAML'
schema_version: 1
gates:
  same: {kind: repeatability, arm: deterministic, metrics: [lm loss], run_limit: 1m}
YAML
sed -i 's/arms: .*/arms: {deterministic: }/' bundle.yaml
expect 0 bundle seal --quiet bundle.yaml

# An inherited value that disagrees with what the bundle requires is refused before anything starts.
export NCCL_ALGO=Tree OMP_NUM_THREADS=4
expect 4 doctor --bundle used
says "NCCL_ALGO is 'Tree'"
expect 3 run same --bundle used
grep -qF "the bundle requires 'Ring'" err || failed "the run does not say what disagrees"
[[ ! -e .qualify/runs ]] || [[ -z $(ls .qualify/runs) ]] || failed "a run was started"
export NCCL_ALGO=Ring
expect 0 doctor --bundle used
tr -s ' \n' ' ' <out | grep -qF 'reaching no workload: NCCL_ALGO, OMP_NUM_THREADS' ||
  failed "doctor does not say what is ignored"
unset NCCL_ALGO OMP_NUM_THREADS

expect 0 run same --bundle used
says certificate
expect 3 bundle gc --delete --drop used --grace 1s
grep -qF 'a run, grant or certificate names it' err || failed "gc does not say why"
age() { find .qualify/store/blobs -type f -exec touch -d '2 days ago' {} +; }
age
expect 0 bundle gc --delete
expect 0 bundle verify used
expect 0 cert list
# Without the index entry, the blobs that the certificate's bundle is made of stay by their names.
before=$(find .qualify/store/blobs -type f | sort)
age
expect 0 bundle gc --delete
[[ $(find .qualify/store/blobs -type f | sort) == "$before" ]] || failed "gc took something that is named"

# A limit on file sizes is a full disk to whoever meets it.
head -c 300000 /dev/zero >code/large
git -C code add large
commit four
got=0
prlimit --fsize=100000 "$qualify" bundle seal bundle.yaml >out 2>err || got=$?
((got == 2)) || failed "seal over the file size limit ended with $got"
grep -qF 'File too large' err || failed "seal over the limit does not say so: $(<err)"
! compgen -G '.qualify/store/blobs/sha256/.tmp-*' || failed "a half-written blob is left"
expect 0 bundle verify used
expect 0 bundle seal --quiet bundle.yaml
expect 0 bundle verify --jobs 1 "$(<out)"
expect 2 bundle verify --jobs 0 used
expect 2 bundle seal /nonexistent/bundle.yaml

chmod -R u+w "$folder" && rm -rf "$folder"
