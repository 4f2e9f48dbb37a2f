/** The external tools that flasher may need, and the Debian package that brings each. */

const PACKAGES: Readonly<Record<string, string>> = {
  blkdiscard: 'util-linux',
  blkid: 'util-linux',
  blockdev: 'util-linux',
  btrfs: 'btrfs-progs',
  bzip2: 'bzip2',
  fallocate: 'util-linux',
  findmnt: 'util-linux',
  lbzip2: 'lbzip2',
  lsblk: 'util-linux',
  lvs: 'lvm2',
  mount: 'mount',
  nsenter: 'util-linux',
  partx: 'util-linux',
  pvs: 'lvm2',
  'qemu-img': 'qemu-utils',
  setpriv: 'util-linux',
  setsid: 'util-linux',
  sgdisk: 'gdisk',
  umount: 'mount',
  unshare: 'util-linux',
  vgchange: 'lvm2',
  xz: 'xz-utils',
  zstd: 'zstd',
}

export const debianPackageOf = (tool: string): string | null => PACKAGES[tool] ?? null
