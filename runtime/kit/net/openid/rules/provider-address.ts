/** Decides what an OpenID provider's address may be: https, or http on this host. */

const MAX_CHARACTERS = 2048

/** Whether an address may name a provider. It is compared as it is written: no slash is added or taken away. */
export function isIssuer(address: string): boolean {
  const url = parse(address)
  return url !== null && url.search === '' && isSafe(url)
}

/** Whether two addresses name the same provider; that of a host alone may end in a slash or not. */
export const isSameIssuer = (one: string, other: string): boolean =>
  one === other || (URL.canParse(one) && new URL(one).href === URL.parse(other)?.href)

/**
 * Whether an address that a provider names is asked: it is on https, or on this host where the provider
 * itself is.
 */
export function isAskable(address: string, issuer: string): boolean {
  const [url, of] = [parse(address), parse(issuer)]
  if (url === null || of === null) return false
  return url.protocol === 'https:' || (isSafe(url) && of.protocol === 'http:' && isSafe(of))
}

function parse(address: string): URL | null {
  const url = address.length > MAX_CHARACTERS ? null : URL.parse(address)
  const isPlain = url !== null && url.username === '' && url.password === '' && url.hash === ''
  return isPlain && /^https?:\/\/[^\s\\#]+$/i.test(address) ? url : null
}

/** Nobody between the two reads along. */
const isSafe = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))

const isLoopback = (hostname: string): boolean =>
  /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname)
