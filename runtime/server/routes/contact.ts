/** A machine's contact, `GET /pxe/{mac}` and its plan: found, decided on, committed and answered, and never an error that strands iPXE. */
import { parseBootTimes } from '#fleet/run/rules/waterfall.ts'
import type { H3Event } from 'h3'
import { after, recover, type MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { renderError, Fault } from '#kit/foundation/fault.ts'
import { renderExit, renderBootstrap, renderBoot } from '#fleet/boot/rules/boot-script.ts'
import { decideGrubServer, renderGrubConfig } from '#fleet/boot/rules/grub-script.ts'
import { SYSTEM } from '#fleet/state/journal.ts'
import { isInfiniBand, isStation, parseMac, type Mac } from '#kit/net/rules/mac.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { keptJson, text, type Answer } from '#kit/web/answers/answers.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import { createDiscovery } from './signals.ts'
import type { ServerBase, Site } from './site.ts'
import type {
  Contact,
  MachineRequest,
  PlanTransition,
  ScriptTransition,
  Transition,
} from './transition.ts'
import { readAddress, readBearer, readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { countRun, renderLost } from './runs.ts'

/** Where GRUB looks on the server that firmware loaded it from. */
export const GRUB_CONFIG = '/grub/grub.cfg'

const UNFIT =
  'Part of the address of what was to be booted once: it is for other machines, so the order ends'

export function contactRoutes(site: Site): readonly Route[] {
  const { answerScript, answerPlan } = createHandlers(site)
  return [
    {
      method: 'GET',
      path: '/pxe-bootstrap.ipxe',
      access: 'open',
      doc: { summary: 'The first script for iPXE', answers: { 200: TEXT } },
      handle: (event) => text(renderBootstrap(site.contact(event).baseUrl, readOwnMac(event))),
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
          hostname: 'Host name from DHCP; shown until the machine has a name',
          unfit: UNFIT,
        },
        answers: { 200: TEXT },
        isNeverMissing: true,
      },
      handle: (event) => answerScript(event, site.contact(event)),
    },
    {
      method: 'GET',
      path: '/pxe/:mac.grub',
      access: 'open',
      doc: {
        summary: "The same decision as a script of Debian's signed GRUB, for Secure Boot",
        query: {
          buildarch: "GRUB's $grub_cpu",
          platform: "GRUB's $grub_platform",
          server: 'Host and port by which GRUB reaches this server: its Host header has no port',
          offered: 'What the previous script of this boot offered; repeating it is not a new boot',
          unfit: UNFIT,
        },
        answers: { 200: TEXT },
        isNeverMissing: true,
      },
      handle: (event) => answerScript(event, readGrubContact(site, event)),
    },
    {
      method: 'GET',
      path: GRUB_CONFIG,
      access: 'open',
      doc: {
        summary: 'The configuration of the signed GRUB: it asks for the script of its machine',
        answers: { 200: TEXT },
      },
      handle: (event) => {
        const { baseUrl, loader } = readGrubContact(site, event)
        return text(renderGrubConfig(loader, site.otherServers?.(baseUrl)))
      },
    },
    {
      method: 'GET',
      path: '/pxe/:mac/plan',
      answersHead: false,
      access: 'open',
      doc: {
        summary: 'What the live system has to do with this machine',
        answers: { 200: 'Plan' },
        refuses: [401],
        isNeverMissing: true,
      },
      handle: answerPlan,
    },
  ]
}

