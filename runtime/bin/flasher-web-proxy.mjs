#!/usr/bin/env node
/** Starts flasher-web-proxy.ts; see compile-cache.mjs. */
// oxlint-disable-next-line import/no-unassigned-import -- it turns the compile cache on
import './compile-cache.mjs'

// Node strips no types below node_modules: the npm package brings the same programs compiled.
if (import.meta.url.includes('/node_modules/')) {
  await import(new URL('../../dist/package/runtime/bin/flasher-web-proxy.js', import.meta.url).href)
} else {
  await import('./flasher-web-proxy.ts')
}
