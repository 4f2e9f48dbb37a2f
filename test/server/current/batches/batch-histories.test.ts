/** Random histories of edits, contacts, undos, batches, pauses and hours: nothing is armed, planned or shown that nobody ordered. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseRecord } from '#server/current/machines/rules/machine.ts'
import { openBatchLab, RACK } from '#test/support/batch/batch-lab.ts'
import { OTHER_REF, REF } from '#test/support/server/machine-fixture.ts'
import { asJson, readJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('histories of batches and undos')
const HOURS = 8
const MACS = RACK.slice(0, 3)

/** What an operator has ordered for a machine and not taken back, as the world knows it. */
interface Consent {
  readonly ref: string
  readonly serial: string
  readonly at: number
}

/** What the judge of a machine knows. */
interface Judged {
  consent: Consent | null
  /** A live boot was offered or a plan given since. */
  begun: boolean
  planned: boolean
  /** The batch whose pause holds it. */
  pausedBy: string | null
  /** Whether the newest edit left the order alone. */
  harmless: boolean
  /** Whether a plan was given whose end nobody has reported, nor had the machine boot its disk since. */
  writing: boolean
  /** The same before the newest edit. */
  wasWriting: boolean
}

async function open() {
  const clock = { ms: Date.parse('2026-11-27T01:00:00Z'), elapsed: 0 }
  const lab = await openBatchLab({
    now: () => new Date(clock.ms),
    elapsed: () => clock.elapsed,
    env: { FLASHER_PXE_ARMED_HOURS: String(HOURS), FLASHER_PXE_LOOP_LIMIT: '100' },
  })
  const judged = new Map(MACS.map((mac): [string, Judged] => [mac, createJudged()]))
  const batches: string[] = []
  return { lab, clock, judged, batches, images: new Map<string, string>() }
}
type OpenHistory = Awaited<ReturnType<typeof open>>

const createJudged = (): Judged => ({
  consent: null,
  begun: false,
  planned: false,
  pausedBy: null,
  harmless: false,
  writing: false,
  wasWriting: false,
})

const recordOf = ({ lab }: OpenHistory, mac: string) =>
  lab.server.machines.peekAll().find((machine) => machine.mac === mac) ?? null

/** An edit ends what the judge knows of the order, but for what is being written. */
function judgeEdited(world: OpenHistory, mac: string, known: Partial<Judged> = {}): void {
  const { writing } = judgeOf(world, mac)
  world.judged.set(mac, { ...createJudged(), writing, wasWriting: writing, ...known })
}

const judgeOf = ({ judged }: OpenHistory, mac: string): Judged => judged.get(mac) ?? createJudged()

/** An operator has ordered what the record says now. */
function consentTo(world: OpenHistory, mac: string): void {
  const machine = recordOf(world, mac)
  const { bty_image_ref: ref = null, target_disk_serial: serial = null } = machine ?? {}
  const consent = ref === null || serial === null ? null : { ref, serial, at: world.clock.elapsed }
  judgeEdited(world, mac, { consent })
}

type Step = (world: OpenHistory) => Promise<void>

const put =
  (mac: string, boot_mode: string, ref: string, serial: string): Step =>
  async (world) => {
    const before = recordOf(world, mac)
    const body = { boot_mode, bty_image_ref: ref, target_disk_serial: serial }
    const answer = await world.lab.ask(`/machines/${mac}`, asJson(body, 'PUT'))
    if (answer.status !== 200) return
    const isSame =
      before?.boot_mode === boot_mode &&
      before.bty_image_ref === ref &&
      before.target_disk_serial === serial
    const { writing } = judgeOf(world, mac)
    if (isSame) Object.assign(judgeOf(world, mac), { harmless: true, wasWriting: writing })
    else if (boot_mode === 'flasher-flash-once') consentTo(world, mac)
    // A mode that flashes nothing says that the disk may be booted.
    else judgeEdited(world, mac, { writing: false })
  }

const bulk =
  (action: string): Step =>
  async (world) => {
    const parameters = action === 'flash' ? { boot_mode: 'flasher-flash-once' } : {}
    const locked = new Map(MACS.map((mac) => [mac, recordOf(world, mac)?.locked]))
    const acted = await world.lab.bulk(
      action,
      action === 'label' ? { add: ['x'] } : parameters,
      MACS,
    )
    world.batches.push(acted.batch)
    for (const { mac, result } of acted.results) {
      if (result !== 'done') continue
      const { writing } = judgeOf(world, mac)
      if (action === 'flash') consentTo(world, mac)
      else if (action === 'disarm') judgeEdited(world, mac)
      else if (action === 'delete') judgeEdited(world, mac, { writing: false })
      else {
        // Who is unlocked and was not locked keeps the order, whatever becomes of that edit.
        const harmless = action === 'label' || locked.get(mac) === recordOf(world, mac)?.locked
        Object.assign(judgeOf(world, mac), { harmless, wasWriting: writing })
      }
    }
  }

/** Whatever an undo brings back is not ordered by that, unless the edit had nothing to do with orders. */
function judgeUndone(world: OpenHistory, mac: string): void {
  const { harmless, wasWriting } = judgeOf(world, mac)
  if (!harmless) judgeEdited(world, mac, { writing: wasWriting })
}

