/** Random histories of people, scopes, edits, contacts, undos and batches: nothing outside of a scope is shown or changed by whoever has it. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { reachOf, type Role, canSee } from '#kit/web/answers/rules/rights.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import {
  addPerson,
  asForm,
  createCurrentServer,
  type CurrentServer,
} from '#test/support/people/current-server.ts'
import { asJson, readJson } from '#test/support/server/server.ts'

const test = suite('histories of people with scopes')

const SCOPES = ['read', 'machines', 'flash', 'power', 'admin'] as const
const MACS = [1, 2, 3, 4].map((box) => `52:54:00:00:0a:0${box}`)
const LABELS = ['lab', 'rack', 'lab 2', 'free']
const MODES = ['ipxe-exit', 'flasher-flash-once', 'flasher-tui']
const ACTIONS = ['flash', 'disarm', 'lock', 'unlock', 'label', 'flash', 'capture', 'delete']
const REFS = ['a'.repeat(64), 'b'.repeat(64)]

interface Given {
  readonly role: Role
  readonly labels: readonly string[] | null
}

const PEOPLE: Readonly<Record<string, Given>> = {
  anna: { role: 'operate', labels: ['lab'] },
  bert: { role: 'operate', labels: ['rack', 'lab 2'] },
  lea: { role: 'look', labels: ['lab'] },
  otto: { role: 'operate', labels: null },
  ada: { role: 'administrate', labels: ['lab'] },
}

interface History {
  readonly server: CurrentServer
  readonly tokens: ReadonlyMap<string, string>
  readonly batches: string[]
}

async function open() {
  const server = await createCurrentServer({ FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9' })
  const { peopleStore, tokens: store } = server.state
  const tokens = new Map<string, string>()
  for (const [name, given] of Object.entries(PEOPLE)) {
    const added = await peopleStore.add({ name, ...given }, null)
    assert.ok(added.ok)
    const made = await store.create(
      { name, scopes: SCOPES, expires_at: null, owner: added.value.id },
      10,
    )
    assert.ok(made.ok)
    tokens.set(name, made.value.token)
  }
  const history: History = { server, tokens, batches: [] }
  for (const [at, mac] of MACS.entries()) {
    const body = asJson(bodyOf(at, [LABELS[at] ?? 'lab'], 0, 0), 'PUT')
    assert.is((await askAs(history, 'ada', `/machines/${mac}`, body)).status, 200)
  }
  return { ...history, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

/** Each machine has a name that nothing else has. */
const nameOf = (at: number) => `secret-${at}-`

const bodyOf = (at: number, labels: readonly string[], mode: number, ref: number) => ({
  labels,
  name: nameOf(at),
  boot_mode: MODES[mode],
  bty_image_ref: REFS[ref],
  target_disk_serial: 'S1',
})

async function askAs(
  { server, tokens }: History,
  who: string,
  path: string,
  init: RequestInit = {},
) {
  const headers = new Headers(init.headers)
  headers.set('authorization', `Bearer ${tokens.get(who)}`)
  return await server.request(path, { ...init, headers })
}

const post = { method: 'POST' } as const

/** Most of what is tried is tried by those whom a scope limits. */
const anyWho = fc.constantFrom('anna', 'anna', 'anna', 'bert', 'bert', 'bert', 'lea', 'otto', 'ada')
const anyBox = fc.nat({ max: MACS.length - 1 })
const anyLabels = fc.subarray(LABELS)
/** Null: those that the machine has. */
const anyLabelsOrSame = fc.option(anyLabels, { freq: 1 })
const anyBoxes = fc.subarray([...MACS.keys()], { minLength: 1 })

const anyPut = fc.record({
  what: fc.constant('put' as const),
  who: anyWho,
  box: anyBox,
  labels: anyLabelsOrSame,
  mode: fc.nat({ max: 2 }),
  ref: fc.nat({ max: 1 }),
})

const anyDelete = fc.record({ what: fc.constant('delete' as const), who: anyWho, box: anyBox })

const anyUndo = fc.record({ what: fc.constant('undo' as const), who: anyWho, box: anyBox })

const anyBulk = fc.record({
  what: fc.constant('bulk' as const),
  who: fc.constantFrom('ada', 'ada', 'otto', 'anna', 'bert'),
  boxes: anyBoxes,
  bySearch: fc.boolean(),
  action: fc.constantFrom(...ACTIONS),
  labels: anyLabels,
})

