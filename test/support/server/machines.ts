/** Machines that a test cannot have: what lsblk, /sys and /proc say on them, and trees made of it. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { $ } from 'zx'
import type { SysBlock } from '#engine/disk/rules/disk-uses.ts'
import type { Shell } from '#kit/host/shell.ts'

interface Block {
  readonly dev: string
  readonly sectors?: number
  /** The disk that a partition is on. */
  readonly of?: string
  readonly start?: number
  readonly holders?: readonly string[]
  readonly backing?: string
  /** Further attributes, for example `queue/logical_block_size`. */
  readonly files?: Readonly<Record<string, string>>
}

export interface Machine {
  readonly blocks: Readonly<Record<string, Block>>
  /** lsblk's devices; each machine's JSON has the keys that its util-linux prints. */
  readonly lsblk: unknown
  readonly mountinfo: string
  readonly swaps?: string
  readonly pools?: readonly string[]
}

/** The blocks as the /sys reader gives them. */
export const listMachineBlocks = ({ blocks }: Machine): readonly SysBlock[] =>
  Object.entries(blocks).map(([name, { dev, of, start = 0, sectors = 0, holders, backing }]) => ({
    name,
    dev,
    partition: of === undefined ? null : { of, start, end: start + sectors },
    holders: holders ?? [],
    backing: backing ?? null,
  }))

const row = (name: string, type: string, more: object = {}) => ({
  name,
  kname: name,
  path: `/dev/${name}`,
  size: '1G',
  type,
  fstype: null,
  label: null,
  vendor: null,
  model: null,
  serial: null,
  wwn: null,
  rm: false,
  ro: false,
  mountpoints: [null],
  tran: null,
  ...more,
})
const mapped = (kname: string, name: string, type: string, more: object = {}) =>
  row(kname, type, { name, path: `/dev/mapper/${name}`, ...more })

const md = row('md127', 'raid1', { mountpoints: ['/srv'] })
const multipath = mapped('dm-3', 'mpatha', 'mpath', {
  children: [mapped('dm-4', 'mpatha-part1', 'part')],
})

/** Encrypted LVM on NVMe, RAID 1, multipath, ZFS, one idle disk: all that this kernel lacks. */
export const SERVER: Machine = {
  blocks: {
    nvme0n1: {
      dev: '259:0',
      sectors: 4000797360,
      files: {
        diskseq: '1',
        'queue/logical_block_size': '4096',
        'queue/write_zeroes_max_bytes': '131072',
        'queue/discard_max_bytes': '2199023255040',
      },
    },
    nvme0n1p1: { dev: '259:1', of: 'nvme0n1', start: 2048, sectors: 1048576 },
    nvme0n1p2: { dev: '259:2', of: 'nvme0n1', start: 1050624, sectors: 9000000, holders: ['dm-0'] },
    nvme0n1p3: { dev: '259:3', of: 'nvme0n1', start: 10050624, sectors: 4096 },
    'dm-0': { dev: '252:0', holders: ['dm-1', 'dm-2'] },
    'dm-1': { dev: '252:1' },
    'dm-2': { dev: '252:2' },
    sda: { dev: '8:0', holders: ['md127'] },
    sdb: { dev: '8:16', holders: ['md127'] },
    md127: { dev: '9:127' },
    sdc: {
      dev: '8:32',
      sectors: 62521344,
      files: { diskseq: '7', 'device/serial': 'FROM-SYS', ro: '1' },
    },
    sdd: { dev: '8:48', holders: ['dm-3'] },
    sdd1: { dev: '8:49', of: 'sdd', start: 2048, sectors: 4096 },
    sde: { dev: '8:64', holders: ['dm-3'] },
    'dm-3': { dev: '252:3', sectors: 8192, holders: ['dm-4'], files: { 'dm/uuid': 'mpath-3600' } },
    'dm-4': { dev: '252:4' },
    sdf: { dev: '8:80' },
    sdf1: { dev: '8:81', of: 'sdf', start: 2048, sectors: 4096 },
    sdg: { dev: '8:96' },
    sdg1: { dev: '8:97', of: 'sdg', start: 2048, sectors: 4096 },
    'cciss!c0d0': { dev: '104:0', sectors: 2048 },
    'cciss!c0d0p1': { dev: '104:1', of: 'cciss!c0d0', start: 63, sectors: 64 },
  },
  lsblk: [
    row('sda', 'disk', { fstype: 'linux_raid_member', children: [md] }),
    row('sdb', 'disk', { fstype: 'linux_raid_member', children: [md] }),
    row('sdc', 'disk', { vendor: 'Generic ', model: 'Flash Disk      ', rm: true, tran: 'usb' }),
    row('sdd', 'disk', { serial: '3600', children: [multipath] }),
    row('sde', 'disk', { serial: '3600', children: [multipath] }),
    row('sdf', 'disk', {
      children: [row('sdf1', 'part', { fstype: 'zfs_member', label: 'tank' })],
    }),
    row('sdg', 'disk', { children: [row('sdg1', 'part', { fstype: 'zfs_member', label: 'old' })] }),
    row('sr0', 'rom', { rm: true }),
    row('cciss/c0d0', 'disk', {
      vendor: 'HP',
      children: [row('cciss/c0d0p1', 'part', { mountpoints: ['/mnt/a b'] })],
    }),
    row('nvme0n1', 'disk', {
      size: '1.9T',
      model: 'Samsung SSD 990 PRO 2TB',
      serial: 'S6Z2NJ0W000001',
      wwn: 'eui.0025384b31',
      tran: 'nvme',
      children: [
        row('nvme0n1p1', 'part', { mountpoints: ['/boot/efi'] }),
        row('nvme0n1p2', 'part', {
          fstype: 'crypto_LUKS',
          children: [
            mapped('dm-0', 'luks', 'crypt', {
              children: [
                mapped('dm-1', 'vg-root', 'lvm', { mountpoints: ['/'] }),
                mapped('dm-2', 'vg-swap', 'lvm', { mountpoints: ['[SWAP]'] }),
              ],
            }),
          ],
        }),
        row('nvme0n1p3', 'part'),
      ],
    }),
  ],
  mountinfo: [
    '20 1 252:1 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw',
    '21 20 0:21 / /proc rw - proc proc rw',
    '22 20 259:1 / /boot/efi rw - vfat /dev/nvme0n1p1 rw,fmask=0022',
    '23 20 9:127 / /srv rw - xfs /dev/md127 rw',
    '24 20 104:1 / /mnt/a\\040b rw - ext4 /dev/cciss/c0d0p1 rw',
    '25 20 0:60 / /tank rw - zfs tank rw',
  ].join('\n'),
  swaps: 'Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/dm-2 partition\t8388604\t0\t-2\n',
  pools: ['tank'],
}

