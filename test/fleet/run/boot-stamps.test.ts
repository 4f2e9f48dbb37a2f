import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseBootTimes } from '#fleet/run/rules/waterfall.ts'
import { createBootStamps } from '#fleet/run/running-runs.ts'
import { createChanges } from '#kit/host/changes.ts'

const test = suite('stamps of a boot')

test('a later boot takes the place of an earlier one, and a run takes them once', () => {
  const clock = { ms: 0 }
  const stamps = createBootStamps(() => new Date((clock.ms += 1000)), createChanges())
  const times = () =>
    Object.entries(stamps.take('a')).map(([name, at]) => `${name} ${Date.parse(at ?? '') / 1000}`)
  stamps.note('a', 'power_on_at')
  stamps.note('a', 'kernel_at')
  stamps.note('a', 'initrd_at')
  stamps.note('a', 'kernel_at')
  assert.equal(times(), ['power_on_at 1', 'kernel_at 4'])
  assert.equal(times(), [])
  stamps.note('a', 'initrd_at')
  stamps.note('a', 'power_on_at')
  assert.equal(times(), ['power_on_at 6'])
})

test('what turned a machine on belongs to the first boot after it, and files to the boot that asked for them', () => {
  const clock = { seconds: 0 }
  const changes = createChanges()
  const stamps = createBootStamps(() => new Date(clock.seconds * 1000), changes)
  const at = (seconds: number, act: () => void) => {
    clock.seconds = seconds
    act()
  }
  const ask = () => changes.announce({ topic: 'boot', mac: 'a', isToDisk: true })
  const names = () => Object.keys(stamps.take('a'))
  at(0, ask)
  at(0, () => stamps.note('a', 'power_on_at'))
  at(90, ask)
  at(93, ask)
  at(95, () => stamps.note('a', 'kernel_at'))
  assert.equal(names(), ['power_on_at', 'kernel_at'])

  // It booted its own disk, and was restarted by a person.
  at(0, () => stamps.note('a', 'power_on_at'))
  at(90, ask)
  at(900, ask)
  at(901, () => stamps.note('a', 'kernel_at'))
  assert.equal(names(), ['kernel_at'])

  // Its firmware asked nobody the first time.
  at(0, () => stamps.note('a', 'power_on_at'))
  at(86_400, ask)
  assert.equal(names(), [])

  // The live system was only looked at; the next one gets its files elsewhere.
  at(0, () => stamps.note('a', 'kernel_at'))
  at(1, () => stamps.note('a', 'initrd_at'))
  at(900, ask)
  assert.equal(names(), [])
})

test('machines that never flash are forgotten', () => {
  const stamps = createBootStamps(() => new Date(0), createChanges())
  for (let at = 0; at < 10_001; at++) stamps.note(`m${at}`, 'power_on_at')
  assert.equal([stamps.take('m0'), Object.keys(stamps.take('m10000'))], [{}, ['power_on_at']])
})

test('what a live system says of its boot counts by the clock of the server, and within this boot', () => {
  const clock = { seconds: 0 }
  const changes = createChanges()
  const stamps = createBootStamps(() => new Date(clock.seconds * 1000), changes)
  const tell = (seconds: number, query: Readonly<Record<string, string>>) => {
    clock.seconds = seconds
    const times = parseBootTimes(query)
    if (times !== null) stamps.tell('a', times)
  }
  const take = () =>
    Object.entries(stamps.take('a'))
      .filter(([name]) => name !== 'initrd_at')
      .map(([name, at]) => `${name} ${Date.parse(at ?? '') / 1000}`)
  const asks = () => {
    clock.seconds = 100
    stamps.note('a', 'initrd_at')
  }
  asks()
  tell(140, { up: '38.5', system: '30.25', firmware: '12' })
  assert.equal(take(), ['start_at 101.5', 'system_at 131.75', 'reset_at 89.5'])
  // It is asked again while it waits: the boot began when it did.
  asks()
  tell(140, { up: '38.5', system: '30.25' })
  tell(170, { up: '68.5', system: '30.25' })
  assert.equal(take(), ['start_at 101.5', 'system_at 131.75'])
  // Clocks that differ a little, and a machine that did not boot what it was given.
  asks()
  tell(140, { up: '41', system: '30' })
  assert.equal(take(), ['start_at 100', 'system_at 129'])
  asks()
  tell(140, { up: '4000', system: '30' })
  assert.equal(take(), [])
})

test('times that cannot be are none', () => {
  for (const query of [
    {},
    { up: '10' },
    { up: '10', system: '11' },
    { up: '-1', system: '-2' },
    { up: '1e5', system: '1' },
    { up: '99999', system: '1' },
    { up: '10.1234', system: '1' },
    { up: 'NaN', system: '1' },
  ]) {
    assert.is(parseBootTimes(query), null, JSON.stringify(query))
  }
  assert.equal(parseBootTimes({ up: '10', system: '1', firmware: 'x' }), {
    up: 10,
    system: 1,
    firmware: null,
  })
})

test.run()
