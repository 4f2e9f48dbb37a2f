/** Undo across scopes: what others did to a machine outside, or to bring it in or out, is not undone by whoever has a scope. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  addPerson,
  asForm,
  createCurrentServer,
  type CurrentServer,
} from '#test/support/people/current-server.ts'
import { asJson, readJson } from '#test/support/server/server.ts'

const test = suite('undo across scopes')

const [INSIDE, OUTSIDE] = ['52:54:00:00:00:01', '52:54:00:00:00:02']

async function open() {
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

const post = { method: 'POST' } as const
const undo = async (ask: Ask, mac: string) => (await ask(`/machines/${mac}/undo`, post)).status

/** The labels of both; null: it is not there. */
const look = ({ state }: CurrentServer) => {
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
  await using scene = await open()
  const { server, operator, label, anna } = scene
  const otto = await addPerson(server, 'otto', 'operate')
  await label(OUTSIDE, 'lab')
  const brought = await findEdit(operator, OUTSIDE)
  assert.ok(brought !== '')
  assert.is(await findEdit(anna, OUTSIDE), '', 'no such button is shown')
  await undoByName(anna, OUTSIDE, brought)
  await undoByName(otto, OUTSIDE, brought)
  assert.is(await undo(anna, OUTSIDE), 409)
  assert.equal(look(server), [['lab'], ['lab']])
  await label(OUTSIDE, 'office')
  const taken = await findEdit(operator, OUTSIDE)
  await undoByName(anna, OUTSIDE, taken)
  await undoByName(otto, OUTSIDE, taken)
  assert.equal(look(server), [['lab'], ['office']])
  await undoByName(operator, OUTSIDE, taken)
  assert.equal(look(server), [['lab'], ['lab']])
})

test('an own edit is not undone once the machine is outside', async () => {
  await using scene = await open()
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
  await using scene = await open()
  const { server, operator, anna } = scene
  const both = asJson({ action: 'delete', macs: [INSIDE, OUTSIDE] })
  const { batch } = await readJson(operator('/machines/bulk', both))
  assert.equal(look(server), [null, null])
  const nowhere = await anna('/machines/52:54:00:00:00:09/undo', post)
  const outside = await anna(`/machines/${OUTSIDE}/undo`, post)
  assert.equal([outside.status, await outside.text()], [nowhere.status, await nowhere.text()])
  await anna(`/batches/${batch}/undo`, post)
  assert.equal(look(server), [null, null], 'nobody with a scope finds that batch')
  assert.is((await operator(`/batches/${batch}/undo`, post)).status, 200)
  assert.equal(look(server), [['lab'], ['office']])
  assert.is((await anna(`/machines/${INSIDE}`, { method: 'DELETE' })).status, 204)
  assert.is(await undo(anna, INSIDE), 200)
  assert.equal(look(server), [['lab'], ['office']])
})

test('the people page has a field for the scope, which a form without it leaves and an empty one ends', async () => {
  await using scene = await open()
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
