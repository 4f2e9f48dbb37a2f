import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planLayout } from '#build/initrd/layout.ts'
import type { Entry } from '#build/initrd/newc.ts'

const test = suite('layout of an initrd')

const file = (name: string): Entry => ({ kind: 'file', name, mode: 0o644, bytes: Buffer.alloc(0) })

test('programs come first, drivers late, and the mark of completeness last', () => {
  const names = planLayout([
    file('lib/modules/7.2/kernel/a.ko'),
    file('lib/flasher/tell.sh'),
    file('init'),
    file('lib/firmware/b.bin'),
    file('bin/busybox'),
  ]).map(({ name }) => name)
  const drivers = names.findIndex((name) => /^lib\/(modules|firmware)/.test(name))
  for (const early of ['init', 'bin/busybox', 'lib/flasher/tell.sh', 'dev/console']) {
    assert.ok(names.indexOf(early) < drivers, `${early} lies before the drivers`)
  }
  assert.ok(names.slice(drivers, -1).every((name) => /^lib\/(modules|firmware)/.test(name)))
  assert.is(names.at(-1), 'complete')
})

test('a folder is there before what lies in it', () => {
  const names = planLayout([file('a/b/c/d'), file('a/e')]).map(({ name }) => name)
  for (const name of names.filter((each) => each.includes('/'))) {
    const folder = name.slice(0, name.lastIndexOf('/'))
    assert.ok(names.indexOf(folder) !== -1 && names.indexOf(folder) < names.indexOf(name), name)
  }
})

test('the order of what comes in does not matter', () => {
  const entries = ['init', 'a/b', 'a/a', 'lib/modules/x'].map(file)
  assert.equal(planLayout(entries), planLayout(entries.toReversed()))
})

test.run()
