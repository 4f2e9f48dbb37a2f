/** Puts a message into the form of each kind of receiver: what is sent, with every text escaped as it asks. */
import type { ListedEvent, MessageContent } from './message.ts'

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

/** Says how many events of the message are not among these lines. */
const countMore = ({ count }: MessageContent, shown: number): string | null =>
  count > shown ? `and ${count - shown} more` : null

const linkOf = (base: string | null, path: string): string | null =>
  base === null ? null : `${base}${path}`

/** Events below the title: none where the title says it all. */
const listLines = ({ count, events }: MessageContent): readonly ListedEvent[] =>
  count === 1 ? [] : events.slice(0, MAX_LINES)

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

/** Plain text, for programs that know no other. */
function renderLines({ content, base }: OutgoingMessage): readonly string[] {
  const lines = listLines(content)
  const more = countMore(content, Math.max(lines.length, 1))
  const link = linkOf(base, content.path)
  return [
    ...lines.map(({ summary }) => `• ${summary}`),
    ...(more === null ? [] : [more]),
    ...(link === null ? [] : [link]),
  ]
}

const cutBytes = (text: string, most: number): string => {
  if (Buffer.byteLength(text) <= most) return text
  // A character that was cut in its middle is left out.
  return `${Buffer.from(text)
    .subarray(0, most - 4)
    .toString('utf8')
    .replace(/\ufffd+$/, '')}…`
}

/** ntfy makes an attachment of what is longer. */
const MAX_NTFY_BYTES = 4000

/** The JSON form of ntfy: its headers could not hold every text. */
export function renderNtfy(message: OutgoingMessage, topic: string): string {
  const { content, base } = message
  const click = linkOf(base, content.path)
  const lines = renderLines(message)
  return JSON.stringify({
    topic,
    title: cutBytes(content.title, 250),
    message: cutBytes(lines.length === 0 ? content.title : lines.join('\n'), MAX_NTFY_BYTES),
    ...(click === null ? {} : { click }),
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
  const lines = listLines(content)
  const more = countMore(content, Math.max(lines.length, 1))
  const linked = (text: string, path: string) => {
    const link = linkOf(base, path)
    return link === null ? escapeSlack(text) : `<${encodeLink(link)}|${escapeSlack(text)}>`
  }
  const text = [
    `*${linked(content.title, content.path)}*`,
    ...lines.map(({ summary, path }) => `• ${linked(summary, path)}`),
    ...(more === null ? [] : [more]),
  ].join('\n')
  return JSON.stringify({ text, parse: 'none', unfurl_links: false, unfurl_media: false })
}

/** A bar or bracket in an address would end the link. */
const encodeLink = (link: string): string =>
  link.replaceAll(/[<>|&]/g, (mark) => (mark === '&' ? '&amp;' : encodeURIComponent(mark)))

const escapeHtml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')

/** HTML without styles, which every reader of mail and of Matrix shows. */
export function renderHtml({ content, base }: OutgoingMessage): string {
  const linked = (text: string, path: string) => {
    const link = linkOf(base, path)
    return link === null
      ? escapeHtml(text)
      : `<a href="${escapeHtml(link)}">${escapeHtml(text)}</a>`
  }
  const lines = listLines(content)
  const more = countMore(content, Math.max(lines.length, 1))
  const list = lines.map(({ summary, path }) => `<li>${linked(summary, path)}</li>`).join('')
  return [
    `<p><strong>${linked(content.title, content.path)}</strong></p>`,
    list === '' ? '' : `<ul>${list}</ul>`,
    more === null ? '' : `<p>${more}</p>`,
  ].join('')
}

/** Servers of before intentional mentions look for it in the text. */
const breakRoom = (text: string): string => text.replaceAll(/@(?=room)/gi, '@\u200b')

/**
 * The content of `m.room.message`; `m.notice` is what other programs do not answer, and no mentions
 * ring nobody, whatever name or `@room` a text holds.
 */
export const renderMatrix = (message: OutgoingMessage): string =>
  JSON.stringify({
    msgtype: 'm.notice',
    body: breakRoom([message.content.title, ...renderLines(message)].join('\n')),
    format: 'org.matrix.custom.html',
    formatted_body: breakRoom(renderHtml(message)),
    'm.mentions': {},
  })

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
