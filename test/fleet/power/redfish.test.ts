/** The way over Redfish, against a BMC that lies as real ones do. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import type { BmcRequest } from '#fleet/power/bmc-http.ts'
import { openRedfish } from '#fleet/power/redfish.ts'
import { BmcSchema } from '#fleet/power/rules/bmc.ts'
import type { PowerAction } from '#fleet/power/rules/power.ts'
import { findMade } from '#fleet/power/rules/redfish.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept } from '#kit/foundation/result.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { opened } from '#test/support/opened.ts'
import { actWith, createSubject, NETWORK, PXE } from '#test/support/power/acting.ts'
import { BMC_USER, type Lies, startRedfish } from '#test/support/power/redfish-fake.ts'

const test = suite('Redfish')
const fake = opened(test, () => startRedfish())
test.before.each(() => fake().reset())

const bmc = (address = fake().address) => BmcSchema.parse({ way: 'redfish', address })
const subject = () => createSubject(bmc(), BMC_USER)

test('sets the boot device with its mode, reads it back, then turns on; the session is ended', async () => {
  const done = await actWith(subject(), { action: 'on', boot: PXE })
  assert.equal(done, {
    ok: true,
    value: { state: 'on', confirmed: true, changed: true, boot: 'set' },
  })
  assert.is(fake().state.isOn, true)
  assert.is(fake().sessions(), 0)
  assert.equal(fake().bodies.slice(1), [
    {
      Boot: {
        BootSourceOverrideEnabled: 'Once',
        BootSourceOverrideTarget: 'Pxe',
        BootSourceOverrideMode: 'UEFI',
      },
    },
    { ResetType: 'On' },
  ])
})

test('boots from an address and from a virtual CD', async () => {
  const url = 'http://192.0.2.1:8080/boot/x.efi'
  const http = { device: 'http', firmware: 'bios', url } as const
  assert.is((await actWith(subject(), { action: 'on', boot: http })).ok, true)
  assert.is(fake().state.boot['HttpBootUri'], url)
  assert.is(fake().state.boot['BootSourceOverrideMode'], 'UEFI')
  const iso = 'http://192.0.2.1:8080/boot/x.iso'
  const cd = { device: 'cd', firmware: 'uefi', url: iso } as const
  assert.is((await actWith(subject(), { action: 'restart', boot: cd })).ok, true)
  assert.is(fake().state.image, iso)
  assert.is(fake().state.boot['BootSourceOverrideTarget'], 'Cd')
})

const LIES: readonly (readonly [string, Partial<Lies>])[] = [
  ['a state that lags', { lagMs: 150 }],
  ['202 and a task', { task: 'Completed', lagMs: 60 }],
  ['a reset that does nothing', { lostResets: 1 }],
  ['a state that is said before it is so', { earlyReadings: 1, lagMs: 120 }],
  ['a boot device that is forgotten', { lostBoots: 1 }],
  ['answers of 500', { errors: 2 }],
  ['connections that are cut', { cuts: 2 }],
  ['answers that are cut', { cutsAfter: 2 }],
  ['no room for a session', { maxSessions: 0 }],
  ['an entity tag that is wanted', { wantsEtag: true }],
  ['an entity tag that is weak and wanted strong', { wantsEtag: true, weakEtags: true }],
  ['a restart of the BMC in the middle', { restartMs: 200 }],
  ['answers that are no JSON', { garbage: 2 }],
]
for (const [what, lies] of LIES) {
  test(`gets there in spite of ${what}`, async () => {
    Object.assign(fake().lies, lies)
    const done = await actWith(subject(), { action: 'on', boot: PXE })
    assert.equal(done, {
      ok: true,
      value: { state: 'on', confirmed: true, changed: true, boot: 'set' },
    })
    assert.is(fake().state.isOn, true)
    assert.is(fake().state.boot['BootSourceOverrideTarget'], 'Pxe')
    assert.is(fake().sessions(), 0)
  })
}

test('a reset that never becomes so is said, with what was asked and seen', async () => {
  fake().lies.lostResets = 1000
  const { refusal } = refused(await actWith(subject(), { action: 'on', boot: null }))
  assert.is(refusal.kind, 'not-so')
  assert.is(refusal.asked, 'Turning on failed')
  assert.match(refusal.seen, /machine is still off/)
  assert.is(refusal.state, 'off')
  assert.is(fake().sessions(), 0)
})

test('a task that failed is said with its words', async () => {
  Object.assign(fake().lies, { task: 'Exception', lostResets: 1000, hostile: true })
  const { refusal } = refused(await actWith(subject(), { action: 'on', boot: null }))
  assert.match(refusal.seen, /Exception/)
  assert.is(printable(refusal.seen), refusal.seen)
})

test('a wrong password is tried once, and hostile texts are made harmless', async () => {
  fake().lies.hostile = true
  const wrong = createSubject(bmc(), { user: 'admin', password: 'x'.repeat(200) })
  const { refusal } = refused(await actWith(wrong, { action: 'on', boot: null }))
  assert.is(refusal.kind, 'login')
  assert.is(printable(refusal.seen), refusal.seen)
  assert.is(fake().asked.filter((each) => each.startsWith('POST')).length, 1)
})

test('a password that a BMC repeats is in no failure, and a 400 for it is not answered with another try', async () => {
  const password = 'a "quoted" s3cret'
  for (const [status, words] of [
    [400, `Base.1.0.UnauthorizedLoginAttempt: ${password}`],
    [401, `The value ${password} is no password`],
  ] as const) {
    const asked: string[] = []
    const http = {
      async ask(url: URL, { method }: BmcRequest) {
        asked.push(`${method} ${url.pathname}`)
        const isRoot = method === 'GET'
        const body = isRoot
          ? { Systems: { '@odata.id': '/redfish/v1/Systems' } }
          : { error: { message: words } }
        const bytes = Buffer.from(JSON.stringify(body))
        return accept({ status: isRoot ? 200 : status, headers: {}, bytes })
      },
      close() {},
    }
    const client = await openRedfish(new URL(fake().address), http, { user: 'admin', password })
    const { refusal } = refused(client)
    assert.is(refusal.kind, 'login')
    assert.not.match(refusal.seen, /s3cret/)
    assert.equal(asked, ['GET /redfish/v1/', 'POST /redfish/v1/SessionService/Sessions'])
  }
})

test('one that is on is not booted anew unless a restart is asked for', async () => {
  fake().state.isOn = true
  const { refusal } = refused(await actWith(subject(), { action: 'on', boot: PXE }))
  assert.is(refusal.kind, 'not-now')
  assert.equal(fake().bodies.length, 1)
  assert.is((await actWith(subject(), { action: 'restart', boot: PXE })).ok, true)
  assert.equal(
    fake().bodies.filter((each) => JSON.stringify(each).includes('ResetType')),
    [{ ResetType: 'ForceOff' }, { ResetType: 'On' }],
  )
})

test('nothing is sent outside the networks, and no redirect is followed elsewhere', async () => {
  const before = fake().connections()
  const outside = createSubject(bmc(), BMC_USER, { networks: ['192.0.2.0/24'] })
  const { refusal } = refused(await actWith(outside, { action: 'on', boot: null }))
  assert.is(refusal.kind, 'address')
  const own = createSubject(bmc(), BMC_USER, { networks: NETWORK, ownPorts: [fake().port] })
  assert.is(refused(await actWith(own, { action: 'on', boot: null })).refusal.kind, 'address')
  const named = createSubject(bmc(`http://localhost:${fake().port}`), BMC_USER, {
    networks: ['192.0.2.0/24'],
  })
  assert.is(refused(await actWith(named, { action: 'read', boot: null })).refusal.kind, 'address')
  assert.is(fake().connections(), before)
  fake().lies.redirect = 'http://127.0.0.1:1/redfish/v1/'
  const moved = refused(await actWith(subject(), { action: 'read', boot: null }))
  assert.is(moved.refusal.kind, 'address')
})

test('a certificate is pinned at first use; another one gets no password', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-power-'))
  try {
    const { certificate, caFile } = await makeAuthority(folder)
    await using secure = await startRedfish(certificate)
    const first = createSubject(bmc(secure.address), BMC_USER)
    assert.is((await actWith(first, { action: 'on', boot: null })).ok, true)
    assert.match(first.learned().certificate ?? '', /^[0-9a-f]{64}$/)
    assert.is((await actWith(first, { action: 'off', boot: null })).ok, true)
    const asked = secure.asked.length
    await first.learn({ certificate: '0'.repeat(64) })
    const { refusal } = refused(await actWith(first, { action: 'on', boot: null }))
    assert.is(refusal.kind, 'certificate')
    assert.is(secure.asked.length, asked)
    // Where an authority vouched for the first one, one of its own is not taken for it.
    await first.learn({ certificate: 'authority' })
    const late = refused(await actWith(first, { action: 'on', boot: null }))
    assert.is(late.refusal.kind, 'certificate')
    assert.match(late.refusal.seen, /no longer trusted/)
    assert.is(secure.asked.length, asked)
    const known = getCACertificates('default')
    setDefaultCACertificates([await readFile(caFile, 'utf8')])
    try {
      const vouched = createSubject(bmc(secure.address), BMC_USER)
      assert.is((await actWith(vouched, { action: 'on', boot: null })).ok, true)
      assert.is(vouched.learned().certificate, 'authority')
    } finally {
      setDefaultCACertificates(known)
    }
  } finally {
    await rm(folder, { recursive: true })
  }
})

function refused<R>(result: {
  readonly ok: boolean
  readonly refusal?: R
  readonly value?: unknown
}) {
  assert.is(result.ok, false, JSON.stringify(result))
  return { refusal: result.refusal as R }
}

/** A press may come again at each reading, so that one that must not come is seen. */
const TIMES = { limit: 60_000, poll: 1, again: 0, rest: 1 }
const act = (action: PowerAction) => {
  const asked = createSubject(
    BmcSchema.parse({ way: 'redfish', address: fake().address }),
    BMC_USER,
  )
  const boot = action === 'on' || action === 'restart' ? PXE : null
  return actWith(asked, { action, boot }, TIMES)
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
  const asked = createSubject(
    BmcSchema.parse({ way: 'redfish', address: fake().address }),
    BMC_USER,
  )
  const done = await actWith(asked, { action: 'on', boot: null }, TIMES)
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
