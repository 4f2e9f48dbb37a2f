/**
 * Compiles what the wizard consists of into its compile cache. Runs once, when the image is made, by
 * `node` beside it: V8 takes no code that was made with other flags.
 */
import { enableCompileCache, flushCompileCache } from 'node:module'

enableCompileCache('/var/cache/flasher')
const line = '/usr/lib/flasher/runtime/lines/current/wizard'
for (const file of ['live.ts', 'program.ts']) await import(`${line}/${file}`)
flushCompileCache()
