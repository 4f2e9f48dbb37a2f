# Finds the root on the medium that this system was started from: a stick, a disc, or an ISO file on one.
# The parts share their variables.
# shellcheck shell=dash disable=SC2034,SC2154

# Each takes a fifth of a second; USB sticks appear 2 to 3 seconds after their controller.
most_looks=150

find_on_medium() { # ID: what live/id holds there
  id=$1
  image=
  load_drivers isofs vfat exfat ext4 ntfs ntfs3 nls_cp437 nls_ascii nls_iso8859-1 nls_utf8
  say "looking for the medium $id"
  look=0
  while [ $look -lt $most_looks ]; do
    look_once $look && break
    look=$((look + 1))
    usleep 200000
    plug_in
    [ $((look % 25)) != 0 ] || say "still looking: $(describe_disks)"
  done
  [ -n "$image" ] || fail "no medium has $id; found: $(describe_disks)" \
    'plug the stick into another port (USB 2 if there is one), or write it again'
  note origin medium
  note medium "$medium"
  note medium_disk "$(disk_of "$medium")"
  note medium_file "$medium_file"
  note images_beside "$images_beside"
  if param flasher.toram && [ "$value" != 0 ]; then copy_to_memory
  elif param flasher.verify && [ "$value" != 0 ]; then verify_medium
  fi
}

# Everything that may be a medium: disks, discs and their partitions.
list_disks() {
  for path in /sys/class/block/*; do
    case ${path##*/} in '*' | ram* | loop* | zram* | fd* | dm-*) continue ;; esac
    echo "${path##*/}"
  done
}

# Partitions first: mounting a whole disk makes its partitions unavailable. Whole disks follow after
# 4 seconds, for partition tables that the kernel cannot read; discs have no partitions.
look_once() { # LOOK
  wholes=
  for device in $(list_disks); do
    set -- "$1" "/sys/class/block/$device/$device"*
    if [ -e "$2" ]; then wholes="$wholes $device"; else try_device "$device" && return 0; fi
  done
  [ "$1" -ge 20 ] || return 1
  for device in $wholes; do try_device "$device" && return 0; done
  return 1
}

# This may be any disk of the machine, and drivers write even to what they mount read-only: ext4 replays
# its journal and removes orphans. So we look through a read-only loop device; only what
# is ours is mounted directly, write-protected.
try_device() { # DEVICE
  kind=$(kind_of "$1")
  [ -n "$kind" ] || return 1
  # Opening it may have made its partitions appear.
  set -- "$1" "/sys/class/block/$1/$1"*
  [ ! -e "$2" ] || [ $look -ge 20 ] || return 1
  loop=$(losetup -f)
  losetup -r "$loop" "/dev/$1" 2>/dev/null || return 1
  open_medium "$loop" && seen=ours || seen=
  [ -z "$seen" ] || close_medium
  losetup -d "$loop"
  [ -n "$seen" ] || return 1
  blockdev --setro "/dev/$1"
  open_medium "/dev/$1" || return 1
  medium=/dev/$1
  medium_file=${file#"$folder/medium"}
  image=$top/live/root.squashfs
  images_beside=
  [ ! -d "$top/flasher-images" ] || images_beside=yes
  say "the system is on $medium${medium_file:+, in the file $medium_file} ($kind)"
}

# Mounts it if it is ours. $top is the folder of its root, $file the ISO file on it, if any.
open_medium() { # PATH
  # Without replaying the journal; and without a panic when the file system is inconsistent.
  case $kind in ext4) options=ro,noload,errors=continue ;; *) options=ro ;; esac
  mount -t "$kind" -o "$options" "$1" "$folder/medium" 2>/dev/null || return 1
  file=
  top=$folder/medium
  is_ours && return 0
  top=$folder/outer
  for file in "$folder/medium"/*.iso "$folder/medium"/*/*.iso; do
    [ -f "$file" ] && mount -o loop,ro -t iso9660 "$file" "$top" 2>/dev/null || continue
    is_ours && return 0
    umount "$top"
  done
  umount "$folder/medium"
  return 1
}

close_medium() {
  umount "$folder/outer" 2>/dev/null
  umount "$folder/medium"
}

is_ours() {
  [ "$(head -c 200 "$top/live/id" 2>/dev/null)" = "$id" ] && [ -f "$top/live/root.squashfs" ]
}

bytes_at() { dd if="/dev/$1" bs=1 skip="$2" count="$3" 2>/dev/null | tr -d '\0'; }

# By signatures at fixed offsets: this busybox has no blkid.
kind_of() { # DEVICE
  case $(bytes_at "$1" 32769 5) in CD001) echo iso9660 && return ;; esac
  case $(bytes_at "$1" 3 8) in
    EXFAT*) echo exfat && return ;;
    NTFS*) if [ -d /sys/module/ntfs3 ]; then echo ntfs3; else echo ntfs; fi && return ;;
  esac
  case $(bytes_at "$1" 54 5)$(bytes_at "$1" 82 5) in *FAT*) echo vfat && return ;; esac
  mark=$(dd if="/dev/$1" bs=1 skip=1080 count=2 2>/dev/null | hexdump -v -e '1/1 "%02x"')
  [ "$mark" != 53ef ] || echo ext4
}

disk_of() { # /dev/PARTITION
  part=$(readlink -f "/sys/class/block/${1#/dev/}")
  if [ -f "$part/partition" ]; then part=${part%/*}; fi
  echo "/dev/${part##*/}"
}

describe_disks() {
  seen=
  for device in $(list_disks); do seen="$seen${seen:+, }$device"; done
  echo "${seen:-no disk at all}"
}

# A stick whose files were copied one by one, by whatever program: the digest tells whether all arrived.
verify_medium() {
  say "reading $(mib "$(size_of "$image")") MiB to verify them"
  prove_medium
}

prove_medium() { prove 'the system on the medium is damaged' 'write the stick again'; }

copy_to_memory() {
  size=$(size_of "$image")
  need=$(($(mib "$size") + 120))
  free=$(memory_of MemAvailable)
  [ "$free" -ge $need ] || fail "$free MiB of memory are free, and a copy in memory needs $need" \
    'choose the entry that leaves the system on the medium, or add memory'
  say "copying $(mib "$size") MiB to memory"
  cp "$image" "$folder/root.squashfs" || fail "$medium cannot be read completely" \
    'use another stick or another port'
  close_medium
  blockdev --setrw "$medium"
  image=$folder/root.squashfs
  prove_medium
  note to_memory yes
  say 'the system is in memory; you can remove the medium'
}
