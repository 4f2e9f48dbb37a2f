/** Batches over HTTP: what many machines were given at once, how far each of them is, and what is done to all. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseFirstBoot } from '#engine/first-boot/rules/seed.ts'
import { openBatchLab, RACK, RACK_IMAGE } from '#test/support/batch/batch-lab.ts'
import { openPowerLab, OTHER } from '#test/support/power/power-lab.ts'
import { BMC_USER } from '#test/support/power/redfish-fake.ts'
import { MAC, macOf, OTHER_REF, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf } from '#test/support/server/runs.ts'
import { asJson, readJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('batches over HTTP')
const BY = { actor: 'operator', ip: null } as const
const [FIRST = '', SECOND = '', THIRD = '', FOURTH = ''] = RACK

test('one action on many machines is a batch that says how far each of them is', async () => {
  await using lab = await openBatchLab()
  const id = await lab.arm()
  const begun = await lab.batch(id)
  assert.equal(
    [begun.name, begun.machines, begun.open, begun.counts.waiting],
    [`${RACK_IMAGE} to rack-03`, 4, true, 4],
  )
  assert.is(await lab.boot(FIRST), 'flash')
  await lab.plan(FIRST)
  await lab.boot(SECOND)
  await lab.plan(SECOND)
  assert.is((await lab.batch(id)).counts.running, 2)
  await lab.done(FIRST)
  await lab.fail(SECOND)
  const { counts, results } = await lab.batch(id)
  assert.equal([counts.done, counts.failed, counts.waiting], [1, 1, 2])
  assert.equal(
    results.map(({ mac, state }: { mac: string; state: string }) => [mac, state]),
    [
      [FIRST, 'done'],
      [SECOND, 'failed'],
      [THIRD, 'waiting'],
      [FOURTH, 'waiting'],
    ],
  )
  const { batches } = await readJson(lab.ask('/batches'))
  assert.equal(
    batches.map((batch: { id: string }) => batch.id),
    [id],
  )
})

test('a machine that is flashed at each boot has done its part, however often it is flashed', async () => {
  await using lab = await openBatchLab()
  const { batch: id } = await lab.bulk('flash', { boot_mode: 'flasher-flash-always' })
  const cycle = async () => {
    while ((await lab.boot(FIRST)) !== 'flash');
    await lab.plan(FIRST)
    await lab.done(FIRST)
    const { counts } = await lab.batch(id)
    return [counts.done, counts.replaced, counts.waiting]
  }
  for (let flashes = 0; flashes < 3; flashes += 1) assert.equal(await cycle(), [1, 0, 3])
  // A person who gives another order before the first one has begun takes it away.
  await lab.bulk('image', { bty_image_ref: OTHER_REF }, [SECOND])
  const { counts } = await lab.batch(id)
  assert.equal([counts.done, counts.replaced, counts.waiting], [1, 1, 2])
})

test('a dry run makes none, and what is refused is in it with its reason', async () => {
  await using lab = await openBatchLab()
  const dry = await readJson(
    lab.ask('/machines/bulk', asJson({ action: 'lock', macs: RACK, dry_run: true })),
  )
  assert.not.ok('batch' in dry)
  assert.equal((await readJson(lab.ask('/batches'))).batches, [])
  await readJson(lab.ask('/machines/bulk', asJson({ action: 'lock', macs: [FOURTH] })))
  const id = await lab.arm()
  const { counts, results } = await lab.batch(id)
  assert.equal([counts.waiting, counts.refused], [3, 1])
  assert.match(results[3].reason, 'Locked')
})

test('what no machine takes makes no batch and no line on record, and each has its reason', async () => {
  await using lab = await openBatchLab()
  await readJson(lab.ask('/machines/bulk', asJson({ action: 'lock', macs: RACK })))
  const { batches } = await readJson(lab.ask('/batches'))
  const before = (await readJson(lab.ask('/events?kind=batch.ordered'))).length
  const parameters = { boot_mode: 'flasher-flash-always' }
  const flash = { action: 'flash', macs: [...RACK, '52:54:00:ff:ff:ff'], parameters }
  const answer = await readJson(lab.ask('/machines/bulk', asJson(flash)))
  assert.equal([answer.done, answer.refused, 'batch' in answer], [0, RACK.length + 1, false])
  for (const { result, reason } of answer.results)
    assert.ok(result === 'missing' || reason.startsWith('Locked'), reason)
  assert.equal((await readJson(lab.ask('/batches'))).batches, batches)
  const { length } = await readJson(lab.ask('/events?kind=batch.ordered'))
  assert.is(length, before)
  // One that takes it is enough, wherever it stands.
  await readJson(lab.ask('/machines/bulk', asJson({ action: 'unlock', macs: [FOURTH] })))
  const armed = await readJson(lab.ask('/machines/bulk', asJson(flash)))
  assert.equal([armed.done, typeof armed.batch], [1, 'string'])
})

test('what is done at once is done: labels, locks, a deletion', async () => {
  await using lab = await openBatchLab()
  for (const action of ['lock', 'delete']) {
    const { batch } = await lab.bulk(action)
    const { counts, open } = await lab.batch(batch)
    assert.equal([counts.done, open], [4, false], action)
  }
})

test('an order is of one batch, and a newer one leaves it; what became of it stays', async () => {
  await using lab = await openBatchLab()
  const first = await lab.arm()
  await lab.boot(FIRST)
  await lab.plan(FIRST)
  await lab.done(FIRST)
  await lab.put(SECOND, { boot_mode: 'flasher-flash-once', bty_image_ref: OTHER_REF })
  await lab.ask(`/machines/${THIRD}`, { method: 'DELETE' })
  const second = await lab.bulk('flash', {}, [FIRST, FOURTH])
  const before = await lab.batch(first)
  assert.equal([before.counts.done, before.counts.replaced, before.open], [1, 3, false])
  assert.is((await lab.batch(second.batch)).counts.waiting, 2)
  await lab.bulk('flash', {}, [FIRST])
  assert.is((await lab.batch(first)).counts.done, 1)
})

test('a pause has those without a plan boot their disks; those that write go on', async () => {
  await using lab = await openBatchLab()
  const id = await lab.arm()
  await lab.boot(FIRST)
  await lab.plan(FIRST)
  await lab.boot(SECOND)
  const paused = await readJson(lab.act(id, 'pause'))
  assert.equal([paused.done, paused.counts.running, paused.paused_at !== null], [3, 2, true])
  assert.is(await lab.boot(FIRST), 'flash-retry')
  assert.is((await lab.plan(SECOND)).mode, 'exit')
  assert.is(await lab.boot(THIRD), 'paused')
  assert.is((await lab.plan(THIRD)).mode, 'exit')
  assert.is((await lab.act(id, 'retry')).status, 409)
  await readJson(lab.act(id, 'resume'))
  assert.is(await lab.boot(THIRD), 'flash')
  assert.is((await lab.plan(SECOND)).mode, 'flash')
})

test('a machine that is flashed by itself meanwhile is of no pause', async () => {
  await using lab = await openBatchLab()
  const id = await lab.arm()
  await lab.act(id, 'pause')
  await readJson(lab.ask(`/machines/${FIRST}/flash`, asJson({})))
  assert.is(await lab.boot(FIRST), 'flash')
  await lab.act(id, 'resume')
  assert.equal((await lab.batch(id)).counts.replaced, 1)
})

test('a pause holds what the batch arms after it as well', async () => {
  await using lab = await openBatchLab()
  const { site } = lab.server
  const { maker } = lab.server.keeper
  const macs = lab.server.machines.peekAll().map(({ mac }) => mac)
  const begun = await maker.begin({ action: 'flash', macs, q: null, by: BY })
  const parameters = { boot_mode: 'flasher-flash-once' }
  const arm = (mac: (typeof macs)[number]) =>
    site.fleet.act(mac, { action: 'flash', parameters, batch: begun.id }, BY)
  for (const mac of macs.slice(0, 2)) await arm(mac)
  assert.is((await readJson(lab.act(begun.id, 'pause'))).done, 2)
  for (const mac of macs.slice(2)) await arm(mac)
  for (const mac of macs) assert.is(await lab.boot(mac), 'paused')
  assert.is((await readJson(lab.act(begun.id, 'resume'))).done, 4)
  for (const mac of macs) assert.is(await lab.boot(mac), 'flash')
})

test('a batch that was cut off says where the machines are that it had armed', async () => {
  await using lab = await openBatchLab()
  const { site, keeper, batches } = lab.server
  const macs = lab.server.machines.peekAll().map(({ mac }) => mac)
  const { id } = await keeper.maker.begin({ action: 'flash', macs, q: null, by: BY })
  const parameters = { boot_mode: 'flasher-flash-once' }
  for (const mac of macs.slice(0, 3)) {
    await site.fleet.act(mac, { action: 'flash', parameters, batch: id }, BY)
  }
  const cut = await lab.batch(id)
  assert.equal([cut.counts.waiting, cut.open, cut.acted_at], [3, true, null])
  assert.is((await readJson(lab.act(id, 'disarm'))).counts.disarmed, 3)

  // One that ends in the middle of a retry has armed machines of which it has the former order.
  const whole = await lab.arm()
  await lab.boot(FIRST)
  await lab.plan(FIRST)
  await lab.fail(FIRST)
  const [mac] = macs
  if (mac === undefined) throw new Error('no machine')
  await site.fleet.act(mac, { action: 'flash', parameters: {}, batch: whole }, BY)
  assert.is(batches.listMembers(whole)[0]?.left, 'failed')
  const { counts } = await lab.batch(whole)
  assert.equal([counts.failed, counts.waiting], [0, 4])
})

test('the list of batches has others answered in between; open is what something is to come of', async () => {
  await using lab = await openBatchLab()
  const { keeper } = lab.server
  const first = await lab.arm()
  const second = await lab.arm()
  const turns: string[] = []
  setImmediate(() => turns.push('another'))
  await keeper.viewAll(keeper.list())
  assert.equal(turns, ['another'])
  const listOpen = () => keeper.listOpen().map(({ batch }) => batch.id)
  assert.equal([listOpen(), keeper.countOpen()], [[second], 1])
  await readJson(lab.act(second, 'disarm'))
  assert.equal([listOpen(), (await lab.batch(first)).counts.replaced], [[], 4])
  assert.is(keeper.countOpen(), 0)
})

test('what a batch gave is disarmed once it is undone, a try again too', async () => {
  await using lab = await openBatchLab()
  const id = await lab.arm()
  await lab.boot(FIRST)
  await lab.plan(FIRST)
  await lab.fail(FIRST)
  await readJson(lab.act(id, 'retry'))
  const { done, counts } = await readJson(lab.act(id, 'undo'))
  assert.equal([done, counts.disarmed], [4, 4])
  assert.is(await lab.boot(FIRST), 'held-back', 'its disk may be half written')
})

test('a batch that was undone is not done, and disarmed is only what it had armed', async () => {
  await using lab = await openBatchLab()
  await lab.server.request(
    `/pxe/${FIRST}/inventory`,
    asJson({ disks: [{ path: '/dev/sda', serial: 'S1' }] }),
  )
  const cases: readonly (readonly [string, object, string])[] = [
    ['label', { add: ['x'] }, 'undone'],
    ['lock', {}, 'undone'],
    ['delete', {}, 'undone'],
    ['capture', { name: '{mac}.img.zst' }, 'undone'],
    ['mode', { boot_mode: 'flasher-tui' }, 'undone'],
    ['flash', { boot_mode: 'flasher-flash-once' }, 'disarmed'],
  ]
  for (const [action, parameters, state] of cases) {
    const { batch } = await lab.bulk(action, parameters, [FIRST])
    const undone = await readJson(lab.act(batch, 'undo'))
    assert.equal([undone.done, undone.counts.done, undone.counts[state]], [1, 0, 1], action)
    assert.is((await lab.batch(batch)).results[0].state, state, action)
  }
})

test('undo after the rest was disarmed brings back what machines had before the batch', async () => {
  await using lab = await openBatchLab()
  const imageOf = async (mac: string) => {
    const { bty_image_ref, boot_mode } = await readJson(lab.ask(`/machines/${mac}`))
    return { bty_image_ref, boot_mode }
  }
  const before = await imageOf(FIRST)
  const body = { action: 'mode', macs: [FIRST], parameters: { boot_mode: 'ipxe-exit' } }
  const { batch: earlier } = await readJson(lab.ask('/machines/bulk', asJson(body)))
  const armed = { ...body, parameters: { boot_mode: 'flasher-flash-always' } }
  const { batch } = await readJson(lab.ask('/machines/bulk', asJson(armed)))
  assert.is((await readJson(lab.act(batch, 'disarm'))).done, 1)
  assert.is((await readJson(lab.act(batch, 'undo'))).done, 1)
  assert.equal(await imageOf(FIRST), { ...before, boot_mode: 'ipxe-exit' })
  assert.is((await readJson(lab.act(batch, 'undo'))).done, 0)
  assert.is((await readJson(lab.act(earlier, 'undo'))).done, 0, 'its own edit was not the newest')
})

test('a batch whose machines were disarmed while it was paused goes on with the others alone', async () => {
  await using lab = await openBatchLab()
  const id = await lab.arm()
  await readJson(lab.act(id, 'pause'))
  await lab.bulk('disarm', {}, [FIRST])
  const { done, counts } = await readJson(lab.act(id, 'resume'))
  assert.equal([done, counts.waiting, counts.disarmed, counts.paused], [3, 3, 1, 0])
  const { results } = await readJson(lab.ask(`/batches/${id}`))
  assert.is(results.find(({ mac }: { mac: string }) => mac === FIRST).state, 'disarmed')
  assert.is((await lab.kinds('&kind=machine.resume')).length, 3)
})

test('what failed is armed again within the batch, and the rest can be disarmed', async () => {
  await using lab = await openBatchLab()
  const id = await lab.arm()
  await lab.boot(FIRST)
  await lab.plan(FIRST)
  await lab.fail(FIRST)
  await lab.boot(SECOND)
  await lab.plan(SECOND)
  const retried = await readJson(lab.act(id, 'retry'))
  assert.equal([retried.done, retried.counts.waiting, retried.counts.failed], [1, 3, 0])
  const disarmed = await readJson(lab.act(id, 'disarm'))
  assert.equal(
    [disarmed.counts.disarmed, disarmed.counts.running],
    [2, 1],
    'nobody takes back what is being written, nor what may be half written',
  )
  assert.is(await lab.boot(THIRD), 'withdrawn')
  assert.is((await lab.plan(THIRD)).mode, 'exit')
  await readJson(lab.ask(`/machines/${THIRD}/flash`, asJson({})))
  assert.is(await lab.boot(THIRD), 'flash')
})

test('one action is one line on record; what each machine was given is found by it', async () => {
  await using lab = await openBatchLab()
  const id = await lab.arm()
  const kinds: readonly string[] = await lab.kinds('&folded=1')
  assert.equal(
    kinds.filter((kind) => kind.startsWith('batch') || kind === 'machine.flash'),
    ['batch.ordered'],
  )
  assert.equal(await lab.kinds(`&batch=${id}`), Array(4).fill('machine.flash'))
  const { events } = await readJson(lab.ask('/events?subject_kind=batch'))
  assert.equal(
    [events[0].subject_id, events[0].summary],
    [id, `${RACK_IMAGE} to rack-03: 4 machines`],
  )
})

test('the search that names a batch turns no text around', async () => {
  await using lab = await openBatchLab()
  const q = '-name:"a\u202e\nb"'
  const { id } = await lab.server.keeper.maker.begin({ action: 'lock', macs: [], q, by: BY })
  assert.is((await lab.batch(id)).target, String.raw`-name:"a\u202e\x0ab"`)
})

test('unknown batches are missing, and scripts disarm by name', async () => {
  await using lab = await openBatchLab()
  assert.is((await lab.ask('/batches/000000000000')).status, 404)
  assert.is((await lab.act('000000000000', 'pause')).status, 404)
  await lab.arm()
  await lab.boot(FIRST)
  await lab.plan(FIRST)
  const { done, refused, results } = await lab.bulk('disarm')
  assert.equal([done, refused], [3, 1])
  assert.match(results[0].reason, 'cannot be undone')
  assert.is((await lab.bulk('disarm', {}, [SECOND])).results[0].reason, 'Not armed.')
  const machine = await readJson(lab.ask(`/machines/${SECOND}`))
  assert.equal([machine.boot_mode, machine.bty_image_ref], ['flasher-flash-once', REF])
})

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
  assert.match(preview.results[1].reason, 'no power control is set up')
  assert.is(lab.fake.connections(), 0)
  assert.not(await isArmed(lab, MAC))

  lab.fake.lies.lostResets = 1000
  const { results, outcomes } = await readJson(lab.ask('/machines/bulk', asJson(body)))
  assert.equal(outcomes, { 'not-booted': 1 })
  assert.match(results[0].reason, /^Turning on failed: /)
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
  const unreached = `The wait was ended before the power of ${OTHER} was controlled`
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
  assert.equal([status, why], [422, 'wait: only for the action flash'])
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
