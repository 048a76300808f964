# shellcheck shell=bash
# Sourced by tests that take a project of their own through the built program. They set this to a
# fresh folder, `qualify` to the program, and lay the code into $folder/code.
folder='' qualify=''

# Ends the test: what was wrong, what the last command printed, and where everything lies.
failed() {
  echo "FAILED: $1 (folder: $folder)" >&2
  cat "$folder/out" "$folder/err" >&2 2>/dev/null || true
  exit 1
}

# expect CODE TEXT ARGUMENTS…: the exit code of $qualify, and a text that stands in what it printed,
# wherever its lines break.
expect() {
  local wanted=$1 text=$2 got=0
  shift 2
  "$qualify" "$@" >"$folder/out" 2>"$folder/err" || got=$?
  ((got == wanted)) || failed "'qualify $*' ended with $got, not $wanted"
  cat "$folder/out" "$folder/err" | tr '\n' ' ' | tr -s ' ' | grep -qF -- "$text" ||
    failed "'qualify $*' does not say '$text'"
}

# Nothing of whoever runs a test steers git or qualify.
isolate() { export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME=$folder; }

# $folder/code becomes a git repository of one commit.
commit_code() {
  git -C "$folder/code" init --quiet
  git -C "$folder/code" add --all
  git -C "$folder/code" -c user.name=t -c user.email=t@localhost commit --quiet --message one
}

# The workload that most tests need, $folder/code/work: one metric, equal in every run but for the
# time. Standard input is done before that.
write_workload() {
  mkdir -p "$folder/code"
  {
    echo '#!/bin/sh'
    cat
    cat <<'END'
printf '{"iteration": 1, "lm loss": "0x41293069", "time": %s}\n' "$(date +%s%N)" >m.jsonl
END
  } >"$folder/code/work"
  chmod +x "$folder/code/work"
}

# The same, held: notes its start in $folder/starts; while the pipe $folder/tell is there, it says its
# process number through it, and goes on once it reads a word from $folder/leave. No clock is
# involved. Standard input is done before it waits; what that starts beside it, it ends by itself
# where it says `beside=$!`. Its bundle's environment is held_environment.
write_held_workload() {
  {
    cat <<'END'
echo $$ >>"$STARTS"
if [ -p "$TELL" ]; then
  echo $$ >"$TELL"
END
    cat <&3
    cat <<'END'
  read -r leave <"$LEAVE"
  [ -z "$beside" ] || kill "$beside"
fi
END
  } 3<&0 | write_workload
}
held_environment() {
  echo "{TELL: $folder/tell, LEAVE: $folder/leave, STARTS: $folder/starts}"
}

# $folder/bundle.yaml: bundle NAME of one arm, det, that runs the workload. ENVIRONMENT in YAML.
write_bundle() { # NAME [ENVIRONMENT]
  cat >"$folder/bundle.yaml" <<END
schema_version: 1
name: $1
recipe: debug
code: {work: {repository: code}}
environment: ${2:-{\}}
launch: {argv: ["{code.work}/work"]}
arms: {det: {}}
outputs: [{kind: metrics, path: m.jsonl}]
END
}

# $folder/qualification.yaml: gates of two runs of arm det; what a line says beyond that follows the
# gate's name after a space.
write_gates() { # "NAME[ MORE]"…
  local gate
  printf 'schema_version: 1\ngates:\n' >"$folder/qualification.yaml"
  for gate; do
    printf '  %s: {kind: repeatability, arm: det, metrics: [lm loss], run_limit: 5m%s}\n' \
      "${gate%% *}" "$([[ $gate == *' '* ]] && printf ', %s' "${gate#* }")" >>"$folder/qualification.yaml"
  done
}
