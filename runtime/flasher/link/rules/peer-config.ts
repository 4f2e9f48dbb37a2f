/** The configuration of the nginx by which a machine reads an image through its neighbours, and hands it on. */
import { z } from 'zod'
import { PEER_PORT } from '#appliance/contract.ts'
import type { SourceShare } from '#engine/image/rules/frame-map.ts'

/** nginx would look up digits that are no address as a host name. */
const neighbour = z
  .string()
  .regex(/^(?:(?:\d{1,3}\.){3}\d{1,3}|\[[0-9a-f:.]{2,45}\]):\d{1,5}$/i)
  .refine((each) => URL.canParse(`http://${each}`))

/** Strict, as all of it goes into nginx's configuration. */
export const NeighboursSchema = z.object({
  key: z.string().regex(/^[\w-]{32}$/),
  /** `10.0.0.5:8082`, the nearest first. */
  before: z.array(neighbour).max(8),
  /** Machines between this one and the cache. */
  hops: z.int().min(0).max(100),
  /** A network such as `10.0.0.0/24`; null: everybody who knows the address is served. */
  allow: z
    .string()
    .regex(/^[0-9a-f.:]{2,45}(?:\/\d{1,3})?$/i)
    .nullable(),
  ask_seconds: z.int().min(1).max(600),
})

export type Neighbours = z.infer<typeof NeighboursSchema>

interface PeerConfig extends Neighbours {
  /** A folder in memory. */
  readonly folder: string
  readonly origin: URL
  readonly windowBytes: number
  readonly hasIpv6: boolean
  /** Absent: all addresses of this machine. */
  readonly listen?: readonly string[] | undefined
}

const MIB = 1 << 20

/** nginx has a whole piece before it hands on any of it. */
const PIECE_MIB = 1
export const PIECE_BYTES = PIECE_MIB * MIB

