/** A selection that is flashed: turned on one after the other, waited for, followed, and left in the middle. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseFirstBoot } from '#engine/first-boot/rules/document.ts'
import { openPowerLab, OTHER } from '#test/support/power/power-lab.ts'
import { BMC_USER } from '#test/support/power/redfish-fake.ts'
import { MAC, macOf } from '#test/support/server/machine-fixture.ts'
import { bodyOf } from '#test/support/server/runs.ts'
import { asJson, readJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('flashing a selection')

const PROOF = {
  FLASHER_PROOF_ENABLED: 'true',
  FLASHER_PROOF_LIMIT: '1800',
  FLASHER_PROOF_PORT: '0',
}
const BULK = { action: 'flash', macs: [MAC, OTHER] }
const PARAMETERS = { boot_mode: 'flasher-flash-once' }

type Lab = Awaited<ReturnType<typeof openPowerLab>>
type End = 'done' | 'failed'

const runOf = (mac: string, phase: End) => `run-${mac.replaceAll(':', '')}-${phase}`

async function post({ server }: Lab, mac: string, phase: 'started' | End, end: End) {
  const body = bodyOf({ run: runOf(mac, end), phase })
  await server.request(`/pxe/${mac}/progress`, asJson(body))
}

/** The machine boots its live system, and its flash ends. */
async function write(lab: Lab, mac: string, end: End = 'done') {
  await lab.server.request(`/pxe/${mac}`)
  await lab.server.request(`/pxe/${mac}/plan`)
  await post(lab, mac, 'started', end)
  await post(lab, mac, end, end)
  await lab.server.request(`/pxe/${mac}/status?run=${runOf(mac, end)}`, asJson({ status: end }))
}

/** The address that the new system of the machine will call. */
async function fetchCall({ server }: Lab, mac: string): Promise<string> {
  const plan = await readJson(server.request(`/pxe/${mac}/plan?features=first-boot`))
  const body = asJson({ token: plan.first_boot.token })
  const answer = await server.request(`/pxe/${mac}/first-boot`, body)
  const parsed = parseFirstBoot(await answer.json())
  assert.ok(parsed.ok)
  const [, url = ''] = /"url": "([^"]+)"/.exec(parsed.value.cloudInit?.['vendor-data'] ?? '') ?? []
  return new URL(url).pathname
}

const isArmed = async ({ ask }: Lab, mac: string): Promise<boolean> =>
  (await readJson(ask(`/machines/${mac}`))).boot_mode === PARAMETERS.boot_mode

const untilArmed = (lab: Lab) =>
  waitUntil(
    async () => (await isArmed(lab, MAC)) && (await isArmed(lab, OTHER)),
    () => 'both are armed',
  )

async function assign(lab: Lab, more: object = {}) {
  for (const mac of [MAC, OTHER]) {
    const before = await readJson(lab.ask(`/machines/${mac}`))
    const { bty_image_ref } = before
    const machine = { boot_mode: 'ipxe-exit', bty_image_ref, target_disk_serial: 'S1', ...more }
    await readJson(lab.ask(`/machines/${mac}`, asJson(machine, 'PUT')))
  }
}

test('the answer comes once all have ended, each with its own word', async () => {
  await using lab = await openPowerLab()
  await assign(lab)
  const unknown = '52:54:00:00:00:98'
  const body = { ...BULK, macs: [...BULK.macs, unknown], parameters: PARAMETERS, wait: 60 }
  const waiting = readJson(lab.ask('/machines/bulk', asJson(body)))
  await untilArmed(lab)
  await write(lab, MAC)
  await write(lab, OTHER, 'failed')
  const { done, refused, results, outcomes } = await waiting
  assert.equal([done, refused, outcomes], [2, 1, { flashed: 1, failed: 1 }])
  assert.equal(
    results.map(({ mac, result, outcome }: Record<string, string>) => [mac, result, outcome]),
    [
      [MAC, 'done', 'flashed'],
      [OTHER, 'done', 'failed'],
      [unknown, 'missing', undefined],
    ],
  )
})

