/** Sends a message to its receiver, in the form that its kind asks for. */
import { sendHttp, type HttpPost, type HttpPostDependencies } from './http-post.ts'
import {
  renderMail,
  renderMatrix,
  renderNtfy,
  renderSlack,
  renderWebhook,
  type OutgoingMessage,
} from './rules/forms.ts'
import { failed, type DeliveryOutcome } from './rules/outcome.ts'
import { NEEDS_SECRET, type ReceiverTarget } from './rules/receiver.ts'

interface Transmission {
  readonly target: ReceiverTarget
  /** What opens it; null: none is kept here. */
  readonly secret: string | null
  readonly message: OutgoingMessage
  /** The addresses of a mail that are left of an earlier attempt; absent: all. */
  readonly left?: readonly string[] | undefined
}

const JSON_TYPE = { 'content-type': 'application/json' }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Sends it once, within the limit. What is needed for one kind alone is loaded where it is used. */
export async function transmit(
  { target, secret, message, left }: Transmission,
  given: HttpPostDependencies,
): Promise<DeliveryOutcome> {
  if (secret === null && NEEDS_SECRET[target.kind]) {
    return failed('its secret is not kept on this server: edit the receiver and enter it again')
  }
  if (target.kind === 'mail') {
    const { sendMail } = await import('./mail.ts')
    const mail = { id: message.id, left, ...renderMail(message) }
    return await sendMail(target, secret ?? '', mail, given)
  }
  return await sendHttp(await makePost(target, secret ?? '', message), given)
}

async function makePost(
  target: Exclude<ReceiverTarget, { kind: 'mail' }>,
  secret: string,
  message: OutgoingMessage,
): Promise<HttpPost> {
  switch (target.kind) {
    case 'webhook': {
      const body = renderWebhook(message)
      return {
        method: 'POST',
        url: target.url,
        headers: await sign(secret, message.id, body),
        body,
      }
    }
    case 'slack':
      return { method: 'POST', url: secret, headers: JSON_TYPE, body: renderSlack(message) }
    case 'ntfy': {
      const { base, topic } = splitTopic(target.url)
      const headers = { ...JSON_TYPE, ...(secret === '' ? {} : bearer(secret)) }
      return { method: 'POST', url: base, headers, body: renderNtfy(message, topic) }
    }
    case 'matrix': {
      const path = `_matrix/client/v3/rooms/${encodeURIComponent(target.room)}/send/m.room.message`
      return {
        method: 'PUT',
        // The server takes a transaction once, however often it comes.
        url: `${target.url.replace(/\/+$/, '')}/${path}/${encodeURIComponent(message.id)}`,
        headers: { ...JSON_TYPE, ...bearer(secret) },
        body: renderMatrix(message),
      }
    }
  }
}

/** The time is that of the attempt: receivers refuse what was signed long ago. */
async function sign(secret: string, id: string, body: string): Promise<Record<string, string>> {
  const { Webhook } = await import('standardwebhooks')
  const now = new Date()
  return {
    ...JSON_TYPE,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, now, body),
  }
}

/** JSON for a topic goes to the address above it. */
function splitTopic(text: string): { readonly base: string; readonly topic: string } {
  const url = new URL(text)
  const parts = url.pathname.split('/').filter((part) => part !== '')
  const topic = parts.pop() ?? ''
  url.pathname = `/${parts.join('/')}`
  url.search = ''
  return { base: url.href, topic }
}