/** In this order: read the request, find the machine, decide, record, answer. */
function createHandlers(site: Site) {
  const { line, machines, fleet, runs, changes, metrics } = site
  const renderLeaderless = openLeaderless(site)
  const mayDiscover = createDiscovery(site, (reason) => {
    const summary = `New machines are not recorded: ${reason}`
    const on = { subject_id: null, ...SYSTEM }
    void site.recordAll([{ kind: 'machine.discovery.refused', summary, details: { reason } }], on)
  })

  function answerScript(event: H3Event, contact: Contact): MaybePromise<Answer> {
    // Boot loaders stop at an error, and this one could never be set to anything else.
    if (isInfiniBand(readAddress(event))) return text(exitOf(contact))
    const mac = readMac(event)
    const work = () =>
      event.req.method === 'HEAD'
        ? text(previewScript(site, mac, contact))
        : offerScript(mac, contact)
    return recover(work, (error) => {
      const isLed = !isLeaderless(error)
      if (isLed) site.log.error(`script for ${mac}: ${renderError(error)}`)
      countOffer('none', isLed ? 'fault' : 'no-leader')
      return text(isLed ? renderFault(site, mac, contact) : renderLeaderless(mac, contact))
    })
  }

  function offerScript(mac: Mac, contact: Contact): MaybePromise<Answer> {
    const found = discover(mac, contact)
    if (found === null) {
      countOffer('none', 'not-admitted')
      return text(exitOf(contact))
    }
    const decided = line.decideBoot(found.machine, contact)
    return after(record(mac, contact, found.before, decided), (isStored) => {
      if (!isStored) return offerScript(mac, contact)
      // A machine that asks for a script is not flashing: its silent run is over.
      return runs.findRunning(mac)?.stalled === true
        ? giveUp(site, mac, contact).then(() => sendScript(mac, contact, decided))
        : sendScript(mac, contact, decided)
    })
  }

  function sendScript(
    mac: Mac,
    { query }: Contact,
    { mode, offer, boots, script }: ScriptTransition<MachineBase>,
  ): Answer {
    // GRUB asks again within one boot, and says what it was offered.
    if (query['offered'] === undefined) {
      changes.announce({ topic: 'boot', mac, isToDisk: boots === 'to-disk' })
    }
    countOffer(mode, offer)
    return text(script)
  }

  const countOffer = (mode: string, offer: string) =>
    metrics.count('flasher_pxe_requests_total', { mode, offer })

  function answerPlan(event: H3Event): MaybePromise<Answer> {
    const mac = readMac(event)
    const contact = site.contact(event)
    // The machine gets what the cache has now.
    const renewed = after(site.admitMachine(mac, 'plan', contact), () => site.catalog.renew?.())
    return after(renewed, () => {
      const times = contact.query['up'] === undefined ? null : parseBootTimes(contact.query)
      if (times !== null) site.stamps?.tell(mac, times)
      return offerPlan(mac, contact)
    })
  }

  function offerPlan(mac: Mac, contact: Contact): MaybePromise<Answer> {
    const found = discover(mac, contact)
    // A machine that is not admitted gets the plan of a new one and leaves no record.
    if (found === null) return sendPlan(line.decidePlan(line.discover(mac, contact.now), contact))
    const decided = line.decidePlan(found.machine, contact)
    // On disk before the answer: after it, the machine may write.
    return after(record(mac, contact, found.before, decided), (isStored) =>
      isStored ? sendPlan(decided) : offerPlan(mac, contact),
    )
  }

  function sendPlan({ mode, plan }: PlanTransition<MachineBase>): Answer {
    metrics.count('flasher_plan_requests_total', { mode })
    return keptJson(plan)
  }

  /** The record, or the one that a first contact begins with; null: not admitted, as anyone in reach can create records. */
  function discover(mac: Mac, { now, ip }: Contact): FoundMachine | null {
    const before = machines.newest(mac)
    if (before !== null && before.discovered_at !== null) return { before, machine: before }
    if (before === null && !(isStation(mac) && mayDiscover())) return null
    // An operator may have made the record before the machine ever came.
    const machine = before ?? line.discover(mac, now)
    const seen = { discovered_at: now, last_seen_at: now, last_seen_ip: ip }
    return { before, machine: { ...machine, ...seen } }
  }

  /** False: another change of the machine came first; find and decide again. */
  function record(
    mac: Mac,
    { now, ip }: Contact,
    before: MachineBase | null,
    decided: Transition<MachineBase>,
  ): MaybePromise<boolean> {
    const by = { actor: 'pxe-client', ip } as const
    const made = before === null ? withDiscovery(line, mac, decided) : decided
    return after(fleet.commit(mac, by, before, made), (isStored) => {
      // Kept apart from the record: a contact that changes nothing else writes no record.
      if (isStored) machines.see(mac, { at: now, ip: ip ?? '' })
      if (isStored) changes.announce({ topic: 'contact', mac })
      return isStored
    })
  }

  return { answerScript, answerPlan }
}

