/** Every reachable state of a machine on every surface that shows it: no two disagree, and none with the next network boot. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Run } from '#engine/inventory/rules/run.ts'
import { MACHINE_STATES, urgencyOf, type MachineState } from '#fleet/machine/rules/states.ts'
import type { ActiveSets } from '#fleet/boot/boot-sets.ts'
import { openBootFiles } from '#server/current/assembly/netboot.ts'
import { ACTIONS } from '#server/current/machines/rules/action.ts'
import { MODES } from '#server/current/machines/rules/boot-mode.ts'
import { rememberOffer } from '#server/current/machines/rules/contact.ts'
import { resumeOrder } from '#server/current/machines/rules/disarming.ts'
import { hasUnfinishedFlash, type Machine } from '#server/current/machines/rules/machine.ts'
import { decidePlan } from '#server/current/machines/rules/plan.ts'
import type { Surroundings } from '#server/current/machines/rules/surroundings.ts'
import { listActions, type MachineButton } from '#server/current/machines/machine-calls.ts'
import { renderModes } from '#server/current/machines/machine-form.ts'
import { renderMachineRow } from '#server/current/view/machine-row.ts'
import {
  describeStanding,
  renderSentence,
  viewMachine,
  type MachineView,
} from '#server/current/view/machine-view.ts'
import { openAssembled } from '#test/support/server/assembled.ts'
import { diskOf, entryOf, macOf, OTHER_REF, REF } from '#test/support/server/machine-fixture.ts'
import {
  createWorld,
  FEATURES,
  LIMIT,
  listReachable,
  PLACE,
} from '#test/support/server/reachable-machines.ts'
import { BootEntrySchema } from '#fleet/once/rules/boot-entry.ts'
import { createOnce } from '#fleet/once/rules/once-order.ts'
import type { KnownEntry } from '#fleet/once/rules/boot-entry.ts'
import { sha256 } from '#test/support/server/boot-folder.ts'
import { bodyOf, RUN } from '#test/support/server/runs.ts'
import { asJson, readJson } from '#test/support/server/server.ts'

const test = suite('states of machines')

/** What the next network boot does. */
type Truth =
  | 'flash'
  | 'queue'
  | 'other'
  | 'disk'
  | 'wizard'
  | 'list'
  | 'capture'
  | 'wait'
  | 'nothing'

const PLANNED = {
  flash: 'flash',
  interactive: 'wizard',
  inventory: 'list',
  exit: 'nothing',
  capture: 'capture',
} as const

/** By the contact itself: what it changes may decide about the plan that follows. */
function foretell({ machine, boot }: MachineView, surroundings: Surroundings): Truth {
  const offered = rememberOffer(machine, boot, surroundings.now)
  const { mode } = decidePlan(offered, surroundings, FEATURES).plan
  if (boot.rule === 'queued') return mode === 'flash' ? 'queue' : 'wizard'
  if (boot.decision.kind === 'to-disk') return 'disk'
  if (boot.decision.kind === 'to-entry') return 'other'
  return boot.decision.kind === 'to-wait' ? 'wait' : PLANNED[mode]
}

/** What a state may stand for, where no run is under way. */
const MEANS: Readonly<Record<MachineState, readonly Truth[]>> = {
  ready: ['disk', 'list', 'wizard'],
  armed: ['flash', 'queue'],
  paused: ['disk'],
  capture: ['capture'],
  once: ['other'],
  done: ['disk'],
  running: ['flash', 'list', 'capture'],
  failed: ['flash', 'queue', 'disk', 'wizard', 'list', 'wait'],
  'needs-you': ['disk', 'wizard', 'wait'],
}

/** Words about the next network boot, and what they promise. */
const CLAIMS: readonly (readonly [RegExp, readonly Truth[]])[] = [
  [/this machine erases|network boot flashes it/i, ['flash']],
  [/^flash[ ,]|Erases the disk and flashes|Erases and flashes at every/i, ['flash', 'queue']],
  [/waits for its turn|Position \d/i, ['queue']],
  [/Its next network boot tries again/i, ['flash', 'queue']],
  [/boots? (from )?its (own )?disk\b|starts its (own )?disk|leaves the machine/i, ['disk', 'list']],
  [/opens? the wizard|Until then it opens/i, ['wizard']],
  [/makes the image and uploads/i, ['capture']],
  [/once\. Its next network boot starts it/i, ['other']],
  [/boot lists them|lists? its disks, then/i, ['list']],
]

