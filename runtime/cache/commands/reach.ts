/** Renders the address at which this host reaches its own cache service. */

/**
 * Renders the origin for a `host` as it listens; an address for all networks is none to connect to.
 */
export const renderOrigin = (host: string, port: number): string =>
  `http://${reachable(host)}:${port}`

function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
