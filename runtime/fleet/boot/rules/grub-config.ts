/** `grub.cfg`: leads Debian's signed GRUB to the script of its machine, for as long as it takes ("/grub/grub.cfg"). */
import { parseHost } from '#kit/net/rules/host-header.ts'
import { word } from './ipxe.ts'
import { listGrubServers } from './other-servers.ts'

/** Tried on the host that sent GRUB if nothing else is known. */
const PORTS = [8080, 80] as const
const PAUSE_SECONDS = 5

/**
 * `server`: host and port; null in a release, where nobody knows them. GRUB loaded by HTTP uses the
 * address that it came from. It waits for a silent one of `others` as long as it always does.
 */
export function renderGrubConfig(server: string | null, others: readonly string[] = []): string {
  const next = listGrubServers(others)
  if (server !== null && next.length > 0) return renderSeveral(server, next)
  const servers =
    server === null
      ? PORTS.map((port) => `"$net_default_server:${port}"`).join(' ')
      : `"${word(server)}"`
  return `${[
    ...BEGIN,
    'while true; do',
    `  for server in ${servers}; do`,
    '    if [ -n "$origin" ]; then set server="$origin"; fi',
    `    ${ASK}`,
    `    sleep ${PAUSE_SECONDS}`,
    '  done',
    'done',
  ].join('\n')}\n`
}

const BEGIN = [
  '# flasher: asks the server what this machine boots. A script that ends has booted nothing.',
  'if regexp --set=1:origin \'^\\(http,([^)]*)\\)\' "$prefix"; then true; fi',
]

/** GRUB moves on after silence. `source` always succeeds, but each script sets `offered`. */
function renderSeveral(server: string, others: readonly string[]): string {
  const turns = others.map((other, at) => {
    const before = at === 0 ? '$first' : word(others[at - 1] ?? '')
    return `if [ "$server" = "${before}" ]; then set server="${word(other)}"`
  })
  return `${[
    ...BEGIN,
    `set first="${word(server)}"`,
    'if [ -n "$origin" ]; then set first="$origin"; fi',
    'set server="$first"',
    'while true; do',
    '  set last="$offered"',
    '  set offered=',
    `  ${ASK.replace('$offered', '$last')}`,
    '  if [ -z "$offered" ]; then',
    '    set offered="$last"',
    `    ${turns.join('\n    el')}`,
    '    else set server="$first"; fi',
    '  fi',
    `  sleep ${PAUSE_SECONDS}`,
    'done',
  ].join('\n')}\n`
}

const QUERY = 'buildarch=$grub_cpu&platform=$grub_platform&server=$server&offered=$offered'
const ASK = `source "(http,$server)/pxe/$net_default_mac.grub?${QUERY}"`

/** GRUB's `Host` has no port, so `grub.cfg` adds `server`; another host is not believed. */
export function decideGrubServer(said: string | null, host: string): string {
  const named = parseHost(said ?? '')
  return named.ok && nameOf(named.value) === nameOf(host) ? named.value : host
}

const nameOf = (host: string) => host.replace(/:\d+$/, '')
