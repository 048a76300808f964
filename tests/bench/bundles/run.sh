#!/usr/bin/env bash
# tests/bench/bundles/run.sh [MEGABYTES [FILES]]
#
# Seals, seals again, and verifies a container file and a source tree, and stores the same input with
# restic, ostree and casync (Debian packages of these names; those that are missing are left out).
# Prints each time, peak resident memory, and the ratio to what SHA-256 allows in the same run.
#
# The limit. The container's digest is one SHA-256 over one file, which no second core can share, and
# so is the tree's. Nothing that computes both can be faster than
#     max(container, tree, (container + tree) / processors) / (EVP rate of one core)
# and that is the time that the ratio 1.00 stands for.
#
# All of it lies below TMPDIR (default /tmp): about four times the input. What the disk costs is in
# every number. On a tmpfs the hashing shows, with two processors only on one of large pages, as 4 GiB
# in small ones cost the kernel more than the second processor has left:
#     mount -t tmpfs -o huge=always,size=19g tmpfs FOLDER; TMPDIR=FOLDER tests/bench/bundles/run.sh
# Needs the release preset built: cmake --preset release && cmake --build --preset release
# BUILD=FOLDER names another build folder; PEERS=no leaves the peers out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

megabytes=${1:-4096}
files=${2:-20000}
build=$(cd "${BUILD:-../../../build/release}" 2>/dev/null && pwd) || { echo "build the release preset first" >&2; exit 2; }
qualify=$build/orchestrator/cli/qualify
rate=$build/tests/bench/bundles/hash_rate
[[ -x $qualify && -x $rate && -x /usr/bin/time ]] || {
  echo "needs the release preset built, and the package time" >&2
  exit 2
}
folder=$(mktemp -d "${TMPDIR:-/tmp}/qualify-bench.XXXXXX")
trap 'chmod -R u+w "$folder" && rm -rf "$folder"' EXIT
export HOME=$folder GIT_CONFIG_NOSYSTEM=1 RESTIC_PASSWORD=bench

python3 generate.py "$folder" "$megabytes" "$files"
input=$folder/input # what the peers store: the same bytes, without git's
mkdir "$input"
ln "$folder/image.sqsh" "$input/image.sqsh"
cp -r "$folder/code" "$input/code"
rm -rf "$input/code/.git"
container=$(stat -c %s "$folder/image.sqsh")
tree=$(du -s --apparent-size --block-size=1 "$input/code" | cut -f1)
cat "$folder/image.sqsh" "$folder"/code/.git/objects/pack/* >/dev/null # into the page cache
sleep 3 # past the age at which a file counts as settled
echo "$files files of $((tree >> 20)) MiB, a container of $((container >> 20)) MiB, on $(stat -f -c %T "$folder")"

# measure NAME LIMIT COMMAND…: LIMIT yes = print the ratio to the hash limit
measure() {
  local name=$1 limit=$2 one all processors
  shift 2
  read -r one all processors < <("$rate" 0.7)
  # A virtual machine may give freed memory back, and is then given it again page by page, at several
  # times a page's cost: what is measured finds memory that was in use a moment ago.
  head -c $((2 * container + (1 << 30))) /dev/zero >"$folder/at-hand" 2>/dev/null || true
  rm "$folder/at-hand"
  /usr/bin/time -o "$folder/time" -f '%e %U %S %M' "$@" >"$folder/out" 2>&1 || {
    cat "$folder/out" >&2
    return 1
  }
  awk -v name="$name" -v limit="$limit" -v one="$one" -v all="$all" -v n="$processors" \
    -v container="$container" -v tree="$tree" '{
      bound = container > tree ? container : tree
      if ((container + tree) / n > bound) bound = (container + tree) / n
      printf "%-14s %7.2f s  cpu %6.2f s  peak %4.0f MiB", name, $1, $2 + $3, $4 / 1024
      if (limit == "yes") printf "  %.2f of the limit (%.2f s at %.2f GB/s a core)", bound / one / $1, bound / one, one / 1e9
      print ""
    }' "$folder/time"
}

state=(--state "$folder/state")
"$qualify" "${state[@]}" init >/dev/null
measure 'seal' yes "$qualify" "${state[@]}" bundle seal "$folder/bundle.yaml"
measure 'seal again' no "$qualify" "${state[@]}" bundle seal "$folder/bundle.yaml"
measure 'verify' yes "$qualify" "${state[@]}" bundle verify bench
measure 'verify, 1 job' no "$qualify" "${state[@]}" bundle verify --jobs 1 bench
chmod -R u+w "$folder/state" && rm -rf "$folder/state"

[[ ${PEERS:-yes} == yes ]] || exit 0
if command -v restic >/dev/null; then
  restic -q -r "$folder/restic" init >/dev/null
  measure 'restic backup' no restic -q -r "$folder/restic" --no-cache backup "$input"
  rm -rf "$folder/restic"
fi
if command -v ostree >/dev/null; then
  ostree --repo="$folder/ostree" init --mode=bare-user
  measure 'ostree commit' no ostree --repo="$folder/ostree" commit -b bench --tree=dir="$input"
  rm -rf "$folder/ostree"
fi
if command -v casync >/dev/null; then
  measure 'casync make' no casync make --store="$folder/store.castr" "$folder/i.caidx" "$input"
  rm -rf "$folder/store.castr"
fi
