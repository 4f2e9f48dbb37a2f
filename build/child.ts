/** Runs the program of one step, with its words in a log. */
import { spawn } from 'node:child_process'
import { open, readFile } from 'node:fs/promises'

interface ChildOptions {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly log: string
  /** Held while it runs, so that two builders do not share a folder at once; null: none. */
  readonly lock: string | null
}

/** How much of a log is shown where a step failed. */
const TAIL = { lines: 25, bytes: 16 * 1024 }

/** Null: it ended well; else why not, for people. */
export async function runChild({ argv, cwd, env, log, lock }: ChildOptions): Promise<string | null> {
  const [name = '', ...args] = lock === null ? argv : ['flock', lock, ...argv]
  await using file = await open(log, 'w')
  await file.write(`${argv.join(' ')}\n\n`)
  const child = spawn(name, args, {
    cwd,
    env: { ...process.env, TZ: 'UTC', LC_ALL: 'C.UTF-8', SOURCE_DATE_EPOCH: undefined, ...env },
    stdio: ['ignore', file.fd, file.fd],
  })
  return await new Promise((resolve) => {
    child.once('error', ({ message }) => resolve(`${name} did not start: ${message}`))
    child.once('exit', (code, signal) => {
      if (code === 0) resolve(null)
      else resolve(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`)
    })
  })
}

/** The last lines of a log, without those that say nothing. */
export async function readTail(log: string): Promise<readonly string[]> {
  const text = await readFile(log, 'utf8').catch(() => '')
  const lines = text.slice(-TAIL.bytes).split(/[\r\n]+/)
  return lines.filter((line) => line.trim() !== '').slice(-TAIL.lines)
}
