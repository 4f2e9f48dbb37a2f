#!/usr/bin/env node
/** Starts flasher.ts; see compile-cache.mjs. */
import { setFlagsFromString } from 'node:v8'
// oxlint-disable-next-line import/no-unassigned-import -- it turns the compile cache on
import './compile-cache.mjs'

// Buffers are what a flash is made of, and they live outside of V8's heap: its space for new
// objects stays small instead of growing to 48 MiB.
setFlagsFromString('--semi-space-growth-factor=1')
// Node strips no types below node_modules: the npm package brings the same programs compiled.
if (import.meta.url.includes('/node_modules/')) {
  await import(new URL('../../dist/package/runtime/bin/flasher.js', import.meta.url).href)
} else {
  await import('./flasher.ts')
}
