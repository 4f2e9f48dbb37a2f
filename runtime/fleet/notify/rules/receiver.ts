/** A receiver of notifications: where it is, and by which rules events are for it. */
import { z } from 'zod'
import { printable } from '../../../kit/foundation/printable.ts'
import { isAlarm, type RecordedEvent } from '../../state/rules/event-table.ts'

const oneOf = (...kinds: readonly string[]) => {
  const known = new Set(kinds)
  return (kind: string): boolean => known.has(kind)
}

/** Groups of events that a rule selects by one name. A group that is added stands here, and nowhere else. */
export const EVENT_GROUPS = {
  'flash-failed': { title: 'Flash failed', has: oneOf('machine.flash_failed') },
  flashed: { title: 'Flashed', has: oneOf('machine.flashed') },
  'boot-failed': {
    title: 'Failed to boot',
    has: oneOf('machine.boot_failed', 'machine.boot_not_seen'),
  },
  booted: { title: 'Booted', has: oneOf('machine.booted', 'machine.boot_seen') },
  'loop-suspected': {
    title: 'Boot loop or wrong disk suspected',
    has: oneOf('netboot.loop.suspected', 'netboot.plan.doubted'),
  },
  'batch-ended': { title: 'Batch ended', has: oneOf('batch.ended') },
  captured: {
    title: 'Captured',
    has: oneOf('machine.captured'),
  },
  'capture-failed': { title: 'Capture failed', has: oneOf('machine.capture_failed') },
  discovered: { title: 'Discovered', has: oneOf('machine.discovered') },
  'power-failed': { title: 'Power failed', has: oneOf('machine.power.failed') },
  'job-failed': {
    title: 'Backup or release failed',
    has: (kind) => /^(?:backup|netboot|images|catalog)\..*failed$/.test(kind),
  },
  'login-failed': {
    title: 'Login failed',
    has: oneOf('auth.login.failed', 'auth.password.failed', 'auth.token.failed'),
  },
  'server-fault': {
    title: 'Fault of the server',
    has: (kind) => kind === 'notification.failed' || (kind.startsWith('system.') && isAlarm(kind)),
  },
  'needs-attention': { title: 'Needs attention', has: isAlarm },
} as const satisfies Readonly<
  Record<string, { readonly title: string; has(kind: string): boolean }>
>

export type EventGroupName = keyof typeof EVENT_GROUPS

const isName = (text: string): text is EventGroupName => Object.hasOwn(EVENT_GROUPS, text)

export const EVENT_GROUP_NAMES: readonly EventGroupName[] = Object.keys(EVENT_GROUPS).filter(isName)

/** What people call an event of this kind: by the first group that has it, else by its own name. */
export function nameKind(kind: string): string {
  const name = EVENT_GROUP_NAMES.find(
    (each) => each !== 'needs-attention' && EVENT_GROUPS[each].has(kind),
  )
  return name === undefined ? kind : EVENT_GROUPS[name].title
}

export const MAX_RECEIVERS = 20
export const MAX_RULES = 10

const isPlain = (text: string) => printable(text) === text
const line = (most: number) => z.string().trim().max(most).refine(isPlain)
const filled = (most: number) => line(most).min(1)

/** Passwords belong into the field of the secret, where no list shows them. */
const UrlSchema = filled(2000).refine((text) => {
  const url = URL.parse(text)
  return (
    url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  )
})

/** One address without a name; no list of addresses can be put into it. */
const MailAddressSchema = filled(254).regex(/^[^\s@,;:<>"()[\]\\]+@[^\s@,;:<>"()[\]\\]+$/)
const HostSchema = filled(253).regex(/^[\w.-]+$|^[0-9a-f:]+$/i)

export const MAIL_SECURITIES = ['starttls', 'tls', 'none'] as const
export const TargetSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('webhook'), url: UrlSchema }),
  z.object({
    kind: z.literal('mail'),
    host: HostSchema,
    port: z.int().min(1).max(65_535),
    security: z.enum(MAIL_SECURITIES),
    user: line(254),
    from: MailAddressSchema,
    to: z.array(MailAddressSchema).min(1).max(20),
  }),
  /** The address of an incoming webhook is its secret. */
  z.object({ kind: z.literal('slack') }),
])
export type ReceiverTarget = z.infer<typeof TargetSchema>
export type TargetKind = ReceiverTarget['kind']
export type TargetOf<Kind extends TargetKind> = Extract<ReceiverTarget, { kind: Kind }>

export const TARGET_KINDS = ['webhook', 'mail', 'slack'] as const satisfies readonly TargetKind[]

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

/** Says where it is, without what opens it. */
export function nameTarget(target: ReceiverTarget): string {
  switch (target.kind) {
    case 'webhook':
      return target.url.replace(/[?#].*$/s, '?…')
    case 'slack':
      return 'an incoming webhook'
    case 'mail':
      return `${target.to.join(', ')} by ${target.host}`
  }
}

/** What a secret must be; null: any text, or none. */
export const SECRET_SHAPES: Readonly<Record<TargetKind, RegExp | null>> = {
  webhook: /^(?:whsec_)?[A-Za-z0-9+/]{32,512}={0,2}$/,
  mail: null,
  slack: /^https?:\/\/[^\s@]+$/,
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
