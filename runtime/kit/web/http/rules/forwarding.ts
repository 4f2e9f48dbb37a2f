/** What of a request goes on to another server, what of its answer comes back, and which request may be sent twice. */

import { renderError } from '#kit/foundation/fault.ts'
import { describeFailure } from '#kit/net/rules/network-failure.ts'

/**
 * They are of one connection alone (RFC 9110, 7.6.1); `expect` was answered by the server that had the
 * request first. What `Connection` names besides goes on: with its header a client would take away what
 * the leader decides by, such as `Origin`.
 */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Names and values in turn, as Node has them. */
type RawHeaders = readonly string[]

/** Lists the headers that are not of this connection alone, spelled and repeated as they came, without those of `left`. */
export function listPassedHeaders(raw: RawHeaders, left: readonly string[] = []): string[] {
  const dropped = new Set([...OF_CONNECTION, ...left])
  const passed: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = raw.slice(at, at + 2)
    if (!dropped.has(name.toLowerCase())) passed.push(name, value)
  }
  return passed
}

export type Loss =
  /** Nothing reached the other server. */
  | 'not-sent'
  /** It said that it does not lead. */
  | 'not-leading'
  /** It had the request, or a part of it, and gave no answer. */
  | 'lost'

interface LostRequest {
  readonly method: string
  readonly path: string
  /** Whether all of its body that was read is still known. */
  readonly isWhole: boolean
}

/**
 * What machines report may come twice (decision 70); what people and programs change may not, where
 * nobody knows whether it was done.
 */
export function isSentAgain({ method, path, isWhole }: LostRequest, loss: Loss): boolean {
  if (!isWhole) return false
  return loss !== 'lost' || method === 'GET' || method === 'HEAD' || isOfMachine(path)
}

/** Machines give up after 15 s, so each answer comes before that. */
export const isOfMachine = (path: string): boolean => path.startsWith('/pxe/')

export function describeUnreachable(url: string, error: Error): string {
  const failure = describeFailure(error)
  const why = `the server that leads cannot be reached at ${url}: ${failure?.reason ?? renderError(error)}.`
  if (failure?.code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `${why} Its database.own_url must have a name that is in its certificate.`
  }
  const hint = failure?.hint ?? 'Its database.own_url must be right for this server.'
  return `${why} ${hint}`
}
