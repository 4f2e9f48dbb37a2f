/** Runs a cijoe workflow on the root file system of a disk that was just written. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'
import {
  CIJOE_CONFIG,
  cijoeArgv,
  findLargest,
  renderExaminations,
  type Provisioning,
} from './rules/provisioning.ts'
import type { FilledVolume } from '#engine/disk/rules/volume.ts'
import { isFolderInside } from '#engine/disk/mounted-tree.ts'
import type { MountTools } from '#engine/disk/mounts.ts'
import { findRoot, mountVolume } from '#engine/disk/root-file-systems.ts'
import type { FlashedDisk } from '#engine/disk/volumes.ts'
import { removeTree } from '#kit/host/folders.ts'

type Cijoe = Extract<Provisioning, { mode: 'cijoe' }>

/**
 * The workflow and all that it starts end together: with it (they are in a process namespace of their
 * own), on abort, and when we are killed. Nothing is left that could keep the mount busy.
 */
const TOGETHER = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', '--']
const WITH_US = ['setpriv', '--pdeathsig', 'KILL', '--']

/** Fault `provision-failed` where the workflow fails or there is nothing to give it. */
export async function runWorkflow(
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
