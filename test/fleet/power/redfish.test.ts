/** The way over Redfish, against a BMC that lies as real ones do. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { accept } from '#kit/foundation/result.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { BmcRequest } from '#fleet/power/bmc-http.ts'
import { openRedfish } from '#fleet/power/redfish.ts'
import { BmcSchema } from '#fleet/power/rules/bmc.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { actWith, createSubject, NETWORK, PXE } from '#test/support/power/acting.ts'
import { opened } from '#test/support/opened.ts'
import { BMC_USER, startRedfish, type Lies } from '#test/support/power/redfish-fake.ts'

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
  assert.is(refusal.asked, 'It was to be turned on')
  assert.match(refusal.seen, /still reads off/)
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
    assert.match(late.refusal.seen, /no authority/)
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

test.run()
