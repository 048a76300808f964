#!/usr/bin/env bash
# composite_gates.sh QUALIFY
#
# Coverage and enablement on this machine: open cell by cell, closed by a certificate that rests on
# those of the cells, stale by a revocation, a new bundle and a new policy, and closed again.
# Blockers close one by one; a debug recipe never closes the production part.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1
folder=$(mktemp -d)
certificate() { "$qualify" cert list --gate "$1" --json | grep '"id"' | tail -n 1 | cut -d'"' -f4; }
isolate
mkdir "$folder/code"
# Equal values in every run; step times with a little noise, the same in both arms.
cat >"$folder/code/work" <<'END'
#!/bin/sh
awk -v seed="$(date +%N)" 'BEGIN {
  srand(seed)
  for (i = 1; i <= 30; ++i)
    printf "{\"iteration\": %d, \"lm loss\": \"0x41293069\", \"iteration-time\": %.9f}\n", i, 1 + 0.0004 * rand()
}' >m.jsonl
END
chmod +x "$folder/code/work"
commit_code
cd "$folder"
write_bundle toy
sed -i 's/^arms:.*/arms: {det: {}, fast: {environment: {FAST: "1"}}}/' bundle.yaml
sed 's/recipe: debug/recipe: production/; s/name: toy/name: ship/' bundle.yaml >ship.yaml
mkdir keys
"$qualify" key create keys/ana.pem >/dev/null
cat >qualification.yaml <<'END'
schema_version: 1
gates:
  repeat: {kind: repeatability, arm: det, metrics: [lm loss], run_limit: 5m}
  cost: {kind: performance, arms: {deterministic: det, nondeterministic: fast}, run_limit: 5m}
  dropout: {kind: repeatability, arm: fast, metrics: [lm loss], run_limit: 5m}
  production: {kind: repeatability, arm: det, metrics: [lm loss], run_limit: 5m, recipe: production}
  matrix: {kind: coverage, max_age: 8d, schedule: daily 02:00, models: {toy: {correctness: repeat, performance: cost}}}
  toy-4:
    kind: enablement
    blockers: {gdn: {gate: repeat, description: GDN path}, dropout: {gate: dropout}}
    production: production
people:
  ana: {keys: [{file: keys/ana.pem.pub}]}
roles:
  revoke: {people: [ana]}
END
"$qualify" init >/dev/null
"$qualify" bundle seal --quiet bundle.yaml >/dev/null
"$qualify" bundle seal --quiet ship.yaml >/dev/null

# Nothing is closed yet; the command takes no bundle, and a gate that runs needs one.
expect 3 'toy/correctness repeat open' run matrix
expect 2 'has no runs: --bundle says nothing' run matrix --bundle toy
expect 2 'runs a bundle: which one?' run repeat
expect 2 'takes no bundle and no reservation' arm matrix --bundle toy
expect 2 'has no schedule' arm toy-4
expect 2 'runs a bundle: which one?' arm repeat
expect 0 "qualify daemon judges it at each 'daily 02:00' (UTC), next" arm matrix
expect 0 'armed: judged by what its parts came to' status matrix
expect 0 '"bundle": null' status --json
expect 0 'Disarmed' disarm matrix

# Cells and blockers close one by one, each by its own gate.
expect 0 'pass' run repeat --bundle toy
expect 3 '1 of 2 are closed' run matrix
expect 3 '1 of 3 are closed' run toy-4
expect 0 'gdn repeat pass' status toy-4
expect 0 'dropout dropout open' status toy-4
[[ -z $(certificate matrix) ]] || failed 'a certificate before all cells are closed'
expect 0 'pass' run cost --bundle toy
expect 0 'certificate' run matrix
first=$(certificate matrix)
expect 0 'says so already' run matrix
[[ $(certificate matrix) == "$first" ]] || failed 'the same was certified twice'
expect 0 'matrix: pass' explain matrix
expect 0 '"kind": "coverage"' explain matrix --json
expect 0 '2 certificates that it rests on' cert verify "$first"
expect 0 '"toy/performance"' cert show "$first"
expect 0 'all the same' verify --recompute
expect 2 'it rests on others' compare "$first" repeat/a

# A debug recipe never closes the production part.
expect 0 'pass' run dropout --bundle toy
expect 3 'a debug recipe never closes a gate that asks for production' run production --bundle toy
expect 3 '2 of 3 are closed' run toy-4
expect 0 'pass' run production --bundle ship
expect 0 'certificate' run toy-4

# What rests on a revoked certificate is stale, until its gate earns another.
expect 0 'gate matrix' revoke "$(certificate repeat)" --reason 'wrong data' --key keys/ana.pem
expect 0 'matrix stale' status
expect 3 'stale' run matrix
expect 0 'pass' run repeat --bundle toy
expect 0 'certificate' run matrix
second=$(certificate matrix)
[[ $second != "$first" ]] || failed 'no new certificate'
# The first one was right when it was issued: the revocation came after it.
expect 0 'all the same' verify --recompute

# A new bundle of the name, and a new policy.
echo '# two' >>code/work
git -C code -c user.name=t -c user.email=t@localhost commit --quiet --all --message two
"$qualify" bundle seal --quiet bundle.yaml >/dev/null
expect 0 'matrix stale' status
expect 3 'stale' run matrix
expect 0 'pass' run repeat --bundle toy
expect 0 'pass' run cost --bundle toy
expect 0 'certificate' run matrix
sed -i 's/repeat: {kind: repeatability, arm: det,/&  steps: 30,/' qualification.yaml
expect 0 'matrix stale' status
expect 3 'toy/correctness repeat stale' run matrix
expect 0 'all the same' verify --recompute

cd /
chmod -R u+w "$folder"
rm -rf "$folder"
echo "composite_gates: all as it must be"
