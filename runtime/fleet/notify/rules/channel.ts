/** The channels by which receivers are notified: what each needs, where it may lead, and how a message goes there. */
import { z } from 'zod'
import type { RecordedEvent } from '#fleet/state/rules/event-table.ts'
import { printable } from '#kit/foundation/printable.ts'
import {
  isLinkLocal,
  isLoopback,
  isNamedBy,
  isNoHost,
  plainAddress,
  withoutTranslation,
} from '#kit/net/rules/direct-host.ts'
import { EVENT_GROUP_NAMES, EVENT_GROUPS, type MessageContent } from './message.ts'

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

export interface OutgoingMessage {
  /** The same at each attempt, and after a restart. */
  readonly id: string
  /** ISO time at which it was made. */
  readonly made_at: string
  readonly receiver: string
  readonly content: MessageContent
  /** The address of the pages without a slash at its end; null: nobody has said it. */
  readonly base: string | null
}

/** One request over HTTP; its body is JSON. */
export interface HttpPost {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/** `secret` empty: there is none. The signature of a webhook is made when it is sent. */
export function renderPost(
  target: Exclude<ReceiverTarget, { readonly kind: 'mail' }>,
  secret: string,
  message: OutgoingMessage,
): HttpPost {
  switch (target.kind) {
    case 'webhook':
      return { url: target.url, body: renderWebhook(message) }
    case 'slack':
      return { url: secret, body: renderSlack(message) }
  }
}

/** The documented body of a webhook. Fields are added, never renamed or removed. */
export function renderWebhook({ made_at, receiver, content, base }: OutgoingMessage): string {
  const { title, count, events, path, is_test } = content
  return JSON.stringify({
    type: is_test ? 'notification.test' : 'notification.events',
    timestamp: made_at,
    data: {
      receiver,
      title,
      url: linkOf(base, path),
      count,
      events: events.map(({ path: own, ...event }) => ({ ...event, url: linkOf(base, own) })),
    },
  })
}

/** Slack asks for these three alone; nobody is mentioned, and no link is hidden behind a text. */
const escapeSlack = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    // These make text bold, italic or code, a channel of a `#name` where Slack looks for links, and
    // ring for everybody in programs that take what Slack takes (`@here`, `@channel`, `@all`).
    .replaceAll(/[*_~`@]/g, (mark) => `${mark}\u200b`)

/** The body of an incoming webhook. */
export function renderSlack({ content, base }: OutgoingMessage): string {
  const { lines, more } = listLines(content)
  const linked = (text: string, path: string) => {
    const link = linkOf(base, path)
    return link === null ? escapeSlack(text) : `<${encodeLink(link)}|${escapeSlack(text)}>`
  }
  const text = [
    `*${linked(content.title, content.path)}*`,
    ...lines.map(({ summary, path }) => `• ${linked(summary, path)}`),
    ...more,
  ].join('\n')
  return JSON.stringify({ text, parse: 'none', unfurl_links: false, unfurl_media: false })
}

/** A bar or bracket in an address would end the link. */
const encodeLink = (link: string): string =>
  link.replaceAll(/[<>|&]/g, (mark) => (mark === '&' ? '&amp;' : encodeURIComponent(mark)))

export interface MailContent {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** The parts of a mail. Its subject is one line, whatever a machine has reported. */
export const renderMail = (message: OutgoingMessage): MailContent => ({
  subject: message.content.title.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' '),
  text: `${[message.content.title, '', ...renderLines(message)].join('\n')}\n`,
  html: `<!doctype html><html><body>${renderHtml(message)}</body></html>`,
})

function renderLines({ content, base }: OutgoingMessage): readonly string[] {
  const { lines, more } = listLines(content)
  const link = linkOf(base, content.path)
  return [...lines.map(({ summary }) => `• ${summary}`), ...more, ...(link === null ? [] : [link])]
}

const escapeHtml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')

/** HTML without styles, which every reader of mail shows. */
function renderHtml({ content, base }: OutgoingMessage): string {
  const linked = (text: string, path: string) => {
    const link = linkOf(base, path)
    return link === null
      ? escapeHtml(text)
      : `<a href="${escapeHtml(link)}">${escapeHtml(text)}</a>`
  }
  const { lines, more } = listLines(content)
  const list = lines.map(({ summary, path }) => `<li>${linked(summary, path)}</li>`).join('')
  return [
    `<p><strong>${linked(content.title, content.path)}</strong></p>`,
    list === '' ? '' : `<ul>${list}</ul>`,
    ...more.map((text) => `<p>${text}</p>`),
  ].join('')
}

/** The lines below a title, in the form of plain text. */
const MAX_LINES = 20

const linkOf = (base: string | null, path: string): string | null =>
  base === null ? null : `${base}${path}`

/** Events below the title, none where the title says it all, and how many are not among them. */
function listLines({ count, events }: MessageContent) {
  const lines = count === 1 ? [] : events.slice(0, MAX_LINES)
  const left = count - Math.max(lines.length, 1)
  return { lines, more: left > 0 ? [`and ${left} more`] : [] }
}

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

export interface OutgoingRules {
  /** Addresses and CIDR ranges that are allowed although they are special (`[notify] networks`). */
  readonly networks: readonly string[]
  /** The addresses of this host's interfaces. */
  readonly own: readonly string[]
  /** The ports on which our own services listen. */
  readonly ownPorts: readonly number[]
}

/** Clouds have their metadata, with passwords, at these addresses besides the link-local ones. */
const METADATA: ReadonlySet<string> = new Set([
  '100.100.100.200',
  '168.63.129.16',
  'fd00:ec2::254',
  'fd20:ce::254',
])

/**
 * Returns why nothing may be sent to an address that a name server gave, in words; null: it may. What
 * a setting names is allowed, but never our own services.
 */
export function refuseOutgoing(
  { address, port }: { readonly address: string; readonly port: number },
  { networks, own, ownPorts }: OutgoingRules,
): string | null {
  const plain = withoutTranslation(plainAddress(address))
  if (isNoHost(plain)) return `${plain} is not the address of a host`
  const isHere = isLoopback(plain) || own.map(plainAddress).includes(plain)
  if (isHere && ownPorts.includes(port)) return `${plain}:${port} is this server itself`
  if (isNamedBy(plain, networks)) return null
  if (isHere) return `${plain} is this server. ${ALLOW}`
  if (isLinkLocal(plain)) return `${plain} is a link-local address. ${ALLOW}`
  return METADATA.has(plain) ? `${plain} is a metadata service. ${ALLOW}` : null
}

/** Pages link it to the setting. */
export const LOCAL_SETTING = 'Settings → Notifications'
const ALLOW = `Allow it in ${LOCAL_SETTING}`
