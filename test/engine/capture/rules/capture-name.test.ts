/** Names of captured images, by template and machine. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { CaptureNameSchema, NAME_FOR_EACH, nameCapture } from '#engine/capture/rules/order.ts'
import { parseMac } from '#kit/net/rules/mac.ts'

const test = suite('names of captured images')
const parsed = parseMac('52:54:00:00:00:2a')
if (!parsed.ok) throw new Error('no MAC address')
const mac = parsed.value
const machineOf = (name: string | null, hostname: string | null = null) => ({ mac, name, hostname })

test('each placeholder stands for what the machine has', () => {
  const rows = [
    [NAME_FOR_EACH, 'Web 42', null, 'Web-42-52-54-00-00-00-2a.img.zst'],
    [NAME_FOR_EACH, null, 'web-42', 'web-42-52-54-00-00-00-2a.img.zst'],
    [NAME_FOR_EACH, null, null, 'machine-52-54-00-00-00-2a.img.zst'],
    ['{name}.img.zst', null, null, '52-54-00-00-00-2a.img.zst'],
    ['{name}.img.zst', '../{mac}', null, 'mac.img.zst'],
    ['lab-{mac}-{mac}.img.zst', 'x', null, 'lab-52-54-00-00-00-2a-52-54-00-00-00-2a.img.zst'],
    ['plain {serial}.img.zst', 'x', null, 'plain {serial}.img.zst'],
  ] as const
  for (const [template, name, hostname, value] of rows) {
    assert.equal(nameCapture(machineOf(name, hostname), template), { ok: true, value }, template)
  }
})

test('whatever a machine is called, its image has the name of a file, or is refused in words', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (name) => {
      const named = nameCapture(machineOf(name), NAME_FOR_EACH)
      if (named.ok) assert.ok(CaptureNameSchema.safeParse(named.value).success)
      else assert.match(named.refusal, /^No image can be called /)
    }),
  )
  const long = nameCapture(machineOf('x'), `${'{mac}'.repeat(20)}.img.zst`)
  assert.match(long.ok ? '' : long.refusal, 'must be at most 255 bytes long')
})

test.run()
