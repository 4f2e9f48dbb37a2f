/** Where provisioning is tested from: a caller's files, images with cloud-init in tables of every kind, and a host that must stay as it was. */
import { constants } from 'node:fs'
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { Fault } from '#kit/foundation/fault.ts'
import { SEED_FOLDER } from '#engine/flash/rules/provisioning.ts'
import { createProvisioner } from '#engine/flash/provisioner.ts'
import { createShell } from '#kit/host/shell.ts'
import { withMounted, type FlashedDisk } from './flashed-disk.ts'

/** A folder of the caller's: his files, a `cijoe` of our own making, mount points, a host to be hurt. */
export async function createFixture() {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-fixture-'))
  for (const name of ['bin', 'tmp', 'outside']) await mkdir(join(folder, name))
  await writeFile(join(folder, 'outside/file'), 'of the host')
  await writeFile(join(folder, 'user-data'), '#cloud-config\npassword: secret\n')
  await writeFile(join(folder, 'meta-data'), 'instance-id: given\n')
  await writeFile(join(folder, 'flow.yaml'), 'doc: nothing\n')
  const env = { PATH: `${folder}/bin:${process.env['PATH'] ?? ''}`, TMPDIR: join(folder, 'tmp') }
  const before = await listMounts()
  return {
    at: (name: string) => join(folder, name),
    env,
    provisioner: createProvisioner({ shell: createShell({ env }), env }),
    cloudInit: { mode: 'cloud-init', userData: join(folder, 'user-data'), metaData: null },
    cijoe: { mode: 'cijoe', workflow: join(folder, 'flow.yaml'), config: null },
    async installCijoe(script: string) {
      await writeFile(join(folder, 'bin/cijoe'), `#!/bin/sh\n${script}\n`)
      await chmod(join(folder, 'bin/cijoe'), 0o755)
    },
    /** Nothing of the host was written, nothing is mounted, the disk is free again. */
    async assertLeftAsFound(disk: Pick<FlashedDisk, 'device'>) {
      assert.equal(await readdir(join(folder, 'outside')), ['file'])
      assert.is(await readFile(join(folder, 'outside/file'), 'utf8'), 'of the host')
      assert.equal(await readdir(join(folder, 'tmp')), [])
      const fresh = (await listMounts()).filter((line) => !before.includes(line))
      assert.equal(
        fresh.filter((line) => line.includes(disk.device) || line.includes(folder)),
        [],
      )
      await using _ = await open(disk.device, constants.O_RDONLY | constants.O_EXCL)
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  } as const
}

/** Only new mounts of our own are looked for: the machine may have other users. */
const listMounts = async () => (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')

/** The Fault that some work ends in. */
export async function catchFault(work: Promise<unknown>): Promise<Fault> {
  try {
    await work
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('it should have failed')
}

/** The seed in a volume, as files and permissions. */
export const readSeed = (node: string, options = 'ro', folder = SEED_FOLDER) =>
  withMounted(
    node,
    async (root) => ({
      userData: await readFile(join(root, folder, 'user-data'), 'utf8'),
      metaData: await readFile(join(root, folder, 'meta-data'), 'utf8'),
      mode: (await lstat(join(root, folder, 'user-data'))).mode & 0o7777,
      names: (await readdir(join(root, folder))).toSorted(),
    }),
    options,
  )

/** Meta-data that nobody gave. */
export const SYNTHETIC = /^instance-id: flasher-[0-9a-f]{12}\nlocal-hostname: flasher-host\n$/

const run = $({ quiet: true })
const MIB = 2 ** 20

export interface RootLayout {
  /** Lines of sfdisk; none: the file system lies on the whole disk. */
  readonly table: readonly string[]
  readonly megabytes: number
  /** Where the root's file system lies, in bytes. */
  readonly offset: number
  readonly bytes: number
  /** A folder in the root; absent: `etc/cloud`. */
  readonly folder?: string
}

export interface SeededImage extends AsyncDisposable {
  readonly path: string
  /** What `--provision cloud-init` takes. */
  readonly flags: readonly string[]
}

/** In a GPT, behind a gap of 1 MiB. */
export const PLAIN_ROOT: RootLayout = {
  table: ['label: gpt', `size=${20 * 2048}`],
  megabytes: 24,
  offset: MIB,
  bytes: 20 * MIB,
}

const SECTORS = 24 * 2048
const GAP = 64
/** All that a GPT leaves of its disk: it reaches into both ends, which are held back. */
export const WHOLE_ROOT: RootLayout = {
  table: ['label: gpt', `first-lba: ${GAP}`, `start=${GAP}, size=${SECTORS - GAP - 33}`],
  megabytes: 24,
  offset: GAP * 512,
  bytes: (SECTORS - GAP - 33) * 512,
}

export async function makeSeededImage(layout: RootLayout): Promise<SeededImage> {
  const { table, megabytes, offset, bytes, folder: inside = 'etc/cloud' } = layout
  const folder = await mkdtemp(join(tmpdir(), 'flasher-seeded-'))
  const path = join(folder, 'disk.img')
  const userData = join(folder, 'user-data')
  await mkdir(join(folder, 'tree', inside), { recursive: true })
  await writeFile(userData, USER_DATA)
  await writeFile(path, '')
  await truncate(path, megabytes * MIB)
  if (table.length > 0) await run({ input: `${table.join('\n')}\n` })`sfdisk --quiet ${path}`
  const place = [`-Eoffset=${offset}`, path, `${Math.floor(bytes / 1024)}k`]
  await run`mkfs.ext4 -q -F -d ${join(folder, 'tree')} ${place}`
  return {
    path,
    flags: ['--provision', 'cloud-init', '--user-data', userData],
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

export const USER_DATA = '#cloud-config\nhostname: seeded\n'