interface FoundMachine {
  readonly before: MachineBase | null
  readonly machine: MachineBase
}

function withDiscovery(
  line: Site['line'],
  mac: Mac,
  decided: Transition<MachineBase>,
): Transition<MachineBase> {
  const summary = `${mac} made its first contact`
  const { details } = line.describe(decided.machine)
  return {
    ...decided,
    events: [{ kind: 'machine.discovered', summary, details }, ...decided.events],
  }
}

async function giveUp(
  { runs, changes, metrics, recordAll }: Site,
  mac: Mac,
  { ip }: Contact,
): Promise<void> {
  const lost = await runs.giveUp(mac, 'The machine stopped responding, then booted again.')
  if (lost === null) return
  changes.announce({ topic: 'machine', mac })
  countRun(metrics, lost)
  await recordAll([renderLost(lost)], { subject_id: mac, actor: 'pxe-client', ip })
}

/** Refusals are counted, never slowed: a rack behind one address must not lose its `done`. */
export function createAdmission({
  line,
  machines,
  metrics,
  recordAll,
}: ServerBase): Site['admitMachine'] {
  async function turnAway(
    mac: Mac,
    request: MachineRequest,
    { ip }: Contact,
    reason: string,
  ): Promise<never> {
    const summary = `${mac} was not admitted: ${reason}`
    const on = { subject_id: mac, actor: 'pxe-client', ip } as const
    await recordAll([{ kind: 'machine.token.refused', summary, details: { request, reason } }], on)
    metrics.count('flasher_boot_tokens_refused_total', { request })
    throw refuse(401, reason, { headers: { 'www-authenticate': 'Bearer' } })
  }

  return (mac, request, contact) => {
    const admitted = line.admit({ mac, machine: machines.peek(mac), request }, contact)
    if (!admitted.ok) return turnAway(mac, request, contact, admitted.refusal)
    if (admitted.value.length === 0) return undefined
    return recordAll(admitted.value, { subject_id: mac, actor: 'pxe-client', ip: contact.ip })
  }
}

/** Returns the address as GRUB has it, too. */
export function readGrubContact(site: Pick<Site, 'peer' | 'settings' | 'contact'>, event: H3Event) {
  const loader = decideGrubServer(event.url.searchParams.get('server'), site.peer(event).host)
  const baseUrl = site.settings().publicUrl ?? `http://${loader}`
  return { ...site.contact(event), baseUrl, loader }
}

export const exitOf = ({ loader = null }: Contact) => renderExit(loader)

/** For HEAD: the decision changes nothing. */
function previewScript({ line, machines }: Site, mac: Mac, contact: Contact): string {
  const known = machines.peek(mac)
  if (known === null && !isStation(mac)) return exitOf(contact)
  return line.decideBoot(known ?? line.discover(mac, contact.now), contact).script
}

const TEXT = { type: 'string', contentMediaType: 'text/plain' }

/** Our own iPXE names the NIC it came by; what any other says is ignored. */
export function readOwnMac(event: H3Event): Mac | null {
  const named = parseMac(event.url.searchParams.get('mac') ?? '')
  return named.ok ? named.value : null
}

const NO_QUERY: Contact['query'] = {}

export function createContactReader(now: () => Date): (event: H3Event) => Contact {
  // Many contacts share a millisecond, and its text.
  let [at, said] = [Number.NaN, '']
  return (event) => {
    const present = now()
    if (present.getTime() !== at) [at, said] = [present.getTime(), present.toISOString()]
    const { baseUrl, ip } = peerOf(event)
    const query = event.url.search === '' ? NO_QUERY : readQuery(event.url.searchParams)
    return { now: said, baseUrl, ip, bearer: readBearer(event), query }
  }
}

