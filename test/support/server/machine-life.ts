/** A machine's life as a model: steps that contacts, operators, hours and restarts make, and the promises that hold at each. */
import { isFlashMode } from '#server/current/machines/rules/boot-mode.ts'
import * as fc from 'fast-check'
import * as assert from 'uvu/assert'
import { findPicked, type InventoryDisk } from '#engine/inventory/rules/machine.ts'
import type { BootRuling } from '#server/current/machines/rules/boot.ts'
import { rememberDone } from '#server/current/machines/rules/contact.ts'
import { disarm } from '#server/current/machines/rules/disarming.ts'
import * as edits from '#server/current/machines/rules/operator-edits.ts'
import { type Machine, parseRecord } from '#server/current/machines/rules/machine.ts'
import { anyBody, anyDisk } from './machine-arbitraries.ts'
import { createFixture, entryOf, OTHER_REF, X86_SETS, type Fixture } from './machine-fixture.ts'

/** What the world did, as the server cannot know it: the judge of its decisions. */
interface Truth {
  /** A flash plan is out and no done came since; an operator who leaves the flash modes takes over. */
  halfWritten: boolean
  /** The same, whatever mode it got since; a flash mode after another one begins anew. */
  unfinished: boolean
  /** A flash-once was finished, and nothing was asked for since. */
  finished: boolean
  /** Counted live boots in a row, with nothing finished and nothing asked for in between. */
  liveInRow: number
  /** The disks that were asked for have come, and the machine has not booted since. */
  listed: boolean
  /** An older state was restored, and nothing was asked for since. */
  disarmed: boolean
}

interface Life {
  readonly fixture: Fixture
  readonly truth: Truth
}

export type Step = (life: Life) => void

const PLACE = { place: 2, waiting: 3, flashing: 1, isNew: true }
const EMPTY = { x86_64: null, arm64: null }

/** A machine asks for its script: every promise about scripts is looked at here. */
function script({ fixture, truth }: Life) {
  const before = fixture.machine
  const ruling = fixture.script()
  const { kind } = ruling.decision
  if (truth.finished) assert.is(kind, 'to-disk', 'a finished flash-once never goes live')
  if (truth.halfWritten) {
    assert.is.not(kind, 'to-disk', 'a crashed write is never booted')
    assert.ok(
      ruling.decision.kind !== 'to-live' || ruling.decision.otherwise.kind === 'to-wait',
      'nor when the live system is unavailable',
    )
  }
  if (truth.listed) assert.is(kind, 'to-disk', 'listing its disks is followed by a disk boot')
  truth.listed = false
  truth.liveInRow = ruling.counts ? truth.liveInRow + 1 : 0
  checkGuard(before, ruling, truth, fixture)
  if (ruling.rule === 'queued') {
    assert.equal([kind, ruling.counts], ['to-wait', false], 'waiting is no live boot')
    assert.is(fixture.machine.cycle.offers, before.cycle.offers)
    assert.ok(fixture.machine.cycle.queued_at)
  }
  assert.is(fixture.machine.boot_mode, before.boot_mode, 'the mode never changes by itself')
}

/** Unattended live boots end: by the disk, or by a person with the wizard. */
function checkGuard(machine: Machine, ruling: BootRuling, truth: Truth, fixture: Fixture) {
  const limit = fixture.surroundings.settings.loop_limit
  if (!ruling.counts) return
  if (truth.liveInRow > limit) {
    assert.is(ruling.rule, 'loop-to-person', `live boot ${truth.liveInRow} of ${machine.boot_mode}`)
    assert.is.not(fixture.plan().plan.mode, 'flash', 'past the guard nothing is flashed unattended')
  }
}

export function plan({ fixture, truth }: Life) {
  const { machine } = fixture
  const ruling = fixture.plan()
  assert.is(fixture.machine.boot_mode, machine.boot_mode)
  if (ruling.plan.mode !== 'flash') return
  const { serial } = ruling.plan
  assert.ok(isFlashMode(machine.boot_mode) && !machine.locked)
  assert.is(machine.target_disk_serial, serial)
  assert.is(ruling.plan.image.ref, machine.bty_image_ref)
  assert.not.ok(truth.finished, 'a finished flash-once is not flashed')
  assert.not.ok(truth.disarmed, 'a restored state flashes nothing')
  if (machine.known_disks !== null) {
    const found = findPicked(machine.known_disks, { name: serial, seen: machine.target_disk_seen })
    assert.is(found.ok, true, 'exactly one disk')
    assert.is(found.ok && found.value.readonly, false)
  }
  truth.halfWritten = true
  truth.unfinished = true
}

function disks(found: readonly InventoryDisk[]): Step {
  return ({ fixture, truth }) => {
    const { boot_mode, cycle } = fixture.machine
    fixture.disks(...found)
    assert.is(fixture.machine.boot_mode, boot_mode)
    if (boot_mode !== 'flasher-inventory' || cycle.finished_at !== null) return
    truth.liveInRow = 0
    truth.listed = true
  }
}

function done({ fixture, truth }: Life) {
  const { boot_mode, cycle, last_flashed_at } = fixture.machine
  fixture.done()
  assert.is(fixture.machine.boot_mode, boot_mode)
  assert.is(fixture.machine.last_flashed_at, fixture.now())
  truth.unfinished = false
  if (!isFlashMode(boot_mode)) return
  truth.halfWritten = false
  // A flash of the cycle before, or one that was heard of already: the new one is still to come.
  const isCarried = cycle.carried && !cycle.planned && cycle.offers === 0
  const isLate = isCarried || (cycle.begun_at === null && last_flashed_at !== null)
  if (isLate) return
  truth.liveInRow = 0
  truth.finished = boot_mode === 'flasher-flash-once'
}

