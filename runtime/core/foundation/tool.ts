/** The external tools that flasher may run, and the Debian package of each. */

const PACKAGES: Readonly<Record<string, string>> = {
  btrfs: 'btrfs-progs',
  bzip2: 'bzip2',
  dnsmasq: 'dnsmasq',
  lbzip2: 'lbzip2',
  lvs: 'lvm2',
  mount: 'mount',
  pvs: 'lvm2',
  'qemu-img': 'qemu-utils',
  sgdisk: 'gdisk',
  'ssh-keygen': 'openssh-client',
  sudo: 'sudo',
  systemctl: 'systemd',
  umount: 'mount',
  unix_chkpwd: 'libpam-modules-bin',
  vgchange: 'lvm2',
  xz: 'xz-utils',
  zstd: 'zstd',
}
const OF_UTIL_LINUX =
  'blkdiscard blkid blockdev fallocate findmnt lsblk nsenter partx setpriv setsid unshare'.split(
    ' ',
  )

export const debianPackageOf = (tool: string): string | null =>
  OF_UTIL_LINUX.includes(tool) ? 'util-linux' : (PACKAGES[tool] ?? null)
