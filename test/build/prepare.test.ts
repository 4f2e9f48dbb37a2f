/** What a build says of a host that it cannot prepare: a process of its own, with another `apt-get` in its PATH. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { NO_ARCHIVE } from '#build/debian/sources.ts'

const test = suite('prepare')
const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip
const MODULE = JSON.stringify(new URL('../../build/prepare.ts', import.meta.url).href)
const PROGRAM = `const { prepareHost } = await import(${MODULE})
console.log(String(await prepareHost({ compilesIpxe: false, makesTree: false, makesArm64: false }, () => {})))`

/** The obstacle that a build meets where `apt-get` is this script, and `path` follows it in PATH. */
function prepareWith(script: string, path: readonly string[]): string {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-prepare-'))
  writeFileSync(join(folder.path, 'apt-get'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const argv = ['--input-type=module', '--eval', PROGRAM]
  const env = { ...process.env, PATH: [folder.path, ...path].join(delimiter) }
  return execFileSync(process.execPath, argv, { encoding: 'utf8', env })
}

asRoot('when apt fails, its last lines are reported', () => {
  const said = prepareWith('echo "E: Unable to fetch some archives" >&2; exit 100', [])
  assert.match(said, /^apt-get did not install .*python3.*:\n/)
  assert.match(said, /^E: Unable to fetch some archives$/m)
  assert.match(said, /^Try: apt-get install .*python3/m)
})

const real = (process.env['PATH'] ?? '').split(delimiter)

asRoot('where apt knows no archive of Debian, nothing is begun', () => {
  const said = prepareWith('[ "$1" = indextargets ] || echo "E: no route" >&2', real)
  assert.is(said, `${NO_ARCHIVE}\nE: no route\n`)
})

asRoot('an archive of another release than the host says to run is enough', () => {
  const said = prepareWith('echo "http://one.example/|sid|main"', real)
  assert.is(said, 'null\n')
})

test.run()
