/** Checks and runs the step after a write: a cloud-init seed or a cijoe workflow. */
import { randomBytes } from 'node:crypto'
import { constants, access, readFile, stat, mkdtemp, writeFile } from 'node:fs/promises'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import {
  listInputs,
  renderMetaData,
  SEED_FOLDER,
  TOOLS,
  type Provisioning,
  type ProvisioningInput,
  CIJOE_CONFIG,
  cijoeArgv,
  findLargest,
  renderExaminations,
} from './rules/provisioning.ts'
import { checkMountPlace, findRoot, type MountTools, mountVolume } from '#engine/disk/mounts.ts'
import { openVolumes, type FlashedDisk } from '#engine/disk/volumes.ts'
import { toolMissing } from '#kit/host/shell.ts'
import type { EarlySeeder } from './early-seeder.ts'
import { findUserDataProblem } from '#engine/first-boot/rules/template.ts'
import { findVolumeObstacle } from '#engine/first-boot/rules/seed-location.ts'
import { writeSeed, type Seed } from './seeder.ts'
import { join } from 'node:path'
import type { FilledVolume } from '#engine/disk/rules/lsblk.ts'
import { isFolderInside } from '#engine/disk/mounted-tree.ts'
import { removeTree } from '#kit/host/folders.ts'

/**
 * The limit is far more than cloud-init accepts; a disk image named by mistake is not copied into
 * the target.
 */
const MAX_INPUT_BYTES = 16 * 2 ** 20

export function createProvisioner(tools: MountTools) {
  const { shell } = tools

  return {
    /**
     * To be called before a disk is written: all files, programs and folders that `apply` will need.
     * Faults `input-missing`, `input-invalid`, `tool-missing`, `plan-refused`.
     */
    async check(provisioning: Provisioning): Promise<void> {
      for (const input of listInputs(provisioning)) await checkInput(input)
      if (provisioning.mode === 'cloud-init') await checkUserData(provisioning)
      for (const tool of TOOLS[provisioning.mode]) {
        if (!(await shell.has(tool))) throw missing(tool)
      }
      if (provisioning.mode !== 'none') await checkMountPlace(tools)
    },
    /**
     * What can be done before the disk can boot; null: nothing. The files are read at once. Its
     * failures are those of `apply`.
     */
    async openEarly(provisioning: Provisioning, signal: AbortSignal): Promise<EarlySeeder | null> {
      if (provisioning.mode !== 'cloud-init') return null
      const { createEarlySeeder } = await import('./early-seeder.ts')
      const seed = await readSeed(provisioning)
      const { mode } = provisioning
      return createEarlySeeder(tools, { seed, mode }, (thrown, node) =>
        asFault(thrown, node, signal.aborted),
      )
    },
    /**
     * Provisions what was written to `node`, once its partitions were re-read. Fault
     * `provision-failed`, or `cancelled` on abort; either way nothing is left mounted.
     */
    async apply(
      provisioning: Provisioning,
      node: string,
      {
        signal,
        warn,
      }: { readonly signal?: AbortSignal; readonly warn?: (words: string) => void } = {},
    ): Promise<void> {
      if (provisioning.mode === 'none') return
      try {
        signal?.throwIfAborted()
        await using disk = await openVolumes(shell, node, signal)
        if (provisioning.mode === 'cloud-init') {
          const obstacle = findVolumeObstacle(disk.volumes)
          if (obstacle !== null) throw new Fault('provision-failed', obstacle)
          const { note } = await writeSeed(tools, await readSeed(provisioning), node, disk, signal)
          if (note !== null) warn?.(note)
        } else await runWorkflow(tools, provisioning, node, disk, signal)
      } catch (error) {
        throw asFault(error, node, signal?.aborted === true)
      }
    },
  }
}

type CloudInit = Extract<Provisioning, { mode: 'cloud-init' }>

async function readSeed({ userData, metaData }: CloudInit): Promise<Seed> {
  const made = Buffer.from(renderMetaData(randomBytes(6).toString('hex')))
  const files = [
    { name: 'user-data', content: await readFile(userData) },
    { name: 'meta-data', content: metaData === null ? made : await readFile(metaData) },
  ]
  return { folder: SEED_FOLDER, files }
}

async function checkUserData({ userData }: CloudInit) {
  const problem = findUserDataProblem(await readFile(userData))
  if (problem !== null) throw new Fault('input-invalid', `user-data ${userData}: ${problem}`)
}

