/** What machines ask: script, plan, inventory, done. Open to all, and never an error that strands iPXE. */
import type { H3Event } from 'h3'
import * as z from 'zod'
import { renderError } from '../../core/foundation/fault.ts'
import { renderBootstrap } from '../../core/boot/bootstrap.ts'
import { isStation, parseMac, type Mac } from '../../core/machine/mac.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import { plainWords } from '../../core/foundation/printable.ts'
import { json, nothing, text } from '../http/answers.ts'
import { checked, renderSchema } from '../http/checked.ts'
import { refuse, refuseFields } from '../http/faults.ts'
import { LIMITS } from '../http/limits.ts'
import type { Site } from './site.ts'
import type { Contact, PlanTransition, ScriptTransition, Transition } from './transition.ts'
import type { Note } from '../http/event-note.ts'
import { readMac } from '../http/mac-param.ts'
import { createContactRecorder } from './contacts.ts'
import type { Route } from '../http/route.ts'
import { endRun, leaveStalled } from './run-ends.ts'
import { isOnRecord, nameRun } from './run-events.ts'

const STATUS_BODY = z.strictObject({
  status: z.enum(['done', 'failed']),
  reason: z.string().max(500).overwrite(plainWords).nullish(),
})

export function pxeRoutes<M extends MachineBase>(site: Site<M>): readonly Route[] {
  const { line, machines, fleet, metrics } = site
  const recordContact = createContactRecorder(site)

  async function answerScript(event: H3Event): Promise<unknown> {
    const mac = readMac(event)
    const contact = site.contact(event)
    const exit = () => line.renderExit(contact)
    try {
      if (event.req.method === 'HEAD') return text(await previewScript(site, mac, contact))
      const made = await recordContact<ScriptTransition<M>>(mac, contact, (machine) =>
        line.decideBoot(machine, contact),
      )
      await leaveStalled(site, mac, contact)
      metrics.count('flasher_pxe_requests_total', {
        mode: made === null ? 'none' : line.modeOf(made.machine),
        offer: made?.offer ?? 'not-admitted',
      })
      return text(made?.script ?? exit())
    } catch (error) {
      // iPXE stops at an error of ours, with nobody there to type: the box boots its own disk instead.
      site.log.error(`script for ${mac}: ${renderError(error)}`)
      metrics.count('flasher_pxe_requests_total', { mode: 'none', offer: 'fault' })
      return text(exit())
    }
  }

  async function answerPlan(event: H3Event): Promise<unknown> {
    const mac = readMac(event)
    const contact = site.contact(event)
    await site.admitMachine(mac, 'plan', contact)
    const decide = (machine: M): PlanTransition<M> => line.decidePlan(machine, contact)
    const made = await recordContact(mac, contact, decide)
    const { plan, mode } = made ?? decide(line.discover(mac, contact.now))
    metrics.count('flasher_plan_requests_total', { mode })
    return json(plan)
  }

  /** A signal of a machine that nobody knows: 404 (it was deleted, or never asked for a script). */
  async function tell(
    mac: Mac,
    contact: Contact,
    signal: string,
    decide: (machine: M) => Transition<M>,
  ): Promise<unknown> {
    const by = { actor: 'pxe-client', ip: contact.ip } as const
    const made = await fleet.updateMachine(mac, by, decide)
    if (made === null) {
      const summary = `${mac} reported ${signal}, and there is no such machine`
      const orphan: Note = { kind: 'pxe.client.orphan', summary, details: { signal } }
      await site.noteAll([orphan], { subject_id: mac, ...by })
      throw refuse(404, `no machine record for ${mac}`)
    }
    machines.see(mac, { at: contact.now, ip: contact.ip ?? '' })
    return nothing()
  }

  async function finish(event: H3Event, end: z.infer<typeof STATUS_BODY>): Promise<unknown> {
    const mac = readMac(event)
    const contact = site.contact(event)
    await site.admitMachine(mac, 'report', contact)
    const isDone = end.status === 'done'
    const reason = end.reason ?? null
    const ended = await endRun(site, mac, { result: end.status, reason }, contact)
    const answer = await tell(mac, contact, end.status, (machine) => {
      const turn = isDone
        ? line.afterFlash(machine, contact)
        : line.afterFailure(machine, reason, contact)
      if (ended === null) return turn
      const notes = isOnRecord(ended, end.status) ? [] : turn.notes
      return { ...turn, notes: nameRun(ended.run.id, notes) }
    })
    site.feed.announce({ topic: 'machine', mac })
    fleet.announceOutcome(mac, isDone ? 'flashed' : 'failed')
    return answer
  }

  async function takeInventory(event: H3Event, body: unknown): Promise<unknown> {
    const mac = readMac(event)
    const contact = site.contact(event)
    await site.admitMachine(mac, 'inventory', contact)
    const inventory = line.parseInventory(body)
    if (!inventory.ok) throw refuseFields(inventory.refusal)
    const { hardware } = inventory.value
    const isKept = hardware !== null && (await machines.find(mac)) !== null
    // Side by side: they share one wait for the disk.
    const [answer] = await Promise.all([
      tell(mac, contact, 'inventory', (machine) =>
        line.afterInventory(machine, inventory.value, contact),
      ),
      isKept ? machines.saveHardware(mac, hardware, contact.now) : null,
    ])
    if (isKept) site.feed.announce({ topic: 'machine', mac })
    return answer
  }

  return [
    {
      method: 'GET',
      path: '/pxe-bootstrap.ipxe',
      access: 'open',
      doc: { summary: 'The script that an iPXE binary chains to first', answers: { 200: TEXT } },
      handle: (event) => text(renderBootstrap(site.contact(event).baseUrl, toldMac(event))),
    },
    {
      method: 'GET',
      path: '/pxe/:mac',
      access: 'open',
      doc: {
        summary: "The machine's boot script; a machine that is new is discovered",
        query: {
          buildarch: "iPXE's ${buildarch}",
          platform: "iPXE's ${platform}",
        },
        answers: { 200: TEXT },
        isNeverMissing: true,
      },
      handle: answerScript,
    },
    {
      method: 'GET',
      path: '/pxe/:mac/plan',
      answersHead: false,
      access: 'open',
      doc: {
        summary: 'What the live environment does with this machine',
        answers: { 200: 'Plan' },
        refuses: [401],
        isNeverMissing: true,
      },
      handle: answerPlan,
    },
    {
      method: 'POST',
      path: '/pxe/:mac/inventory',
      access: 'open',
      takes: 'json',
      most: LIMITS.inventory,
      seconds: LIMITS.inventorySeconds,
      doc: {
        summary: 'Posts disks and hardware',
        body: 'Inventory',
        answers: { 204: null },
        refuses: [401],
      },
      handle: takeInventory,
    },
    {
      method: 'POST',
      path: '/pxe/:mac/done',
      access: 'open',
      doc: { summary: 'The flash is done', answers: { 204: null }, refuses: [401] },
      handle: (event) => finish(event, { status: 'done' }),
    },
    {
      method: 'POST',
      path: '/pxe/:mac/status',
      access: 'open',
      takes: 'json',
      doc: {
        summary: 'The flash is done, or has failed',
        body: renderSchema(STATUS_BODY, 'input'),
        answers: { 204: null },
        refuses: [401],
      },
      handle: (event, body) => finish(event, checked(STATUS_BODY, body)),
    },
  ]
}

/** For its headers: nothing is offered, recorded or discovered. */
async function previewScript<M extends MachineBase>(
  { line, machines }: Site<M>,
  mac: Mac,
  contact: Contact,
): Promise<string> {
  const known = await machines.find(mac)
  if (known === null && !isStation(mac)) return line.renderExit(contact)
  return line.previewScript(known ?? line.discover(mac, contact.now), contact)
}

const TEXT = { type: 'string', contentMediaType: 'text/plain' }

/** Our own iPXE says which NIC it came by; what any other says is not looked at. */
function toldMac(event: H3Event): Mac | null {
  const told = parseMac(event.url.searchParams.get('mac') ?? '')
  return told.ok ? told.value : null
}
