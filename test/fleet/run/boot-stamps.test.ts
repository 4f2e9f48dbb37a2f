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

test('machines that never flash are forgotten', () => {
  const stamps = createBootStamps(() => new Date(0))
  for (let at = 0; at < 10_001; at++) stamps.note(`m${at}`, 'power_on_at')
  assert.equal([stamps.take('m0'), Object.keys(stamps.take('m10000'))], [{}, ['power_on_at']])
})

test.run()
