#!/usr/bin/env bash
# shared_blocks.sh QUALIFY
#
# On a file system that can (XFS in a file, mounted), a sealed container takes no space of its own, is
# whole, and stays as it was when the original is overwritten. Ends with 77, "skipped", where this
# user may not mount.
set -euo pipefail
qualify=$1
folder=$(mktemp -d)
leave() {
  mountpoint -q "$folder/mnt" && umount "$folder/mnt"
  rm -rf "$folder"
}
trap leave EXIT
failed() {
  echo "FAILED: $1" >&2
  exit 1
}
mkdir "$folder/mnt" "$folder/root"
truncate -s 400M "$folder/disk"
/usr/sbin/mkfs.xfs -q -m reflink=1 "$folder/disk"
mount -o loop "$folder/disk" "$folder/mnt" 2>"$folder/why" || {
  echo "cannot mount: $(<"$folder/why")"
  exit 77
}
cd "$folder/mnt"
echo content >"$folder/root/file"
mksquashfs "$folder/root" image.sqsh -quiet -no-progress >/dev/null
head -c 50000000 /dev/urandom >>image.sqsh
cat >bundle.yaml <<'YAML'
schema_version: 1
name: shared
recipe: debug
container: {kind: sqsh, file: image.sqsh}
arms: {deterministic: }
launch: {argv: [run]}
YAML
"$qualify" init >/dev/null
sync
before=$(df --output=used -k . | tail -n 1)
"$qualify" bundle seal --quiet bundle.yaml >/dev/null
sync
after=$(df --output=used -k . | tail -n 1)
((after - before < 10000)) || failed "the seal took $((after - before)) KiB for a file of 50 MB"
blob=.qualify/store/blobs/sha256/$(sha256sum image.sqsh | cut -d' ' -f1)
[[ -f $blob && ! -w $blob || $EUID == 0 ]] || failed "the blob can be written"
/usr/sbin/filefrag -v "$blob" | grep -q shared || failed "no blocks are shared"
dd if=/dev/zero of=image.sqsh bs=1M count=20 conv=notrunc status=none
sync
"$qualify" bundle verify shared >/dev/null || failed "overwriting the original changed the bundle"
cd /
