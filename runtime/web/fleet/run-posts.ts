/** What a flashing machine tells: how far it is, and its log when something went wrong. */
import type { H3Event } from 'h3'
import { hideBootTokens } from '../../core/boot/boot-token.ts'
import type { Mac } from '../../core/machine/mac.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import {
  MAX_LOG_BYTES,
  MAX_PROGRESS_BYTES,
  ProgressSchema,
  RunIdSchema,
} from '../../core/machine/run.ts'
import type { RunUpdate } from '../../services/state/runs.ts'
import { nothing } from '../http/answers.ts'
import { checked, renderSchema } from '../http/checked.ts'
import { refuse } from '../http/faults.ts'
import { LIMITS } from '../http/limits.ts'
import type { Site } from './site.ts'
import type { Contact } from './transition.ts'
import { readMac } from '../http/mac-param.ts'
import type { Route } from '../http/route.ts'
import { countRun } from './run-metrics.ts'
import { listNotes, nameRun } from './run-events.ts'

const RETRY_SECONDS = 30

export function runPostRoutes<M extends MachineBase>(site: Site<M>): readonly Route[] {
  const { line, machines, runs, feed } = site

  async function find(mac: Mac, contact: Contact): Promise<M> {
    await site.admitMachine(mac, 'report', contact)
    const machine = await machines.find(mac)
    if (machine === null) throw refuse(404, `no machine record for ${mac}`)
    return machine
  }

  async function report(event: H3Event, body: unknown): Promise<unknown> {
    const mac = readMac(event)
    const contact = site.contact(event)
    const machine = await find(mac, contact)
    const post = checked(ProgressSchema, body)
    if (runs.find(mac, post.run) === null) await site.admitMachine(mac, 'begin', contact)
    const taken = await runs.take(post, line.originOf(machine))
    if (!taken.ok) {
      const headers = { 'retry-after': String(RETRY_SECONDS) }
      throw refuse(429, 'this machine begins too many runs', { headers })
    }
    machines.see(mac, { at: contact.now, ip: contact.ip ?? '' })
    await noteBegun(contact, taken.value)
    await settle(machine, contact, taken.value)
    return nothing()
  }

  async function noteBegun(contact: Contact, { run, isNew, hasEnded }: RunUpdate): Promise<void> {
    if (!isNew || hasEnded || run.mode !== 'flash') return
    const by = { actor: 'pxe-client', ip: contact.ip } as const
    await site.fleet.updateMachine(run.mac, by, (before) => line.afterRunBegan(before, contact))
  }

  async function settle(machine: M, contact: Contact, taken: RunUpdate): Promise<void> {
    if (!taken.isTurn) return
    const { mac } = machine
    const { run, hasEnded } = taken
    feed.announce({ topic: 'machine', mac })
    if (hasEnded) countRun(site.metrics, run)
    if (hasEnded && run.result !== 'done') line.noteRunStopped(mac)
    if (taken.lost !== null) countRun(site.metrics, taken.lost)
    // `status` may never come; where it does, it is not said again.
    const failed =
      hasEnded && run.result === 'failed'
        ? nameRun(run.id, line.afterFailure(machine, run.reason, contact).notes)
        : []
    const notes = [...listNotes(taken), ...failed]
    await site.noteAll(notes, { subject_id: mac, actor: 'pxe-client', ip: contact.ip })
  }

  async function takeLog(event: H3Event, bytes: AsyncIterable<Uint8Array>): Promise<unknown> {
    const mac = readMac(event)
    await find(mac, site.contact(event))
    const id = RunIdSchema.safeParse(event.url.searchParams.get('run'))
    const missing = () => refuse(404, `${mac} has no such run`)
    if (!id.success || runs.find(mac, id.data) === null) throw missing()
    if (!(await runs.saveLog(mac, id.data, await readTail(bytes)))) throw missing()
    feed.announce({ topic: 'machine', mac })
    return nothing()
  }

  return [
    {
      method: 'POST',
      path: '/pxe/:mac/progress',
      access: 'open',
      takes: 'json',
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
      most: LIMITS.log,
      seconds: LIMITS.bodySeconds,
      doc: {
        summary: `The log of a run; its last ${MAX_LOG_BYTES / 1024} KiB are kept`,
        query: { run: 'The run that it is of' },
        body: { type: 'string', contentMediaType: 'text/plain' },
        answers: { 204: null },
        refuses: [401],
      },
      handle: takeLog,
    },
  ]
}

/** The end is what tells why. */
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
    if (length < 2 * MAX_LOG_BYTES) continue
    chunks = [cut()]
    length = MAX_LOG_BYTES
  }
  // The kernel's log begins with its command line.
  return Buffer.from(hideBootTokens(cut().toString('latin1')), 'latin1')
}
