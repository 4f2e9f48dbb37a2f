/** Receives what live systems and clients report of a machine: its disks, and the end of a flash. */
import type { H3Event } from 'h3'
import * as z from 'zod'
import { after } from '#kit/foundation/maybe-promise.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { MachineBase, Inventory } from '#engine/inventory/rules/machine.ts'
import { RunIdSchema, type Run } from '#engine/inventory/rules/run.ts'
import type { RunUpdate } from '#fleet/run/running-runs.ts'
import type { RunEnd } from '#fleet/run/rules/run-record.ts'
import { plainWords } from '#kit/foundation/printable.ts'
import { nothing, type Answer } from '#kit/web/answers/answers.ts'
import { checked, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse, refuseFields } from '#kit/web/answers/faults.ts'
import { JSON_REFUSALS } from '#kit/web/http/body.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'
import type { Site, ServerServices } from './site.ts'
import type { Contact, MachineRequest, Transition } from './transition.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { countRun, isOnRecord, nameRun } from './runs.ts'
import { takeOne, type Bucket } from '#kit/foundation/bucket.ts'
import { shortenList, weighDisks } from '#fleet/machine/rules/query.ts'

const STATUS_BODY = z.strictObject({
  status: z.enum(['done', 'failed']),
  reason: z.string().max(500).overwrite(plainWords).nullish(),
})

function createHandlers(site: Site) {
  const { line, machines, inventories } = site
  const keepDisks = createDiskLists(site)

  async function finish(event: H3Event, end: z.infer<typeof STATUS_BODY>): Promise<Answer> {
    const mac = readMac(event)
    const contact = site.contact(event)
    const { status, reason = null } = end
    const run = findRun(site, mac, event)
    const ended = await endRun(site, mac, { result: status, reason, run }, contact)
    const signal = { kind: status, order: run?.order ?? null, reason } as const
    await report(site, mac, contact, status, (machine) => {
      const decided = line.transition(machine, signal, contact)
      if (ended === null) return decided
      const events = isOnRecord(ended, status) ? [] : decided.events
      return { ...decided, events: nameRun(ended.run.id, events) }
    })
    site.changes.announce({ topic: 'machine', mac })
    return nothing()
  }

  async function takeInventory(event: H3Event, body: Buffer<ArrayBuffer>): Promise<Answer> {
    const mac = readMac(event)
    const contact = site.contact(event)
    const parsed = await inventories.parse(body)
    if (!parsed.ok) {
      const { refusal } = parsed
      throw typeof refusal === 'string' ? JSON_REFUSALS[refusal]() : refuseFields(refusal)
    }
    const inventory = keepDisks(mac, parsed.value)
    const { hardware } = inventory
    const signal = { kind: 'inventory', inventory } as const
    const isKept = hardware !== null && machines.peek(mac) !== null
    // Together they share one wait for the disk.
    await Promise.all([
      report(site, mac, contact, 'inventory', (machine) =>
        line.transition(machine, signal, contact),
      ),
      isKept ? machines.saveHardware(mac, hardware, contact.now) : null,
    ])
    if (isKept) site.changes.announce({ topic: 'machine', mac })
    return nothing()
  }

  return { finish, takeInventory }
}

export function signalRoutes(site: Site): readonly Route[] {
  const { finish, takeInventory } = createHandlers(site)
  const admit = (event: H3Event, request: MachineRequest) =>
    site.admitMachine(readMac(event), request, site.contact(event))
  return [
    {
      method: 'POST',
      path: '/pxe/:mac/inventory',
      access: 'open',
      takes: 'json-bytes',
      admit: (event) => admit(event, 'inventory'),
      most: LIMITS.inventory,
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
      doc: { summary: 'The flash is done', query: RUN, answers: { 204: null }, refuses: [401] },
      handle: (event) => after(admit(event, 'report'), () => finish(event, { status: 'done' })),
    },
    {
      method: 'POST',
      path: '/pxe/:mac/status',
      access: 'open',
      takes: 'json',
      admit: (event) => admit(event, 'report'),
      doc: {
        summary: 'The flash is done, or has failed',
        query: RUN,
        body: renderSchema(STATUS_BODY, 'input'),
        answers: { 204: null },
        refuses: [401],
      },
      handle: (event, body) => finish(event, checked(STATUS_BODY, body)),
    },
  ]
}

const RUN = { run: 'The run that ended; only its order ends with it' }

