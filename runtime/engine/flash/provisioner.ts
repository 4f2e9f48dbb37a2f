/** Checks and runs the step after a write: a cloud-init seed or a cijoe workflow. */
import { randomBytes } from 'node:crypto'
import { constants, access, readFile, stat } from 'node:fs/promises'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import {
  listInputs,
  renderMetaData,
  SEED_FOLDER,
  TOOLS,
  type Provisioning,
  type ProvisioningInput,
} from './rules/provisioning.ts'
import { checkMountPlace, type MountTools } from '#engine/disk/mounts.ts'
import { openVolumes } from '#engine/disk/volumes.ts'
import { toolMissing } from '#kit/host/shell.ts'
import type { EarlySeeder } from './early-seeder.ts'
import { findUserDataProblem } from '#engine/first-boot/rules/user-data.ts'
import { findVolumeObstacle } from '#engine/first-boot/rules/seed-location.ts'
import { writeSeed, type Seed } from './seeder.ts'
import { runWorkflow } from './workflows.ts'

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
