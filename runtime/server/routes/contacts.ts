/** Records a machine's contact: a new machine is admitted and discovered, a known one is seen again. */
import type { H3Event } from 'h3'
import { after, type Eventual } from '../../kit/foundation/eventual.ts'
import { isStation, type Mac } from '../../kit/net/rules/mac.ts'
import type { MachineBase } from '../../engine/inventory/rules/machine.ts'
import { SYSTEM } from '../../fleet/state/journal.ts'
import { readBearer } from '../../kit/web/access/guard.ts'
import { LIMITS } from '../../kit/web/answers/limits.ts'
import type { Peer } from '../../kit/web/answers/caller.ts'
import { createDiscovery } from './discovery.ts'
import type { Site } from './site.ts'
import type { Contact, Transition } from './transition.ts'

export function createContactRecorder(site: Site) {
  const { line, machines, fleet } = site
  const admitNew = createDiscovery(site, (reason) => {
    const summary = `New machines are not recorded: ${reason}`
    const on = { subject_id: null, ...SYSTEM }
    void site.noteAll([{ kind: 'machine.discovery.refused', summary, details: { reason } }], on)
  })

  /** A machine without a record, or one that an operator made before it ever came. */
  function discover<T extends Transition<MachineBase>>(
    before: MachineBase | null,
    mac: Mac,
    contact: Contact,
    decide: (machine: MachineBase) => T,
  ): T {
    const machine = before ?? line.discover(mac, contact.now)
    const seen = { last_seen_at: contact.now, last_seen_ip: contact.ip }
    const decided = decide({ ...machine, ...seen, discovered_at: contact.now })
    if (before !== null) return decided
    const summary = `${mac} made its first contact`
    const { details } = line.describe(decided.machine)
    const found = { kind: 'machine.discovered', summary, details }
    return { ...decided, notes: [found, ...decided.notes] }
  }

  /** Stores what `decide` makes of the machine, and that it was seen. Null: it was not let in. */
  return function record<T extends Transition<MachineBase>>(
    mac: Mac,
    contact: Contact,
    decide: (machine: MachineBase) => T,
  ): Eventual<T | null> {
    const isKnown = machines.peek(mac) !== null
    if (!isKnown && !(isStation(mac) && admitNew())) return null
    const by = { actor: 'pxe-client', ip: contact.ip } as const
    const updated = fleet.update(mac, by, (before) =>
      before === null || before.discovered_at === null
        ? discover(before, mac, contact, decide)
        : decide(before),
    )
    return after(updated, (decided) => {
      machines.see(mac, { at: contact.now, ip: contact.ip ?? '' })
      site.feed.announce({ topic: 'machine', mac })
      return decided
    })
  }
}

const NONE: Contact['query'] = {}

/** Many contacts share a millisecond, and its text. */
export function createClock(now: () => Date): () => string {
  let [at, text] = [Number.NaN, '']
  return () => {
    const present = now()
    if (present.getTime() !== at) [at, text] = [present.getTime(), present.toISOString()]
    return text
  }
}

/** What a rule may know of one request. `now`: an ISO time. */
export const readContact = (event: H3Event, peer: Peer, now: string): Contact => ({
  now,
  baseUrl: peer.baseUrl,
  ip: peer.ip,
  bearer: readBearer(event),
  query: event.url.search === '' ? NONE : readQuery(event.url.searchParams),
})

/** The first few fields, each cut to a length that no honest one has. */
function readQuery(query: URLSearchParams): Contact['query'] {
  const fields = [...query].slice(0, LIMITS.queryFields)
  return Object.fromEntries(fields.map(([name, value]) => [name, value.slice(0, LIMITS.queryText)]))
}
