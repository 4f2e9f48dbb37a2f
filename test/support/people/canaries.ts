/** A fleet in which one machine is in the scope `lab`, and each other one has canaries wherever it has a text. */
import * as assert from 'uvu/assert'
import type { Mac } from '#kit/net/rules/mac.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { bodyOf, runIdOf } from '../server/runs.ts'
import { asJson, readJson } from '../server/server.ts'
import { asForm, type CurrentServer } from './current-server.ts'

export const INSIDE = '52:54:00:00:00:01'
/** Outside by their labels, and without any. */
export const OUTSIDE = '52:54:00:ca:4a:91'
export const UNLABELLED = '52:54:00:ca:4a:92'
/** Nobody knows it. */
export const NOWHERE = '52:54:00:ca:4a:93'

/** What stands in no answer to somebody with the scope `lab`: canaries, and the addresses in any spelling. */
export const CANARY = /canary|52[:-]?54[:-]?00[:-]?ca[:-]?4a[:-]?9[12]|5254\.00ca\.4a9[12]/i

export const asMac = (text: string): Mac => {
  const mac = parseMac(text)
  assert.ok(mac.ok)
  return mac.value
}

/** The text of an answer; of a stream what it begins with. */
export async function readSome(answer: Response): Promise<string> {
  const type = answer.headers.get('content-type') ?? ''
  if (!type.startsWith('text/event-stream')) return await answer.text()
  const reader = answer.body?.getReader()
  const chunk = await reader?.read()
  await reader?.cancel()
  return new TextDecoder().decode(chunk?.value ?? new Uint8Array())
}

const disksOf = (word: string) => [
  {
    path: '/dev/sda',
    serial: `${word}-serial`,
    model: `${word}-model`,
    size_bytes: 64_000_000_000,
  },
]

async function openFilling(server: CurrentServer) {
  const operator = await server.operator()
  const post = async (path: string, body: unknown, method = 'POST') => {
    const answer = await operator(path, asJson(body, method))
    assert.ok(
      answer.status < 300,
      `${method} ${path}: ${answer.status} ${await answer.clone().text()}`,
    )
    return answer.status === 204 ? null : await answer.json()
  }
  const run = async (mac: string, word: string, n: number, fields: object) => {
    const id = runIdOf(n)
    const body = { ...bodyOf({ run: id }), ...fields }
    await server.request(`/pxe/${mac}/progress`, asJson(body))
    await server.request(`/pxe/${mac}/log?run=${id}`, { method: 'POST', body: `${word}-log` })
  }
  const machine = async (mac: string, word: string, labels: readonly string[]) => {
    await post(`/machines/${mac}`, { labels, name: `${word}-name` }, 'PUT')
    const report = { disks: disksOf(word), lshw: { id: `${word}-hardware`, children: [] } }
    assert.is((await server.request(`/pxe/${mac}/inventory`, asJson(report))).status, 204)
    await post(`/machines/${mac}/capture`, { name: `${word}-capture.img.zst` })
    await operator(`/machines/${mac}/capture`, { method: 'DELETE' })
    await post(
      `/machines/${mac}`,
      {
        labels,
        name: `${word}-name`,
        bty_image_ref: 'a'.repeat(64),
        boot_mode: 'flasher-flash-once',
        target_disk_serial: `${word}-serial`,
      },
      'PUT',
    )
    await run(mac, word, 1, { phase: 'failed', reason: `${word}-reason` })
    await run(mac, word, 2, { phase: 'write' })
  }
  const bulk = async (request: object): Promise<string> =>
    (await post('/machines/bulk', request)).batch
  return { operator, machine, bulk }
}

type Filling = Awaited<ReturnType<typeof openFilling>>

const growInside = ({ bulk }: Filling) =>
  bulk({ action: 'grow', parameters: { grow: false }, macs: [INSIDE] })

/** Adds what is inside; resolves to the name of its batch. */
export async function addInside(server: CurrentServer): Promise<string> {
  const filling = await openFilling(server)
  await filling.machine(INSIDE, 'inside', ['lab'])
  return await growInside(filling)
}

/** Adds what is outside: one as that inside is, one that nobody configured, and more than a page has. */
export async function addOutside(server: CurrentServer): Promise<void> {
  const { operator, machine, bulk } = await openFilling(server)
  await machine(OUTSIDE, 'canary', ['canary-label'])
  await server.request(`/pxe/${UNLABELLED}`)
  for (let box = 10; box < 99; box += 1) {
    const labels = [`rack-${box}`, `slot-${box}`]
    const body = asJson({ labels, name: `inside-${box}`, boot_mode: 'flasher-tui' }, 'PUT')
    assert.is((await operator(`/machines/52:54:00:00:00:${box}`, body)).status, 200)
    await server.request(`/pxe/52:54:00:00:00:${box}/status`, asJson({ status: 'failed' }))
  }
  const batch = await bulk({ action: 'grow', parameters: { grow: false }, q: 'canary' })
  await operator(`/batches/${batch}/pause`, { method: 'POST' })
  await operator('/ui/machines/searches', asForm({ name: 'canary', query: 'label:canary-label' }))
}

/** Fills the server as the administrator and the machines themselves do; resolves to what was made. */
export async function hideCanaries(server: CurrentServer) {
  const filling = await openFilling(server)
  const { operator, machine, bulk } = filling
  await machine(INSIDE, 'inside', ['lab'])
  await machine(OUTSIDE, 'canary', ['canary-label'])
  await server.request(`/pxe/${UNLABELLED}`)
  const batches = {
    mixed: await bulk({ action: 'grow', parameters: { grow: true }, q: 'name' }),
    outside: await bulk({ action: 'grow', parameters: { grow: false }, q: 'canary' }),
    inside: await growInside(filling),
  }
  const { events } = await readJson(operator(`/events?subject_id=${OUTSIDE}&limit=500`))
  return { operator, batches, events: events.map(({ id }: { id: number }) => id) }
}
