/** Boot tokens: what they carry, what voids them, and that nobody reads them by accident. */
import * as fc from 'fast-check'
import { createHmac } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  hideBootTokens,
  parseBootToken,
  renderBootToken,
  type BootToken,
  renderKernelArgs,
} from '#fleet/boot/rules/boot-decision.ts'
import { MAC, macOf } from '#test/support/server/machine-fixture.ts'

const test = suite('boot token')

const sign = (text: string) => createHmac('sha256', 'key').update(text).digest('base64url')
const verify = (text: string, signature: string) => sign(text) === signature

const NOW = '2026-05-01T00:00:00.000Z'
const TOKEN: BootToken = {
  cycle: '2026-04-30T23:59:59.123Z',
  expiresAt: '2026-05-02T00:00:00.000Z',
}
const text = renderBootToken(MAC, TOKEN, sign)

test('says the cycle and when it ends, in words of a kernel command line', () => {
  assert.equal(parseBootToken(text, { mac: MAC, now: NOW, isOpen: false }, verify), {
    ok: true,
    value: TOKEN,
  })
  assert.ok(text.length < 70, text)
  assert.is(renderKernelArgs([['flasher.token', text]]), `flasher.token=${text}`)
})

test('holds for one machine, one server and until its time', () => {
  const parse = (mac: typeof MAC, now: string, given = text) =>
    parseBootToken(given, { mac, now, isOpen: false }, verify)
  assert.equal(parse(macOf('52:54:00:12:34:57'), NOW), { ok: false, refusal: 'foreign' })
  assert.equal(parse(MAC, TOKEN.expiresAt), { ok: false, refusal: 'expired' })
  assert.is(parse(MAC, '2026-05-01T23:59:59.999Z').ok, true)
  assert.equal(
    parseBootToken(text, { mac: MAC, now: NOW, isOpen: false }, () => false),
    {
      ok: false,
      refusal: 'foreign',
    },
  )
  for (const other of ['', 'x', `${text}=`, `${text} `, text.replaceAll('.', ','), 'a.b.c']) {
    assert.equal(parse(MAC, NOW, other), { ok: false, refusal: 'malformed' }, other)
  }
})

test('nobody lengthens it, or makes one of nothing', () => {
  const anyText = fc.string({ minLength: 1, maxLength: 90, unit: 'binary' })
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.constantFrom(...'09az.-_A'), (at, character) => {
      const other = `${text.slice(0, at)}${character}${text.slice(at + 1)}`
      const parsed = parseBootToken(other, { mac: MAC, now: NOW, isOpen: false }, verify)
      assert.is(parsed.ok, other === text, other)
    }),
  )
  fc.assert(
    fc.property(anyText, (other) => {
      assert.is(parseBootToken(other, { mac: MAC, now: NOW, isOpen: false }, verify).ok, false)
    }),
  )
})

test('is hidden where people read command lines', () => {
  const line = `console=tty0 flasher.token=${text} flasher.mac=${MAC}\nflasher.token="${text}"`
  assert.is(
    hideBootTokens(line),
    `console=tty0 flasher.token=hidden flasher.mac=${MAC}\nflasher.token=hidden`,
  )
})

test.run()
