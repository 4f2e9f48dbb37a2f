/** Puts a message into the form of each kind of receiver: what is sent, with every text escaped as it asks. */
import type { MessageContent } from './message.ts'

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
