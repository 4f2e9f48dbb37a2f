#!/usr/bin/env node
/**
 * Starts flasher-live.ts. Plain JavaScript, because Node loads its type stripper for a program's
 * first file before that can turn the compile cache on; see flasher.mjs.
 */
import { enableCompileCache } from 'node:module'
import { env } from 'node:process'
import { setFlagsFromString } from 'node:v8'

enableCompileCache('/var/cache/flasher')
// As in flasher.mjs: threads for the disk, and a small space for new objects.
env['UV_THREADPOOL_SIZE'] ??= '16'
setFlagsFromString('--semi-space-growth-factor=1')
await import('./flasher-live.ts')
