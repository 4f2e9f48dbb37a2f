/** The Debian packages that the tests need, and their installation where we are root. */
import { spawnSync } from 'node:child_process'

/** Every package with what the tests use it for. */
const NEEDED: Readonly<Record<string, string>> = {
  'bmap-tools': 'a peer in the benchmark',
  'btrfs-progs': 'btrfs inside images',
  bzip2: '.bz2 images',
  'chromium-headless-shell': 'the pages, in a real browser',
  curl: 'images in a registry, as others fetch them, and examples of the documentation',
  'debian-archive-keyring': 'the Debian image: who signed the packages',
  'docker-compose': 'the compose file, as compose reads it',
  'docker-registry': 'images from an OCI registry',
  'dnsmasq-base': 'DHCP recipes as dnsmasq reads them, and a proxy that answers',
  dosfstools: 'FAT of every kind',
  e2fsprogs: 'ext4 inside images',
  'exfat-fuse': 'exFAT that lives',
  exfatprogs: 'the images volume as others check it',
  faketime: 'servers whose clock is set while they run',
  fakeroot: 'a package of Arch Linux, as makepkg makes it',
  fdisk: 'partition tables as others see them',
  fuse3: 'disks that fail: a file under FUSE',
  gdisk: 'GUID partition tables',
  'grub-common': 'the Debian image: its boot loader',
  'grub-efi-amd64-bin': 'the Debian image: booted by UEFI',
  'grub-pc-bin': 'the Debian image: booted by a BIOS',
  haproxy: 'the load balancer of the compose file',
  ipmitool: 'power over IPMI',
  iproute2: 'machines that boot from the network: a network of their own',
  'ipxe-qemu': 'network cards that hold an iPXE',
  jq: 'examples of the documentation',
  'kea-dhcp4-server': 'DHCP recipes as Kea reads them, and a server beside our proxy',
  lbzip2: '.bz2 images in parallel',
  'libnbd-bin': 'disks that fail: nbdfuse',
  'libarchive-tools': 'a package of Arch Linux, as makepkg makes it',
  makepkg: 'the recipe for Arch Linux',
  mmdebstrap: 'the Debian image: its tree',
  mount: 'loop devices',
  mtools: 'the Debian image: its EFI partition',
  nbdkit: 'disks that fail',
  'nginx-light': 'the documented proxy; a peer in the benchmark',
  'nix-bin': 'the recipe for Nix',
  'ntfs-3g': 'NTFS that grows',
  openipmi: 'a BMC that is emulated: ipmi_sim',
  'openssh-server': 'the host key of a new system',
  openssl: 'a server with a certificate of its own',
  ovmf: 'UEFI firmware',
  'pacman-package-manager': 'the recipe for Arch Linux: makepkg looks for it',
  partclone: 'used blocks of disks that are captured',
  pigz: '.gz images in parallel',
  pgbouncer: 'a connection pooler in front of PostgreSQL',
  postgresql: 'the database that several servers share',
  'python3-yaml': 'the compose file',
  'python3-sushy': 'the Redfish BMC of the tests as OpenStack sees it',
  'qemu-system-x86': 'booting what was written',
  'qemu-utils': '.qcow2 images',
  redfishtool: 'the Redfish BMC of the tests as the DMTF sees it',
  ruby: 'the recipe for Homebrew',
  rubocop: 'the recipe for Homebrew: its linter',
  shellcheck: 'our shell scripts',
  sbsigntool: 'programs of UEFI that are signed with a key of ours',
  'shim-signed': 'a boot loader that Microsoft has signed',
  skopeo: 'images in a registry, as others copy them',
  sudo: 'the privileged helper, as the server calls it',
  tmux: 'the wizard, as a person sees it',
  'util-linux': 'lsblk, partx, blockdev',
  xfsprogs: 'xfs inside images',
  'xz-utils': '.xz images',
  zip: 'the stick as an archive',
  zstd: '.zst images',
  'zbar-tools': 'the code on the screen of a machine, as a phone reads it',
}

/** What the long run of virtual machines (`pnpm test:vm`) needs besides. */
const NEEDED_FOR_VM: Readonly<Record<string, string>> = {
  'apt-utils': 'the apt repository of a release',
  efibootmgr: 'boot entries of UEFI firmware',
  'memtest86+': 'something else that a machine boots once',
  gnupg: 'the apt repository of a release: its signature',
  'grub-efi-amd64-signed': 'what a boot loader that Microsoft has signed starts',
  'openssh-client': 'SSH into the live system',
  podman: 'the container images',
  'qemu-efi-aarch64': 'UEFI firmware of arm64 machines',
  'qemu-system-arm': 'iPXE on arm64',
  runc: 'the container images, on any kind of cgroups',
  xorriso: 'kernel and initrd out of our ISO',
}

export interface PackageChoice {
  /** Whether what only `pnpm test:vm` needs is wanted, too. */
  readonly vm: boolean
}

/** Names of the needed packages that are not installed; all of them where dpkg is absent. */
export function listMissingPackages({ vm }: PackageChoice): readonly string[] {
  const wanted = Object.keys(vm ? { ...NEEDED, ...NEEDED_FOR_VM } : NEEDED)
  const format = '${Package} ${db:Status-Status}\n'
  const { stdout } = spawnSync('dpkg-query', ['-W', '-f', format, ...wanted], { encoding: 'utf8' })
  const installed = new Set(
    (stdout ?? '').split('\n').filter((line) => line.endsWith(' installed')),
  )
  return wanted.filter((name) => !installed.has(`${name} installed`))
}

export type Installation =
  | { readonly ok: true; readonly installed: readonly string[] }
  | { readonly ok: false; readonly message: string }

/** Installs what is missing by apt-get; says in one line what it is about to do. */
export function installPackages(choice: PackageChoice, say: (line: string) => void): Installation {
  const missing = listMissingPackages(choice)
  if (missing.length === 0) return { ok: true, installed: [] }
  const names = missing.join(' ')
  const obstacle = findObstacle()
  if (obstacle !== null) {
    return {
      ok: false,
      message: `The tests need Debian packages that are not installed: ${names}\n${obstacle}\n  apt-get install --no-install-recommends ${names}`,
    }
  }
  say(`Installing the Debian packages that the tests need: ${names}`)
  // A stale list of one repository must not stop us: the installation itself says what is wrong.
  const update = runApt(['update', '-qq'])
  const install = runApt(['install', '-qq', '--no-install-recommends', ...missing])
  if (install.ok) return { ok: true, installed: missing }
  return { ok: false, message: `apt-get could not install them:\n${update.said}${install.said}` }
}

function findObstacle(): string | null {
  if (spawnSync('apt-get', ['--version']).status !== 0) {
    return 'This is not Debian, so look for the like of:'
  }
  return process.getuid?.() === 0 ? null : 'Run this as root, or run it as root yourself:'
}

function runApt(args: readonly string[]) {
  const patience = ['-o', 'Acquire::Retries=4', '-o', 'DPkg::Lock::Timeout=600']
  const { status, stdout, stderr } = spawnSync('apt-get', ['-y', ...patience, ...args], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
  })
  return { ok: status === 0, said: `${stdout ?? ''}${stderr ?? ''}` }
}

if (import.meta.main) {
  const outcome = installPackages({ vm: process.argv.includes('--vm') }, (line) => {
    console.error(line)
  })
  if (!outcome.ok) {
    console.error(outcome.message)
    process.exitCode = 1
  }
}
