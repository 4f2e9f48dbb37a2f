/** A message to a receiver: what it says of one event or of many, and its form for each kind of receiver, with every text escaped. */
import { z } from 'zod'
import { plainWords } from '../../../kit/foundation/printable.ts'
import type { RecordedEvent } from '../../state/rules/event-table.ts'
import { nameKind } from './receiver.ts'

/** A message lists so many events; the others are counted. */
const MAX_LISTED = 50

const maybeText = z.string().nullable()

const ListedEventSchema = z.object({
  id: z.int(),
  time: z.string(),
  kind: z.string(),
  /** One sentence for people, the machine by its name. */
  summary: z.string(),
  subject_kind: z.string(),
  subject: maybeText,
  /** The machine that it is about, as it was called at that moment. */
  machine: z.object({ mac: z.string(), name: maybeText, labels: z.array(z.string()) }).nullable(),
  actor: z.string(),
  /** The path of its page at the server. */
  path: z.string(),
})
type ListedEvent = z.infer<typeof ListedEventSchema>

export const MessageContentSchema = z.object({
  title: z.string(),
  /** All events, those that are not listed included. */
  count: z.int(),
  events: z.array(ListedEventSchema),
  path: z.string(),
  /** Whether a person sent it to see whether it arrives. */
  is_test: z.boolean(),
})
type MessageContent = z.infer<typeof MessageContentSchema>

/** Events that wait for those that follow; bounded, however many there are. */
export interface Collected {
  readonly events: readonly RecordedEvent[]
  /** How many there are of each kind. */
  readonly counts: ReadonlyMap<string, number>
}

export const NOTHING_COLLECTED: Collected = { events: [], counts: new Map() }

export function collect({ events, counts }: Collected, event: RecordedEvent): Collected {
  const listed = events.length < MAX_LISTED ? [...events, event] : events
  return {
    events: listed,
    counts: new Map(counts).set(event.kind, (counts.get(event.kind) ?? 0) + 1),
  }
}

/** What is known of a machine; null: it was deleted. */
export type FindNamed = (
  mac: string,
) => { readonly name: string | null; readonly labels: readonly string[] } | null

/** There is at least one event. */
export function composeMessage({ events, counts }: Collected, find: FindNamed): MessageContent {
  const listed = events.map((event) => listEvent(event, find))
  const count = [...counts.values()].reduce((sum, each) => sum + each, 0)
  const [only] = listed
  const isAlone = count === 1 && only !== undefined
  return {
    title: isAlone ? cut(only.summary) : nameCounts(counts),
    count,
    events: listed,
    path: isAlone ? only.path : '/ui/events',
    is_test: false,
  }
}

/** What a person sends to see whether it arrives. */
export const composeTest = (receiver: string): MessageContent => ({
  title: `Test of ${cut(plainWords(receiver))}: notifications arrive`,
  count: 0,
  events: [],
  path: '/ui/notifications',
  is_test: true,
})

/** `97 × Flash failed, 2 × Booted` */
const nameCounts = (counts: ReadonlyMap<string, number>): string => {
  const named = new Map<string, number>()
  for (const [kind, count] of counts) {
    const name = nameKind(kind)
    named.set(name, (named.get(name) ?? 0) + count)
  }
  const parts = [...named].toSorted(([, a], [, b]) => b - a)
  return cut(parts.map(([name, count]) => `${count} × ${name}`).join(', '))
}

const MAX_TITLE = 200
const cut = (text: string): string =>
  text.length <= MAX_TITLE ? text : `${text.slice(0, MAX_TITLE - 1)}…`

function listEvent(event: RecordedEvent, find: FindNamed): ListedEvent {
  const { id, ts, kind, subject_kind, subject_id: subject, actor } = event
  const known = subject_kind === 'machine' && subject !== null ? find(subject) : null
  const summary = plainWords(event.summary)
  return {
    id,
    time: ts,
    kind,
    summary: known === null ? summary : nameInSummary(summary, subject ?? '', known.name),
    subject_kind,
    subject,
    machine:
      known === null || subject === null
        ? null
        : { mac: subject, name: known.name, labels: [...known.labels] },
    actor,
    path: pathOf(event),
  }
}

/** `52:54:00:12:34:56 was flashed` becomes `node-7 (52:54:00:12:34:56) was flashed`. */
function nameInSummary(summary: string, mac: string, name: string | null): string {
  if (name === null || name === '' || !summary.startsWith(mac)) return summary
  return `${plainWords(name)} (${mac})${summary.slice(mac.length)}`
}

function pathOf({ subject_kind: kind, subject_id: id, details }: RecordedEvent): string {
  if (id === null) return '/ui/events'
  const part = encodeURIComponent(id)
  if (kind === 'batch') return `/ui/batches/${part}`
  if (kind !== 'machine') return '/ui/events'
  const run = details?.['run']
  const isRun = typeof run === 'string' && /^[\w-]{1,64}$/.test(run)
  return isRun ? `/ui/machines/${part}/runs/${run}` : `/ui/machines/${part}`
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
