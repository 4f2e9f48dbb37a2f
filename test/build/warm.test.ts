/** The compile cache of the live system: made when the image is built, it holds all that a start loads. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposableSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

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
  const command = `exec ${program.join(' ')} 2>${log}`
  const env = { ...process.env, NODE_COMPILE_CACHE: cache, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }
  const child = spawn('script', ['--quiet', '--command', command, '/dev/null'], {
    env: { ...env, FLASHER_IMAGE_ROOT: folder.path, LANG: 'C.UTF-8', TERM: 'xterm' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const wasThere = said.includes('[q] quit')
    said += text
    if (!wasThere && said.includes('[q] quit')) child.stdin.write('q\r')
  })
  await once(child, 'close')
  assert.match(said, '[q] quit')
  const read = readFileSync(log, 'utf8')
  assert.match(read, /StrippedTypeScript file:\S*\/runtime\/bin\/flasher-live\.ts\.\.\. ?success/)
  assert.equal(
    [...read.matchAll(MISSING)].map(([, path]) => path),
    [],
  )
})

test('two builds compile to the same bytes', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-warm-'))
  const [one, two] = ['one', 'two'].map((name) => join(folder.path, name))
  for (const cache of [one, two]) compile(cache ?? '')
  assert.is(execFileSync('diff', ['-r', one ?? '', two ?? ''], { encoding: 'utf8' }), '')
})

test.run()
