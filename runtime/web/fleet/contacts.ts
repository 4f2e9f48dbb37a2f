/** Records a machine's contact: a new machine is admitted and discovered, a known one is seen again. */
import type { H3Event } from 'h3'
import { isStation, type Mac } from '../../core/machine/mac.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import { readBearer } from '../http/guard.ts'
import { LIMITS } from '../http/limits.ts'
import type { Peer } from '../http/caller.ts'
import { createDiscovery } from './discovery.ts'
import type { Site } from './site.ts'
import type { Contact, Transition } from './transition.ts'

/** Stores what `decide` makes of the machine, and that it was seen. Null: it was not let in. */
type RecordContact<M> = <T extends Transition<M>>(
  mac: Mac,
  contact: Contact,
  decide: (machine: M) => T,
) => Promise<T | null>

export function createContactRecorder<M extends MachineBase>(site: Site<M>): RecordContact<M> {
  const { line, machines, fleet } = site
  const admitNew = createDiscovery(site, (reason) => {
    const summary = `New machines are not recorded: ${reason}`
    void site.noteAll([{ kind: 'machine.discovery.refused', summary, details: { reason } }], {
      subject_id: null,
      actor: 'system',
      ip: null,
    })
  })

  /** A machine without a record, or one that an operator made before it ever came. */
  function discover<T extends Transition<M>>(
    before: M | null,
    mac: Mac,
    contact: Contact,
    decide: (machine: M) => T,
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

  return async (mac, contact, decide) => {
    const isKnown = machines.peek(mac) !== null
    if (!isKnown && !(isStation(mac) && (await admitNew()))) return null
    const by = { actor: 'pxe-client', ip: contact.ip } as const
    const decided = await fleet.update(mac, by, (before) =>
      before === null || before.discovered_at === null
        ? discover(before, mac, contact, decide)
        : decide(before),
    )
    machines.see(mac, { at: contact.now, ip: contact.ip ?? '' })
    site.feed.announce({ topic: 'machine', mac })
    return decided
  }
}

const NONE: Contact['query'] = {}

/** What a rule may know of one request. */
export const readContact = (event: H3Event, peer: Peer, now: Date): Contact => ({
  now: now.toISOString(),
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