const anyBatch = fc.record({
  what: fc.constant('batch' as const),
  who: anyWho,
  at: fc.nat({ max: 1 }),
  action: fc.constantFrom('pause', 'resume', 'disarm', 'undo', 'retry'),
})

const anyContact = fc.record({
  what: fc.constant('contact' as const),
  who: fc.constant(null),
  box: anyBox,
  path: fc.constantFrom('', '/plan', '/status'),
})

const anyScope = fc.record({
  what: fc.constant('scope' as const),
  who: fc.constant(null),
  of: fc.constantFrom('anna', 'bert', 'lea'),
  labels: fc.subarray(LABELS.slice(0, 3)),
})

/** What somebody tries; `contact` and `scope` are of nobody with a scope. */
const anyStep = fc.oneof(
  { weight: 4, arbitrary: anyPut },
  { weight: 1, arbitrary: anyDelete },
  { weight: 4, arbitrary: anyUndo },
  { weight: 5, arbitrary: anyBulk },
  { weight: 4, arbitrary: anyBatch },
  { weight: 2, arbitrary: anyContact },
  { weight: 1, arbitrary: anyScope },
)

type Step = typeof anyStep extends fc.Arbitrary<infer Made> ? Made : never

async function take(history: History, step: Step): Promise<void> {
  switch (step.what) {
    case 'put': {
      const labels = step.labels ?? labelsOf(history, step.box)
      const body = bodyOf(step.box, labels, step.mode, step.ref)
      return void (await askAs(history, step.who, pathOf(step.box), asJson(body, 'PUT')))
    }
    case 'delete':
      return void (await askAs(history, step.who, pathOf(step.box), { method: 'DELETE' }))
    case 'undo':
      return void (await askAs(history, step.who, `${pathOf(step.box)}/undo`, post))
    case 'bulk':
      return await takeBulk(history, step)
    case 'batch':
      return await takeBatch(history, step)
    case 'contact': {
      const init = step.path === '/status' ? asJson({ status: 'failed', reason: 'disk full' }) : {}
      return void (await history.server.request(`/pxe/${MACS[step.box]}${step.path}`, init))
    }
    case 'scope':
      return await takeScope(history, step)
  }
}

function labelsOf(history: History, box: number): readonly string[] {
  const labels = look(history).machines.get(MACS[box] ?? '')?.labels
  return labels ?? [LABELS[box] ?? 'lab']
}

const pathOf = (box: number) => `/machines/${MACS[box]}`

async function takeScope({ server }: History, step: Extract<Step, { what: 'scope' }>) {
  const { peopleStore } = server.state
  const id = peopleStore.findByName(step.of)?.id ?? ''
  await peopleStore.setRights(id, { labels: step.labels })
}

async function takeBatch(history: History, step: Extract<Step, { what: 'batch' }>): Promise<void> {
  const id = history.batches.at(-1 - step.at)
  if (id !== undefined) await askAs(history, step.who, `/batches/${id}/${step.action}`, post)
}

async function takeBulk(history: History, step: Extract<Step, { what: 'bulk' }>): Promise<void> {
  const { action, boxes, bySearch, labels, who } = step
  const parameters =
    action === 'flash'
      ? { boot_mode: MODES[1] }
      : action === 'label'
        ? { add: labels, remove: LABELS.filter((label) => !labels.includes(label)) }
        : {}
  const on = bySearch ? { q: 'secret' } : { macs: boxes.map((box) => MACS[box]) }
  const answer = await askAs(history, who, '/machines/bulk', asJson({ action, parameters, ...on }))
  const { batch } = await answer.json()
  if (typeof batch === 'string') history.batches.push(batch)
}

/** All machines by MAC, and when batches were paused. */
function look({ server: { state } }: History) {
  const machines = new Map(state.machines.peekAll().map((machine) => [`${machine.mac}`, machine]))
  const batches = state.batches.list().map((batch) => ({
    ...batch,
    macs: state.batches.listMembers(batch.id).map(({ mac }) => `${mac}`),
  }))
  return { machines, batches: new Map(batches.map((batch) => [batch.id, batch])) }
}

type Looked = ReturnType<typeof look>

function rightsOf({ server }: History, who: string) {
  const person = server.state.peopleStore.findByName(who)
  assert.ok(person !== null)
  return { role: person.role, reach: reachOf(person) }
}

