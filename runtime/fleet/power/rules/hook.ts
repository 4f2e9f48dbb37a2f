/** Hooks: the URL of a verb, and what the answer to a question for the state means. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { quote, type PowerState } from './power.ts'

export const renderHookUrl = (template: string, mac: Mac): URL =>
  new URL(
    template
      .replaceAll('{mac}', encodeURIComponent(mac))
      .replaceAll('%7Bmac%7D', encodeURIComponent(mac)),
  )

const WORDS: Readonly<Record<string, PowerState>> = {
  on: 'on',
  off: 'off',
  '1': 'on',
  '0': 'off',
  true: 'on',
  false: 'off',
}

const FIELDS = ['state', 'power', 'POWER', 'ison', 'on', 'status']

/** `on`, `off` or a synonym, as the whole text or a field of a JSON object; null: neither. */
export function readHookState(body: string): PowerState | null {
  const plain = WORDS[body.trim().toLowerCase()]
  if (plain !== undefined) return plain
  const document = parseJson(body)
  const entries = typeof document === 'object' && document !== null ? Object.entries(document) : []
  const known = new Map<string, unknown>(entries)
  for (const field of FIELDS) {
    const state = WORDS[String(known.get(field)).toLowerCase()]
    if (state !== undefined) return state
  }
  return null
}

/** A value this short in the URL is no secret. */
const MAX_PLAIN = 3

/** Hides the query of the URL and the password, which the answer may repeat. */
export function quoteHook(body: string, url: URL, password: string): string {
  const secrets = [password, url.search.slice(1), ...url.searchParams.values()]
  const hidden = secrets
    .flatMap((secret) => [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)])
    .filter((secret) => secret.length > MAX_PLAIN)
    .reduce((text, secret) => text.replaceAll(secret, '…'), body)
  return quote(hidden)
}
