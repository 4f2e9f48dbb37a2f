/** Decides which events are for a receiver. */
import type { RecordedEvent } from '../../state/rules/event-table.ts'
import { EVENT_GROUPS } from './event-group.ts'
import type { Receiver, NotifyRule } from './receiver.ts'

/** Says whether a search finds the machine of this address as it is now. */
export type MatchesSearch = (search: string, mac: string) => boolean

/**
 * Returns how many seconds an event waits for others before it is sent; null: it is not for this
 * receiver. Where several rules select it, it waits for the shortest time.
 */
export function findWindow(
  receiver: Pick<Receiver, 'id' | 'rules'>,
  event: RecordedEvent,
  matches: MatchesSearch,
): number | null {
  // A receiver that fails would hear of itself, and fail again.
  if (event.kind === 'notification.failed' && event.details?.['receiver'] === receiver.id)
    return null
  const windows = receiver.rules
    .filter((rule) => isSelected(rule, event, matches))
    .map(({ window }) => window)
  return windows.length === 0 ? null : Math.min(...windows)
}

function isSelected(rule: NotifyRule, event: RecordedEvent, matches: MatchesSearch): boolean {
  if (!rule.events.some((name) => EVENT_GROUPS[name].has(event.kind))) return false
  if (rule.person !== '' && !listPeople(event).includes(rule.person)) return false
  if (rule.search === '') return true
  const { subject_kind: kind, subject_id: id } = event
  return kind === 'machine' && id !== null && matches(rule.search, id)
}

/** Lists whose names stand behind an event: of who did it, and of who had a machine do it. */
function listPeople({ actor, details }: RecordedEvent): readonly string[] {
  const armer = details?.['armed_by']
  return [actor, typeof armer === 'string' ? armer : ''].flatMap((each) => personOf(each) ?? [])
}

/** The person, the owner of the token, or the administrator; null: nobody. */
function personOf(actor: string): string | null {
  if (actor.startsWith('person:')) return actor.slice(7)
  if (actor === 'operator') return 'administrator'
  if (!actor.startsWith('token:')) return null
  const at = actor.indexOf('@')
  return at === -1 ? 'administrator' : actor.slice(at + 1)
}