/** Judges one act of a person by what was there before it and behind it. */
function judge(history: History, who: string, before: Looked, after: Looked): void {
  const { role, reach } = rightsOf(history, who)
  if (role === 'administrate') return
  for (const mac of new Set([...before.machines.keys(), ...after.machines.keys()])) {
    const [was, is] = [before.machines.get(mac), after.machines.get(mac)]
    if (was !== is) judgeChange(history, who, was, is)
  }
  for (const [id, { paused_at, macs }] of before.batches) {
    if (after.batches.get(id)?.paused_at === paused_at) continue
    const outside = macs.filter((mac) => !canSee(reach, before.machines.get(mac)?.labels ?? []))
    assert.equal(reach === null ? [] : outside, [], `${who} paused ${id}`)
  }
}

function judgeChange(history: History, who: string, was?: Machine, is?: Machine): void {
  const { role, reach } = rightsOf(history, who)
  const people = history.server.state.peopleStore.list()
  const fixed = people.flatMap(({ labels }) => labels ?? [])
  const scopesOn = ({ labels }: Machine) => labels.filter((label) => fixed.includes(label))
  assert.is(role, 'operate', `${who} may look alone, and changed ${was?.mac}`)
  for (const each of [was, is]) {
    assert.ok(
      each === undefined || canSee(reach, each.labels),
      `${who} changed ${each?.mac} outside`,
    )
  }
  if (was !== undefined && is !== undefined) assert.equal(scopesOn(is), scopesOn(was), who)
}

const SHOWN = ['/machines', '/events?limit=500', '/runs', '/batches', '/events.csv']

/** Nothing of a machine outside stands in what somebody gets. */
async function judgeShown(history: History, who: string): Promise<void> {
  const { reach } = rightsOf(history, who)
  const { machines } = look(history)
  const hidden = MACS.flatMap((mac, at) =>
    canSee(reach, machines.get(mac)?.labels ?? []) ? [] : [mac, nameOf(at)],
  )
  const one = history.batches.at(-1)
  const paths = [...SHOWN, ...MACS.map((mac) => `/machines/${mac}`), `/batches/${one}`]
  for (const path of paths) {
    const text = (await (await askAs(history, who, path)).text()).replaceAll(path.slice(10), '')
    for (const word of reach === null ? [] : hidden) {
      assert.not.ok(text.includes(word), `${who} is shown ${word} by ${path}: ${text}`)
    }
  }
}

test('whoever has a scope sees and changes what is in it, whatever everybody does', async () => {
  const changed = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyStep, { minLength: 45, maxLength: 60, size: 'max' }),
      fc.infiniteStream(fc.constantFrom('anna', 'bert', 'lea')),
      async (steps, readers) => {
        await using history = await open()
        for (const [at, step] of steps.entries()) {
          const before = look(history)
          await take(history, step)
          const after = look(history)
          if (step.who !== null) {
            judge(history, step.who, before, after)
            const isNew = [...after.machines].some(([mac, is]) => before.machines.get(mac) !== is)
            if (isNew) changed.set(step.who, (changed.get(step.who) ?? 0) + 1)
          }
          if (at % 8 === 0) await judgeShown(history, readers.next().value ?? 'anna')
        }
      },
    ),
    { seed: 27_11_2026, numRuns: 6, endOnFailure: true },
  )
  for (const who of ['anna', 'bert', 'otto', 'ada']) {
    assert.ok((changed.get(who) ?? 0) > 3, `${who} changed ${changed.get(who) ?? 0} times`)
  }
})

const [INSIDE, OUTSIDE] = ['52:54:00:00:00:01', '52:54:00:00:00:02']