/** The first few fields, each cut to a bounded length. */
function readQuery(query: URLSearchParams): Contact['query'] {
  const fields = [...query].slice(0, LIMITS.queryFields)
  return Object.fromEntries(fields.map(([name, value]) => [name, value.slice(0, LIMITS.queryText)]))
}

// What a machine boots while no server may decide: it waits in line, and in the end its disk, if it had no order.

/** This server led until a moment ago, so it decides by what it knows. */
const openLeaderless = (site: Site) =>
  createLeaderless({
    ...site,
    findDiskScript(mac, contact) {
      const machine = site.machines.peek(mac)
      if (machine === null) return exitOf(contact)
      const { boots, script } = site.line.decideBoot(machine, contact)
      return boots === 'to-disk' ? script : null
    },
  })

/**
 * Boot loaders stop at an error, with nobody there to type: the machine boots its disk, or asks
 * again where that may be half written.
 */
function renderFault({ machines, line, otherServers }: Site, mac: Mac, contact: Contact): string {
  try {
    const machine = machines.peek(mac)
    if (machine === null || line.isHalfWritten?.(machine) !== true) return exitOf(contact)
  } catch {
    // Nothing can be known of any machine, and most have no order.
    return exitOf(contact)
  }
  const saying = 'the server has an error, and the disk may be half written'
  const others = otherServers?.(contact.baseUrl) ?? []
  return renderWait(mac, contact, { rule: 'fault', saying, others })
}

/** Times a machine asks before its last known state is enough to boot its disk. */
const ROUNDS = 6
const WAIT_SECONDS = 10
/** A machine that was not heard of for so long begins anew. */
const FORGET_MS = 300_000
const MAX_MACHINES = 20_000

const isLeaderless = (error: unknown): boolean =>
  error instanceof Fault && error.code === 'no-leader'

export interface LeaderlessDependencies extends Pick<Site, 'elapsed' | 'otherServers'> {
  /** Null: the machine may have an order or a half-written disk, as far as is known here. */
  findDiskScript(mac: Mac, contact: Contact): string | null
}

/** Waits without end if the disk may be half written or an order open; unknown ones leave. */
export function createLeaderless({
  elapsed = () => performance.now(),
  otherServers,
  findDiskScript,
}: LeaderlessDependencies) {
  const waiting = new Map<Mac, { readonly rounds: number; readonly at: number }>()

  function countRound(mac: Mac): number {
    const now = elapsed()
    const known = waiting.get(mac)
    const rounds = known === undefined || now - known.at > FORGET_MS ? 1 : known.rounds + 1
    // The newest is last, so that the first is the one to forget.
    waiting.delete(mac)
    waiting.set(mac, { rounds, at: now })
    const [oldest] = waiting.keys()
    if (waiting.size > MAX_MACHINES && oldest !== undefined) waiting.delete(oldest)
    return rounds
  }

  return (mac: Mac, contact: Contact): string => {
    const script = countRound(mac) > ROUNDS ? findDiskScript(mac, contact) : null
    if (script !== null) return script
    const saying = 'no server leads this fleet at the moment'
    // Another server may lead from now on, and this one may be gone by then.
    const others = otherServers?.(contact.baseUrl) ?? []
    return renderWait(mac, contact, { rule: 'no-leader', saying, others })
  }
}

interface Wait {
  readonly rule: string
  readonly saying: string
  /** Asked when this server gives no answer. */
  readonly others: readonly string[]
}

function renderWait(
  mac: Mac,
  { baseUrl: base, loader = null }: Contact,
  { rule, saying, others }: Wait,
): string {
  return renderBoot(
    { kind: 'to-wait', base, others, seconds: WAIT_SECONDS, saying },
    { mac, mode: 'unknown', rule, reason: saying },
    loader,
  )
}
