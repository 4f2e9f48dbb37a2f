#!/usr/bin/env node
/**
 * Starts flasher.ts. Plain JavaScript, because Node loads its type stripper for a program's first
 * file before that can turn the compile cache on: 15 MB and half of the start-up time.
 */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { env, geteuid } from 'node:process'
import { setFlagsFromString } from 'node:v8'

// Never in a shared folder: what lies in the cache is run.
const home = env['XDG_CACHE_HOME'] || join(env['HOME'] ?? '/nonexistent', '.cache')
enableCompileCache(geteuid?.() === 0 ? '/var/cache/flasher' : join(home, 'flasher'))
// Buffers are what a flash is made of, and they live outside of V8's heap: its space for new
// objects stays small instead of growing to 48 MiB.
setFlagsFromString('--semi-space-growth-factor=1')
// Node strips no types below node_modules: the npm package brings the same programs compiled.
if (import.meta.url.includes('/node_modules/')) {
  await import(new URL('../../dist/package/runtime/bin/flasher.js', import.meta.url).href)
} else {
  await import('./flasher.ts')
}
