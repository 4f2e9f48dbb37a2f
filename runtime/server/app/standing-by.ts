/** A server while it does not lead: it listens, serves boot files itself, and passes everything else on to the leader. */
import * as http from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { H3Event } from 'h3'
import type { ClusterTimes } from '#fleet/cluster/rules/lease.ts'
import type { Lease } from '#fleet/cluster/tables.ts'
import { hasFile } from '#fleet/boot/boot-folder.ts'
import type { BootFolder } from '#fleet/boot/boot-files.ts'
import { createNetbootShare, type OpenSharedFile } from '#fleet/cluster/netboot-share.ts'
import type { ServerConfig } from '#kit/config/config.ts'
import { isBareFileName } from '#kit/foundation/file-name.ts'
import { readAuthorities } from '#kit/net/http-client.ts'
import { openDoor, type OpenDoor } from '#kit/program/listening.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { createAssets } from '#kit/web/answers/assets.ts'
import {
  CLIENT_HEADER,
  type ClientSeal,
  createClientSeal,
  createEntrance,
  createPassedReader,
  type Diversion,
  type PassedClient,
  type PassedReader,
  plainAddress,
  rawRequestOf,
} from '#kit/web/http/entrance.ts'
import { createForwarder, type Forwarder } from '#kit/web/http/forwarder.ts'
import type { ServerLog } from '#kit/terminal/text/log.ts'
import { createStandbyApp, isOwnPath, type StandbyDependencies } from '#server/routes/standby.ts'
import { toWebSettings } from './machine-server.ts'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import * as https from 'node:https'
import { pipeline } from 'node:stream/promises'
import { Fault } from '#kit/foundation/fault.ts'
import { createSocket } from 'node:dgram'
import { isIP } from 'node:net'
import { listLanAddresses } from '#fleet/boot/pxe-helper.ts'

interface StandingByDependencies extends Pick<
  StandbyDependencies,
  'otherServers' | 'findDiskScript' | 'release'
> {
  readonly bootFiles: BootFolder
  keep(): number
  readonly environment: ProcessEnvironment
  readonly config: ServerConfig
  readonly listenSettings: Parameters<typeof openDoor>[2]
  readonly memberKey: string
  readonly times: Pick<ClusterTimes, 'holdMs'>
  readonly log: ServerLog
}

/** Holds requests until it knows who leads. Rejects with a Fault if it cannot listen. */
export async function openStandingBy(parts: StandingByDependencies) {
  const { environment, config, log, bootFiles, keep, listenSettings, memberKey: key } = parts
  const bootDir = bootFiles.dir
  const [authorities, assets] = [await readAuthorities(environment.env), await createAssets()]
  let seal: ClientSeal | null = null
  const { holdMs } = parts.times
  const forwarder = createForwarder({ seal: () => seal, authorities, holdMs, log })
  const doubtful = new WeakSet<IncomingMessage>()
  const find = (sha256: string) => netboot.find(sha256)
  const members = createMemberFiles({ seal: () => seal, authorities, find })
  const netboot = createNetbootShare({ bootFiles, openFile: members.open, keep, log })
  const app = createStandbyApp({
    ...parts,
    bootDir,
    assets,
    settings: () => toWebSettings(config.current()),
    findObstacle: async () => ((await isLeaderReady(forwarder)) ? null : NO_LEADER),
    isDoubtful(event) {
      const request = rawRequestOf(event)
      return request !== null && doubtful.has(request)
    },
    onBootFile: (event) => reportBootFile(forwarder, event),
  })
  const hasOwn = async (name: string) => (await hasFile(bootDir, name)) && !netboot.isStale(name)
  const divert = createDiversion(forwarder, hasOwn, doubtful)
  const first: Diversion = (...each) => members.divert(...each) || divert(...each)
  const door = await openDoor(environment, createEntrance(app, log, first), listenSettings)
  log.info(`listens on ${door.listening.urls.join(' ')} and waits for a server that leads`)
  return {
    door,
    netboot,
    /** For a leading server, before its routes: the other servers copy files. */
    divert: members.divert,
    /** Null: the database does not answer. */
    follow(lease: Lease | null): void {
      // This does not mean that the leader is gone; it knows itself whether it leads.
      if (lease === null) return
      seal ??= createClientSeal({ key, cluster: lease.cluster })
      const { holder, url, epoch } = lease
      forwarder.follow(holder === '' || url === '' ? null : { url, term: String(epoch) })
    },
    /** From now on this server answers everything itself, also requests that wait here. */
    lead(epoch: number): void {
      const url = ownUrl(door, listenSettings)
      forwarder.follow({ url, term: String(epoch), isSelf: true })
    },
    async [Symbol.asyncDispose]() {
      forwarder.stop()
      await door.close()
      forwarder.end()
    },
  }
}