/** Null: none, or an unknown one. */
function findRun({ runs }: Site, mac: Mac, event: H3Event): Run | null {
  const id = RunIdSchema.safeParse(event.url.searchParams.get('run'))
  return id.success ? runs.find(mac, id.data) : null
}

/** For runs without a final post, also of clients that report only their end. Null: unknown run. */
async function endRun(
  { line, machines, runs, metrics, proof }: Site,
  mac: Mac,
  { result, reason, run }: Pick<RunEnd, 'result' | 'reason'> & { readonly run: Run | null },
  contact: Contact,
): Promise<Pick<RunUpdate, 'run' | 'hasEnded'> | null> {
  const machine = machines.peek(mac)
  if (machine === null) return null
  const { origin, plannedAt, startedBefore } = line.describeRun(
    machine,
    contact,
    run?.order ?? null,
  )
  const ended = await runs.end(origin, {
    result,
    reason,
    run: run?.id ?? null,
    plannedAt,
    startedBefore,
  })
  if (ended === null) metrics.count('flasher_flash_total', { result, format: 'other' })
  else {
    if (ended.hasEnded) countRun(metrics, ended.run)
    await proof?.begin(ended.run)
  }
  return ended
}

/** 404 for an unknown machine: it was deleted, or never asked for a script. */
async function report(
  { machines, fleet, recordAll }: Site,
  mac: Mac,
  contact: Contact,
  signal: string,
  decide: (machine: MachineBase) => Transition<MachineBase>,
): Promise<void> {
  const by = { actor: 'pxe-client', ip: contact.ip } as const
  const decided = await fleet.update(mac, by, (before) => before && decide(before))
  if (decided === null) {
    const summary = `${mac} reported ${signal}, but there is no such machine`
    const on = { subject_id: mac, ...by }
    await recordAll([{ kind: 'pxe.client.orphan', summary, details: { signal } }], on)
    throw refuse(404, `no machine record for ${mac}`)
  }
  machines.see(mac, { at: contact.now, ip: contact.ip ?? '' })
}

// Registers new machines at a bounded rate and number, with disks of a bounded size: anyone in reach can create records.

/** How long a count of unassigned rows is trusted; additions here are counted meanwhile. */
const RECOUNT_MS = 30_000
/** At most one event in this time. */
const QUIET_MS = 60_000

/** The returned function says whether its caller may be stored as a new machine. */
export function createDiscovery(
  site: ServerServices,
  /** Called once a minute while new machines are turned away. */
  refused: (reason: string) => void,
): () => boolean {
  const { line, machines, settings, elapsed = () => performance.now() } = site
  let bucket: Bucket | null = null
  let count = 0
  let countedAt = -Infinity
  let reportedAt = -Infinity

  function recount(at: number): void {
    if (at - countedAt < RECOUNT_MS) return
    countedAt = at
    count = machines.peekAll().filter((machine) => line.describe(machine).isUnassigned).length
  }

  function turnAway(reason: string, at: number): false {
    if (at - reportedAt >= QUIET_MS) {
      reportedAt = at
      refused(reason)
    }
    return false
  }

  return () => {
    const at = elapsed()
    const { discoveriesPerMinute, mostUnassigned } = settings()
    const rate = { perMinute: discoveriesPerMinute, most: discoveriesPerMinute }
    const next = takeOne(bucket, at, rate)
    if (next === null) return turnAway(`more than ${discoveriesPerMinute} a minute`, at)
    bucket = next
    recount(at)
    if (count >= mostUnassigned) return turnAway(`${count} machines are unassigned`, at)
    count += 1
    return true
  }
}

function createDiskLists({
  line,
  machines,
  elapsed = () => performance.now(),
}: ServerServices): (mac: Mac, inventory: Inventory) => Inventory {
  let sum = 0
  let countedAt = -Infinity

  function weigh(machine: MachineBase): number {
    const { disks, isUnassigned } = line.describe(machine)
    return isUnassigned && disks !== null ? weighDisks(disks) : 0
  }

  function recount(at: number): void {
    if (at - countedAt < RECOUNT_MS) return
    countedAt = at
    sum = machines.peekAll().reduce((all, machine) => all + weigh(machine), 0)
  }

  return (mac, inventory) => {
    const machine = machines.peek(mac)
    if (machine === null || !line.describe(machine).isUnassigned) return inventory
    recount(elapsed())
    const others = sum - weigh(machine)
    const kept = shortenList(inventory, others)
    sum = others + weighDisks(kept.disks)
    return kept
  }
}