const ENTRY: KnownEntry = {
  entry: {
    name: 'memtest',
    ...BootEntrySchema.parse({
      processor: 'x86_64',
      kernel: { name: 'memtest.bin', sha256: sha256('a memory test') },
    }),
    saved_at: new Date(1_800_000_000_000).toISOString(),
  },
  trouble: null,
  program: null,
  shimKeys: null,
}

const withOnce = (machine: Machine): Machine => ({
  ...machine,
  once: createOnce('memtest', new Date(1_800_000_000_000).toISOString()),
})

interface Variant {
  readonly name: string
  change?(machine: Machine): Machine
  /** Not what a record says. */
  readonly under?: Partial<Surroundings>
}

const VARIANTS: readonly Variant[] = [
  { name: 'as usual' },
  { name: 'locked', change: (machine) => ({ ...machine, locked: true }) },
  { name: 'disk gone', change: (machine) => ({ ...machine, known_disks: [diskOf('S2')] }) },
  { name: 'no disk chosen', change: (machine) => ({ ...machine, target_disk_serial: null }) },
  { name: 'image gone', change: (machine) => withImage(machine, 'e') },
  { name: 'no disk image', change: (machine) => withImage(machine, 'f') },
  { name: 'template gone', change: (machine) => ({ ...machine, first_boot: 'gone' }) },
  { name: 'it would wait', under: { placeOf: () => PLACE } },
  {
    name: 'waits',
    change: ({ cycle, ...machine }) => ({
      ...machine,
      cycle: { ...cycle, queued_at: machine.updated_at },
    }),
    under: { placeOf: () => PLACE },
  },
  { name: 'no live system', under: { sets: () => ({ x86_64: null, arm64: null }) } },
  { name: 'boots once', change: withOnce },
  {
    name: 'boots once, locked',
    change: (machine) => ({ ...withOnce(machine), locked: true }),
  },
  { name: 'boots once, entry gone', change: withOnce, under: { findEntry: () => null } },
  {
    name: 'has booted once',
    change: (machine) => {
      const { once, ...rest } = withOnce(machine)
      return { ...rest, once: once && { ...once, used_at: once.ordered_at } }
    },
  },
  { name: 'no cache', under: { cacheUrl: null } },
  { name: 'days later', under: { now: new Date(1_800_300_000_000).toISOString() } },
]

const NOTES = entryOf('f'.repeat(64), { name: 'notes.txt', format: '' })
const CATALOG = [entryOf(REF), entryOf(OTHER_REF, { name: 'other.img.zst' }), NOTES]

const withImage = (machine: Machine, digit: string): Machine =>
  machine.bty_image_ref === null ? machine : { ...machine, bty_image_ref: digit.repeat(64) }

interface Shown {
  readonly name: string
  readonly view: MachineView
  readonly surroundings: Surroundings
}

const findImage = (ref: string) => CATALOG.find((each) => each.ref === ref) ?? null

/** Every view that differs from the others, of every reachable record. */
function listShown(): readonly Shown[] {
  const { surroundings: usual } = createWorld()
  const shown = new Map<string, Shown>()
  for (const record of listReachable()) {
    for (const { name, change, under } of VARIANTS) {
      const machine = change?.(record) ?? record
      const surroundings = { ...usual, findImage, findEntry: () => ENTRY, ...under }
      for (const run of listRuns(machine)) {
        const view = viewMachine(machine, surroundings, run)
        shown.getOrInsertComputed(keyOf(view), () => ({ name, view, surroundings }))
      }
    }
  }
  return [...shown.values()]
}

/** Runs that its record allows. */
function listRuns(machine: Machine): readonly (Run | null)[] {
  const { capture } = machine
  const isCapture = capture?.result === null && capture.planned_at !== null
  if (!isCapture && !hasUnfinishedFlash(machine)) return [null]
  const run = { ...RUN, mode: isCapture ? 'capture' : 'flash' } as const
  return [null, run, { ...run, stalled: true }]
}

const keyOf = ({ machine, view, boot, plan, run, ...more }: MachineView): string =>
  JSON.stringify([
    view,
    boot.rule,
    boot.decision.kind,
    plan.rule,
    machine.boot_mode,
    machine.cycle.batch,
    listActions({ machine, view, boot, plan, run, ...more }),
    run?.mode,
    run?.stalled,
  ])

const CLOCK = { now: new Date(1_800_000_000_000), zone: 'UTC' } as const

const textOf = (content: unknown): string =>
  String(content)
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()

const NOW = CLOCK.now.toISOString()
const succeeds =
  (name: keyof typeof ACTIONS) =>
  ({ machine }: MachineView) =>
    ACTIONS[name].apply(machine, null, NOW).ok

