/**
 * Compiles the wizard, and what runs before it on a stick, into the compile cache. Runs
 * once, when the image is built, with the `node` beside it: V8 rejects code that was compiled with other flags.
 */
import { enableCompileCache, flushCompileCache } from 'node:module'

enableCompileCache('/var/cache/flasher')
const runtime = '/usr/lib/flasher/runtime'
const wizard = `${runtime}/lines/current/wizard`
for (const file of [`${wizard}/live.ts`, `${wizard}/program.ts`, `${runtime}/live/programs.ts`]) {
  await import(file)
}
flushCompileCache()
