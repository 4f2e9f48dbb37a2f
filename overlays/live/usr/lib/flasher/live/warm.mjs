/**
 * Compiles what the consoles of the live system run, and what runs before them on a stick, into the compile
 * cache: `warm.mjs [RUNTIME [CACHE]]`. Runs once, when the image is built, with the `node` beside it: V8 rejects
 * code that was compiled with other flags. A module that is missing there costs a machine 15 MB and the loading of
 * Node's type stripper, so all are followed that these programs can ever load.
 */
import { readFileSync } from 'node:fs'
import { enableCompileCache, flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { argv } from 'node:process'
import { pathToFileURL } from 'node:url'

const [, , runtime = '/opt/flasher/runtime', cache = '/opt/flasher/cache'] = argv
const PROGRAMS = ['bin/flasher-live.ts', 'bin/flasher-grow.ts']
const SPECIFIER = /(?:from|import\()\s*'(\.[^']+\.ts)'/g

enableCompileCache(cache)
const found = new Set(PROGRAMS.map((path) => pathToFileURL(join(runtime, path)).href))
// A set also visits what is added meanwhile.
for (const url of found) {
  for (const [, path] of readFileSync(new URL(url), 'utf8').matchAll(SPECIFIER)) {
    found.add(new URL(path, url).href)
  }
}
for (const url of found) await import(url)
flushCompileCache()
