/**
 * Compiles the wizard, and what runs before it on a stick, into the compile cache. Runs
 * once, when the image is built, with the `node` beside it: V8 rejects code that was compiled with other flags.
 */
import { enableCompileCache, flushCompileCache } from 'node:module'

enableCompileCache('/var/cache/flasher')
const files = [
  'lines/current/wizard/live/live.ts',
  'lines/current/wizard/program.ts',
  'live/images.ts',
]
for (const file of files) await import(`/usr/lib/flasher/runtime/${file}`)
flushCompileCache()