const SUCCEEDS: Readonly<Record<MachineButton, (view: MachineView) => boolean>> = {
  'show-run': ({ run }) => run !== null,
  resume: ({ machine }) => machine.cycle.batch !== null && resumeOrder(machine, NOW).ok,
  flash: succeeds('flash'),
  disarm: succeeds('disarm'),
  'cancel-capture': succeeds('cancel-capture'),
  'boot-disk': succeeds('boot-disk'),
  refresh: succeeds('refresh'),
  'cancel-once': succeeds('cancel-once'),
  unlock: ({ machine }) => machine.locked,
}

/** What is missing there is selected in the same form. */
const OF_FORM: ReadonlySet<string> = new Set([
  'no-image',
  'unknown-image',
  'not-an-image',
  'no-target',
])

/** What its stored mode says in the form; null: that is about what may still be selected. */
function readCard(view: MachineView): string | null {
  const { machine, boot, plan } = view
  if (OF_FORM.has(boot.rule) || plan.mismatch !== null) return null
  const cards = String(renderModes(machine.boot_mode, machine.boot_mode, describeStanding(view)))
  const card = textOf(cards.split(`value="${machine.boot_mode}"`)[1]?.split('<input')[0])
  return card.replace(MODES[machine.boot_mode].title, '')
}

/** Wherever something is said of its next network boot; a run says that of itself. */
function listTexts(view: MachineView): readonly string[] {
  if (view.run !== null) return []
  const row = String(renderMachineRow(view, CLOCK, ['next'])).split('data-label="Next boot">')[1]
  const hover = /title="([^"]*)"/.exec(row ?? '')?.[1]
  return [textOf(row), hover ?? '', textOf(renderSentence(view)), readCard(view) ?? '']
}

function listDisagreements({ view: shown, surroundings }: Shown): readonly string[] {
  const { state } = shown.view
  const truth = foretell(shown, surroundings)
  const row = String(renderMachineRow(shown, CLOCK, ['state']))
  const isMeant = shown.run !== null || MEANS[state].includes(truth)
  return [
    ...(isMeant ? [] : [`${state} does not mean ${truth}`]),
    ...(row.includes(`class="badge ${state}"`) ? [] : ['its row has another mark']),
    ...listActions(shown).flatMap(({ action }) =>
      SUCCEEDS[action](shown) ? [] : [`${action} is offered, and would be refused`],
    ),
    ...listTexts(shown).flatMap((text) =>
      CLAIMS.flatMap(([claim, truths]) =>
        claim.test(text) && !truths.includes(truth) ? [`"${text}" where it is ${truth}`] : [],
      ),
    ),
  ]
}

const describe = ({ name, view: { view, boot, plan, machine } }: Shown): string =>
  `${name}, ${machine.boot_mode}, ${boot.rule}, ${plan.rule}, ${view.state}: ${view.is}`

const SHOWN = listShown()

test('no two functions disagree about a machine, nor with its next network boot', () => {
  const wrong = new Map<string, string>()
  for (const each of SHOWN) {
    for (const text of listDisagreements(each)) wrong.set(text, `${text} (${describe(each)})`)
  }
  assert.equal([...wrong.values()], [])
  const reached = new Set(SHOWN.map(({ view }) => view.view.state))
  assert.equal(reached, new Set(MACHINE_STATES.map(({ state }) => state)))
})

const SETS: ActiveSets = {
  x86_64: {
    arch: 'x86_64',
    version: '1.2.3',
    vmlinuz: 'flasher-netboot-pc-x86_64-v1.2.3.vmlinuz',
    initrd: 'flasher-netboot-pc-x86_64-v1.2.3.initrd',
    squashfs: 'flasher-netboot-pc-x86_64-v1.2.3.squashfs',
    squashfsSha256: 'd'.repeat(64),
  },
  arm64: null,
}

const snapshot = () => ({
  entries: CATALOG,
  skipped: [],
  fetchedAt: null,
  error: null,
  isStale: false,
})

/** Of those that pages show by the record alone. */
const OWN = SHOWN.filter(
  ({ name, view }) =>
    view.run === null && VARIANTS.some((each) => each.name === name && each.under === undefined),
).map(({ view }) => view.machine)

const opened: { fleet: Awaited<ReturnType<typeof openFleet>> | null } = { fleet: null }
test.before(async () => {
  opened.fleet = await openFleet()
})
test.after(() => opened.fleet?.[Symbol.asyncDispose]())

function site() {
  if (opened.fleet === null) throw new Error('it was not started')
  return opened.fleet
}

