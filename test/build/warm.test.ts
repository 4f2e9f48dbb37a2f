/** The compile cache of the live system: made when the image is built, it holds all that a start loads. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTerminal } from '#test/support/terminal/tmux.ts'

const test = suite('compile cache of the live system')

const LIVE = 'overlays/live/usr/lib/flasher/live'
const MISSING = /for StrippedTypeScript file:\S*\/runtime\/(\S+?)\.\.\. ?no such file/g

/** V8 takes code only where these are the same. */
const flags = readFileSync(join(LIVE, 'node'), 'utf8').match(/--[\w-]+(=\w+)?/g) ?? []

const compile = (cache: string) =>
  execFileSync(process.execPath, [...flags, join(LIVE, 'warm.mjs'), resolve('runtime'), cache])

test('up to its first screen the wizard strips no types', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-warm-'))
  const cache = join(folder.path, 'cache')
  const log = join(folder.path, 'log')
  compile(cache)
  const program = [process.execPath, ...flags, resolve('runtime/bin/flasher-live.mjs')]
  const told = { NODE_COMPILE_CACHE: cache, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }
  const env = { ...told, FLASHER_IMAGE_ROOT: folder.path }
  await using terminal = await openTerminal(['sh', '-c', `${program.join(' ')} 2>${log}`], { env })
  await terminal.waitFor('[q] quit')
  const read = readFileSync(log, 'utf8')
  assert.match(read, /StrippedTypeScript file:\S*\/runtime\/bin\/flasher-live\.ts\.\.\. ?success/)
  assert.equal(
    [...read.matchAll(MISSING)].map(([, path]) => path),
    [],
  )
  assert.match(read, /runtime\/bin\/flasher-live\.ts was accepted/)
  assert.not.match(read, /was rejected/)
})

test('two builds compile to the same bytes', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-warm-'))
  const [one, two] = ['one', 'two'].map((name) => join(folder.path, name))
  for (const cache of [one, two]) compile(cache ?? '')
  assert.is(execFileSync('diff', ['-r', one ?? '', two ?? ''], { encoding: 'utf8' }), '')
})

test.run()
