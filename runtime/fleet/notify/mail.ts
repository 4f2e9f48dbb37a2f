/** Sends one mail by SMTP: to the checked address alone, and never a password in plain text. */
import { hostname } from 'node:os'
import { createTransport } from 'nodemailer'
import { describeFailure } from '../../kit/net/rules/network-failure.ts'
import { describeTls, STOPPED, unfound, type HttpPostDependencies } from './http-post.ts'
import type { MailContent } from './rules/forms.ts'
import { failed, quoteWords, TAKEN, type DeliveryOutcome } from './rules/outcome.ts'
import type { TargetOf } from './rules/receiver.ts'
import { within } from './within.ts'

interface Mail extends MailContent {
  /** The same at each attempt: mail programs show it once. */
  readonly id: string
}

/** Sends it once. It never rejects but for mistakes of ours: what keeps it from arriving is the outcome. */
export async function sendMail(
  target: TargetOf<'mail'>,
  password: string,
  { id, subject, text, html }: Mail,
  { find, authorities, limitMs, signal }: HttpPostDependencies,
): Promise<DeliveryOutcome> {
  const { host, port, security, user, from, to } = target
  const late = AbortSignal.timeout(limitMs)
  const ending = AbortSignal.any([late, signal])
  const found = await within(find({ host, port }), ending)
  if (found === null) return unfound({ signal, limitMs })
  if (!found.ok) return failed(found.refusal)
  const transport = createTransport({
    host: found.value,
    port,
    name: hostname(),
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(user === '' ? {} : { auth: { user, pass: password } }),
    tls: describeTls(host, authorities),
    connectionTimeout: limitMs,
    greetingTimeout: limitMs,
    socketTimeout: limitMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const leave = () => transport.close()
  ending.addEventListener('abort', leave, { once: true })
  try {
    const sent = await within(
      transport.sendMail({
        messageId: `<${id}@${from.slice(from.lastIndexOf('@') + 1)}>`,
        from,
        to: [...to],
        subject,
        text,
        html,
        // Programs that answer mails leave this one alone.
        headers: { 'Auto-Submitted': 'auto-generated' },
      }),
      ending,
    )
    if (sent !== null) return TAKEN
  } catch (thrown) {
    if (!ending.aborted) return failed(describe(thrown))
  } finally {
    ending.removeEventListener('abort', leave)
    transport.close()
  }
  return failed(signal.aborted ? STOPPED : `no end of the talk within ${limitMs / 1000} s`)
}

/** The codes of nodemailer, for failures that the system has no code for. */
const REASONS: Readonly<Record<string, string>> = {
  EAUTH: 'the mail server refused the user or password',
  ETLS: 'the mail server offers no STARTTLS, or its TLS failed',
  ESOCKET: 'the connection failed',
  ECONNECTION: 'the mail server could not be reached',
  ETIMEDOUT: 'the mail server did not answer in time',
  EENVELOPE: 'the mail server refused an address',
  EMESSAGE: 'the mail server refused the message',
}

function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return UNKNOWN
  const known = REASONS[textOf(thrown, 'code')]
  const said = textOf(thrown, 'response') || (known === undefined ? '' : thrown.message)
  const reason = known ?? describeFailure(thrown)?.reason ?? UNKNOWN
  return said === '' ? reason : `${reason}: ${quoteWords(said)}`
}

const UNKNOWN = 'the mail could not be sent'

const textOf = (thrown: Error, key: 'code' | 'response'): string => {
  const value: unknown = Reflect.get(thrown, key)
  return typeof value === 'string' ? value : ''
}
