#!/bin/bash
# Has dracut make its network live initrd for any machine, from the kernel in the tree, into the output folder.
set -eu
kernel=$(ls "$BUILDROOT/usr/lib/modules")
mkosi-chroot dracut --force --no-hostonly --no-early-microcode --zstd --kver "$kernel" \
  --add 'livenet dmsquash-live url-lib' /peer.initrd
cp "$BUILDROOT/peer.initrd" "$OUTPUTDIR/initrd"
