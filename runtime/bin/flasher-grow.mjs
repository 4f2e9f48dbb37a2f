#!/usr/bin/env node
/** Starts flasher-grow.ts; see compile-cache.mjs. */
import './compile-cache.mjs'

await import('./flasher-grow.ts')
