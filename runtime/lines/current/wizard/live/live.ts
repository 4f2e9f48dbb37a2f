/** Starts the wizard on each console of the live system, as the kernel command line asks. */
import { LIVE_PATHS } from '../../../../../appliance/contract.ts'
import {
  isDriven,
  parseLiveBoot,
  renderDriverArgs,
  renderGuestArgs,
  renderWizardEnv,
  type LiveBoot,
} from '../../../../core/boot/live-boot.ts'
import { parseServerAddress } from '../../../../core/net/server-address.ts'
import { endTry, startTry, takeDriverLock } from '../../../../services/host/driver-lock.ts'
import { readKernelLine } from '../../../../services/host/kernel-line.ts'
import { readVersion } from '../../../../services/host/package-manifest.ts'
import { createMarks } from '../../../../services/host/marks.ts'
import { readOwnTerminal } from '../../../../services/host/own-terminal.ts'
import type { Environment } from '../../../../services/host/shell.ts'
import { linger } from '../../../../services/host/watch.ts'
import { encodeOutput } from '../../../../terminal/text/encoding.ts'
import type { Output } from '../../../../terminal/text/terminal-style.ts'
import { lookOn, type Keys } from './console-viewer.ts'

export interface ConsoleEnvironment {
  readonly env: Environment
  readonly stdin: Keys
  readonly stdout: Output
  readonly signal: AbortSignal
  readonly paths?: Partial<LivePaths>
  /** The wizard's program; the exit code. */
  wizard(argv: readonly string[], env: Environment): Promise<number>
}

const SCREEN = '/dev/tty1'
const HEAD_START_MS = 1500

type LivePaths = Readonly<Record<keyof typeof PATHS, string>>

const PATHS = {
  kernelLine: '/proc/cmdline',
  /** Leads to the terminal of our own standard input. */
  terminal: '/proc/self/fd/0',
  kmsg: '/dev/kmsg',
  console: '/dev/console',
  /** Where the console that drives writes what it does. */
  status: LIVE_PATHS.status,
  /** By which consoles agree who drives; no file. */
  lock: '/run/flasher/driver',
  /** Counts the tries of this boot, so that a program that died is tried again, but not for ever. */
  driven: '/run/flasher/driven',
}

/** Returns the exit code: 0 means to the service manager that nothing is left to do. */
export async function live(environment: ConsoleEnvironment): Promise<number> {
  const paths = { ...PATHS, ...environment.paths }
  const [version, kernelLine] = await Promise.all([readVersion(), readKernelLine(paths.kernelLine)])
  const marks = createMarks(paths)
  await marks.mark(`entered v${version}`)
  try {
    return await serveConsole(parseLiveBoot(kernelLine), environment, paths)
  } finally {
    await marks.mark(`exiting v${version}`)
  }
}

async function serveConsole(
  boot: LiveBoot,
  environment: ConsoleEnvironment,
  paths: LivePaths,
): Promise<number> {
  if (!isDriven(boot)) return await serveGuest(boot, environment)
  // The screen has a bar to show; a serial line may have nobody at its other end.
  if ((await readOwnTerminal(paths.terminal)) !== SCREEN)
    await linger(HEAD_START_MS, environment.signal)
  const lock = await takeDriverLock(paths.lock)
  if (lock !== null && (await startTry(paths.driven))) {
    await using _held = lock
    const env = { ...environment.env, ...renderWizardEnv(boot) }
    const code = await environment.wizard(renderDriverArgs(boot), env)
    await endTry(paths.driven)
    return code
  }
  await lock?.[Symbol.asyncDispose]()
  const stdout = encodeOutput(environment.stdout, environment.env)
  const viewer = { ...environment, stdout, statusPath: paths.status }
  if (lock === null && (await lookOn(viewer)) === 'ended') return 0
  return await serveGuest(boot, environment)
}

/** A wizard for a person at this console. */
async function serveGuest(boot: LiveBoot, environment: ConsoleEnvironment): Promise<number> {
  const base = await findBase(boot, environment)
  const env = { ...environment.env, ...renderWizardEnv(boot, base) }
  return await environment.wizard(renderGuestArgs(boot, base), env)
}

/** Null: no server is named, or none that can be. */
async function findBase(
  { server }: LiveBoot,
  { signal }: ConsoleEnvironment,
): Promise<string | null> {
  const bases = parseServerAddress(server ?? '')
  if (!bases.ok) return null
  // Loaded only where there is a server: a stick has none.
  const { findServer } = await import('../../../../services/net/server-client.ts')
  return (await findServer(bases.value, { signal })) ?? bases.value.at(-1) ?? null
}
