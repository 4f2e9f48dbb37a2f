/** Listens with listhen: the socket, its certificate, and the addresses under which it can be reached. */
import { readFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { isIP } from 'node:net'

interface BoundAddress {
  readonly host: string
  /** The port; 0: any free one. */
  readonly port: number
  /** Paths of PEM files. */
  readonly tls: { readonly cert: string; readonly key: string } | null
}

/** Listens at the address. Rejects with the system's own reason where the address or port is unavailable. */
export async function listen(handler: RequestListener, { host, port, tls }: BoundAddress) {
  // listhen would silently take another port when this one is unavailable.
  await probe(host, port)
  // Loaded here: it would take a quarter of the start-up time of commands that do not listen.
  const listhen = await import('listhen')
  const { server, address, getURLs } = await listhen.listen(handler, {
    hostname: host,
    port: { port, random: port === 0, verbose: false },
    https: tls ?? false,
    isProd: true,
    showURL: false,
    autoClose: false,
  })
  // listhen's own listener, for a shutdown that is not used here, throws when a client disconnects
  // before its response was sent.
  server.removeAllListeners('request').on('request', handler)
  if ((port !== 0 && address.port !== port) || (isIP(host) > 0 && address.address !== host)) {
    server.close()
    throw new Error('browsers refuse to connect to this port; choose another one')
  }
  const urls = (await getURLs()).map(({ url }) => url)
  const reachable = urls.filter((url) => !/\/\/(?:0\.0\.0\.0|\[::\])[:/]/.test(url))
  return {
    server,
    port: address.port,
    urls: reachable.length > 0 ? reachable : [url(tls, address.port)],
    /** Uses a renewed certificate for new connections. */
    async renewCertificate() {
      if (tls === null || !('setSecureContext' in server)) return
      const [cert, key] = await Promise.all([readFile(tls.cert), readFile(tls.key)])
      server.setSecureContext({ cert, key })
    },
  }
}

/** A machine without a network still reaches itself. */
const url = (tls: BoundAddress['tls'], port: number) =>
  `${tls === null ? 'http' : 'https'}://127.0.0.1:${port}/`

/** Checks that it is possible to listen there, and rejects with the reason where it is not. */
export function probe(host: string, port: number): Promise<void> {
  const probing = createServer()
  return new Promise((resolve, reject) => {
    probing.once('error', reject)
    probing.listen({ host, port }, () => probing.close(() => resolve()))
  })
}
