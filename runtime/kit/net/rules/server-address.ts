/** Parses the machine server's address from `--server` and `flasher.server=` ("Wizard command line"). */
import { parseHost, parsePublicUrl } from './host-header.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** The port that our server takes when nobody says otherwise. */
const OWN_PORT = 8080

/**
 * Lists the base addresses to try, the best first, without a slash at their ends. A bare name
 * without a port may be on port 80 (a proxy before it) or on our own; whoever wrote a scheme or a
 * port meant it.
 */
export function parseServerAddress(text: string): Result<readonly string[], 'not-a-server'> {
  const given = text.trim().replace(/\/+$/, '')
  if (given.includes('://')) {
    const url = parsePublicUrl(given)
    return url.ok ? accept([url.value]) : refuse('not-a-server')
  }
  const [, authority = '', path = ''] = /^([^/]*)(.*)$/.exec(given) ?? []
  const host = parseHost(authority)
  const plain = parsePublicUrl(`http://${given}`)
  if (!host.ok || !plain.ok) return refuse('not-a-server')
  const hasPort = /:\d+$/.test(host.value.replace(/^\[.*\]/, ''))
  return accept(hasPort ? [plain.value] : [plain.value, `http://${host.value}:${OWN_PORT}${path}`])
}

/** No more servers of one site are asked; a list that is longer is cut. */
const MAX_SERVERS = 8

/**
 * Parses the other servers of a site (`flasher.servers=`), whole addresses with commas between them.
 * What is none is left out: a machine that has one good address goes on.
 */
export const parseServerList = (text: string | null): readonly string[] =>
  (text ?? '').split(',', MAX_SERVERS).flatMap((each) => {
    const url = parsePublicUrl(each)
    return url.ok ? [url.value] : []
  })

/** Tells whether an answer to `GET /version` can be our server's: an object with a `version`. */
export const isServerVersion = (document: unknown): boolean =>
  isRecord(document) && typeof document['version'] === 'string'
