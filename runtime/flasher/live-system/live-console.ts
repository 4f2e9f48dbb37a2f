/** A console of the live system: one of them does what the server asks, the others look on or serve a person. */
import { CONSOLE_PATHS, type ConsolePaths } from '#fleet/boot/rules/live-console.ts'
import { endTry, startTry, takeDriverLock } from './driver-lock.ts'
import { readKernelArguments } from './kernel-arguments.ts'
import { createMarks } from '#kit/host/marks.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import type { Environment } from '#kit/host/shell.ts'
import { linger } from '#kit/host/watch.ts'
import { encodeOutput } from '#kit/terminal/text/encoding.ts'
import type { Output } from '#kit/terminal/text/terminal-style.ts'
import { viewConsole, type Keys } from './console-viewer.ts'
import { readlink } from 'node:fs/promises'

export interface LiveConsole {
  readonly env: Environment
  readonly stdin: Keys
  readonly stdout: Output
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal
  readonly paths?: Partial<ConsolePaths>
}

/** Both return the exit code. */
interface ConsolePrograms {
  /** Runs unattended, on one console only; null: the server orders nothing. */
  readonly drive: (() => Promise<number>) | null
  guest(): Promise<number>
}

const SCREEN = '/dev/tty1'
const HEAD_START_MS = 1500
/** Drivers of disks may still be loading at the first console. */
const SETTLE_SECONDS = 30

/** The exit code; 0 tells the service manager that nothing is left to do. */
export async function serveConsole(
  console: LiveConsole,
  choose: (kernelArguments: string) => ConsolePrograms,
): Promise<number> {
  const paths = { ...CONSOLE_PATHS, ...console.paths }
  const [version, kernelArguments] = await Promise.all([
    readVersion(),
    readKernelArguments(paths.kernelArguments),
  ])
  const marks = createMarks(paths)
  await marks.mark(`entered v${version}`)
  try {
    return await runPrograms(choose(kernelArguments), console, paths)
  } finally {
    await marks.mark(`exiting v${version}`)
  }
}

async function runPrograms(
  { drive, guest }: ConsolePrograms,
  console: LiveConsole,
  paths: ConsolePaths,
): Promise<number> {
  if (drive === null) return await guest()
  // The screen goes first: a serial line may have nobody at its other end.
  if ((await readOwnTerminal(paths.terminal)) !== SCREEN)
    await linger(HEAD_START_MS, console.signal)
  const lock = await takeDriverLock(paths.lock)
  if (lock !== null && (await startTry(paths.driven))) {
    await using _held = lock
    await settle(console)
    const code = await drive()
    await endTry(paths.driven)
    return code
  }
  await lock?.[Symbol.asyncDispose]()
  const stdout = encodeOutput(console.stdout, console.env)
  const viewer = { ...console, stdout, statusPath: paths.status }
  if (lock === null && (await viewConsole(viewer)) === 'ended') return 0
  return await guest()
}

/** An unattended program does not look at the disks again. */
async function settle({ env, signal }: LiveConsole): Promise<void> {
  const { createShell } = await import('#kit/host/shell.ts')
  const { settleFirstDevices } = await import('#engine/disk/udev.ts')
  await settleFirstDevices(createShell({ env }), { seconds: SETTLE_SECONDS, signal })
}

/** `/dev/tty1`; empty: unknown. `path`: the link of our standard input. */
const readOwnTerminal = (path: string): Promise<string> => readlink(path).catch(() => '')
