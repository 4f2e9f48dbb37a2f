import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createBootStamps } from '../../../runtime/fleet/run/boot-stamps.ts'

const test = suite('stamps of a boot')

test('a later boot takes the place of an earlier one, and a run takes them once', () => {
  const clock = { ms: 0 }
  const stamps = createBootStamps(() => new Date((clock.ms += 1000)))
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
  const stamps = createBootStamps(() => new Date(clock.seconds * 1000))
  const at = (seconds: number, act: () => void) => {
    clock.seconds = seconds
    act()
  }
  const ask = () => stamps.ask('a')
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
  const stamps = createBootStamps(() => new Date(0))
  for (let at = 0; at < 10_001; at++) stamps.note(`m${at}`, 'power_on_at')
  assert.equal([stamps.take('m0'), Object.keys(stamps.take('m10000'))], [{}, ['power_on_at']])
})

test.run()