test('followed until booted: each end is an event, and the last one has all', async () => {
  await using lab = await openPowerLab({ env: PROOF })
  await lab.ask('/first-boot/web', asJson({ hostname: 'web', commands: ['true'] }, 'PUT'))
  await assign(lab, { first_boot: 'web' })
  const body = { ...BULK, parameters: PARAMETERS, wait: 60, until: 'booted' }
  const init = asJson(body)
  const headers = { ...(init.headers as object), accept: 'text/event-stream' }
  const answer = await lab.ask('/machines/bulk', { ...init, headers })
  assert.is(answer.headers.get('content-type'), 'text/event-stream')
  const told = answer.text()
  await untilArmed(lab)
  const call = await fetchCall(lab, MAC)
  await write(lab, MAC)
  await write(lab, OTHER)
  await lab.server.request(call, { method: 'POST' })
  await lab.server.proofs.leave(macOf(OTHER))
  const events = (await told).split('\n\n').flatMap((part) => {
    const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? []
    return name === undefined ? [] : [{ name, data: JSON.parse(data ?? '') }]
  })
  assert.is(events[0]?.name, 'armed')
  const ends = events.filter(({ name }) => name === 'machine').map(({ data }) => data)
  assert.equal(
    new Set(ends.map(({ mac, outcome }) => `${mac} ${outcome}`)),
    new Set([`${MAC} booted`, `${OTHER} not-seen`]),
  )
  const last = events.at(-1)
  assert.equal([last?.name, last?.data.outcomes], ['end', { booted: 1, 'not-seen': 1 }])
  assert.is(last?.data.results[0].proof.how, 'call')
  assert.ok(events.some(({ name, data }) => name === 'run' && data.mac === OTHER))
})

test('with power: one without a BMC is not armed, one that cannot be turned on says why', async () => {
  await using lab = await openPowerLab()
  await assign(lab)
  await lab.set({ credential: BMC_USER })
  const body = { ...BULK, parameters: PARAMETERS, wait: 60, power: true }
  const preview = await readJson(lab.ask('/machines/bulk', asJson({ ...body, dry_run: true })))
  assert.equal([preview.done, preview.refused], [1, 1])
  assert.match(preview.results[1].reason, 'no way to the power')
  assert.is(lab.fake.connections(), 0)
  assert.not(await isArmed(lab, MAC))

  lab.fake.lies.lostResets = 1000
  const { results, outcomes } = await readJson(lab.ask('/machines/bulk', asJson(body)))
  assert.equal(outcomes, { 'not-booted': 1 })
  assert.match(results[0].reason, /^It was to be turned on: /)
  assert.not(await isArmed(lab, OTHER))
})

test('without wait they are turned on after the answer, one after the other', async () => {
  await using lab = await openPowerLab()
  await assign(lab)
  for (const mac of [MAC, OTHER]) await lab.set({ credential: BMC_USER }, mac)
  const body = { ...BULK, parameters: PARAMETERS, power: 'restart', stagger: 0 }
  assert.is((await readJson(lab.ask('/machines/bulk', asJson(body)))).done, 2)
  await waitUntil(
    async () => (await lab.events()).length === 2,
    () => 'both were restarted',
  )
  assert.is(lab.fake.state.boot['BootSourceOverrideTarget'], 'Pxe')
})

test('who leaves turns on no more: those that were not reached stay armed and off, on record', async () => {
  await using lab = await openPowerLab()
  await assign(lab)
  for (const mac of [MAC, OTHER]) await lab.set({ credential: BMC_USER }, mac)
  const leaving = new AbortController()
  const body = { ...BULK, parameters: PARAMETERS, power: true, wait: 60, stagger: 3600 }
  const init = { ...asJson(body), signal: leaving.signal }
  const waiting = lab.ask('/machines/bulk', init).catch(() => null)
  while (!lab.fake.state.isOn) await sleep(10)
  leaving.abort()
  await waiting
  const unreached = `The wait ended before the power of ${OTHER} was asked`
  await waitUntil(
    async () => (await lab.events()).some(({ summary }) => summary === unreached),
    () => 'who was not reached is on record',
  )
  assert.ok(await isArmed(lab, OTHER))
})

test('what another action does not take, and who may not, is refused', async () => {
  await using lab = await openPowerLab()
  await assign(lab)
  const ask = async (body: object, by = lab.ask) => {
    const answer = await by('/machines/bulk', asJson(body))
    return [answer.status, (await answer.json()).detail] as const
  }
  const [status, why] = await ask({ action: 'delete', macs: [MAC], wait: 5 })
  assert.equal([status, why], [422, 'wait: only the action flash takes it'])
  assert.is((await ask({ ...BULK, parameters: PARAMETERS, until: 'booted' }))[0], 422)
  const macs = Array.from({ length: 1001 }, (_, at) => {
    const tail = at.toString(16).padStart(4, '0')
    return `52:54:00:99:${tail.slice(0, 2)}:${tail.slice(2)}`
  })
  assert.match((await ask({ ...BULK, macs, parameters: PARAMETERS, wait: 5 }))[1], 'at most 1000')
  const flashOnly = await lab.token('flash', 'machines')
  assert.is((await ask({ ...BULK, parameters: PARAMETERS, power: true }, flashOnly))[0], 403)
})

test.run()
