# The server appliance: its root is in a slot, a partition; what lasts is on the state partition of the same disk.
# The parts share their variables.
# shellcheck shell=dash disable=SC2034,SC2154

# Lasting folders, the same for all versions. A new one begins as a copy of what the version has.
lasting='home root var/lib/cloud var/lib/flasher var/lib/flasher-server var/log'
# What packages make out of others, for one version only.
derived='ld.so.cache .updated ssl/certs'

find_slot() { # VERSION
  slot=$1
  load_drivers ext4 sd_mod sr_mod nvme virtio_blk mmc_block
  say "looking for the slot of $slot"
  look=0
  until part=$(find_partition "flasher_$slot"); do
    look=$((look + 1))
    [ $look -lt 150 ] || fail "no disk has a slot with $slot; found: $(describe_disks)" \
      'choose another version in the boot menu'
    usleep 200000
    plug_in
  done
  disk=$(disk_of "/dev/$part")
  image=/dev/$part
  note origin slot
  note slot_disk "$disk"
  say "$slot is in $image"
}

find_partition() { # NAME [DISK]
  for path in /sys/class/block/*; do
    grep -qsx "PARTNAME=$1" "$path/uevent" || continue
    [ -z "${2:-}" ] || [ "$(disk_of "/dev/${path##*/}")" = "$2" ] || continue
    echo "${path##*/}"
    return 0
  done
  return 1
}

# The tools of the root are used: this initrd has no file system's.
in_root() { PATH=/usr/sbin:/usr/bin /bin/chroot "$folder/ro" "$@"; }

# The state partition is the last one: it takes what the disk has, and its file system follows.
grow_state() {
  for part in dev proc sys run; do mount --bind "/$part" "$folder/ro/$part"; done
  state=$(find_partition flasher-state "$disk") || fail "$disk has no partition flasher-state" \
    'write the image to the disk again'
  number=$(cat "/sys/class/block/$state/partition")
  if [ "$(free_behind "$state")" -gt 4096 ]; then
    # Moves the backup table to the end of the disk first.
    in_root sfdisk --relocate gpt-bak-std "$disk" >/dev/null 2>&1
    echo ', +' | in_root sfdisk --no-reread --force --quiet -N "$number" "$disk" >/dev/null 2>&1
    in_root partx --update --nr "$number" "$disk" 2>/dev/null
    say "the state partition has $(mib $(($(cat "/sys/class/block/$state/size") * 512))) MiB"
  fi
  state=/dev/$state
  if param flasher.reset || [ "$(kind_of "${state#/dev/}")" != ext4 ]; then
    say "making a file system for the state on $state"
    in_root mkfs.ext4 -q -F -L flasher-state -E discard "$state" ||
      fail "no file system can be made on $state" 'check the disk'
  else
    in_root e2fsck -p "$state" >/dev/null 2>&1
    [ $? -lt 4 ] || in_root e2fsck -y "$state" >/dev/null 2>&1
    in_root resize2fs "$state" >/dev/null 2>&1
  fi
  for part in dev proc sys run; do umount "$folder/ro/$part"; done
}

# Sectors of 512 bytes from the end of a partition to the end of its disk.
free_behind() { # PARTITION
  read -r start <"/sys/class/block/$1/start"
  read -r length <"/sys/class/block/$1/size"
  read -r whole <"/sys/class/block/${disk#/dev/}/size"
  echo $((whole - start - length))
}

mount_slot() {
  blockdev --setro "$image"
  mount -t squashfs -o ro "$image" "$folder/ro" || fail "$image cannot be mounted" \
    'choose another version in the boot menu'
  grow_state
  mount -t ext4 -o noatime "$state" "$folder/rw" || fail "the state on $state cannot be mounted" \
    'choose "shell" in the boot menu to repair it, or "reset" to lose it'
  drop_old_layers
  lay_over "$folder/ro" "$folder/rw/system/$slot" /sysroot
  lay_over "$folder/ro/etc" "$folder/rw/etc" /sysroot/etc
  for kept in $lasting; do
    place=$folder/rw/lasting/$kept
    if [ ! -d "$place" ]; then
      mkdir -p "${place%/*}" "/sysroot/$kept"
      rm -rf "$place.new"
      cp -a "/sysroot/$kept" "$place.new" && mv "$place.new" "$place"
    fi
    mkdir -p "/sysroot/$kept"
    mount --bind "$place" "/sysroot/$kept"
  done
}

lay_over() { # LOWER LAYER PLACE
  mkdir -p "$2/upper" "$2/work"
  mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$3" ||
    fail "the overlay of $3 cannot be mounted" 'choose another version in the boot menu'
}

# Security updates of a version belong to it: they go when its slot does.
drop_old_layers() {
  [ -d "$folder/rw/system/$slot" ] || for file in $derived; do rm -rf "$folder/rw/etc/upper/$file"; done
  for layer in "$folder/rw/system"/*; do
    [ -d "$layer" ] || continue
    find_partition "flasher_${layer##*/}" "$disk" >/dev/null || rm -rf "$layer"
  done
}
