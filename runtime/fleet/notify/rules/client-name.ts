/** The name with which a mail client introduces itself (RFC 5321, 4.1.3 and 4.1.4). */

const FULL_NAME =
  /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/i
/** What hosts are called that have no name of their own. */
const NAMELESS = /(?:^|\.)(?:localhost|localdomain\d*)$/i

/**
 * Returns the name of the host where it is a full one; else its own address of the connection: many
 * servers refuse a name without a dot.
 */
export function nameClient(hostname: string, address: string): string {
  if (FULL_NAME.test(hostname) && !NAMELESS.test(hostname)) return hostname
  const plain = address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '')
  return plain.includes(':') ? `[IPv6:${plain}]` : `[${plain}]`
}
