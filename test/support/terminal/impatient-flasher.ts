/** `flasher` as it is started, but a disk that holds up others fails after a second instead of a minute. */
import process from 'node:process'
import { leave, openProcess } from '#bin/open-process.ts'

process.env['UV_THREADPOOL_SIZE'] = '64'

const environment = {
  ...openProcess('flasher'),
  arch: process.arch,
  now: () => performance.now() / 1000,
  diskStallMs: 1000,
}
const { flasher } = await import('#bin/flasher-program.ts')
await leave(await flasher(environment))