/** By its token it is the end of the flash of the cycle before, perhaps told again. */
function formerDone({ fixture, truth }: Life) {
  const { machine } = fixture
  const { before, planned } = machine.cycle
  if (before === null) return
  fixture.machine = rememberDone(machine, fixture.now(), 'before')
  const { cycle, boot_mode, saw_flasher_boot } = fixture.machine
  assert.equal([boot_mode, saw_flasher_boot], [machine.boot_mode, machine.saw_flasher_boot])
  assert.is(cycle.started_at, machine.cycle.started_at, 'it begins no cycle')
  assert.equal(
    [cycle.finished_at, cycle.planned],
    [machine.cycle.finished_at, planned],
    'nor ends this one',
  )
  assert.is(fixture.machine.last_flashed_at, fixture.now(), 'as each done')
  if (before.finished_at !== null) assert.is(cycle, machine.cycle, 'told again it is no news')
  else if (!planned) truth.halfWritten = truth.unfinished = false
}

function failed({ fixture }: Life) {
  const { boot_mode, last_flashed_at } = fixture.machine
  fixture.failed('why')
  assert.equal(
    [fixture.machine.boot_mode, fixture.machine.last_flashed_at],
    [boot_mode, last_flashed_at],
  )
}

/** Something new was asked for. */
function begin(truth: Truth, before: Machine, after: Machine) {
  truth.disarmed = false
  truth.finished = false
  truth.listed = false
  truth.liveInRow = 0
  const isTakenOver = !isFlashMode(before.boot_mode) || !isFlashMode(after.boot_mode)
  if (isTakenOver) truth.halfWritten = false
  if (!isFlashMode(before.boot_mode) && isFlashMode(after.boot_mode)) truth.unfinished = false
}

function put(body: Readonly<Record<string, unknown>>): Step {
  return ({ fixture, truth }) => {
    const before = fixture.machine
    try {
      fixture.put(body)
    } catch {
      assert.ok(before.locked)
      return
    }
    const { machine } = fixture
    const isSame =
      before.boot_mode === machine.boot_mode &&
      before.bty_image_ref === machine.bty_image_ref &&
      before.target_disk_serial === machine.target_disk_serial
    if (!isSame) begin(truth, before, machine)
    assert.is(machine.last_flashed_at, before.last_flashed_at)
    assert.is(machine.known_disks, before.known_disks)
  }
}

function again({ fixture, truth }: Life) {
  for (const act of [edits.flashAgain, edits.refreshInventory]) {
    const acted = act(fixture.machine, fixture.now())
    if (!acted.ok) continue
    begin(truth, fixture.machine, acted.value)
    fixture.machine = acted.value
  }
}

/** An operator takes over: nothing is written until something new is asked for. */
function allow({ fixture, truth }: Life) {
  const acted = edits.allowDisk(fixture.machine, fixture.now())
  assert.is(acted.ok, truth.unfinished)
  if (!acted.ok) return
  fixture.machine = acted.value
  truth.halfWritten = truth.unfinished = false
  truth.liveInRow = 0
  // The action only says in other modes that the disk may be captured.
  truth.finished = isFlashMode(acted.value.boot_mode)
}

/** An older state takes its place that says the same of it. */
function restore({ fixture, truth }: Life) {
  const { machine } = fixture
  fixture.machine = disarm(machine, fixture.now())
  if (fixture.machine.cycle.disarmed_at === machine.cycle.disarmed_at) return
  truth.disarmed = true
  truth.liveInRow = 0
}

function restart({ fixture }: Life) {
  const stored = parseRecord(JSON.parse(JSON.stringify(fixture.machine)))
  assert.equal(stored, fixture.machine)
  if (stored !== null) fixture.machine = stored
}

const always = (step: Step) => fc.constant(step)

export const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: always(script) },
  { weight: 4, arbitrary: always(({ fixture }) => fixture.bootFile()) },
  { weight: 8, arbitrary: always(plan) },
  { weight: 3, arbitrary: always(done) },
  { weight: 1, arbitrary: always(formerDone) },
  { weight: 1, arbitrary: always(failed) },
  { weight: 2, arbitrary: always(again) },
  { weight: 1, arbitrary: always(allow) },
  { weight: 1, arbitrary: always(restart) },
  { weight: 1, arbitrary: always(restore) },
  { weight: 3, arbitrary: fc.array(anyDisk, { maxLength: 4 }).map(disks) },
  { weight: 3, arbitrary: anyBody.map(put) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(1, 3600, 90_000).map((seconds) => ({ fixture }: Life) => {
      fixture.clock += seconds
    }),
  },
  {
    weight: 1,
    arbitrary: fc.boolean().map((locked) => ({ fixture }: Life) => {
      fixture.machine = { ...fixture.machine, locked }
    }),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(null, null, PLACE).map((place) => ({ fixture }: Life) => {
      fixture.surroundings = { ...fixture.surroundings, placeOf: () => place }
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(X86_SETS, X86_SETS, EMPTY).map((sets) => ({ fixture }: Life) => {
      fixture.surroundings = { ...fixture.surroundings, sets: () => sets }
    }),
  },
  {
    weight: 1,
    arbitrary: fc.boolean().map((isThere) => ({ fixture }: Life) => {
      fixture.surroundings = {
        ...fixture.surroundings,
        findImage: (ref) => (isThere || ref === OTHER_REF ? entryOf(ref) : null),
      }
    }),
  },
)

/** A new machine under the settings. */
export const createLife = (settings: Fixture['surroundings']['settings']): Life => ({
  fixture: createFixture({ settings }),
  truth: {
    halfWritten: false,
    unfinished: false,
    finished: false,
    liveInRow: 0,
    listed: false,
    disarmed: false,
  },
})
