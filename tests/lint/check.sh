#!/usr/bin/env bash
# check.sh NAME TREE [LINK_GRAPH]: one rule of the tree, as one CTest entry (lint.NAME).
# Prints every place that breaks the rule and what to do; exit 1. Exit 77: the tool is not here.
set -euo pipefail
check=$1
cd "$2"
graph=${3:-}

broken=0
broke() { # WHERE MESSAGE
  printf '%s: %s\n' "$1" "$2"
  broken=1
}

layers=(bundles schedulers gates db orchestrator)
files() { # FIND-EXPRESSION…: of the project's own folders, whatever builds lie beside them
  find bundles schedulers gates db orchestrator tests examples cmake scripts .ci docs \
    -path '*/node_modules' -prune -o -type f \( "$@" \) -print 2>/dev/null | sort || true
}
sources() { files -name '*.cpp' -o -name '*.hpp' -o -name '*.cc' -o -name '*.c' -o -name '*.h'; }
scripts() {
  files -name '*.sh'
  files ! -name '*.sh' -perm -u+x | while read -r file; do
    head -c 64 "$file" | head -n 1 | tr -d '\0' | grep -qE '^#!.*\b(ba)?sh\b' && echo "$file"
  done
  return 0
}
present() { # FOLDER…: those of them that are here
  local folder
  for folder in "$@"; do [[ -d $folder ]] && echo "$folder"; done
  return 0
}
# Every line of `grep -n` output on stdin breaks the rule.
each_breaks() { # MESSAGE
  local line
  while IFS= read -r line; do
    broke "$(cut -d: -f1,2 <<<"$line")" "$1"
  done
}
grep_layers() { # PATTERN FOLDER…
  local pattern=$1 folders
  shift
  mapfile -t folders < <(present "$@")
  ((${#folders[@]})) || return 0
  grep -rnE "$pattern" --include='*.?pp' "${folders[@]}" || true
}

case $check in
  format)
    tool=$(command -v clang-format-14 || command -v clang-format || true)
    if [[ -z $tool ]] || [[ $("$tool" --version) != *"version 14."* ]]; then
      echo "needs clang-format 14 (Debian 12: clang-format); other versions lay code out otherwise"
      exit 77
    fi
    while read -r file; do
      broke "$file" "not laid out as .clang-format says; run: clang-format -i $file"
    done < <(sources | xargs -r -P 2 -n 16 "$tool" --dry-run 2>&1 |
      sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: code should be clang-formatted.*/\1/p' | sort -u)
    ;;
  scripts)
    command -v shellcheck >/dev/null || { echo "needs shellcheck"; exit 77; }
    scripts | xargs -r shellcheck --format=gcc || broken=1
    while read -r file; do
      [[ -x $file ]] || broke "$file" "a script that cannot be run; chmod +x it"
    done < <(scripts | xargs -r grep -l '^#!')
    ;;
  file_size)
    while read -r lines file; do
      [[ $file == total ]] && continue
      ((lines <= 600)) || broke "$file" "$lines lines; past 600 a file is split by what it is about"
    done < <({ sources; scripts; files -name '*.cmake' -o -name CMakeLists.txt; } | xargs -r wc -l)
    ;;
  slurm_header)
    each_breaks "slurm.h is included in schedulers/slurm only" < <(
      grep_layers '#[[:space:]]*include[[:space:]]*[<"]slurm/' "${layers[@]}" tests examples |
        grep -v '^schedulers/slurm/' || true)
    ;;
  public_headers)
    each_breaks "a third-party header in a public one: every includer pays for it; include it in the .cpp" < <(
      grep_layers '#[[:space:]]*include[[:space:]]*<(boost/|nlohmann/json\.hpp|sqlite3\.h|git2|openssl/|yaml-cpp/|CLI/|spdlog/|google/protobuf|simdjson|flatbuffers/|zstd)' \
        "${layers[@]}" | grep '/include/qualify/' || true)
    ;;
  passed_in)
    # The two homes of the wall clock and of randomness are named here; everything else is given them.
    each_breaks "clock, environment and randomness are passed in below orchestrator (Clock, arguments)" < <(
      grep_layers '\b((secure_)?getenv|gettimeofday|clock_gettime|random_device|srand|setlocale|std::time)\b|[^_.>a-zA-Z0-9]time\((nullptr|NULL|0)\)|system_clock::now|\bextern char ?\*\* ?environ' \
        bundles schedulers gates db |
        grep -vE '^[^:]*:[0-9]+:[[:space:]]*//' |
        grep -v '^bundles/base/src/clock.cpp:' || true)
    ;;
  link_graph)
    # LINK_GRAPH has "TARGET FOLDER DEPENDENCY FOLDER" a line, written by tests/lint/CMakeLists.txt.
    [[ -s $graph ]] || { echo "no link graph at '$graph': configure again"; exit 1; }
    declare -A may=(
      [bundles]="bundles"
      [schedulers]="bundles schedulers"
      [gates]="bundles gates"
      [db]="bundles schedulers gates db"
      [orchestrator]="bundles schedulers gates db orchestrator"
    )
    while read -r target folder dependency of; do
      top=${folder%%/*}
      under=${of%%/*}
      [[ -n ${may[$top]:-} ]] || continue
      [[ " ${may[$top]} " == *" $under "* ]] ||
        broke "$folder" "$target links $dependency of $of; $top may link: ${may[$top]}"
    done <"$graph"
    loop=$(awk '{ print $1, $3 }' "$graph" | tsort 2>&1 >/dev/null || true)
    [[ -z $loop ]] || broke "link graph" "libraries link each other in a circle: ${loop//$'\n'/ }"
    ;;
  architecture)
    page=docs/architecture.md
    while read -r folder; do
      grep -qF "| \`$folder\` |" "$page" || broke "$page" "has no line for $folder"
    done < <(find "${layers[@]}" tests -mindepth 2 -maxdepth 2 -name CMakeLists.txt -printf '%h\n' 2>/dev/null | sort)
    # shellcheck disable=SC2016 # the backquotes are Markdown's
    while read -r folder; do
      [[ -d $folder ]] || broke "$page" "names $folder, which is not there"
    done < <(sed -n 's/^| `\([a-z/_-]*\)` |.*/\1/p' "$page")
    ;;
  cited) # pages that sources and examples name are there
    each_breaks 'names a page of docs/ that is not there' < <(
      present "${layers[@]}" examples cmake scripts |
        xargs -r grep -rnoHE 'docs/[A-Za-z0-9_/-]+\.(md|json)' --include='*.[ch]pp' --include='*.md' \
          --include='*.yaml' --include='*.sql' --include='*.sh' |
        while IFS=: read -r file line page; do [[ -e $page ]] || echo "$file:$line:"; done)
    ;;
  tables) # rows of a Markdown table have as many cells as its head
    # shellcheck disable=SC2016 # $0 is awk's
    each_breaks 'this row has not the cells of its table; a | within a cell is written \|' < <(
      { find . -maxdepth 1 -name '*.md' -printf '%P\n'; files -name '*.md'; } | sort |
        xargs -r awk '
          function cells(line) {
            gsub(/`[^`]*`|\\\|/, "", line)
            return gsub(/\|/, "", line)
          }
          FNR == 1 { code = width = 0 }
          /^ *```/ { code = !code }
          code || !/^\|/ { width = 0; next }
          width == 0 { width = cells($0); next }
          cells($0) != width { print FILENAME ":" FNR ":" }')
    ;;
  links)
    while IFS=: read -r page line link; do
      target=$(dirname "$page")/${link%%#*}
      [[ $link == \#* || -e $target ]] || broke "$page:$line" "links to $link, which is not there"
    done < <({ find . -maxdepth 1 -name '*.md' -printf '%P\n'; files -name '*.md'; } | sort |
      xargs -r grep -HnoE '\]\([^)]+\)' | sed -E 's/\]\(([^)]*)\)$/\1/' | grep -v -E ':(https?|mailto):' || true)
    ;;
  *)
    echo "check.sh: no rule '$check'" >&2
    exit 2
    ;;
esac
exit "$broken"
