/** `flasher`: the wizard or a subcommand, by its arguments. Started through flasher.mjs. */
import { constants } from 'node:os'
import process from 'node:process'
import { leave, openProcess } from './open-process.ts'

/** The exit code of a command that was cancelled, whatever cancelled it. */
const CANCELLED = 128 + constants.signals.SIGINT

// Reads and writes of disks wait in these threads; the size counts until the first of them is used.
process.env['UV_THREADPOOL_SIZE'] ??= '64'

const environment = openProcess('flasher', ['SIGINT', 'SIGTERM', 'SIGHUP'])
// Loaded only now, so that the setting above counts for all of it.
const { flasher } = await import('./flasher-program.ts')
const code = await flasher({
  ...environment,
  arch: process.arch,
  now: () => performance.now() / 1000,
})
await leave(code === CANCELLED ? (environment.interruptedCode() ?? code) : code)
