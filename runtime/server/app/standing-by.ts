/** A server while it does not lead: it listens, serves boot files itself, and passes everything else on to the leader. */
import type { IncomingMessage } from 'node:http'
import type { H3Event } from 'h3'
import type { ClusterTimes } from '#fleet/cluster/rules/times.ts'
import type { Lease } from '#fleet/cluster/tables.ts'
import { hasFile } from '#fleet/boot/boot-folder.ts'
import type { BootFolder } from '#fleet/boot/boot-files.ts'
import { createNetbootShare } from '#fleet/cluster/netboot-share.ts'
import type { ServerConfig } from '#kit/config/config.ts'
import { isBareFileName } from '#kit/foundation/file-name.ts'
import { readAuthorities } from '#kit/net/authorities.ts'
import { openDoor, type OpenDoor } from '#kit/program/listening.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { createAssets } from '#kit/web/answers/assets.ts'
import { createClientSeal, type ClientSeal, type PassedClient } from '#kit/web/http/client-seal.ts'
import { createEntrance, type Diversion } from '#kit/web/http/entrance.ts'
import { createForwarder, type Forwarder } from '#kit/web/http/forwarder.ts'
import { plainAddress, rawRequestOf } from '#kit/web/http/peer.ts'
import type { ServerLog } from '#kit/terminal/text/server-log.ts'
import { createStandbyApp, isOwnPath, type StandbyDependencies } from '#server/routes/standby.ts'
import { createMemberFiles } from './member-files.ts'
import { toWebSettings } from './web-settings.ts'

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
  log.info(`listens on ${door.listening.urls.join(' ')} and waits until somebody leads`)
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
