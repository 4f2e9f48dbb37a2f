/** Every record of a machine that contacts, operators, batches and restores can lead to, found by walking all of them. */
import { isPending } from '#engine/capture/rules/order.ts'
import { ACTIONS } from '#server/current/machines/rules/action.ts'
import * as contacts from '#server/current/machines/rules/contact.ts'
import * as orders from '#server/current/machines/rules/disarming.ts'
import { createMachine, type Machine } from '#server/current/machines/rules/machine.ts'
import { decidePlan } from '#server/current/machines/rules/plan.ts'
import { createFixture, diskOf, MAC, PXE_RULES, REF, type Fixture } from './machine-fixture.ts'

export const LIMIT = 2
export const FEATURES = { firstBoot: true, capture: true, diskId: true }
const HOURS = 24
const DAY = 86_400

type Step = (fixture: Fixture) => void

/** An order has an end, as with `armed_hours`. */
function assign(fixture: Fixture, machine: Machine): void {
  fixture.machine = orders.limitOrder(fixture.machine, machine, HOURS, fixture.now())
}

const act =
  (name: keyof typeof ACTIONS, parameters: object | null = null): Step =>
  (fixture) => {
    const acted = ACTIONS[name].apply(fixture.machine, parameters, fixture.now())
    if (acted.ok) assign(fixture, acted.value)
  }

const put =
  (
    boot_mode: string,
    bty_image_ref: string | null = REF,
    target_disk_serial: string | null = 'S1',
  ): Step =>
  (fixture) => {
    const before = fixture.machine
    try {
      fixture.put({ boot_mode, bty_image_ref, target_disk_serial })
    } catch {
      return
    }
    const after = fixture.machine
    fixture.machine = before
    assign(fixture, after)
  }

const order =
  (apply: typeof orders.pauseOrder): Step =>
  (fixture) => {
    if (fixture.machine.cycle.batch === null) return
    const changed = apply(fixture.machine, fixture.now())
    if (changed.ok) fixture.machine = changed.value
  }

/** Armed with others. */
const join: Step = (fixture) => {
  const before = fixture.machine
  act('flash')(fixture)
  const { machine } = fixture
  if (machine !== before) fixture.machine = { ...machine, cycle: { ...machine.cycle, batch: 'b' } }
}

const plan: Step = (fixture) => {
  const now = fixture.now()
  const ruling = decidePlan(fixture.machine, { ...fixture.surroundings, now }, FEATURES)
  fixture.machine = contacts.rememberPlan(fixture.machine, ruling.plan, now)
}

const endCapture =
  (result: 'done' | 'failed'): Step =>
  (fixture) => {
    const ended = { result, reason: null, startedAt: null }
    fixture.machine = contacts.rememberCaptureEnded(fixture.machine, ended, fixture.now())
  }

const within =
  (surroundings: Partial<Fixture['surroundings']>, step: Step): Step =>
  (fixture) => {
    const { surroundings: usual } = fixture
    fixture.surroundings = { ...usual, ...surroundings }
    step(fixture)
    fixture.surroundings = usual
  }

const later =
  (step: Step): Step =>
  (fixture) => {
    fixture.clock += 2 * DAY
    step(fixture)
    fixture.clock -= 2 * DAY
  }

const restore: Step = (fixture) => {
  fixture.machine = orders.disarm(fixture.machine, fixture.now())
}

const script: Step = (fixture) => void fixture.script()
export const PLACE = { place: 2, waiting: 3, flashing: 1, isNew: true }

const CONTACTS: readonly Step[] = [
  script,
  within({ placeOf: () => PLACE }, script),
  (fixture) => fixture.bootFile(),
  plan,
  (fixture) => fixture.disks(diskOf('S1')),
  (fixture) => fixture.done(),
  (fixture) => fixture.failed('no space'),
]

/** Orders to flash, of one machine or of a batch, and how they are taken away. */
const FLASHES: readonly Step[] = [
  ...CONTACTS,
  later(script),
  put('flasher-flash-once'),
  put('flasher-flash-always'),
  put('ipxe-exit'),
  put('flasher-flash-once', null),
  act('flash'),
  act('disarm'),
  act('boot-disk'),
  join,
  order(orders.pauseOrder),
  order(orders.resumeOrder),
  restore,
]

const OTHERS: readonly Step[] = [
  ...CONTACTS,
  put('flasher-flash-once'),
  put('flasher-inventory'),
  put('flasher-tui'),
  act('disarm'),
  act('refresh'),
  act('capture', { name: 'disk.img.zst', disk_serial: 'S1' }),
  act('cancel-capture'),
  endCapture('done'),
  endCapture('failed'),
  restore,
]

/** What decides, without when. */
export function keyOf({ cycle, capture, known_disks, ...machine }: Machine): string {
  const { offers, disarmed_by, ...moments } = cycle
  return JSON.stringify([
    machine.boot_mode,
    machine.bty_image_ref,
    machine.saw_flasher_boot,
    known_disks?.[0]?.serial,
    capture === null
      ? null
      : [capture.result, isPending(capture) && capture.offers, capture.planned_at !== null],
    Math.min(offers, LIMIT),
    disarmed_by,
    ...UNSEEN.reduce(
      (seen, name) => seen.filter(([each]) => each !== name),
      Object.entries(moments),
    ).map(([, value]) => Boolean(value)),
  ])
}

/** They say whose end a report is, and nothing of a state. */
const UNSEEN = ['started_at', 'before', 'begun_at', 'offered_at', 'expires_at', 'queued_at']

export const createWorld = (): Fixture =>
  createFixture({ settings: { ...PXE_RULES, loop_limit: LIMIT, boot_disk_once_after_flash: true } })

export function listReachable(): readonly Machine[] {
  const fixture = createWorld()
  const found = new Map<string, Machine>()
  const first = [fixture.machine, createMachine(MAC, 'ipxe-exit', fixture.now())]
  for (const steps of [FLASHES, OTHERS]) walk(fixture, first, steps, found)
  return [...found.values()]
}

function walk(
  fixture: Fixture,
  first: readonly Machine[],
  steps: readonly Step[],
  all: Map<string, Machine>,
) {
  const found = new Map(first.map((machine) => [keyOf(machine), machine]))
  const open = [...first]
  for (let machine = open.pop(); machine !== undefined; machine = open.pop()) {
    for (const step of steps) {
      fixture.machine = machine
      fixture.clock += 0.001
      step(fixture)
      const key = keyOf(fixture.machine)
      if (found.has(key)) continue
      found.set(key, fixture.machine)
      open.push(fixture.machine)
    }
  }
  for (const [key, machine] of found) all.set(key, machine)
}
