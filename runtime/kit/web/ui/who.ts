/** Who is logged in, until when, and which machines they see, in words. */
import type { H3Event } from 'h3'
import { pluralOf } from '#kit/foundation/text.ts'
import { callerOf, peerOf, personOf, type Caller } from '../answers/caller.ts'
import { reachOf, type Reach } from '../answers/rules/rights.ts'
import { html, type Content } from './html.ts'
import type { PageView } from './layout.ts'
import { renderTime, type Clock } from './times.ts'

export const ROLE_TEXTS = {
  look: { title: 'Viewer', text: 'See everything but settings, and change nothing' },
  operate: { title: 'Operator', text: 'Change, flash and turn on machines' },
  administrate: { title: 'Administrator', text: 'Everything, including settings and people' },
} as const

export const nameCaller = (event: H3Event): string =>
  personOf(callerOf(event))?.name ?? 'Administrator'

export function describeSession(
  event: H3Event,
  clock: Clock,
): readonly (readonly [string, Content])[] {
  const caller = callerOf(event)
  const person = personOf(caller)
  const until = caller.kind === 'session' ? new Date(caller.expiresAt).toISOString() : null
  return [
    ['Role', person?.role ? ROLE_TEXTS[person.role].title : person && 'None'],
    ['You see', person && describeReach(reachOf(person))],
    ['Logged in from', peerOf(event).ip],
    ['Session ends', html`${renderTime(until, clock)}; extended by use`],
  ]
}

/** Null: the nameless administrator, with all rights. */
export function describeWho(caller: Caller): NonNullable<PageView['who']> | null {
  const person = personOf(caller)
  if (person === null) return null
  const reach = reachOf(person)
  const sees = reach === null ? null : `You see ${describeReach(reach)}`
  return { name: person.name, looks: person.role === 'look', sees }
}

/** `machines with the label lab`. */
export function describeReach(reach: Reach): string {
  if (reach === null) return 'all machines'
  const labels = reach.join(', ')
  return reach.length === 0
    ? 'no machine: your scope has no label'
    : pluralOf(
        {
          one: `machines with the label ${labels}`,
          other: `machines with one of the labels ${labels}`,
        },
        reach.length,
      )
}
