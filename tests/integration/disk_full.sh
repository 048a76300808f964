#!/usr/bin/env bash
# disk_full.sh QUALIFY
#
# The file system of the state runs full in the middle of a gate, at one place after the other: what
# happened is said with exit code 2 or is a verdict that is no pass, nothing is lost or half-written,
# and once there is room the same command comes to its pass. Needs root, for a file system of its
# own.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../support/project.sh"
qualify=$1
[[ $(id -u) == 0 ]] || { echo "not root: no file system can be mounted here"; exit 77; }
folder=$(mktemp -d)
mount -t tmpfs -o size=1m tmpfs "$folder" 2>/dev/null || { rmdir "$folder"; echo "no mount here"; exit 77; }
umount "$folder"
leave() {
  umount "$folder/.qualify" 2>/dev/null || true
  rm -rf "$folder"
}
failed() {
  echo "FAILED: $1" >&2
  cat "$folder/out" "$folder/err" >&2
  leave
  exit 1
}
write_workload <<'END'
head -c 60000 /dev/zero | tr '\0' x || exit 9
END
isolate
commit_code
cd "$folder"
write_bundle full
write_gates one
mkdir .qualify
mount -t tmpfs -o size=100m tmpfs .qualify
"$qualify" init >out 2>err || failed "init"
"$qualify" bundle seal --quiet bundle.yaml >out 2>err || failed "seal"
used=$(df --output=used -k .qualify | tail -n 1 | tr -d ' ')
cp -a .qualify kept
umount .qualify

full=0
for ((room = 4; ; room += 12)); do
  mount -t tmpfs -o size=$((used + room))k tmpfs .qualify
  cp -a kept/. .qualify/ >out 2>err || failed "the state does not fit into what it had"
  code=0
  timeout 60 "$qualify" run one --bundle full >out 2>err || code=$?
  case $code in
    0) ;;
    2) grep -qiE 'no space|disk is full' err || failed "with $room KiB of room: exit code 2, but no word of the full disk" ;;
    3) grep -q inconclusive out || failed "with $room KiB of room: exit code 3 without a verdict" ;;
    *) failed "with $room KiB of room: exit code $code" ;;
  esac
  ((code == 0)) || full=$((full + 1))
  mount -o remount,size=100m .qualify
  # A run that ended inconclusive has ended; the command then begins anew.
  [[ $code == 0 ]] || "$qualify" run one --bundle full >out 2>err ||
    failed "with $room KiB of room, then with enough: no pass"
  "$qualify" verify --recompute >out 2>err || failed "with $room KiB of room, then with enough: not whole"
  "$qualify" doctor >out 2>err || failed "with $room KiB of room, then with enough: doctor"
  umount .qualify
  ((code == 0)) && break
  ((room < 4000)) || failed "no room is enough"
done
((full >= 20)) || failed "the disk was full $full times only"
leave
echo "disk_full: full at $full places, and whole after each"
