# The root file system: verified, mounted, started.
# The parts share their variables.
# shellcheck shell=dash disable=SC2034,SC2154

# Digest, size and name of the root that this initrd was built with.
read_manifest() {
  read -r sum manifest_size name </etc/root.manifest
  param flasher.sha256 && sum=$value
}

# Verifies the digest of $image, or fails.
prove() { # REASON HINT
  read_manifest
  got=$(sha256sum <"$image")
  [ "${got%% *}" = "$sum" ] ||
    fail "$1: its digest is ${got%% *}, and this boot system accepts only $sum" "$2"
  say 'digest verified'
}

# iPXE hands it over with `initrd --name root.squashfs URL root.squashfs`; no network driver is required.
take_handed_over() {
  image=$folder/root.squashfs
  mv /root.squashfs "$image"
  say "the boot loader has loaded the root file system ($(mib "$(size_of "$image")") MiB)"
  prove 'the boot loader handed over the wrong root' \
    'install kernel, initrd and squashfs of one release on the server'
  note origin handed-over
}

# Writes go to memory, and are lost at the next boot.
mount_root() {
  mount -o loop,ro -t squashfs "$image" "$folder/ro" || fail "$image cannot be mounted" \
    'write the stick again, or install the files on the server again'
  mount -t tmpfs -o mode=755 tmpfs "$folder/rw"
  mkdir "$folder/rw/upper" "$folder/rw/work"
  layers=lowerdir=$folder/ro,upperdir=$folder/rw/upper,workdir=$folder/rw/work
  mount -t overlay -o "$layers" overlay /sysroot || fail 'the overlay cannot be mounted' \
    'kernel and initrd are not of one release: install them together'
}

hand_over() {
  note version "$version"
  note interface "$interface"
  note address "$address"
  want_images_partition
  [ ! -f /etc/resolv.conf ] || cp /etc/resolv.conf "$folder/resolv.conf"
  say 'handing over to the live system'
  for part in dev proc sys run; do mount --move "/$part" "/sysroot/$part"; done
  exec switch_root /sysroot /usr/lib/systemd/systemd
}

# The live system waits only for media with images, on a partition of their own, beside the ISO file that
# this system comes from, or in their folder beside its files.
want_images_partition() {
  [ -n "$medium" ] || return 0
  disk=$(disk_of "$medium")
  disk=${disk#/dev/}
  [ -n "$medium_file$images_beside" ] || grep -qsx PARTNAME=FLASHER_IMAGES "/sys/block/$disk/$disk"*/uevent ||
    return 0
  wants=/run/systemd/system/flasher-wizard.service.wants
  mkdir -p "$wants"
  ln -s /usr/lib/systemd/system/flasher-grow.service "$wants/"
}
