/** The channels by which receivers are notified: what each needs, and how a message goes there, with every text escaped. */
import { z } from 'zod'
import { printable } from '#kit/foundation/printable.ts'
import type { MessageContent } from './message.ts'

const isPlain = (text: string) => printable(text) === text
export const line = (most: number) => z.string().trim().max(most).refine(isPlain)
export const filled = (most: number) => line(most).min(1)

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
