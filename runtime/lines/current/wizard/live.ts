/** What the live system starts on each of its consoles: the wizard, as the kernel command line asks for it. */
import {
  isDriven,
  parseLiveBoot,
  renderDriverArgs,
  renderGuestArgs,
  renderWizardEnv,
  type LiveBoot,
} from '../../../core/live-boot.ts'
import { parseServerAddress } from '../../../core/server-address.ts'
import { isFirst, takeDriverLock } from '../../../services/driver-lock.ts'
import { readKernelLine } from '../../../services/kernel-line.ts'
import { readVersion } from '../../../services/manifest.ts'
import { createMarks } from '../../../services/marks.ts'
import type { Environment } from '../../../services/shell.ts'
import type { Output } from '../../../terminal/look.ts'
import { lookOn, type Keys } from './live-onlooker.ts'

export interface LiveWorld {
  readonly env: Environment
  readonly stdin: Keys
  readonly stdout: Output
  readonly signal: AbortSignal
  /** Where the console that drives says what it does. */
  readonly statusPath: string
  /** By which consoles agree who drives. */
  readonly lockName: string
  /** Tells that it was done in this boot, so that a program that died is not tried again for ever. */
  readonly drivenPath: string
  /** The wizard's program; the exit code. */
  wizard(argv: readonly string[], env: Environment): Promise<number>
}

/** The exit code: 0 tells the service manager that all is done here. */
export async function live(world: LiveWorld): Promise<number> {
  const [version, kernelLine] = await Promise.all([readVersion(), readKernelLine()])
  const marks = createMarks({ status: world.statusPath })
  await marks.mark(`entered v${version}`)
  try {
    return await serveConsole(parseLiveBoot(kernelLine), world)
  } finally {
    await marks.mark(`exiting v${version}`)
  }
}

async function serveConsole(boot: LiveBoot, world: LiveWorld): Promise<number> {
  const env = { ...world.env, ...renderWizardEnv(boot) }
  if (!isDriven(boot)) return await world.wizard(renderGuestArgs(await findBase(boot, world)), env)
  const lock = await takeDriverLock(world.lockName)
  if (lock !== null && (await isFirst(world.drivenPath))) {
    await using _held = lock
    return await world.wizard(renderDriverArgs(boot), env)
  }
  await lock?.[Symbol.asyncDispose]()
  if (lock === null && (await lookOn(world)) === 'ended') return 0
  return await world.wizard(renderGuestArgs(await findBase(boot, world)), env)
}

/** Null: no server is named, or none that can be. */
async function findBase({ server }: LiveBoot, { signal }: LiveWorld): Promise<string | null> {
  const bases = parseServerAddress(server ?? '')
  if (!bases.ok) return null
  // Loaded only where there is a server: a stick has none.
  const { findServer } = await import('../../../services/server-client.ts')
  return (await findServer(bases.value, { signal })) ?? bases.value.at(-1) ?? null
}
