/** A receiver of notifications: where it is, and by which rules events are for it. */
import { z } from 'zod'
import { printable } from '../../../kit/foundation/printable.ts'
import { EVENT_GROUP_NAMES, EVENT_GROUPS } from './event-group.ts'

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

/** Says in words which events a rule selects. */
export function describeRule({ events, search, person }: Omit<NotifyRule, 'id'>): string {
  const what = events.map((name) => EVENT_GROUPS[name].title).join(', ')
  const whose = search === '' ? '' : `, of machines that match ${search}`
  const who = person === '' ? '' : `, by ${person}`
  return `${what}${whose}${who}`
}
