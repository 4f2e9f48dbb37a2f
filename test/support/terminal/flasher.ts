/** The real program as a child process: what it printed on each stream and how it ended. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const FLASHER = fileURLToPath(new URL('../../../runtime/bin/flasher.mjs', import.meta.url))

export interface Ended {
  /** As a shell reports it: 128 and the signal's number where a signal ended it. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Run as this user, who may read this checkout wherever it lies. */
  readonly uid?: number
  /** A command that starts it: in a namespace, say. */
  readonly prefix?: readonly string[]
  /** Another program than `flasher`: its path. */
  readonly program?: string
  /** Options for node itself. */
  readonly nodeOptions?: readonly string[]
}

export interface Started {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** Resolves once the text was said on either stream; rejects when the program ends before. */
  saw(text: string): Promise<void>
}

/** Starts it in an environment that has nothing of the test's own but the way to the tools. */
export function startFlasher(argv: readonly string[], options: StartOptions = {}): Started {
  const { env, uid, prefix = [], nodeOptions = [], cwd, program = FLASHER } = options
  const all = [process.execPath, ...nodeOptions, program, ...argv]
  const [command = '', ...words] = [...prefix, ...(uid === undefined ? [] : asUser(uid)), ...all]
  const child = spawn(command, words, {
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', LANG: 'C.UTF-8', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  })
  // The program may end before it has read what it was given.
  child.stdin.on('error', () => {})
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text
    })
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      const number = signal === 'SIGKILL' ? 137 : 129
      resolve({ code: code ?? number, ...said })
    })
  })
  return {
    child,
    ended,
    saw: (text) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (said.stdout.includes(text) || said.stderr.includes(text)) resolve()
        }
        child.stdout.on('data', look)
        child.stderr.on('data', look)
        child.on('close', () => {
          look()
          reject(new Error(`ended without "${text}": ${said.stdout}${said.stderr}`))
        })
        look()
      }),
  }
}

/** A checkout below `/root` is closed to all others, and so would be the program and Node itself. */
function asUser(uid: number): readonly string[] {
  const user = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
  const can = spawnSync('setpriv', [
    ...user.slice(1),
    'test',
    '-r',
    FLASHER,
    '-a',
    '-x',
    process.execPath,
  ])
  if (can.status === 0) return user
  return [...user, '--inh-caps=+dac_read_search', '--ambient-caps=+dac_read_search']
}

/** Runs it to its end, with nothing or `input` on its standard input. */
export async function runFlasher(
  argv: readonly string[],
  { input = '', ...options }: StartOptions & { readonly input?: string | Buffer } = {},
): Promise<Ended> {
  const { child, ended } = startFlasher(argv, options)
  child.stdin?.end(input)
  return await ended
}
