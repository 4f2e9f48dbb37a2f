/** A console of the live system: one of them does what the server asks, the others look on or serve a person. */
import {
  CONSOLE_PATHS,
  type ConsolePaths,
  isDriven,
  parseLiveBoot,
  renderDriverArgs,
  renderGuestArgs,
  renderWizardEnv,
  type LiveBoot,
} from '#fleet/boot/rules/live-boot.ts'
import { createMarks } from '#kit/host/marks.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import type { Environment } from '#kit/host/shell.ts'
import { linger } from '#kit/host/watch.ts'
import { encodeOutput, type Output } from '#kit/terminal/text/terminal-style.ts'
import { readlink, readFile, appendFile, mkdir, stat, writeFile, open } from 'node:fs/promises'
import { parseServerAddress } from '#kit/net/rules/host-header.ts'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StringDecoder } from 'node:string_decoder'
import { printable } from '#kit/foundation/printable.ts'

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
  const { settleFirstDevices } = await import('#engine/disk/disks.ts')
  await settleFirstDevices(createShell({ env }), { seconds: SETTLE_SECONDS, signal })
}

/** `/dev/tty1`; empty: unknown. `path`: the link of our standard input. */
const readOwnTerminal = (path: string): Promise<string> => readlink(path).catch(() => '')

// Starts the wizard on each console of the live system, as the kernel command line asks.

export interface ConsoleEnvironment extends LiveConsole {
  /** Returns the exit code. */
  wizard(argv: readonly string[], env: Environment): Promise<number>
}

/** The exit code; 0 tells the service manager that nothing is left to do. */
export const serveCurrentConsole = (environment: ConsoleEnvironment): Promise<number> =>
  serveConsole(environment, (kernelArguments) => {
    const boot = parseLiveBoot(kernelArguments)
    return {
      drive: isDriven(boot) ? () => driveWizard(boot, environment) : null,
      guest: () => serveGuest(boot, environment),
    }
  })

const driveWizard = (boot: LiveBoot, { env, wizard }: ConsoleEnvironment): Promise<number> =>
  wizard(renderDriverArgs(boot), { ...env, ...renderWizardEnv(boot) })

async function serveGuest(boot: LiveBoot, environment: ConsoleEnvironment): Promise<number> {
  const base = await findBase(boot, environment)
  const env = { ...environment.env, ...renderWizardEnv(boot, base) }
  return await environment.wizard(renderGuestArgs(boot, base), env)
}

/** A person waits for the first screen. */
const SEARCH_MS = 5000

/** Null: no server is named, or none answers. */
async function findBase(
  { server, others }: LiveBoot,
  { signal }: ConsoleEnvironment,
): Promise<string | null> {
  const bases = parseServerAddress(server ?? '')
  if (!bases.ok) return null
  const [base, ...more] = [...bases.value, ...others]
  if (more.length === 0) return base ?? null
  const { findServer } = await import('#flasher/link/server-client.ts')
  const found = await findServer([...bases.value, ...others], { signal, timeoutMs: SEARCH_MS })
  return found ?? bases.value.at(-1) ?? null
}

/** `path`: /proc/cmdline; empty where it is missing. */
export const readKernelArguments = (path: string): Promise<string> =>
  readFile(path, 'utf8').catch(() => '')

// A lock between processes of this machine, which the kernel releases when its holder dies.

/** Null: another process has it. A socket in the kernel's name space leaves nothing behind. */
export function takeDriverLock(name: string): Promise<AsyncDisposable | null> {
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(null)
      else reject(error)
    })
    server.listen(`\0${name}`, () => resolve(server.unref()))
  })
}

/** A program that died is started again, but not for ever. */
const MAX_TRIES = 3

/** False: no more tries. True where they cannot be counted. Only for the holder of the lock. */
async function startTry(path: string): Promise<boolean> {
  try {
    await mkdir(dirname(path), { recursive: true })
    await appendFile(path, TRY)
    return (await stat(path)).size <= MAX_TRIES
  } catch {
    return true
  }
}

/** A try that came to any end is the last one. */
const endTry = (path: string): Promise<void> =>
  writeFile(path, TRY.repeat(MAX_TRIES)).catch(() => undefined)

const TRY = '.'

// Shows the status of the driven wizard on another console, until a key is pressed there.

/** A pipe has no raw mode. */
interface Keys {
  readonly isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
  once(event: 'data', listener: () => void): unknown
  off(event: 'data', listener: () => void): unknown
  resume(): unknown
  pause(): unknown
}

/** `key`: a person wants a wizard; `ended`: the program was asked to end. */
async function viewConsole(environment: {
  readonly stdin: Keys
  readonly stdout: Output
  readonly statusPath: string
  readonly signal: AbortSignal
}): Promise<'key' | 'ended'> {
  const { stdin, stdout, statusPath, signal } = environment
  const keyPressed = new AbortController()
  const stop = () => keyPressed.abort()
  stdout.write(
    `Another console of this machine carries out what its server requests; it is shown here.\r\nPress a key for a wizard of your own.\r\n\r\n`,
  )
  stdin.setRawMode?.(true)
  stdin.once('data', stop)
  stdin.resume()
  try {
    for await (const line of followLines(statusPath, {
      signal: AbortSignal.any([signal, keyPressed.signal]),
    })) {
      stdout.write(`${printable(line)}\r\n`)
    }
  } finally {
    stdin.off('data', stop)
    stdin.setRawMode?.(false)
    stdin.pause()
  }
  return signal.aborted ? 'ended' : 'key'
}

const MAX_BYTES = 65_536

/** Whole lines only; waits for the file, and ends with the signal. */
export async function* followLines(
  path: string,
  {
    signal,
    everyMs = 300,
  }: {
    readonly signal: AbortSignal
    /** Milliseconds. */
    readonly everyMs?: number
  },
): AsyncGenerator<string, void, undefined> {
  const decoder = new StringDecoder('utf8')
  const into = Buffer.alloc(MAX_BYTES)
  let at = 0
  let rest = ''
  while (!signal.aborted) {
    const bytes = await readFrom(path, at, into)
    at += bytes
    rest += decoder.write(into.subarray(0, bytes))
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (bytes === 0) await sleep(everyMs, undefined, { signal }).catch(() => undefined)
  }
}

async function readFrom(path: string, at: number, into: Buffer): Promise<number> {
  try {
    await using file = await open(path)
    const { bytesRead } = await file.read(into, 0, into.length, at)
    return bytesRead
  } catch {
    return 0 // it comes, or it does not
  }
}
