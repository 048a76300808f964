#!/usr/bin/env bash
# install_test.sh CMAKE BUILD PREFIX LIBDIR MODULE: what `cmake --install` lays out works from there.
# MODULE: ON where the Slurm module was built.
set -euo pipefail
cmake=$1 build=$2 prefix=$3 libdir=$4 module=$5

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0
check() { # WHAT COMMAND…
  local what=$1
  shift
  "$@" || { echo "FAILED: $what"; failed=1; }
}
# shellcheck disable=SC2317 # called through check
has() { grep -qF -- "$1" <<<"$2" || { echo "no '$1' in: $2"; return 1; }; }

# strip leaves no debug information, as packages do it; the program must not look into the build.
DESTDIR=$root "$cmake" --install "$build" --strip >/dev/null
# Not where it was installed to: the tree may be moved.
mkdir -p "$root/elsewhere"
mv "$root$prefix" "$root/elsewhere/qualify"
tree=$root/elsewhere/qualify
qualify=$tree/bin/qualify

version=$("$qualify" --version)
check "the version" has "qualify " "$version"
if [[ $module == ON ]]; then
  check "the module is there" test -f "$tree/$libdir/qualify/qualify_scheduler_slurm.so"
  check "the module is loaded from there" has "slurm" "$version"
fi
check "no library of the build is needed" test -z "$(ldd "$qualify" | grep -F "$build" || true)"

page=$tree/share/man/man1/qualify.1
check "the manual page" test -s "$page"
problems=$(mandoc -Tlint -Wwarning "$page" | grep -v 'missing date' || true)
check "the manual page is well-formed: $problems" test -z "$problems"
while read -r command; do
  check "$command is in the manual page" grep -qF "qualify $command" "$page"
  check "$command has a help" "$qualify" "$command" --help >/dev/null
done < <("$qualify" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')

offers=$(bash -c '. "$1"; COMP_WORDS=(qualify bun); COMP_CWORD=1; _qualify; echo "${COMPREPLY[*]}"' \
  - "$tree/share/bash-completion/completions/qualify")
check "bash completes" test "$offers" = bundle
check "zsh takes its completion" zsh -f -n "$tree/share/zsh/site-functions/_qualify"
check "fish takes its completion" \
  env HOME="$root" fish --no-execute "$tree/share/fish/vendor_completions.d/qualify.fish"

# And it works: a state of its own, in a folder that has nothing of the source tree.
mkdir "$root/work"
cd "$root/work"
check "init" "$qualify" init >/dev/null
check "doctor" "$qualify" doctor >/dev/null
check "status" "$qualify" status >/dev/null
exit "$failed"
