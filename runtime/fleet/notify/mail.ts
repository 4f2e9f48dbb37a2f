/** Sends one mail by SMTP: to the checked addresses alone, and never a password in plain text. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { domainToASCII } from 'node:url'
import { createTransport } from 'nodemailer'
import { describeFailure } from '#kit/net/rules/network-failure.ts'
import { describeTls, routeTo, STOPPED, unfound, type SendingLimits, within } from './outgoing.ts'
import { type DeliveryOutcome, failed, judgeRefusals, quoteWords, TAKEN } from './rules/message.ts'
import type { MailContent, TargetOf } from './rules/channel.ts'

interface Mail extends MailContent {
  /** The same at each attempt: mail programs show it once. */
  readonly id: string
  /** The addresses that are left of an earlier attempt; undefined: all of them. */
  readonly left?: readonly string[] | undefined
}

/** `limitMs` is for the name server and for connecting. */
interface MailDependencies extends SendingLimits {
  /** Milliseconds until the whole mail was sent. */
  readonly talkMs?: number
  /** Milliseconds from then on until the server says that it has taken it. */
  readonly takeMs?: number
}

const TALK_MS = 60_000
/** Servers check a mail before they answer; who gives up earlier sends it twice (RFC 5321, 4.5.3.2.6). */
const TAKE_MS = 600_000

/** Sends it once. It never rejects but for mistakes of ours: what keeps it from arriving is the outcome. */
export async function sendMail(
  target: TargetOf<'mail'>,
  password: string,
  mail: Mail,
  given: MailDependencies,
): Promise<DeliveryOutcome> {
  const { find, limitMs, signal } = given
  const { host, port } = target
  const to = target.to.filter((address) => mail.left?.includes(address) ?? true)
  if (to.length === 0) return TAKEN
  const finding = AbortSignal.any([AbortSignal.timeout(limitMs), signal])
  const found = await within(find({ host, port }), finding)
  if (found === null) return unfound({ signal, limitMs })
  if (!found.ok) return failed(found.refusal)
  const transport = createMailTransport(target, password, given, found.value)
  return await talk(transport, { target, to, mail }, given)
}

interface Errand {
  readonly target: TargetOf<'mail'>
  /** The addresses of this attempt. */
  readonly to: readonly string[]
  readonly mail: Mail
}

async function talk(
  transport: ReturnType<typeof createMailTransport>,
  { target: { from, to: all }, to, mail: { id, subject, text, html, left } }: Errand,
  { signal, talkMs = TALK_MS, takeMs = TAKE_MS }: MailDependencies,
): Promise<DeliveryOutcome> {
  const limit = createLimit(talkMs)
  const ending = AbortSignal.any([limit.signal, signal])
  transport.use('stream', ({ message }, done) => {
    // The mail is read to its end once the server has asked for it.
    message.processFunc((input) => input.once('end', () => limit.restart(takeMs)))
    done()
  })
  try {
    const sent = await transport.sendMail({
      messageId: `<${id}@${from.slice(from.lastIndexOf('@') + 1)}>`,
      from,
      to: [...all],
      envelope: { from, to: [...to] },
      subject,
      text,
      html,
      // Programs that answer mails leave this one alone.
      headers: { 'Auto-Submitted': 'auto-generated' },
      signal: ending,
    })
    return sent.rejected.length === 0 ? TAKEN : judgeRefusals(listRefusals(sent, to))
  } catch (thrown) {
    if (signal.aborted) return failed(STOPPED)
    if (ending.aborted) return failed(`no end of the conversation within ${limit.ms() / 1000} s`)
    // Others have it already: each address that is left is judged for itself.
    const refusals = left === undefined ? [] : listRefusals(thrown, to)
    return refusals.length === 0 ? failed(describe(thrown)) : judgeRefusals(refusals)
  } finally {
    limit.clear()
    transport.close()
  }
}

/** A limit that begins anew where something else is waited for. It keeps no process. */
function createLimit(firstMs: number) {
  const late = new AbortController()
  let ms = firstMs
  const begin = () => setTimeout(() => late.abort(), ms).unref()
  let timer = begin()
  return {
    signal: late.signal,
    ms: () => ms,
    restart(nextMs: number) {
      clearTimeout(timer)
      ms = nextMs
      timer = begin()
    },
    clear: () => clearTimeout(timer),
  }
}

function createMailTransport(
  { host, port, security, user }: TargetOf<'mail'>,
  password: string,
  { authorities, limitMs, talkMs = TALK_MS, takeMs = TAKE_MS, signal }: MailDependencies,
  addresses: readonly string[],
) {
  const open = async () => {
    const connection = connect(routeTo({ host, port }, addresses, limitMs))
    await connectWithin(connection, { limitMs, signal })
    return { connection, name: nameClient(hostname(), connection.localAddress ?? '127.0.0.1') }
  }
  return createTransport({
    host,
    port,
    getSocket: (_options, done) => {
      open().then(
        (opened) => done(null, opened),
        (thrown: unknown) => done(thrown instanceof Error ? thrown : new Error(UNKNOWN)),
      )
    },
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(user === '' ? {} : { auth: { user, pass: password } }),
    tls: describeTls(host, authorities),
    connectionTimeout: talkMs,
    greetingTimeout: talkMs,
    // The limits of the attempt end it.
    socketTimeout: talkMs + takeMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

async function connectWithin(
  socket: Socket,
  { limitMs, signal }: Pick<MailDependencies, 'limitMs' | 'signal'>,
): Promise<void> {
  const late = AbortSignal.any([AbortSignal.timeout(limitMs), signal])
  try {
    await once(socket, 'connect', { signal: late })
  } catch (thrown) {
    socket.destroy()
    if (!late.aborted) throw thrown
    const said = `no connection within ${limitMs / 1000} s`
    throw Object.assign(new Error(said), { code: 'ECONNECTION' })
  }
}

/** Addresses as nodemailer names them in an outcome and in an error, in our own spelling. */
function listRefusals(of: unknown, to: readonly string[]) {
  const errors: unknown = of instanceof Object ? Reflect.get(of, 'rejectedErrors') : undefined
  return (Array.isArray(errors) ? errors : []).flatMap((error: unknown) => {
    if (!(error instanceof Error)) return []
    const given = spellAddress(textOf(error, 'recipient'))
    const address = to.find((one) => spellAddress(one) === given)
    return address === undefined ? [] : [{ address, words: textOf(error, 'response') }]
  })
}

/** The domain is sent in ASCII. */
function spellAddress(address: string): string {
  const at = address.lastIndexOf('@') + 1
  const domain = address.slice(at)
  return `${address.slice(0, at)}${domainToASCII(domain) || domain.toLowerCase()}`
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

const textOf = (thrown: Error, key: 'code' | 'response' | 'recipient'): string => {
  const value: unknown = Reflect.get(thrown, key)
  return typeof value === 'string' ? value : ''
}

const FULL_NAME =
  /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/i
/** What hosts are called that have no name of their own. */
const NAMELESS = /(?:^|\.)(?:localhost|localdomain\d*)$/i

/**
 * Returns the name of the host where it is a full one; else its own address of the connection: many
 * servers refuse a name without a dot.
 */
export function nameClient(host: string, address: string): string {
  if (FULL_NAME.test(host) && !NAMELESS.test(host)) return host
  const plain = address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '')
  return plain.includes(':') ? `[IPv6:${plain}]` : `[${plain}]`
}
