#!/usr/bin/env node
/**
 * Starts flasher-live.ts. Plain JavaScript, because Node loads its type stripper for a program's first file
 * before that can turn the compile cache on; see compile-cache.mjs, and live/warm.mjs of the images.
 */
import { enableCompileCache } from 'node:module'
import { env } from 'node:process'

enableCompileCache('/var/cache/flasher')
// As in flasher.mjs: threads for the disk.
env['UV_THREADPOOL_SIZE'] ??= '64'
const { start } = await import('./flasher-live.ts')
await start()