/** The program, with a machine for each thing that its record alone has pages say. */
async function openFleet() {
  await using undo = new AsyncDisposableStack()
  const clock = { ms: CLOCK.now.getTime() + 3_600_000 }
  const server = undo.use(
    await openAssembled({
      env: {
        FLASHER_PXE_TOKENS: 'off',
        FLASHER_PXE_LOOP_LIMIT: String(LIMIT),
        FLASHER_PXE_BOOT_DISK_ONCE_AFTER_FLASH: 'true',
      },
      cacheBeside: 'http://127.0.0.1:8081',
      async openBoot(given) {
        const boot = await openBootFiles(given)
        return { ...boot, bootFiles: { ...boot.bootFiles, active: () => SETS } }
      },
      assembly: {
        clock: { now: () => new Date(clock.ms), elapsed: () => clock.ms },
        catalog: { snapshot, refresh: async () => snapshot() },
      },
    }),
  )
  await server.putBootFile('memtest.bin', 'a memory test')
  const { name, saved_at: _, ...entry } = ENTRY.entry
  const admin = await server.operator()
  assert.is((await admin(`/boot-entries/${name}`, asJson(entry, 'PUT'))).status, 200)
  const batches = { going: await begin(server), paused: await begin(server) }
  for (const [at, machine] of OWN.entries()) {
    const { cycle } = machine
    const batch = cycle.paused_at === null ? batches.going : batches.paused
    const mac = macOf(`52:54:00:00:${hex(at >> 8)}:${hex(at & 255)}`)
    const joined = { ...cycle, batch: cycle.batch === null ? null : batch }
    await server.machines.update(mac, () => ({ ...machine, mac, cycle: joined }))
    const member = { mac, order: cycle.started_at, refusal: null, left: null }
    if (cycle.batch !== null) await server.batches.keepMembers(batch, [member])
  }
  await server.batches.change(batches.paused, (batch) => ({ ...batch, paused_at: NOW }))
  await startRuns(server, clock)
  const ask = await server.operator()
  const read = async (path: string) => {
    const answer = await ask(path)
    assert.is(answer.status, 200, path)
    return await answer.text()
  }
  const held = undo.move()
  return {
    server,
    batches,
    ask,
    read,
    shown: await readRows(read),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const hex = (byte: number): string => byte.toString(16).padStart(2, '0')

type OpenServer = Awaited<ReturnType<typeof openAssembled>>

async function begin({ batches }: OpenServer): Promise<string> {
  const by = { actor: 'operator', ip: null, at: NOW }
  const begun = await batches.begin({ action: 'flash', by, image: null, target: null, machines: 1 })
  await batches.change(begun.id, (batch) => ({ ...batch, acted_at: NOW }))
  return begun.id
}

/** Of three machines that write, two stop responding. */
async function startRuns(server: OpenServer, clock: { ms: number }) {
  const writing = server.machines
    .peekAll()
    .filter((machine) => hasUnfinishedFlash(machine) && machine.cycle.planned)
  for (const [at, { mac }] of writing.slice(0, 3).entries()) {
    clock.ms += 3_600_000
    const body = asJson(bodyOf({ run: `run-${at}-0000`, phase: 'write' }))
    assert.is((await server.request(`/pxe/${mac}/progress`, body)).status, 204)
  }
  await server.runs.sweep()
}

const ROW = /<tr id="m-([\da-f-]+)">[^]*?class="badge ([a-z-]+)"><svg[^]*?<\/svg>([^<]*)</g

/** Mark and word of each machine, as the list shows them. */
async function readRows(read: (path: string) => Promise<string>) {
  const shown = new Map<string, { readonly state: MachineState; readonly word: string }>()
  for (let page = 1; page <= Math.ceil(OWN.length / 100); page += 1) {
    for (const [, mac = '', tone, word = ''] of (await read(`/ui/machines?page=${page}`)).matchAll(
      ROW,
    )) {
      const row = MACHINE_STATES.find(({ state }) => state === tone)
      if (row !== undefined) shown.set(mac.replaceAll('-', ':'), { state: row.state, word })
    }
  }
  assert.is(shown.size, OWN.length, 'each has a row and a mark')
  return shown
}

const listWith = (wanted: MachineState): readonly string[] =>
  [...site().shown].flatMap(([mac, { state }]) => (state === wanted ? [mac] : [])).toSorted()

async function readCsv(query: string) {
  const [head = '', ...lines] = (await site().read(`/machines.csv?${query}`)).trim().split(/\r?\n/)
  const at = head.split(',').indexOf('state')
  return lines.map((line) => ({ mac: line.split(',')[0] ?? '', state: line.split(',')[at] }))
}

test('the wall and the table for programs show the state of the list', async () => {
  const { read, ask, shown } = site()
  const { states } = await readJson(ask('/ui/machines/wall'))
  assert.equal(
    new Map(states.map(([mac, ...each]: [string, string, string]) => [mac, each])).size,
    shown.size,
  )
  for (const [mac, state, word] of states) assert.equal({ state, word }, shown.get(mac), mac)
  const tiles = (await read('/ui/machines?view=wall')).matchAll(
    /class="t pick ([a-z-]+)"[^]*?value="([^"]+)"/g,
  )
  for (const [, state, mac = ''] of tiles) assert.is(state, shown.get(mac)?.state, mac)
  for (const { mac, state } of await readCsv('')) assert.is(state, shown.get(mac)?.state, mac)
})

