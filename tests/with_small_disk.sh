#!/usr/bin/env bash
# with_small_disk.sh MEBIBYTES COMMAND...: runs the command in a namespace of its own, with LONGHAUL_SMALL_DISK the
# folder of a file system of that size. Where a namespace or a mount is refused it ends with 77, which ctest counts as
# skipped.
size=$1
shift
folder=$(mktemp -d)
trap 'rmdir "$folder"' EXIT
export LONGHAUL_SMALL_DISK=$folder
if ! said=$(unshare -rm mount -t tmpfs -o "size=${size}m" none "$folder" 2>&1); then
  echo "skipped: no file system can be mounted here: $said"
  exit 77
fi
unshare -rm bash -c 'mount -t tmpfs -o "size=$1m" none "$LONGHAUL_SMALL_DISK" && shift && exec "$@"' bash "$size" "$@"
