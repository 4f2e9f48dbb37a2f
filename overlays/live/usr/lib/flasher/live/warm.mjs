/**
 * Compiles what the wizard consists of into its compile cache. Runs once, when the image is made, with the
 * flags of `console`: V8 takes no code that was made with others.
 */
import { enableCompileCache, flushCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'

enableCompileCache('/var/cache/flasher')
// As in flasher-live.mjs.
setFlagsFromString('--semi-space-growth-factor=1')
const line = '/usr/lib/flasher/runtime/lines/current/wizard'
for (const file of ['live.ts', 'program.ts']) await import(`${line}/${file}`)
flushCompileCache()
