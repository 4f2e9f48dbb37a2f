/** A receiver of notifications, and by which rules events are for it. */
import { z } from 'zod'
import type { RecordedEvent } from '#fleet/state/rules/event-table.ts'
import { filled, line, TargetSchema } from './channel.ts'
import { EVENT_GROUP_NAMES, EVENT_GROUPS } from './message.ts'

export const MAX_RECEIVERS = 20
export const MAX_RULES = 10

export const RuleSchema = z.object({
  /** It differs from those of the receiver's other rules. */
  id: z.string().regex(/^[0-9a-f]{8}$/),
  events: z.array(z.enum(EVENT_GROUP_NAMES)).min(1).max(EVENT_GROUP_NAMES.length),
  /** A search of machines; empty: events of anything. */
  search: line(500),
  /** The name of who did it or had a machine do it; empty: anybody. */
  person: line(64),
})
export type NotifyRule = z.infer<typeof RuleSchema>

export const NameSchema = filled(64)

/** What is stored of a receiver; its secret lies apart. */
export const ReceiverRecordSchema = z.object({
  name: NameSchema,
  target: TargetSchema,
  rules: z.array(RuleSchema).max(MAX_RULES),
  paused: z.boolean(),
  created_at: z.string(),
})
export type ReceiverRecord = z.infer<typeof ReceiverRecordSchema>

export interface Receiver extends ReceiverRecord {
  readonly id: string
}

export function describeRule({ events, search, person }: Omit<NotifyRule, 'id'>): string {
  const what = events.map((name) => EVENT_GROUPS[name].title).join(', ')
  const whose = search === '' ? '' : `, of machines that match ${search}`
  const who = person === '' ? '' : `, by ${person}`
  return `${what}${whose}${who}`
}

/** Whether a search finds the machine of this address as it is now. */
export type MatchesSearch = (search: string, mac: string) => boolean

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
