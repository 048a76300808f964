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
expect 0 bundle gc --delete --drop "$second" --grace 1s
expect 2 bundle verify "$second" # it is not known any more
expect 0 bundle verify "$first"

chmod -R u+w "$folder" && rm -rf "$folder"
