/** `flasher`: the wizard or a subcommand, by its arguments. Started through flasher.mjs. */
import { constants } from 'node:os'
import process from 'node:process'
import { endOnSurprise, flush } from './process-end.ts'

const { env, argv, stdin, stdout, stderr } = process
/** As a shell reports a program that SIGINT ended. */
const INTERRUPTED = 128 + constants.signals.SIGINT

// Reads and writes of disks wait in these threads; the size counts until the first of them is used.
env['UV_THREADPOOL_SIZE'] ??= '16'

const ending = new AbortController()
let endedBy: keyof typeof constants.signals | null = null

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(name, () => {
    const code = 128 + constants.signals[name]
    // The second time is meant: nothing is waited for.
    if (endedBy !== null) process.exit(code)
    endedBy = name
    ending.abort()
  })
}
endOnSurprise('flasher')

// Loaded only now, so that the setting above counts for all of it.
const { flasher } = await import('./flasher-program.ts')
const code = await flasher({
  argv: argv.slice(2),
  env,
  stdin,
  stdout,
  stderr,
  isRoot: process.geteuid?.() === 0,
  arch: process.arch,
  signal: ending.signal,
  now: () => performance.now() / 1000,
})
await flush()
process.exit(code === INTERRUPTED && endedBy !== null ? 128 + constants.signals[endedBy] : code)
