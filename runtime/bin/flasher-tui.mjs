#!/usr/bin/env node
/** Starts flasher-tui.ts; see compile-cache.mjs and flasher.mjs. */
import { setFlagsFromString } from 'node:v8'
// oxlint-disable-next-line import/no-unassigned-import -- it turns the compile cache on
import './compile-cache.mjs'

setFlagsFromString('--semi-space-growth-factor=1')
// Node strips no types below node_modules: the npm package brings the same programs compiled.
if (import.meta.url.includes('/node_modules/')) {
  await import(new URL('../../dist/package/runtime/bin/flasher-tui.js', import.meta.url).href)
} else {
  await import('./flasher-tui.ts')
}
