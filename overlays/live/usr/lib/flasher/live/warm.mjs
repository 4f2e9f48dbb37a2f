/**
 * Compiles what the consoles of the live system run, and what runs before them on a stick, into the compile
 * cache: `warm.mjs [RUNTIME [CACHE]]`. Runs once, when the image is built, with the `node` beside it: V8 rejects
 * code that was compiled with other flags. A module that is missing there costs a machine 15 MB and the loading of
 * Node's type stripper, so all are followed that these programs can ever load.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { enableCompileCache, flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { argv, execArgv, execPath } from 'node:process'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'

const [, , runtime = '/opt/flasher/runtime', cache = '/opt/flasher/cache'] = argv
const PROGRAMS = ['bin/flasher-live.ts', 'bin/flasher-grow.ts']
const SPECIFIER = /(?:from|import\()\s*'([.#][^']+\.ts)'/g
/** These load nothing, and what they name may not be in the image. */
const TYPES_ONLY = /^import type [^'{\n]* from '[^']+'$|^import type \{[^}]*\} from '[^']+'$/gm
const { imports } = JSON.parse(readFileSync(join(runtime, '../package.json'), 'utf8'))

/**
 * With so much room nothing is collected while it compiles. V8 leaves gaps in code as they are: in memory that
 * was used before, they hold something else: one build in ten differed on a busy machine.
 */
const ROOM = ['--min-semi-space-size', '--max-semi-space-size']
const withRoom = ROOM.map((name) => `${name}=256`)

if (execArgv.includes(withRoom[0])) await compile()
else execFileSync(execPath, [...execArgv, ...withRoom, ...argv.slice(1)], { stdio: 'inherit' })

async function compile() {
  enableCompileCache(cache)
  const found = new Set(PROGRAMS.map((path) => pathToFileURL(join(runtime, path)).href))
  // A set also visits what is added meanwhile.
  for (const url of found) {
    const text = readFileSync(new URL(url), 'utf8').replaceAll(TYPES_ONLY, '')
    for (const [, path] of text.matchAll(SPECIFIER)) {
      found.add(path.startsWith('#') ? findRoom(path) : new URL(path, url).href)
    }
  }
  for (const url of found) await import(url)
  // Back to their defaults, for they count as well.
  for (const name of ROOM) setFlagsFromString(`${name}=0`)
  flushCompileCache()
}

/** `#kit/host/shell.ts` by the `imports` of package.json. */
function findRoom(path) {
  for (const [pattern, target] of Object.entries(imports)) {
    const [head, tail] = pattern.split('*')
    if (!path.startsWith(head)) continue
    const rest = path.slice(head.length, -tail.length)
    return pathToFileURL(
      join(
        runtime,
        '..',
        target.replace('*', () => rest),
      ),
    ).href
  }
  throw new Error(`${path} is in no room of package.json`)
}
