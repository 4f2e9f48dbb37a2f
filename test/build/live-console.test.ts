/** What keeps the wizard on a console: it comes again by a key, and a line that is dead costs nothing. */
import { spawnSync } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LIVE_PATHS } from '#appliance/contract.ts'

const test = suite('console of the live system')
const SCRIPT = join(import.meta.dirname, '../../overlays/live/usr/lib/flasher/live/console')

interface Scene {
  /** How the wizard ends. */
  readonly code: number
  readonly typed: string
}

/** How often the wizard starts, and whether a rest is the last that is seen. Rests take no time here: a shell's own `sleep` comes first. */
function play({ code, typed }: Scene) {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-console-'))
  const log = join(folder.path, 'log')
  const script = readFileSync(SCRIPT, 'utf8')
  assert.match(script, `home=${LIVE_PATHS.home}\n`)
  const wizard = `#!/bin/sh\necho wizard >>${log}\nexit ${code}\n`
  writeFileSync(join(folder.path, 'node'), wizard, { mode: 0o755 })
  const ours = script.replace(
    'live=/usr/lib/flasher/live\n',
    `live=${folder.path}; sleep() { echo "rest $1" >>${log}; }\n`,
  )
  // busybox's shell and this one agree on all that is used.
  const { status } = spawnSync('bash', ['-c', ours], { input: typed, timeout: 30_000 })
  const lines = readFileSync(log, 'utf8').trim().split('\n')
  return {
    status,
    starts: lines.filter((line) => line === 'wizard').length,
    hasRested: lines.at(-1) === 'rest 20',
  }
}

for (const code of [0, 1]) {
  test(`a dead line, a wizard that ends with ${code}: one start, then a rest`, () => {
    assert.equal(play({ code, typed: '' }), { status: 0, starts: 1, hasRested: true })
  })

  test(`Enter, a wizard that ends with ${code}: it starts again`, () => {
    assert.equal(play({ code, typed: '\n\n' }), { status: 0, starts: 3, hasRested: true })
  })
}

test.run()
