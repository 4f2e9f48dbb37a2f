/** `flasher-tui`: the two panes of the earlier line. Started through flasher-tui.mjs. */
import process from 'node:process'
import { leave, openProcess } from './open-process.ts'

// The threads for disks are as many as in flasher.ts.
process.env['UV_THREADPOOL_SIZE'] ??= '64'

const environment = openProcess('flasher-tui', ['SIGINT', 'SIGTERM', 'SIGHUP'])
const { tui } = await import('#flasher/programs.ts')
const code = await tui({ ...environment, now: () => performance.now() / 1000 })
await leave(environment.interruptedCode() ?? code)
