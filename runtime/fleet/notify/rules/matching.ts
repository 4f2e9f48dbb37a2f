/** Decides which events are for a receiver. */
import type { RecordedEvent } from '../../state/rules/event-table.ts'
import { EVENT_GROUPS } from './event-group.ts'
import type { Receiver, NotifyRule } from './receiver.ts'

/** Says whether a search finds the machine of this address as it is now. */
export type MatchesSearch = (search: string, mac: string) => boolean

/** Says whether one of the receiver's rules selects the event. */
export function isWanted(
  receiver: Pick<Receiver, 'id' | 'rules'>,
  event: RecordedEvent,
  matches: MatchesSearch,
): boolean {
  // A receiver that fails would hear of itself, and fail again.
  if (event.kind === 'notification.failed' && event.details?.['receiver'] === receiver.id)
    return false
  return receiver.rules.some((rule) => isSelected(rule, event, matches))
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