const undo =
  (mac: string): Step =>
  async (world) => {
    const answer = await world.lab.ask(`/machines/${mac}/undo`, { method: 'POST' })
    if (answer.status === 200) judgeUndone(world, mac)
  }

const act =
  (at: number, action: string): Step =>
  async (world) => {
    const id = world.batches.at(-1 - (at % Math.max(1, world.batches.length)))
    if (id === undefined) return
    const before = new Map(MACS.map((mac) => [mac, JSON.stringify(recordOf(world, mac))]))
    const answer = await world.lab.act(id, action)
    if (answer.status !== 200) return
    for (const mac of MACS) {
      const after = recordOf(world, mac)
      if (JSON.stringify(after) === before.get(mac)) continue
      if (action === 'undo') judgeUndone(world, mac)
      if (action === 'retry') consentTo(world, mac)
      if (action === 'disarm') judgeEdited(world, mac)
      if (action === 'pause') judgeOf(world, mac).pausedBy = id
      if (action === 'resume') judgeOf(world, mac).pausedBy = null
    }
  }

/** Whether a disk may be erased now, by what operators have said. */
function checkOrdered(world: OpenHistory, mac: string, ref: string, serial: string): void {
  const { consent, begun, planned, pausedBy, writing } = judgeOf(world, mac)
  assert.ok(consent !== null, `${mac} was ordered to be flashed`)
  assert.equal([ref, serial], [consent?.ref, consent?.serial], 'what was ordered')
  assert.ok(planned || pausedBy === null, 'a pause holds what has no plan')
  const age = world.clock.elapsed - (consent?.at ?? 0)
  // What a flash before it may have left half written is never booted, so that order has no end.
  const canEnd = !begun && !writing
  assert.ok(!canEnd || age < HOURS * 3_600_000, 'an order that nobody began ends')
}

const boot =
  (mac: string): Step =>
  async (world) => {
    const rule = await world.lab.boot(mac)
    const isHeld = ['flash-retry', 'held-back', 'loop-to-person', 'half-written'].includes(rule)
    assert.ok(isHeld || !judgeOf(world, mac).writing, `${rule}: the disk may be half written`)
    if (rule !== 'flash' && rule !== 'flash-retry') return
    const machine = recordOf(world, mac)
    checkOrdered(world, mac, machine?.bty_image_ref ?? '', machine?.target_disk_serial ?? '')
    judgeOf(world, mac).begun = true
  }

const plan =
  (mac: string): Step =>
  async (world) => {
    const given = await world.lab.plan(mac)
    if (given.mode !== 'flash') return
    const machine = recordOf(world, mac)
    checkOrdered(world, mac, machine?.bty_image_ref ?? '', given.target_disk_serial)
    const order = `${mac} ${machine?.cycle.started_at}`
    const named = `${given.image} ${given.name} ${given.target_disk_serial}`
    assert.is(world.images.get(order) ?? named, named, 'all plans of an order are one')
    world.images.set(order, named)
    Object.assign(judgeOf(world, mac), { begun: true, planned: true, writing: true })
  }

const report =
  (mac: string, how: 'done' | 'fail'): Step =>
  async (world) => {
    await world.lab[how](mac)
    if (recordOf(world, mac)?.cycle.finished_at) judgeOf(world, mac).consent = null
    if (how === 'done') judgeOf(world, mac).writing = false
  }

const pass =
  (hours: number, isSetBack: boolean): Step =>
  async ({ clock }) => {
    clock.elapsed += hours * 3_600_000
    clock.ms += isSetBack ? -hours * 3_600_000 : hours * 3_600_000
  }

const anyMac = fc.constantFrom(...MACS)
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc
    .tuple(
      anyMac,
      fc.constantFrom('flasher-flash-once', 'flasher-flash-once', 'ipxe-exit'),
      fc.constantFrom(REF, OTHER_REF),
      fc.constantFrom('S1', 'S2'),
    )
    .map(([mac, mode, ref, serial]) => put(mac, mode, ref, serial)),
  fc.constantFrom('flash', 'flash', 'disarm', 'label', 'lock', 'unlock', 'delete').map(bulk),
  anyMac.map(undo),
  fc
    .tuple(fc.nat(2), fc.constantFrom('pause', 'resume', 'disarm', 'retry', 'undo'))
    .map(([at, action]) => act(at, action)),
  anyMac.map(boot),
  anyMac.map(plan),
  fc.tuple(anyMac, fc.constantFrom('done' as const, 'fail' as const)).map(([m, h]) => report(m, h)),
  fc.tuple(fc.constantFrom(0.01, 1, 5), fc.boolean()).map(([hours, back]) => pass(hours, back)),
)

