/** A machine that comes to us: a new one is let in and discovered, one that is known is seen again. */
import { isStation, type Mac } from '../../core/machine/mac.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import { createDiscovery } from './discovery.ts'
import type { Site } from './site.ts'
import type { Contact, Transition } from './transition.ts'
import type { Note } from '../http/event-note.ts'

/** Stores the sighting; a machine that is new is discovered first. Null: it was not let in. */
type RecordContact<M> = <T extends Transition<M>>(
  mac: Mac,
  contact: Contact,
  decide: (machine: M) => T,
) => Promise<T | null>

export function createContactRecorder<M extends MachineBase>(site: Site<M>): RecordContact<M> {
  const { line, machines, fleet } = site
  const discovery = createDiscovery(site, (reason) => {
    const summary = `New machines are not recorded: ${reason}`
    void site.noteAll([{ kind: 'machine.discovery.refused', summary, details: { reason } }], {
      subject_id: null,
      actor: 'system',
      ip: null,
    })
  })

  async function discover<T extends Transition<M>>(
    mac: Mac,
    contact: Contact,
    decide: (machine: M) => T,
  ): Promise<T> {
    let isNew = false
    const seen = { last_seen_at: contact.now, last_seen_ip: contact.ip }
    const decideFrom = (before: M | null): T => {
      isNew = before === null
      const machine = before ?? line.discover(mac, contact.now)
      return decide({ ...machine, ...seen, discovered_at: machine.discovered_at ?? contact.now })
    }
    let made = decideFrom(null)
    await machines.update(mac, (before) => {
      made = decideFrom(before)
      return made.machine
    })
    const found: Note = {
      kind: 'machine.discovered',
      summary: `${mac} made its first contact`,
      details: line.describe(made.machine),
    }
    const notes = isNew ? [found, ...made.notes] : made.notes
    const by = { actor: 'pxe-client', ip: contact.ip } as const
    await site.noteAll(notes, { subject_id: mac, ...by })
    return made
  }

  return async function recordContact<T extends Transition<M>>(
    mac: Mac,
    contact: Contact,
    decide: (machine: M) => T,
  ): Promise<T | null> {
    const by = { actor: 'pxe-client', ip: contact.ip } as const
    const before = await machines.find(mac)
    let made: T | null
    if (before !== null && before.discovered_at !== null) {
      made = await fleet.updateMachine(mac, by, decide, before)
    } else {
      if (before === null && !(isStation(mac) && (await discovery.admit()))) return null
      made = await discover(mac, contact, decide)
    }
    machines.see(mac, { at: contact.now, ip: contact.ip ?? '' })
    site.feed.announce({ topic: 'machine', mac })
    return made
  }
}
