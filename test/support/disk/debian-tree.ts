/** A small Debian as a folder: the host's own release, from the host's own package sources. */
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { $ } from 'zx'

/** The root partition is found by this; it is the same in every image. */
export const ROOT_PARTUUID = '6f0c5a3e-52d4-4b1c-9d58-3a7e0b9f4c21'

/** Takes the place of init in a guest that runs our scripts; see `guest.ts`. */
export const GUEST_INIT = '/usr/lib/flasher-test/init'

/** What the image prints on the serial line when its boot is complete. */
export const BOOT_COMPLETE = 'flasher-test: boot complete'

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

const words = (text: string) => text.trim().split(/\s+/)

/** Packages beside the essential ones. Storage tools are there for tests that run inside a guest. */
const PACKAGES = words(`
  usr-is-merged systemd-sysv udev kmod linux-image-amd64 initramfs-tools
  btrfs-progs cryptsetup-bin dosfstools e2fsprogs fdisk gdisk lvm2 mdadm parted
  bzip2 libatomic1 qemu-utils xz-utils zstd
`)

/** Kernel modules no virtual machine of ours has a use for: most of the kernel package. */
const UNWANTED_MODULES = words(`
  bluetooth comedi gpu hwmon iio infiniband input isdn
  media mtd net nfc platform staging target usb/gadget video w1
`)
const UNWANTED = [
  ...UNWANTED_MODULES.map((name) => `*/lib/modules/*/kernel/drivers/${name}/*`),
  ...['bluetooth', 'mac80211', 'netfilter', '*/netfilter', 'sched', 'wireless'].map(
    (name) => `*/lib/modules/*/kernel/net/${name}/*`,
  ),
  ...['ceph', 'gfs2', 'jfs', 'nfs', 'nfsd', 'ocfs2', 'smb', 'reiserfs'].map(
    (name) => `*/lib/modules/*/kernel/fs/${name}/*`,
  ),
  '*/lib/modules/*/kernel/sound/*',
  // The root file system is on none of these, so the initramfs need not look for them.
  ...['btrfs', 'lvm2', 'mdadm'].map((name) => `/usr/share/initramfs-tools/*/${name}`),
  ...['doc', 'i18n', 'info', 'locale', 'man', 'zoneinfo'].map((name) => `/usr/share/${name}/*`),
]

/** The initramfs takes these, so that the image boots on whichever kind of disk it was written. */
const BOOT_MODULES = words(`
  virtio_pci virtio_blk virtio_scsi nvme ahci sd_mod
  xhci_pci usb_storage uas ext4
`)

/** Units that only cost time in a machine that lives for a minute. */
const MASKED_UNITS = words(`
  apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer
  e2scrub_all.timer e2scrub_reap.service systemd-pstore.service
  systemd-update-utmp.service systemd-update-utmp-runlevel.service
  lvm2-monitor.service lvm2-lvmpolld.socket blk-availability.service
  mdadm-shutdown.service systemd-random-seed.service systemd-hwdb-update.service
`)