async function openUndo() {
  const server = await createCurrentServer()
  const operator = await server.operator()
  const label = async (mac: string, ...labels: readonly string[]) =>
    assert.is((await operator(`/machines/${mac}`, asJson({ labels }, 'PUT'))).status, 200)
  await label(INSIDE, 'lab')
  await label(OUTSIDE, 'office')
  const anna = await addPerson(server, 'anna', 'operate', ['lab'])
  return { server, operator, label, anna, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

type Ask = Awaited<ReturnType<CurrentServer['operator']>>
const undo = async (ask: Ask, mac: string) => (await ask(`/machines/${mac}/undo`, post)).status

/** The labels of both; null: it is not there. */
const lookAt = ({ state }: CurrentServer) => {
  const all = new Map(state.machines.peekAll().map(({ mac, labels }) => [`${mac}`, labels]))
  return [all.get(INSIDE) ?? null, all.get(OUTSIDE) ?? null]
}

/** The name of the newest edit, as the page of the machine has it. */
async function findEdit(ask: Ask, mac: string): Promise<string> {
  const page = await (await ask(`/ui/machines/${mac}`)).text()
  return /name="edit"[^>]*value="(\w+)"/.exec(page)?.[1] ?? ''
}

const undoByName = async (ask: Ask, mac: string, edit: string) =>
  (await ask(`/ui/machines/${mac}/undo`, asForm({ edit }))).status

test('a label that brought a machine in or out is not taken back, by name neither', async () => {
  await using scene = await openUndo()
  const { server, operator, label, anna } = scene
  const otto = await addPerson(server, 'otto', 'operate')
  await label(OUTSIDE, 'lab')
  const brought = await findEdit(operator, OUTSIDE)
  assert.ok(brought !== '')
  assert.is(await findEdit(anna, OUTSIDE), '', 'no such button is shown')
  await undoByName(anna, OUTSIDE, brought)
  await undoByName(otto, OUTSIDE, brought)
  assert.is(await undo(anna, OUTSIDE), 409)
  assert.equal(lookAt(server), [['lab'], ['lab']])
  await label(OUTSIDE, 'office')
  const taken = await findEdit(operator, OUTSIDE)
  await undoByName(anna, OUTSIDE, taken)
  await undoByName(otto, OUTSIDE, taken)
  assert.equal(lookAt(server), [['lab'], ['office']])
  await undoByName(operator, OUTSIDE, taken)
  assert.equal(lookAt(server), [['lab'], ['lab']])
})

test('an own edit is not undone once the machine is outside', async () => {
  await using scene = await openUndo()
  const { server, label, anna } = scene
  const lock = asJson({ action: 'lock', macs: [INSIDE] })
  assert.is((await readJson(anna('/machines/bulk', lock))).done, 1)
  const own = await findEdit(anna, INSIDE)
  await label(INSIDE, 'office')
  const before = JSON.stringify(server.state.machines.peekAll())
  assert.is(await undo(anna, INSIDE), 409)
  await undoByName(anna, INSIDE, own)
  assert.is(JSON.stringify(server.state.machines.peekAll()), before)
})

test('what was deleted outside stays deleted, also by the batch; what was deleted inside comes back', async () => {
  await using scene = await openUndo()
  const { server, operator, anna } = scene
  const both = asJson({ action: 'delete', macs: [INSIDE, OUTSIDE] })
  const { batch } = await readJson(operator('/machines/bulk', both))
  assert.equal(lookAt(server), [null, null])
  const nowhere = await anna('/machines/52:54:00:00:00:09/undo', post)
  const outside = await anna(`/machines/${OUTSIDE}/undo`, post)
  assert.equal([outside.status, await outside.text()], [nowhere.status, await nowhere.text()])
  await anna(`/batches/${batch}/undo`, post)
  assert.equal(lookAt(server), [null, null], 'nobody with a scope finds that batch')
  assert.is((await operator(`/batches/${batch}/undo`, post)).status, 200)
  assert.equal(lookAt(server), [['lab'], ['office']])
  assert.is((await anna(`/machines/${INSIDE}`, { method: 'DELETE' })).status, 204)
  assert.is(await undo(anna, INSIDE), 200)
  assert.equal(lookAt(server), [['lab'], ['office']])
})

test('the people page has a field for the scope, which a form without it leaves and an empty one ends', async () => {
  await using scene = await openUndo()
  const { server, operator, anna } = scene
  const { id = '' } = server.state.peopleStore.findByName('anna') ?? {}
  const labels = () => server.state.peopleStore.find(id)?.labels
  const set = async (fields: Readonly<Record<string, string>>) => {
    const answer = await operator(`/ui/people/${id}/role`, asForm(fields))
    return answer.headers.get('location') ?? ''
  }
  const page = await (await operator(`/ui/people/${id}`)).text()
  assert.match(page, /name="labels"[^>]*value="lab"/)
  assert.match(page, '<option value="office"></option>')
  assert.match(await set({ role: 'look' }), 'done=role')
  assert.equal(labels(), ['lab'])
  assert.is((await anna('/machines')).status, 401, 'their sessions end')
  assert.match(await set({ role: 'operate', labels: ' rack 1,, lab , lab' }), 'done=role')
  assert.equal(labels(), ['lab', 'rack 1'])
  for (const wrong of ['läb', 'a'.repeat(65), Array.from({ length: 40 }, (_, n) => `label-${n}`)]) {
    assert.not.match(await set({ role: 'operate', labels: String(wrong) }), 'done=')
    assert.equal(labels(), ['lab', 'rack 1'])
  }
  assert.match(await set({ role: 'operate', labels: '' }), 'done=role')
  assert.is(labels(), null)
})

test.run()