/** An order, an edit that may touch it, news of the machine or none, the undo, and what comes of it. */
const anyUndone: fc.Arbitrary<Step> = fc
  .tuple(
    anyMac,
    fc.constantFrom<readonly ('boot' | 'plan')[]>([], [], ['boot'], ['boot', 'plan']),
    fc.constantFrom('disarm', 'label', 'lock', 'delete', 'mode', 'image'),
    fc.constantFrom<readonly ('boot' | 'plan')[]>([], [], [], ['plan']),
    fc.boolean(),
  )
  .map(([mac, begun, edit, news, isOfBatch]) => {
    const contact = { boot, plan }
    const edits: Readonly<Record<string, Step>> = {
      mode: put(mac, 'ipxe-exit', REF, 'S1'),
      image: put(mac, 'flasher-flash-once', OTHER_REF, 'S1'),
    }
    const isBulk = edits[edit] === undefined
    return inTurn([
      put(mac, 'ipxe-exit', REF, 'S1'),
      put(mac, 'flasher-flash-once', REF, 'S1'),
      ...begun.map((name) => contact[name](mac)),
      edits[edit] ?? bulk(edit),
      ...news.map((name) => contact[name](mac)),
      isOfBatch && isBulk ? act(0, 'undo') : undo(mac),
      plan(mac),
      boot(mac),
    ])
  })

const inTurn =
  (steps: readonly Step[]): Step =>
  async (world) => {
    for (const step of steps) {
      world.clock.ms += 1000
      world.clock.elapsed += 1000
      await step(world)
    }
  }

/** A batch that is paused, and what its machines get from then on. */
const anyPaused: fc.Arbitrary<Step> = fc
  .tuple(anyMac, fc.constantFrom(boot, plan), fc.constantFrom('resume', 'retry', 'disarm', 'undo'))
  .map(([mac, news, action]) =>
    inTurn([
      bulk('unlock'),
      bulk('flash'),
      news(mac),
      act(0, 'pause'),
      ...MACS.map(boot),
      act(0, action),
      plan(mac),
    ]),
  )

/** An order that nobody begins in time, by a clock that may be set back. */
const anyLate: fc.Arbitrary<Step> = fc
  .tuple(anyMac, fc.boolean(), fc.constantFrom(boot, plan))
  .map(([mac, isSetBack, news]) =>
    inTurn([
      put(mac, 'ipxe-exit', REF, 'S1'),
      put(mac, 'flasher-flash-once', REF, 'S1'),
      pass(5, false),
      pass(5, isSetBack),
      news(mac),
    ]),
  )

/** Steps that are drawn one by one seldom come in time, or to the machine that they are about. */
const anyMove = fc.oneof(
  { arbitrary: anyStep, weight: 12 },
  { arbitrary: fc.oneof(anyUndone, anyPaused, anyLate), weight: 3 },
)

/** What is shown adds up, and a restart would find the very same records. */
async function checkShown({ lab }: OpenHistory): Promise<void> {
  const { batches } = await readJson(lab.ask('/batches'))
  for (const { machines, counts } of batches) {
    const shown: readonly number[] = Object.values(counts)
    assert.is(
      shown.reduce((sum, count) => sum + count, 0),
      machines,
    )
  }
  for (const machine of lab.server.machines.peekAll()) {
    assert.equal(parseRecord(JSON.parse(JSON.stringify(machine))), machine)
  }
}

test('no history flashes what nobody ordered, what was taken back, paused or has ended', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyMove, { minLength: 5, maxLength: 30 }), async (steps) => {
      const world = await open()
      await using _lab = world.lab
      await inTurn(steps)(world)
      await checkShown(world)
      // Whatever is armed at the end shows.
      for (const mac of MACS) for (const last of [plan(mac), boot(mac)]) await last(world)
    }),
    { numRuns: 40 },
  )
})

test('it is on record once, when the last machine is done, and again after a retry', async () => {
  await using lab = await openBatchLab()
  const ends = async () => (await readJson(lab.ask('/events?kind=batch.ended'))).events
  const untilEnds = (count: number) =>
    waitUntil(
      async () => (await ends()).length === count,
      () => `${count} ends`,
      20_000,
    )
  const { batch: lock } = await lab.bulk('lock')
  await lab.bulk('unlock')
  const id = await lab.arm()
  const machines: readonly { readonly mac: string }[] = (await lab.batch(id)).results
  const finish = async ({ mac }: { readonly mac: string }, end: (mac: string) => unknown) => {
    await lab.boot(mac)
    await lab.plan(mac)
    await end(mac)
  }
  const [first, ...others] = machines
  for (const machine of others) await finish(machine, lab.done)
  assert.equal(await ends(), [])
  if (first !== undefined) await finish(first, lab.fail)
  await untilEnds(1)
  const [end] = await ends()
  assert.is(end.subject_id, id)
  assert.is(end.summary, 'Finished: 2.4.30.img.zst to rack-03 (3 done, 1 failed)')
  assert.is(end.details.armed_by, 'operator')
  assert.is.not(end.subject_id, lock, 'what was done at once has no end')
  await lab.act(id, 'retry')
  // It is seen open before it ends again.
  await waitUntil(
    async () => lab.server.batches?.list()[0]?.ended_at === null,
    () => 'it goes on',
    20_000,
  )
  if (first !== undefined) await finish(first, lab.done)
  await untilEnds(2)
})

test.run()
