#!/usr/bin/env bash
# self_test.sh: every rule of check.sh passes on a tree that keeps it and fails on one that does not.
# shellcheck disable=SC2016 # the backquotes are Markdown's
set -euo pipefail
check=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/check.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

expect() { # STATUS RULE SAYS
  local status=0 output
  output=$("$check" "$2" "$tree" "$tree/graph" 2>&1) || status=$?
  if ((status == 77)); then
    echo "skipped: $2: $output"
  elif ((status != $1)) || [[ $output != *"$3"* ]]; then
    echo "lint.$2: exit $status, expected $1 with '$3'; said: $output"
    failed=1
  fi
}
put() { # FILE CONTENT
  mkdir -p "$tree/$(dirname "$1")"
  printf '%b' "$2" >"$tree/$1"
}
keeps_and_breaks() { # RULE FILE GOOD BAD
  put "$2" "$3"
  expect 0 "$1" ""
  put "$2" "$4"
  expect 1 "$1" "$2"
  put "$2" "$3"
}

put .clang-format 'BasedOnStyle: Google\n'
keeps_and_breaks format bundles/a.cpp 'int a;\n' 'int   a;\n'
keeps_and_breaks scripts scripts/a.sh '# shellcheck shell=sh\ntrue\n' '# shellcheck shell=sh\ncd /tmp\n'
keeps_and_breaks scripts scripts/b.sh '# shellcheck shell=sh\ntrue\n' '#!/bin/sh\ntrue\n'
keeps_and_breaks file_size gates/a.cpp 'int a;\n' "$(printf '\\n%.0s' {1..601})"
keeps_and_breaks slurm_header db/a.cpp '// slurm/slurm.h\n' '#include <slurm/slurm.h>\n'
keeps_and_breaks tables docs/t.md '| a | b |\n|---|---|\n| `x|y` | z |\n' '| a | b |\n|---|---|\n| y |\n'
keeps_and_breaks cited db/b.hpp '// docs/t.md\n' '// docs/gone.md\n'
put schedulers/slurm/a.cpp '#include <slurm/slurm.h>\n'
expect 0 slurm_header ""
keeps_and_breaks public_headers db/include/qualify/db/a.hpp '#include <string>\n' '#include <boost/asio.hpp>\n'
keeps_and_breaks passed_in gates/src/a.cpp 'clock.now();\n// getenv\n' 'getenv("HOME");\n'
keeps_and_breaks passed_in gates/src/a.cpp 'auto t = start_time(0);\n' 'auto t = time(nullptr);\n'

put bundles/a/CMakeLists.txt ''
keeps_and_breaks architecture docs/architecture.md '| `bundles/a` | what\n' 'nothing\n'
keeps_and_breaks architecture docs/architecture.md '| `bundles/a` | a\n' '| `bundles/a` | a\n| `bundles/gone` | b\n'
keeps_and_breaks links docs/a.md '[a](architecture.md#x) [b](https://x.org) [c](#y)\n' '[a](gone.md)\n'

put graph 'q_db db/journal q_base bundles/base\n'
expect 0 link_graph ""
put graph 'q_gate gates/policy q_api schedulers/api\n'
expect 1 link_graph "gates/policy"
put graph 'q_a bundles/a q_b bundles/b\nq_b bundles/b q_a bundles/a\n'
expect 1 link_graph "circle"
exit "$failed"
