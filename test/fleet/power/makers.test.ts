/** Habits of BMCs by their makers: maker × habit × action, against the one fake. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import type { PowerAction } from '#fleet/power/rules/power.ts'
import { accept } from '#kit/foundation/result.ts'
import type { BmcRequest } from '#fleet/power/bmc-http.ts'
import { openRedfish } from '#fleet/power/redfish.ts'
import { BmcSchema } from '#fleet/power/rules/bmc.ts'
import { findMade } from '#fleet/power/rules/redfish.ts'
import { actWith, createSubject, PXE } from '#test/support/power/acting.ts'
import { opened } from '#test/support/opened.ts'
import { BMC_USER, startRedfish, type Lies } from '#test/support/power/redfish-fake.ts'

const test = suite('makers of BMCs')
const fake = opened(test, () => startRedfish())
test.before.each(() => fake().reset())

/** A press may come again at each reading, so that one that must not come is seen. */
const TIMES = { limit: 60_000, poll: 1, again: 0, rest: 1 }
const act = (action: PowerAction) => {
  const subject = createSubject(
    BmcSchema.parse({ way: 'redfish', address: fake().address }),
    BMC_USER,
  )
  const boot = action === 'on' || action === 'restart' ? PXE : null
  return actWith(subject, { action, boot }, TIMES)
}
const presses = (type: string) =>
  fake().bodies.filter((body) => JSON.stringify(body) === `{"ResetType":"${type}"}`).length

const HABITS: readonly (readonly [maker: string, habit: string, lies: () => Partial<Lies>])[] = [
  ['Dell', 'names a session by another host', () => ({ sessionAt: 'address', maxSessions: 1 })],
  ['Lenovo', 'names a session in the body alone', () => ({ sessionAt: 'body', maxSessions: 1 })],
  ['HPE', 'has a fixed boot mode', () => ({ mode: 'fixed' })],
  ['HPE', 'takes long to turn on', () => ({ slowOn: { reads: 'PoweringOn', readings: 60 } })],
  ['HPE', 'reads off meanwhile', () => ({ slowOn: { reads: 'Off', readings: 60 } })],
  ['Supermicro', 'has no boot mode', () => ({ mode: 'absent' })],
  [
    'Supermicro',
    'has a wrong tag in the header',
    () => ({ wantsEtag: true, wrongHeaderTag: true }),
  ],
  ['AMI', 'sets the boot device elsewhere', () => ({ settings: true, wantsEtag: true })],
  ['AMI', 'does so without a mode', () => ({ settings: true, mode: 'absent', wantsEtag: true })],
  ['OpenBMC', 'redirects to a slash', () => ({ slash: true })],
  [
    'all at once',
    'have all of them',
    () => ({
      sessionAt: 'address',
      maxSessions: 1,
      wantsSession: true,
      mode: 'fixed',
      settings: true,
      slash: true,
      wantsEtag: true,
      wrongHeaderTag: true,
      slowOn: { reads: 'PoweringOn', readings: 60 },
    }),
  ],
]

for (const [maker, habit, lies] of HABITS) {
  for (const action of ['read', 'on', 'off', 'restart'] as const) {
    test(`${maker} ${habit}: ${action}`, async () => {
      Object.assign(fake().lies, { wantsSession: true, ...lies() })
      fake().state.isOn = action === 'off' || action === 'restart'
      const done = await act(action)
      const isOn = action === 'on' || action === 'restart'
      const [state, boot] = [isOn ? 'on' : 'off', isOn ? 'set' : null]
      assert.equal(done, {
        ok: true,
        value: { state, confirmed: true, changed: action !== 'read', boot },
      })
      assert.is(fake().state.isOn, isOn)
      assert.is(fake().state.boot['BootSourceOverrideTarget'], isOn ? 'Pxe' : 'None')
      assert.is(fake().sessions(), 0)
      // One that reads off gets it again, and its refusal is no failure.
      const repeats = fake().lies.slowOn?.reads === 'Off'
      assert.ok(isOn && repeats ? presses('On') > 1 : presses('On') === Number(isOn))
    })
  }
}

test('a mode that is fixed and another one is no success, and nothing is turned on', async () => {
  fake().lies.mode = 'fixed'
  fake().state.boot['BootSourceOverrideMode'] = 'Legacy'
  const done = await act('on')
  assert.match(done.ok ? '' : done.refusal.seen, /PropertyNotWritable/)
  assert.is(presses('On'), 0)
})

test('a BMC without room for a session is full, and its password is tried once', async () => {
  const asked: string[] = []
  const http = {
    async ask({ pathname }: URL, { method }: BmcRequest) {
      asked.push(`${method} ${pathname}`)
      const message = 'The maximum number of user sessions is reached.'
      const full = { Systems: { '@odata.id': '/Systems' }, error: { message } }
      const status = method === 'POST' ? 503 : pathname === '/Systems' ? 401 : 200
      return accept({ status, headers: {}, bytes: Buffer.from(JSON.stringify(full)) })
    },
    close() {},
  }
  const memory = { wantsSession: false }
  const open = () => openRedfish(new URL('http://192.0.2.9'), http, BMC_USER, memory)
  const first = await open()
  const read = first.ok ? await first.value.get('/Systems', z.unknown()) : first
  for (const done of [read, await open()]) {
    assert.is(done.ok ? null : done.refusal.kind, 'sessions')
    assert.is(done.ok ? null : done.refusal.passes, true)
  }
  assert.is(asked.filter((each) => each === 'GET /Systems').length, 1)
})

test('one that is turning on already is not turned on again', async () => {
  Object.assign(fake().lies, { slowOn: { reads: 'PoweringOn', readings: 60 } })
  Object.assign(fake().state, { isOn: true, slowLeft: 60 })
  const subject = createSubject(
    BmcSchema.parse({ way: 'redfish', address: fake().address }),
    BMC_USER,
  )
  const done = await actWith(subject, { action: 'on', boot: null }, TIMES)
  assert.is(done.ok && done.value.state, 'on')
  assert.is(presses('On'), 0)
})

test('a password is sent to no other path, whatever a redirect says', async () => {
  for (const location of ['/redfish/v1/Other', 'http://192.0.2.1/Sessions/', '/Sessions/?a=b']) {
    const asked: string[] = []
    const http = {
      async ask({ pathname }: URL, { method }: BmcRequest) {
        asked.push(`${method} ${pathname}`)
        const document = {
          Systems: { '@odata.id': '/Systems' },
          Links: { Sessions: { '@odata.id': '/Sessions' } },
        }
        const bytes = Buffer.from(JSON.stringify(document))
        return accept({ status: method === 'GET' ? 200 : 308, headers: { location }, bytes })
      },
      close() {},
    }
    const client = await openRedfish(new URL('http://192.0.2.9'), http, BMC_USER)
    assert.is(client.ok ? null : client.refusal.kind, 'address')
    assert.equal(asked, ['GET /redfish/v1/', 'POST /Sessions'])
  }
})

test('what a request made is found on the BMC itself', () => {
  const base = new URL('https://192.0.2.9')
  const document = Buffer.from('{"@odata.id":"/in/body"}')
  for (const [location, path] of [
    ['/a/1', '/a/1'],
    ['https://bmc.example/a/1/', '/a/1/'],
    ['', '/in/body'],
    [undefined, '/in/body'],
    ['https://192.0.2.9//other.example/a', '/in/body'],
  ] as const) {
    assert.is(findMade(location, document, base), path)
  }
  assert.is(findMade(undefined, Buffer.from('{"@odata.id":"//other.example/a"}'), base), null)
})

test.run()
