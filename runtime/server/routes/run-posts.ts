/** Receives the reports of a flashing machine: its progress, and its log after a failure. */
import type { H3Event } from 'h3'
import { hideBootTokens } from '#fleet/boot/rules/boot-token.ts'
import { after, type Eventual } from '#kit/foundation/eventual.ts'
import {
  MAX_LOG_BYTES,
  MAX_PROGRESS_BYTES,
  ProgressSchema,
  RunIdSchema,
  type Run,
} from '#engine/inventory/rules/run.ts'
import type { RunUpdate } from '#fleet/run/run-posts.ts'
import { nothing, type Answer } from '#kit/web/answers/answers.ts'
import { checked, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'
import type { Site } from './site.ts'
import type { Contact, Signal } from './transition.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { countRun, listRunEvents, nameRun } from './run-events.ts'

const RETRY_SECONDS = 30

export function runPostRoutes(site: Site): readonly Route[] {
  const { machines, runs } = site

  /** Before a body is read: unknown machines send none. */
  function admit(event: H3Event): Eventual<void> {
    const mac = readMac(event)
    return after(
      site.admitMachine(mac, 'report', site.contact(event)),
      () => void site.findMachine(mac),
    )
  }

  async function report(event: H3Event, body: unknown): Promise<Answer> {
    const mac = readMac(event)
    const contact = site.contact(event)
    const machine = site.findMachine(mac)
    const post = checked(ProgressSchema, body)
    const isKnown = runs.find(mac, post.run) !== null
    if (!isKnown) await site.admitMachine(mac, 'begin', contact)
    const { origin, stamps } = site.line.describeRun(machine, contact, null)
    const { baseUrl } = contact
    const isOneOfSeveral = (site.otherServers?.(baseUrl).length ?? 0) > 0
    const began = isKnown
      ? origin
      : { ...origin, stamps: fillStamps({ ...stamps, ...site.stamps?.take(mac) }) }
    const taken = await runs.take(post, began, isOneOfSeveral ? baseUrl : null)
    if (!taken.ok) {
      const headers = { 'retry-after': String(RETRY_SECONDS) }
      throw refuse(429, 'this machine begins too many runs', { headers })
    }
    machines.see(mac, { at: contact.now, ip: contact.ip ?? '' })
    await settle(site, contact, taken.value)
    return nothing()
  }

  async function takeLog(event: H3Event, bytes: AsyncIterable<Uint8Array>): Promise<Answer> {
    const mac = readMac(event)
    const id = RunIdSchema.safeParse(event.url.searchParams.get('run'))
    const missing = () => refuse(404, `${mac} has no such run`)
    if (!id.success || runs.find(mac, id.data) === null) throw missing()
    if (!(await runs.saveLog(mac, id.data, await readTail(bytes)))) throw missing()
    site.changes.announce({ topic: 'machine', mac })
    return nothing()
  }

  return [
    {
      method: 'POST',
      path: '/pxe/:mac/progress',
      access: 'open',
      takes: 'json',
      admit,
      most: MAX_PROGRESS_BYTES,
      doc: {
        summary: 'How far a flash is: at every change of phase, and every few seconds',
        body: renderSchema(ProgressSchema, 'input'),
        answers: { 204: null },
        refuses: [401, 429],
      },
      handle: report,
    },
    {
      method: 'POST',
      path: '/pxe/:mac/log',
      access: 'open',
      takes: 'bytes',
      admit,
      most: LIMITS.log,
      seconds: LIMITS.bodySeconds,
      doc: {
        summary: `The log of a run; its last ${MAX_LOG_BYTES / 1024} KiB are kept`,
        query: { run: 'The run that it belongs to' },
        body: { type: 'string', contentMediaType: 'text/plain' },
        answers: { 204: null },
        refuses: [401],
      },
      handle: takeLog,
    },
  ]
}

const fillStamps = (known: Partial<NonNullable<Run['stamps']>>): Run['stamps'] => ({
  power_on_at: null,
  script_at: null,
  kernel_at: null,
  initrd_at: null,
  reset_at: null,
  start_at: null,
  system_at: null,
  plan_at: null,
  ...known,
})

async function settle(
  { line, fleet, changes, metrics, recordAll, proof }: Site,
  contact: Contact,
  { run, lost, ...update }: RunUpdate,
): Promise<void> {
  const { mac, result } = run
  const on = { actor: 'pxe-client', ip: contact.ip } as const
  const transition = (signal: Signal) =>
    fleet.update(mac, on, (before) => {
      if (before === null) return null
      const decided = line.transition(before, signal, contact)
      return { ...decided, events: nameRun(run.id, decided.events) }
    })
  await followBoot(proof, { run, ...update })
  if (update.isNew && result === null && run.mode === 'flash') {
    await transition({ kind: 'run-began' })
  }
  // At each post: the server may have been killed between storing the run and ending its order.
  if (run.mode === 'capture') await endCapture(run, transition)
  if (!update.isTurn) return
  changes.announce({ topic: 'machine', mac })
  if (lost !== null) countRun(metrics, lost)
  await recordAll(listRunEvents({ run, lost, ...update }), { subject_id: mac, ...on })
  if (!update.hasEnded) return
  countRun(metrics, run)
  if (run.mode !== 'capture') await endFlash(run, transition)
}

/** The next flash ends the wait for the previous system; the end of a flash begins one. */
async function followBoot(
  proof: Site['proof'],
  { run, isNew }: Pick<RunUpdate, 'run' | 'isNew'>,
): Promise<void> {
  if (isNew) await proof?.leave(run.mac)
  if (run.result !== null) await proof?.begin(run)
}

type Apply = (signal: Signal) => Eventual<unknown>

/** `status` may never come; if it does, it is not recorded again. */
async function endFlash({ result, reason }: Run, transition: Apply): Promise<void> {
  if (result === 'failed' || result === 'cancelled') {
    await transition({ kind: 'run-stopped', result, reason })
  }
}

/** No other report follows: its last post is repeated until it is answered. */
async function endCapture(
  { result, reason, started_at: startedAt }: Run,
  transition: Apply,
): Promise<void> {
  if (result === null || result === 'lost') return
  await transition({ kind: 'capture-ended', result, reason, startedAt })
}

/** Each piece costs memory, however short it is. */
const MAX_CHUNKS = 4096

/** The end of a log says why. */
async function readTail(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  let chunks: Uint8Array[] = []
  let length = 0
  const cut = () => {
    const joined = Buffer.concat(chunks)
    return joined.subarray(Math.max(0, joined.length - MAX_LOG_BYTES))
  }
  for await (const chunk of bytes) {
    chunks.push(chunk)
    length += chunk.length
    if (length < 2 * MAX_LOG_BYTES && chunks.length < MAX_CHUNKS) continue
    const tail = cut()
    chunks = [tail]
    length = tail.length
  }
  // The kernel's log begins with its command line.
  return Buffer.from(hideBootTokens(cut().toString('latin1')), 'latin1')
}
