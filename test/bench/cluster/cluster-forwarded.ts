/** What it costs that a server passes a request on: processor time of both, beside a request to the leader itself. */
import { readTreeUse } from '../process-tree.ts'
import { createWire, macOf, renderRequest } from '../server/server-wire.ts'
import type { Site, SiteServer } from './cluster-site.ts'

/** Microseconds of a processor for one request. */
export interface ForwardedCost {
  /** What the leader takes that is asked itself. */
  readonly direct: number
  /** What the leader takes that is asked by way of another server. */
  readonly leader: number
  /** What the server takes that passes it on. */
  readonly standby: number
}

const REQUESTS = 4000
const CONNECTIONS = 8

const perRequest = (seconds: number) => (seconds / REQUESTS) * 1e6

/** `leader`: its number. */
export async function measureForwarded(site: Site, leader: number): Promise<ForwardedCost> {
  const [first, other] = [site.servers[leader], site.servers.find((_, at) => at !== leader)]
  if (first === undefined || other === undefined) throw new Error('no servers')
  await load(first)
  await load(other)
  const before = readTreeUse(first.process.pid()).cpuSeconds
  await load(first)
  const middle = readTreeUse(first.process.pid()).cpuSeconds
  const standby = readTreeUse(other.process.pid()).cpuSeconds
  await load(other)
  return {
    direct: perRequest(middle - before),
    leader: perRequest(readTreeUse(first.process.pid()).cpuSeconds - middle),
    standby: perRequest(readTreeUse(other.process.pid()).cpuSeconds - standby),
  }
}

/** Machines that boot their disk ask for their script. */
async function load({ url }: SiteServer) {
  const port = Number(new URL(url).port)
  const work = async (from: number) => {
    const wire = createWire({ port })
    for (let at = from; at < REQUESTS; at += CONNECTIONS) {
      const request = renderRequest({
        path: `/pxe/${macOf(at % 100)}?buildarch=x86_64&platform=efi`,
        headers: { host: `127.0.0.1:${port}` },
      })
      const { status } = await wire.ask(request)
      if (status !== 200) throw new Error(`${url} answered ${status}`)
    }
    wire.close()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, from) => work(from)))
}