/** nginx would read a variable, a quote or the end of a directive. */
const SPECIAL = /["'\\;{}$\s]/

/** Null: neighbours cannot fetch the image from this address. */
export function parseOrigin(address: string): URL | null {
  const url = URL.parse(address)
  const isPlain = url?.protocol === 'http:' && url.username === '' && !SPECIAL.test(url.href)
  return url !== null && isPlain ? url : null
}

export const renderPeerPath = ({ key }: Pick<Neighbours, 'key'>): string => `/${key}/image`

/** Seconds: each one before it gets the first piece whole, and looks every half second. */
const decidePatience = (hops: number) => 3 + Math.ceil(0.6 * hops)

/** Where the site is a network, nginx serves only machines in it. */
export function renderPeerConfig(given: PeerConfig): string {
  const { folder, before, hops, windowBytes, origin } = given
  const patience = decidePatience(hops)
  const cache = `${folder}/cache.sock`
  const path = renderPeerPath(given)
  const peers = before.map(
    (each, at) => `server ${each}${at === 0 ? '' : ' backup'} max_fails=1 fail_timeout=20s;`,
  )
  return `daemon off;
worker_processes 1;
pid ${folder}/pid;
error_log ${folder}/error.log alert;
events { worker_connections 512; }
http {
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server_tokens off;
  sendfile on;
  map $upstream_cache_status $is_fetched { default 1; "" 0; HIT 0; }
  log_format share '$upstream_addr $upstream_bytes_received';
  log_subrequest on;
  proxy_cache_path ${folder}/window keys_zone=window:4m max_size=${windowBytes} inactive=60m
    use_temp_path=off manager_files=1000 manager_sleep=50ms manager_threshold=500ms;
  upstream before {
    ${[...peers, `server unix:${cache}${before.length === 0 ? '' : ' backup'};`].join('\n    ')}
    keepalive 4;
  }
  server {
    ${listListens(given)}
    access_log ${folder}/shares.log share if=$is_fetched;
    ${renderAllowed(given)}
    location = ${path} {
      limit_except GET { deny all; }
      slice ${PIECE_BYTES};
      proxy_pass http://before;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Range $slice_range;
      proxy_cache window;
      proxy_cache_key $uri$slice_range;
      proxy_cache_valid 206 1h;
      proxy_ignore_headers Cache-Control Expires X-Accel-Expires Set-Cookie Vary;
      proxy_cache_lock on;
      proxy_cache_lock_age ${patience}s;
      proxy_cache_lock_timeout ${patience * 2}s;
      proxy_connect_timeout 1s;
      proxy_read_timeout ${patience}s;
      proxy_next_upstream error timeout invalid_header http_403 http_404 http_500 http_502 http_503 http_504;
    }
    location / { return 404; }
  }
  server {
    listen unix:${cache};
    access_log off;
    location = ${path} {
      proxy_pass ${origin.href};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $proxy_host;
      proxy_buffering off;
      proxy_connect_timeout 3s;
      proxy_read_timeout 8s;
    }
    location / { return 404; }
  }
}
`
}

function listListens({ listen, hasIpv6 }: PeerConfig): string {
  const all = [`${PEER_PORT}`, ...(hasIpv6 ? [`[::]:${PEER_PORT}`] : [])]
  const given = listen?.map((address) => `${address}:${PEER_PORT}`)
  return (given ?? all).map((each) => `listen ${each};`).join('\n    ')
}

const renderAllowed = ({ allow }: PeerConfig) =>
  allow === null ? '' : `allow 127.0.0.0/8; allow ${allow}; deny all;`

/** With less available memory a machine keeps nothing for others. */
const FEWEST_AVAILABLE = 160 * MIB
/** Left for the flash and its machine. */
const OWN = 96 * MIB
const SMALLEST_WINDOW = 48 * MIB

/** Half of what is left: a neighbour a minute later still finds the start. Null: too little. */
export function decideWindow({
  available,
  free,
}: {
  readonly available: number
  readonly free: number
}): number | null {
  const window = Math.floor(Math.min((available - OWN) / 2, free - OWN))
  return available < FEWEST_AVAILABLE || window < SMALLEST_WINDOW / 2 ? null : window
}

const MAX_NAMED = 8

/** Bytes by neighbour, from nginx's log. `origin`: the name for the cache. */
export function readShares(log: string, origin: string): ReadonlyMap<string, number> {
  const shares = new Map<string, number>()
  for (const line of log.split('\n')) {
    const share = parseShare(line)
    if (share === null) continue
    const name = share.address.startsWith('unix:') ? origin : `http://${share.address}`
    if (shares.size >= MAX_NAMED && !shares.has(name)) continue
    shares.set(name, (shares.get(name) ?? 0) + share.bytes)
  }
  return shares
}

/** The last of several answered: `10.0.0.5:8082, 10.0.0.4:8082 0, 1048576`. */
function parseShare(line: string): { readonly address: string; readonly bytes: number } | null {
  const [, addresses = '', counts = ''] = /^(\S+(?:[,:] \S+)*) (\d+(?:[,:] \d+)*)$/.exec(line) ?? []
  const address = addresses.split(/[,:] /).at(-1) ?? ''
  const bytes = Number(counts.split(/[,:] /).at(-1))
  return address === '' || !Number.isSafeInteger(bytes) ? null : { address, bytes }
}

/** Replaces the share of this machine's own nginx by those of its neighbours, in a stable order. */
export function renameShares(
  shares: readonly SourceShare[],
  own: string,
  given: ReadonlyMap<string, number>,
): readonly SourceShare[] {
  const mine = shares.find(({ name }) => name === own)
  const others = shares.filter(({ name }) => name !== own)
  const merged = others.map((each) => ({
    ...each,
    bytes: each.bytes + (given.get(each.name) ?? 0),
  }))
  const added = [...given]
    .filter(([name]) => !others.some((each) => each.name === name))
    .map(([name, bytes]) => ({ name, bytes, trouble: mine?.trouble ?? null }))
  return [...merged, ...added]
}