/** A hybrid ISO on a stick: root is an overlay over a squashfs on a loop on a file of the stick. */
export const LIVE: Machine = {
  blocks: {
    sda: { dev: '8:0' },
    sda1: { dev: '8:1', of: 'sda', start: 64, sectors: 3000000 },
    sda2: { dev: '8:2', of: 'sda', start: 1000, sectors: 10240 },
    sda3: { dev: '8:3', of: 'sda', start: 3000064, sectors: 65536 },
    loop0: { dev: '7:0', backing: '/run/live/medium/live/filesystem.squashfs' },
    sdb: { dev: '8:16' },
  },
  lsblk: [
    row('loop0', 'loop', { mountpoints: ['/run/live/rootfs'] }),
    row('sda', 'disk', {
      children: [
        row('sda1', 'part', { mountpoints: ['/run/live/medium'] }),
        row('sda2', 'part'),
        row('sda3', 'part'),
      ],
    }),
    row('sdb', 'disk'),
  ],
  mountinfo: [
    '20 1 0:30 / / rw - overlay overlay rw,lowerdir=/run/live/rootfs/,upperdir=/run/live/overlay/rw,workdir=/run/live/overlay/work',
    '21 20 8:1 / /run/live/medium ro - iso9660 /dev/sda1 ro',
    '22 20 7:0 / /run/live/rootfs ro - squashfs /dev/loop0 ro',
    '23 20 0:31 / /run/live/overlay rw - tmpfs tmpfs rw',
  ].join('\n'),
}

export interface MachineTree extends AsyncDisposable {
  readonly sys: string
  readonly proc: string
  /** Where the nodes are: block special files (root needed) that nothing may open. */
  readonly dev: string
  readonly shell: Shell
}

/** Writes the machine's /sys and /proc into a folder; with `nodes`, also a /dev. */
export async function createMachine(
  machine: Machine,
  { nodes = false }: { readonly nodes?: boolean } = {},
): Promise<MachineTree> {
  const root = await mkdtemp(join(tmpdir(), 'flasher-machine-'))
  const sys = join(root, 'sys')
  const proc = join(root, 'proc')
  const dev = join(root, 'dev')
  for (const [name, block] of Object.entries(machine.blocks)) {
    await writeBlock(sys, name, block)
    if (!nodes) continue
    const node = join(dev, name.replaceAll('!', '/'))
    await mkdir(dirname(node), { recursive: true })
    await $({ quiet: true })`mknod ${node} b ${block.dev.split(':')}`
  }
  await write(join(proc, 'self/mountinfo'), machine.mountinfo)
  await write(join(proc, 'swaps'), machine.swaps ?? '')
  for (const pool of machine.pools ?? []) await write(join(proc, 'spl/kstat/zfs', pool, 'io'), '')
  return {
    sys,
    proc,
    dev,
    shell: createShellTwin(JSON.stringify({ blockdevices: machine.lsblk })),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  }
}

async function write(path: string, text: string) {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
}

/** In sectors: what lsblk says of those that have no size here. */
const GIBIBYTE = 2 ** 21

async function writeBlock(sys: string, name: string, block: Block) {
  const { dev, of, start, holders = [], backing, files = {} } = block
  const { sectors = of === undefined ? GIBIBYTE : 0 } = block
  const folder = join(sys, 'devices/block', of ?? '', name)
  const all = {
    ro: '0',
    ...files,
    dev,
    size: `${sectors}`,
    ...(of === undefined ? {} : { partition: '1', start: `${start}` }),
    ...(backing === undefined ? {} : { 'loop/backing_file': backing }),
    ...Object.fromEntries(holders.map((holder) => [`holders/${holder}`, ''])),
  }
  for (const [file, text] of Object.entries(all)) await write(join(folder, file), `${text}\n`)
  await mkdir(join(sys, 'class/block'), { recursive: true })
  await symlink(folder, join(sys, 'class/block', name))
}

/** A shell in which there is lsblk alone, which always says the same. */
export function createShellTwin(stdout: string, { exitCode = 0, stderr = '' } = {}): Shell {
  const run = async () => ({ exitCode, stdout, stderr })
  return {
    run,
    require: async () => stdout,
    has: async (tool) => tool === 'lsblk',
    show: async () => exitCode,
    pipe() {
      throw new Error('nothing to start here')
    },
  }
}
