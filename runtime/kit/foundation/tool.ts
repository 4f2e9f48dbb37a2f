/** The external tools that flasher may run, and the Debian package of each. */

const PACKAGES: Readonly<Record<string, string>> = {
  bash: 'bash',
  btrfs: 'btrfs-progs',
  bzip2: 'bzip2',
  debugfs: 'e2fsprogs',
  // Without the service of package dnsmasq, which would start on port 53.
  dnsmasq: 'dnsmasq-base',
  dumpe2fs: 'e2fsprogs',
  e2fsck: 'e2fsprogs',
  lbzip2: 'lbzip2',
  losetup: 'mount',
  lvs: 'lvm2',
  mount: 'mount',
  'ntfs-3g.probe': 'ntfs-3g',
  ntfsresize: 'ntfs-3g',
  pvs: 'lvm2',
  'qemu-img': 'qemu-utils',
  resize2fs: 'e2fsprogs',
  sgdisk: 'gdisk',
  'ssh-keygen': 'openssh-client',
  ss: 'iproute2',
  sudo: 'sudo',
  systemctl: 'systemd',
  tune2fs: 'e2fsprogs',
  umount: 'mount',
  unix_chkpwd: 'libpam-modules-bin',
  vgchange: 'lvm2',
  xfs_growfs: 'xfsprogs',
  xz: 'xz-utils',
  zstd: 'zstd',
}
const OF_UTIL_LINUX =
  'blkdiscard blkid blockdev fallocate findmnt lsblk nsenter partx setpriv setsid unshare'.split(
    ' ',
  )

/** Returns the Debian package that has a tool; null for a tool that is not listed here. */
export const debianPackageOf = (tool: string): string | null =>
  OF_UTIL_LINUX.includes(tool) ? 'util-linux' : (PACKAGES[tool] ?? null)
