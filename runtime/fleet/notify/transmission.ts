/** Sends a message to its receiver, in the form that its kind asks for. */
import { sendHttp, type HttpPostDependencies } from './http-post.ts'
import { renderMail, renderSlack, renderWebhook, type OutgoingMessage } from './rules/forms.ts'
import { failed, type DeliveryOutcome } from './rules/outcome.ts'
import { SECRET_SHAPES, type ReceiverTarget } from './rules/receiver.ts'

interface Transmission {
  readonly target: ReceiverTarget
  /** What opens it; null: none is kept here. */
  readonly secret: string | null
  readonly message: OutgoingMessage
  /** The addresses of a mail that are left of an earlier attempt; absent: all. */
  readonly left?: readonly string[] | undefined
}

/** Sends it once, within the limit. What is needed for one kind alone is loaded where it is used. */
export async function transmit(
  { target, secret, message, left }: Transmission,
  given: HttpPostDependencies,
): Promise<DeliveryOutcome> {
  if (secret === null && SECRET_SHAPES[target.kind] !== null) {
    return failed('its secret is not kept on this server: edit the receiver and enter it again')
  }
  const opening = secret ?? ''
  switch (target.kind) {
    case 'webhook': {
      const body = renderWebhook(message)
      const headers = await sign(opening, message.id, body)
      return await sendHttp({ url: target.url, headers, body }, given)
    }
    case 'slack':
      return await sendHttp({ url: opening, body: renderSlack(message) }, given)
    case 'mail': {
      const { sendMail } = await import('./mail.ts')
      const mail = { id: message.id, left, ...renderMail(message) }
      return await sendMail(target, opening, mail, given)
    }
  }
}

/** The time is that of the attempt: receivers refuse what was signed long ago. */
async function sign(secret: string, id: string, body: string): Promise<Record<string, string>> {
  const { Webhook } = await import('standardwebhooks')
  const now = new Date()
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, now, body),
  }
}