const FILES: Readonly<Record<string, string>> = {
  'etc/fstab': `PARTUUID=${ROOT_PARTUUID} / ext4 errors=remount-ro 0 0\n`,
  'etc/hostname': 'flasher-test\n',
  'etc/hosts': '127.0.0.1 localhost flasher-test\n',
  // An image without one would count its first boot as such and ask for presets: slow.
  'etc/machine-id': '5f1d0c6f0e9b4f3d8a7c2b1e4d6f8a90\n',
  'etc/initramfs-tools/conf.d/flasher-test': 'MODULES=list\nCOMPRESS=zstd\nCOMPRESSLEVEL=3\n',
  'etc/initramfs-tools/modules': `${BOOT_MODULES.join('\n')}\n`,
  [GUEST_INIT.slice(1)]: [
    '#!/bin/bash',
    '# The rest lies in the checkout, which the host shares with this machine.',
    'mkdir -p /mnt/checkout',
    'mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 checkout /mnt/checkout',
    'exec /bin/bash /mnt/checkout/test/support/vm/guest-agent.sh',
    '',
  ].join('\n'),
  'etc/systemd/system/flasher-test.service': [
    '[Unit]',
    'Description=Says on the serial line that the boot is complete',
    'After=multi-user.target',
    '[Service]',
    'Type=oneshot',
    `ExecStart=/bin/sh -c 'echo "${BOOT_COMPLETE}" >/dev/console'`,
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n'),
}

/** The release of this host, for example `bookworm`. */
export async function readCodename(): Promise<string> {
  const release = await readFile('/etc/os-release', 'utf8')
  return /^VERSION_CODENAME=(\w+)$/m.exec(release)?.[1] ?? 'unknown'
}

/** What a tree has beside that of every other. */
interface TreeOptions {
  readonly packages?: readonly string[]
  /** Kernel modules that are kept although their kind is unwanted: `virtio_net`. */
  readonly modules?: readonly string[]
  /** Files by their paths in the tree. */
  readonly files?: Readonly<Record<string, string>>
}

/** Fills the folder, which must not exist. Needs root, mmdebstrap, and apt lists. */
export async function makeDebianTree(
  tree: string,
  { packages = [], modules = [], files = {} }: TreeOptions = {},
): Promise<void> {
  const codename = await readCodename()
  const options = [
    '--mode=root',
    '--variant=apt',
    '--quiet',
    '--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr',
    `--include=${[...PACKAGES, ...packages].join(',')}`,
    ...['Acquire::Languages "none"', 'Acquire::Retries "4"'].map((line) => `--aptopt=${line}`),
    // The last line that fits a path decides.
    ...[
      'force-unsafe-io',
      ...UNWANTED.map((path) => `path-exclude=${path}`),
      ...modules.map((name) => `path-include=*/${name}.ko`),
    ].map((line) => `--dpkgopt=${line}`),
  ]
  const sources = await readSources(codename)
  // Every package with a hook would make the initramfs again without INITRD=No.
  const environment = { ...process.env, INITRD: 'No', LC_ALL: 'C.UTF-8' }
  const debootstrap = $({ quiet: true, verbose: false, env: environment, input: sources })
  await debootstrap`mmdebstrap ${options} ${codename} ${tree} -`
  await configure(tree, { ...FILES, ...files })
}

/** Where the host takes its own release from, as lines of a sources.list. */
export async function readSources(codename: string): Promise<string> {
  const run = $({ quiet: true, verbose: false })
  const format = '$(CODENAME) deb [signed-by=KEYRING] $(REPO_URI) $(CODENAME) $(COMPONENT)'
  const filters = ['Created-By: Packages', 'Origin: Debian', 'Component: main']
  const list = () => run`apt-get indextargets --format ${format} ${filters}`
  let rows = (await list()).stdout
  if (rows.trim() === '') {
    await run`apt-get update -qq`
    rows = (await list()).stdout
  }
  const suites = [codename, `${codename}-updates`, `${codename}-security`]
  const lines = rows.split('\n').flatMap((row) => {
    const [suite = '', ...line] = row.split(' ')
    return suites.includes(suite) ? [line.join(' ').replace('KEYRING', KEYRING)] : []
  })
  if (lines.length === 0) throw new Error(`apt of this host has no source of Debian ${codename}`)
  return `${lines.join('\n')}\n`
}

async function configure(tree: string, files: Readonly<Record<string, string>>) {
  const run = $({ quiet: true, verbose: false })
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(tree, path)), { recursive: true })
    await writeFile(join(tree, path), text)
  }
  await chmod(join(tree, GUEST_INIT), 0o755)
  await run`chroot ${tree} systemctl enable flasher-test.service`
  await run`chroot ${tree} systemctl mask ${MASKED_UNITS}`
  await run`chroot ${tree} update-initramfs -c -k all`
  const { kernel, initrd } = await findKernel(tree)
  await mkdir(join(tree, 'boot/grub'), { recursive: true })
  await writeFile(join(tree, 'boot/grub/grub.cfg'), renderMenu(kernel, initrd))
}

/** The two files below `boot` that start the tree, as names. */
export async function findKernel(tree: string) {
  const names = await readdir(join(tree, 'boot'))
  const find = (start: string) => {
    const name = names.find((each) => each.startsWith(start))
    if (name === undefined) throw new Error(`no ${start}* in ${tree}/boot`)
    return name
  }
  return { kernel: find('vmlinuz-'), initrd: find('initrd.img-') }
}

const renderMenu = (kernel: string, initrd: string) => `serial --unit=0 --speed=115200
terminal_output console serial
linux /boot/${kernel} root=PARTUUID=${ROOT_PARTUUID} ro quiet console=tty0 console=ttyS0,115200
initrd /boot/${initrd}
boot
`