async function checkInput({ what, path }: ProvisioningInput) {
  const stats = await stat(path).catch((cause: unknown) => {
    throw new Fault('input-missing', `${what} not found: ${path}`, { cause })
  })
  if (!stats.isFile()) throw new Fault('input-missing', `${what} is not a file: ${path}`)
  if (stats.size > MAX_INPUT_BYTES) {
    throw new Fault('input-invalid', `${what} is larger than 16 MiB: ${path}`)
  }
  await access(path, constants.R_OK).catch((cause: unknown) => {
    throw new Fault('input-missing', `${what} cannot be read: ${path}`, { cause })
  })
}

const missing = (tool: string) =>
  tool === 'cijoe'
    ? new Fault('tool-missing', 'cijoe is not installed', {
        hint: 'It is a Python package: pipx install cijoe',
      })
    : toolMissing(tool)

/** Whatever went wrong, as one Fault; a clean-up that failed after an error is named after it. */
function asFault(thrown: unknown, node: string, aborted: boolean): Fault {
  if (thrown instanceof SuppressedError) {
    const first = asFault(thrown.suppressed, node, aborted)
    const both = `${first.message}; then: ${asFault(thrown.error, node, false).message}`
    return new Fault(first.code, both, { hint: first.hint, cause: thrown })
  }
  if (thrown instanceof Fault && KEPT.has(thrown.code)) return thrown
  if (aborted) return new Fault('cancelled', 'provisioning was cancelled', { cause: thrown })
  const hint = thrown instanceof Fault ? thrown.hint : undefined
  return new Fault('provision-failed', `${node}: ${renderError(thrown)}`, { hint, cause: thrown })
}

const KEPT = new Set<string>(['provision-failed', 'tool-missing', 'cancelled'])

/** Runs a cijoe workflow on the root file system of a disk that was just written. */
type Cijoe = Extract<Provisioning, { mode: 'cijoe' }>

/**
 * The workflow and all that it starts end together: with it (they are in a process namespace of their
 * own), on abort, and when we are killed. Nothing is left that could keep the mount busy.
 */
const TOGETHER = 'unshare --pid --fork --kill-child --mount-proc --propagation slave --'.split(' ')
const WITH_US = ['setpriv', '--pdeathsig', 'KILL', '--']

/** Fault `provision-failed` where the workflow fails or there is nothing to give it. */
async function runWorkflow(
  tools: MountTools,
  { workflow, config }: Cijoe,
  node: string,
  disk: FlashedDisk,
  signal?: AbortSignal,
): Promise<void> {
  const { shell, env } = tools
  await using undo = new AsyncDisposableStack()
  const folder = await mkdtemp(join(env['TMPDIR'] || '/tmp', 'flasher-cijoe-'))
  undo.defer(() => removeTree(folder))
  const generated = join(folder, 'config.toml')
  if (config === null) await writeFile(generated, CIJOE_CONFIG)
  await using mounted = await mountLargest(tools, node, disk)
  const argv = cijoeArgv(workflow, config ?? generated)
  const exitCode = await shell.show([...WITH_US, ...mounted.enter([...TOGETHER, ...argv])], {
    env: { FLASHER_ROOTFS: mounted.at },
    ...(signal === undefined ? {} : { signal }),
  })
  await mounted.sync()
  signal?.throwIfAborted()
  if (exitCode === 0) return
  throw new Fault('provision-failed', `cijoe workflow exited ${exitCode}: ${workflow}`, {
    hint: 'cijoe-output/ holds what the workflow said.',
  })
}

async function mountLargest(tools: MountTools, node: string, { volumes, refused }: FlashedDisk) {
  const largest = findLargest(volumes)
  if (largest === null) {
    const examinations = volumes.map((one) => ({
      ...one,
      type: one.contents.type,
      why: refused.get(one.node) ?? 'no file system',
    }))
    throw new Fault(
      'provision-failed',
      `no file system for the workflow on ${node}; looked at:${renderExaminations(examinations)}`,
    )
  }
  const subvolume = await findSubvolume(tools, largest)
  const mounted = await mountVolume(tools, largest, subvolume, 'work')
  if (mounted.ok) return mounted.value
  const examined = { ...largest, type: largest.contents.type, why: mounted.refusal }
  throw new Fault(
    'provision-failed',
    `the largest volume of ${node} cannot be given to the workflow:${renderExaminations([examined])}`,
  )
}

/** The root of a btrfs installation is often a subvolume that is not the default one. */
async function findSubvolume(tools: MountTools, volume: FilledVolume) {
  if (volume.contents.type !== 'btrfs') return null
  const root = await findRoot(tools, volume, seeEtc)
  return root.ok ? root.value.subvolume : null
}

const seeEtc = async (root: string) => (await isFolderInside(root, 'etc')) || null
