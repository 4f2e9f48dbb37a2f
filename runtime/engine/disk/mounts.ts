/** Mounts foreign file systems in a private place, and always unmounts them again. */
import { constants, mkdir, mkdtemp, open, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { systemCodeOf } from '#kit/foundation/system-error.ts'
import { removeFolder } from '#kit/host/folders.ts'
import type { Environment, Shell } from '#kit/host/shell.ts'
import { startKeeper } from './loop-part.ts'

interface MountRequest {
  readonly node: string
  /** None is guessed, and no helper program is started. */
  readonly type: string
  readonly options: readonly string[]
}

export interface Mounted extends AsyncDisposable {
  /** Where this process sees its root. */
  readonly root: string
  /** Where programs started with `enter` see it. */
  readonly at: string
  enter(argv: readonly string[]): readonly string[]
  sync(): Promise<void>
}

/** `env`: TMPDIR is the place of mount points. */
export interface MountTools {
  readonly shell: Shell
  readonly env: Environment
}

/** Throws a Fault `plan-refused`: to be called before a disk is written. */
export async function checkMountPlace({ env }: Pick<MountTools, 'env'>): Promise<void> {
  const parent = env['TMPDIR'] || '/tmp'
  try {
    await removeFolder(await mkdtemp(join(await realpath(parent), 'flasher-mount-')))
  } catch (cause) {
    throw new Fault(
      'plan-refused',
      `no mount point can be made in ${parent}: ${renderError(cause)}`,
      {
        hint: 'TMPDIR has to name a folder that can be written.',
        cause,
      },
    )
  }
}

/** A failed mount is a Fault `tool-failed` with mount's own reason. */
export async function mountPrivately(
  { shell, env }: MountTools,
  { node, type, options }: MountRequest,
): Promise<Mounted> {
  await using undo = new AsyncDisposableStack()
  undo.defer(() => waitUntilFree(node))
  const folder = await mkdtemp(join(await realpath(env['TMPDIR'] || '/tmp'), 'flasher-mount-'))
  undo.defer(() => removeFolder(folder))
  const at = join(folder, 'root')
  await mkdir(at)
  undo.defer(() => removeFolder(at))
  const space = undo.use(await openSpace(shell))
  const argv = ['mount', '-i', '-t', type, '-o', options.join(','), '--', node, at]
  const { exitCode, stderr } = await shell.run(space.enter(argv))
  if (exitCode !== 0) throw new Fault('tool-failed', `cannot be mounted: ${reasonOf(stderr, at)}`)
  undo.defer(() => unmount(shell, space, node, at))
  const root = `/proc/${space.pid}/root${at}`
  const held = undo.move()
  return {
    root,
    at,
    enter: space.enter,
    sync: async () => void (await shell.require(['sync', '--file-system', root])),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** mount(8) prints the place, then the reason, then where to read more. */
const reasonOf = (stderr: string, at: string) =>
  (stderr.split('\n')[0] ?? '').split(`${at}: `).at(-1) || 'mount does not say why'

type MountSpace = Awaited<ReturnType<typeof openSpace>>

/**
 * A mount namespace held by a `cat` that reads from us. When we end, even by SIGKILL, it ends too,
 * and the kernel removes every mount in it. What the host unmounts goes here as well (`slave`);
 * nothing of ours shows there.
 */
async function openSpace(shell: Shell) {
  const argv = ['unshare', '--mount', '--propagation', 'slave', '--', 'cat']
  // A line comes back once `unshare` has become `cat`; setsid and unshare keep the pid.
  const words = { what: 'mount namespace', tool: 'unshare' }
  const keeper = await startKeeper(shell, { argv, ...words })
  const into = ['nsenter', `--target=${keeper.pid}`, '--mount', '--wd', '--']
  return { ...keeper, enter: (inner: readonly string[]) => [...into, ...inner] }
}

const TRIES = 5
const PAUSE_MS = 200

async function unmount(shell: Shell, space: MountSpace, node: string, at: string) {
  for (let tries = 1; ; tries += 1) {
    // Recursive, as a workflow may have mounted below.
    const { exitCode, stderr } = await shell.run(space.enter(['umount', '-R', '--', at]))
    if (exitCode === 0) return
    if (tries === TRIES) {
      throw new Fault('tool-failed', `cannot unmount ${node}: ${stderr.trim()}`, {
        hint: 'End the programs that use it; it is unmounted with the last of them.',
      })
    }
    await pause(PAUSE_MS * tries)
  }
}

const FREE_WITHIN_MS = 3000

/**
 * The kernel clears a namespace a moment after its last process. Best effort: the next user of the
 * disk reports that it is busy.
 */
async function waitUntilFree(node: string) {
  const { O_RDONLY, O_EXCL, O_NONBLOCK } = constants
  for (let waited = 0; waited < FREE_WITHIN_MS; waited += 50) {
    const file = await open(node, O_RDONLY | O_EXCL | O_NONBLOCK).catch((error: unknown) =>
      systemCodeOf(error) === 'EBUSY' ? 'busy' : null,
    )
    if (file !== 'busy') return file?.close()
    await pause(50)
  }
}
