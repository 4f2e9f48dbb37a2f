/** The units of our services confine them, as systemd itself judges. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('units')
const OVERLAY = join(import.meta.dirname, '../../overlays/service/usr/lib')
const isThere = spawnSync('systemd-analyze', ['--version']).status === 0
const run = isThere ? test : test.skip

/** 0 is best, 10 worst. */
function judge(unit: string, dropIn: string | null): number {
  const folder = mkdtempSync(join(tmpdir(), 'flasher-units-'))
  try {
    const file = join(folder, unit)
    cpSync(join(OVERLAY, 'systemd/system', unit), file)
    if (dropIn !== null) {
      mkdirSync(`${file}.d`)
      cpSync(join(OVERLAY, 'flasher/service', dropIn), join(`${file}.d`, dropIn))
    }
    const argv = ['security', '--offline=yes', '--no-pager', file]
    const { stdout, stderr } = spawnSync('systemd-analyze', argv, { encoding: 'utf8' })
    const [, level] = /Overall exposure level for .*: ([\d.]+)/.exec(stdout) ?? []
    assert.ok(level !== undefined, stdout + stderr)
    return Number(level)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const [web, cache, earlier] = [
  () => judge('flasher-web.service', null),
  () => judge('flasher-cache.service', null),
  () => judge('flasher-web.service', 'earlier-web.conf'),
]

run('server and cache are below 3', () => {
  assert.ok(web() < 3)
  assert.ok(cache() < 3)
})

run('the server of the earlier line gains privileges on purpose, and no more than it did', () => {
  const level = earlier()
  assert.ok(level < 6.5, String(level))
})

run('the document has these figures', () => {
  const text = readFileSync('docs/appliance.md', 'utf8').replaceAll('\n', ' ')
  const [, ours, theirs] =
    /rates [^.]* (\d\.\d)\. The server of the earlier line has (\d\.\d):/.exec(text) ?? []
  assert.equal([Number(ours), Number(ours), Number(theirs)], [web(), cache(), earlier()])
})

test.run()