const NO_LEADER = 'no server leads this fleet at the moment, or it cannot be reached'

function ownUrl(
  { listening }: OpenDoor,
  { host, tls_cert: cert }: StandingByDependencies['listenSettings'],
) {
  const own = host === '0.0.0.0' || host === '::' ? 'localhost' : host
  const name = own.includes(':') ? `[${own}]` : own
  return `${cert === '' ? 'http' : 'https'}://${name}:${listening.port}`
}

function createDiversion(
  forwarder: Forwarder,
  hasOwn: (name: string) => Promise<boolean>,
  doubtful: WeakSet<IncomingMessage>,
): Diversion {
  return (request, response, serve) => {
    const path = request.url?.split('?', 1)[0] ?? '/'
    // First: servers that take each other for the leader would ask for their health in a circle.
    if (forwarder.refuseLoop(request, response)) return true
    if (isOwnPath(path)) return false
    const pass = () =>
      void forwarder.take(request, response, clientOf(request), (isDoubtful) => {
        if (isDoubtful) doubtful.add(request)
        serve()
      })
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const name = isRead ? readBootName(path) : null
    if (name === null) pass()
    // The leader may have a file that this server lacks or has an older copy of.
    else void hasOwn(name).then((isHere) => (isHere ? serve() : pass()))
    return true
  }
}

function readBootName(path: string): string | null {
  const [, encoded = ''] = /^\/boot\/([^/]+)$/.exec(path) ?? []
  try {
    const name = decodeURIComponent(encoded)
    return isBareFileName(name) ? name : null
  } catch {
    return null
  }
}

const clientOf = ({ socket }: IncomingMessage): PassedClient => ({
  ip: plainAddress(socket.remoteAddress ?? ''),
  isSecure: 'encrypted' in socket,
})

async function isLeaderReady(forwarder: Forwarder): Promise<boolean> {
  const { current, ask } = forwarder
  const host = URL.parse(current()?.url ?? '')?.host ?? ''
  const request = { method: 'GET', url: '/healthz?ready', headers: { host }, rawHeaders: [] }
  return (await ask(request, { ip: '', isSecure: false })) === 200
}

/** Best effort: the leader notes the machine as if it had fetched the file there. */
function reportBootFile({ ask }: Forwarder, event: H3Event): void {
  const request = rawRequestOf(event)
  if (request === null || !event.url.searchParams.has('mac')) return
  const { url = '', headers } = request
  const first = { method: 'GET', url, headers, rawHeaders: ['Range', 'bytes=0-0'] }
  void ask(first, clientOf(request))
}

/** Files that servers of one fleet give each other by their digest: how one is asked for, and how it is answered. */
interface MemberFilesDependencies {
  /** Null: unknown yet, so nothing is asked for or answered. */
  seal(): ClientSeal | null
  /** PEM texts; undefined: Node's own authorities. */
  readonly authorities: string[] | undefined
  /** Null: no file with this digest. */
  find(sha256: string): Promise<string | null>
}

const PATH = '/cluster/netboot/'
const FORM = /^\/cluster\/netboot\/([0-9a-f]{64})$/
/** The seal is for this route alone, whoever leads. */
const TERM = 'netboot'
/** For the next byte. */
const STALL_MS = 15_000
const NOBODY = { ip: '', isSecure: false } as const

export function createMemberFiles({ seal, authorities, find }: MemberFilesDependencies) {
  let reader: { readonly of: ClientSeal; readonly read: PassedReader } | null = null

  function isSealed(request: http.IncomingMessage): boolean {
    const present = seal()
    if (present === null) return false
    if (reader?.of !== present) reader = { of: present, read: createPassedReader(present, TERM) }
    const client = reader.read(request)
    return client !== null && client !== 'stale'
  }

  const open: OpenSharedFile = async function* (url, { sha256, from }, signal) {
    const present = seal()
    if (present === null) throw new Fault('no-leader', 'the key of the fleet is not known yet')
    const answer = await askMember(present, {
      url,
      path: `${PATH}${sha256}`,
      from,
      signal,
      authorities,
    })
    const wanted = from === 0 ? [200] : [206]
    if (!wanted.includes(answer.statusCode ?? 0)) {
      answer.destroy()
      throw new Fault(
        'input-missing',
        REFUSALS[answer.statusCode ?? 0] ?? `it answered ${answer.statusCode}`,
      )
    }
    for await (const chunk of answer) yield chunk
  }

  const divert: Diversion = (request, response) => {
    const path = request.url?.split('?', 1)[0] ?? ''
    if (!path.startsWith(PATH)) return false
    void give(request, response, path)
    return true
  }

  async function give(request: http.IncomingMessage, response: http.ServerResponse, path: string) {
    const [, sha256 = ''] = FORM.exec(path) ?? []
    if (request.method !== 'GET' || sha256 === '') return refuse(response, 404)
    if (!isSealed(request)) return refuse(response, 403)
    try {
      const file = await find(sha256)
      if (file === null) return refuse(response, 404)
      await send(request, response, file)
    } catch {
      // The other server tries the next one, and does not take a part for the whole.
      response.destroy()
    }
  }

  return { open, divert }
}

