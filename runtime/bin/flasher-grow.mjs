#!/usr/bin/env node
/** Starts flasher-grow.ts; see compile-cache.mjs. */
// oxlint-disable-next-line import/no-unassigned-import -- it turns the compile cache on
import './compile-cache.mjs'

const { start } = await import('./flasher-grow.ts')
await start()
