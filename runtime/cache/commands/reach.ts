/** Renders the address at which this host reaches its own cache service. */

/** Loopback where `host` stands for all networks. */
export const renderOrigin = (host: string, port: number): string =>
  `http://${reachable(host)}:${port}`

function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