function refuse(response: http.ServerResponse, status: number): void {
  response.writeHead(status, { 'content-length': 0 }).end()
}

async function send(
  { headers }: http.IncomingMessage,
  response: http.ServerResponse,
  path: string,
): Promise<void> {
  const { size } = await stat(path)
  const from = Number(/^bytes=(\d{1,15})-$/.exec(headers.range ?? '')?.[1] ?? 0)
  if (from > 0 && from >= size) return refuse(response, 416)
  response.writeHead(from === 0 ? 200 : 206, {
    'content-type': 'application/octet-stream',
    'content-length': size - from,
    ...(from === 0 ? {} : { 'content-range': `bytes ${from}-${size - 1}/${size}` }),
  })
  await pipeline(createReadStream(path, { start: from }), response)
}

const REFUSALS: Readonly<Record<number, string>> = {
  403: 'it does not know the key of this server: database.key must be the same on both',
  404: 'it no longer has the file',
}

interface FileRequest {
  readonly url: string
  readonly path: string
  readonly from: number
  readonly signal: AbortSignal
  readonly authorities: string[] | undefined
}

async function askMember(seal: ClientSeal, { url, path, from, signal, authorities }: FileRequest) {
  const address = new URL(url)
  const own = { method: 'GET', url: path, headers: { host: address.host } }
  const headers = {
    host: address.host,
    [CLIENT_HEADER]: seal.seal(own, NOBODY, TERM),
    ...(from === 0 ? {} : { range: `bytes=${from}-` }),
  }
  const { protocol, hostname, port } = address
  const parts = {
    host: hostname.replace(/^\[|\]$/g, ''),
    port,
    path,
    headers,
    signal,
    agent: false,
  } as const
  const trust = authorities === undefined ? {} : { ca: authorities }
  const request = protocol === 'http:' ? http.request(parts) : https.request({ ...parts, ...trust })
  request.setTimeout(STALL_MS, () => {
    request.destroy(new Error(`no data for ${STALL_MS / 1000} s`))
  })
  request.end()
  const [answer]: http.IncomingMessage[] = await once(request, 'response')
  if (answer === undefined) throw new Error('no answer')
  return answer
}

/** Finds how the other servers on a database reach this one, where no setting says it. */
interface OwnAddressOptions {
  /** `postgres://…` */
  readonly database: string
  readonly host: string
  readonly port: number
  readonly isTls: boolean
}

/** Without a last slash. If it listens on all addresses: the one towards the database. */
export async function findOwnUrl({
  database,
  host,
  port,
  isTls,
}: OwnAddressOptions): Promise<string> {
  const isAny = host === '0.0.0.0' || host === '::'
  const own = isAny ? await findLocalAddress(database) : host
  const name = isIP(own) === 6 ? `[${own}]` : own
  return `${isTls ? 'https' : 'http'}://${name}:${port}`
}

/** If the database is on this host, the other servers come over the network. */
async function findLocalAddress(database: string): Promise<string> {
  const { hostname = '' } = URL.parse(database) ?? {}
  const address = await routeTo(hostname.replace(/^\[|\]$/g, ''))
  if (address !== null && !LOOPBACK.test(address)) return address
  return listLanAddresses()[0]?.address ?? '127.0.0.1'
}

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/

/** Sends nothing: asks the system for the source address of the route. Null: no route. */
function routeTo(host: string): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  if (host === '') return Promise.resolve(null)
  const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4')
  const end = (address: string | null) => {
    socket.close()
    resolve(address)
  }
  socket.once('error', () => end(null))
  socket.connect(ANY_PORT, host, () => end(socket.address().address))
  return promise
}

const ANY_PORT = 9