test('filters find the machines that show the state, and count and sort them so', async () => {
  const { read, ask, shown } = site()
  const list = await read('/ui/machines')
  const countOf = (title: string) =>
    new RegExp(`>\\s*${title} <span class="count">(\\d+)<`).exec(list)?.[1]
  for (const { state, filter } of MACHINE_STATES) {
    const found = await readJson(ask(`/machines?q=state:${state}`))
    const macs = found.map(({ mac }: { readonly mac: string }) => mac).toSorted()
    assert.equal(macs, listWith(state), state)
    if (filter !== undefined) assert.is(countOf(filter), String(macs.length), filter)
  }
  const needy = listWith('failed').length + listWith('needs-you').length
  assert.is(countOf('Needs attention'), String(needy))
  const sorted = (await readCsv('sort=state')).map(({ mac }) =>
    urgencyOf(shown.get(mac)?.state ?? 'ready'),
  )
  assert.equal(
    sorted,
    sorted.toSorted((one, other) => one - other),
  )
  const board = await read('/ui/dashboard')
  assert.match(board, `<strong>${needy}</strong><span class="dim">Need attention`)
  assert.match(board, `<strong>${listWith('running').length}</strong><span class="dim">Running`)
})

/** States of its machine for each of a batch's, whose order stays while something else is booted once; what was flashed while it was paused is still to be flashed. */
const MEMBERS: Readonly<Record<string, readonly MachineState[]>> = {
  waiting: ['armed', 'once', 'needs-you', 'done'],
  paused: ['paused', 'once'],
  running: ['running', 'armed', 'needs-you'],
  failed: ['failed', 'needs-you', 'once'],
  done: ['done', 'once', 'armed', 'paused', 'failed', 'needs-you', 'running'],
  disarmed: ['ready', 'once', 'needs-you', 'failed'],
}

test('a batch says of its machines what they show', async () => {
  const { ask, batches, shown } = site()
  const wrong: string[] = []
  for (const id of Object.values(batches)) {
    const { results } = await readJson(ask(`/batches/${id}`))
    for (const { mac, state } of results) {
      const own = shown.get(mac)?.state ?? 'ready'
      if (MEMBERS[state]?.includes(own) !== true) wrong.push(`${state} of the batch is ${own}`)
    }
  }
  assert.equal([...new Set(wrong)], [])
})

/** What a page says first, the rule that it gives, and what a contact is given and put on record. */
async function readMachine(mac: string) {
  const { server, read } = site()
  const page = await read(`/ui/machines/${mac}`)
  const [, rule] = /\(rule <code>([a-z-]+)<\/code>/.exec(page) ?? []
  const [, mark, word] = /class="badge ([a-z-]+)"><svg[^]*?<\/svg>([^<]*)</.exec(page) ?? []
  const [, state] = /data-state="([a-z-]+)"/.exec(page) ?? []
  const resumes = page.includes('Resume the batch') ? 'paused' : rule
  const text = await (await server.request(`/pxe/${mac}`)).text()
  const [, script] = /^# (?!flasher)([a-z-]+): /m.exec(text) ?? []
  const kind = 'netboot.pxe.offered'
  const [event] = await server.journal.list({ subject_id: mac, kind, limit: 1 })
  return { rule, shown: [state, mark, word], told: [script, event?.details?.['rule'], resumes] }
}

test('its page shows the state of the list; its network boot and its event follow the page', async () => {
  const wrong = new Set<string>()
  for (const [mac, { state, word }] of site().shown) {
    const { rule, shown, told } = await readMachine(mac)
    const given = JSON.stringify([...shown, ...told])
    const wanted = JSON.stringify([state, state, word, rule, rule, rule])
    if (given !== wanted) wrong.add(`${given}, not ${wanted}`)
  }
  assert.equal([...wrong], [])
})

test.run()
