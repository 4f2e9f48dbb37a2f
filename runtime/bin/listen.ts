/** Listens with listhen: the socket, its certificate, and the addresses under which it can be reached. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { RequestListener, Server } from 'node:http'
import { createServer as createProbe } from 'node:net'
import { isUnsafePort } from '#kit/net/rules/host-header.ts'

interface BoundAddress {
  readonly host: string
  /** The port; 0: any free one. */
  readonly port: number
  /** Paths of PEM files. */
  readonly tls: { readonly cert: string; readonly key: string } | null
}

/** Listens at the address. Rejects with the system's own reason where the address or port is unavailable. */
export async function listen(handler: RequestListener, { host, port, tls }: BoundAddress) {
  if (isUnsafePort(port)) {
    throw new Error('browsers refuse to connect to this port; choose another one')
  }
  // Whether the address is this machine's, in the system's words; the port is any.
  await probe(host, 0)
  // Loaded here: it would take a quarter of the start-up time of commands that do not listen.
  const listhen = await import('listhen')
  // To see whether a port is free, listhen opens it, closes it, and opens it again; where it is taken,
  // listhen silently chooses another one. A machine that connects before the close gets no answer, and
  // the close waits for that machine. So listhen gets a random port, which no machine knows, and the
  // server then moves to its own.
  const { server, address, getURLs } = await listhen.listen(handler, {
    hostname: host,
    port: { port: 0, random: true, verbose: false },
    https: tls ?? false,
    isProd: true,
    showURL: false,
    autoClose: false,
  })
  // listhen's own listener, for a shutdown that is not used here, throws when a client disconnects
  // before its response was sent.
  server.removeAllListeners('request').on('request', handler)
  const own = port === 0 ? address.port : port
  if (port !== 0) await moveTo(server, host, port)
  const urls = (await getURLs()).map(({ url }) => withPort(url, address.port, own))
  const reachable = urls.filter((url) => !/\/\/(?:0\.0\.0\.0|\[::\])[:/]/.test(url))
  return {
    server,
    port: own,
    urls: reachable.length > 0 ? reachable : [url(tls, own)],
    async renewCertificate() {
      if (tls === null || !('setSecureContext' in server)) return
      const [cert, key] = await Promise.all([readFile(tls.cert), readFile(tls.key)])
      server.setSecureContext({ cert, key })
    },
  }
}

async function moveTo(server: Server, host: string, port: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
  const listening = once(server, 'listening')
  server.listen({ host, port })
  await listening
}

/** An address of the server, with the port that it moved to. */
function withPort(url: string, from: number, to: number): string {
  const parsed = URL.parse(url)
  if (parsed === null) return url
  if (parsed.port === String(from)) parsed.port = String(to)
  return parsed.href
}

/** A machine without a network still reaches itself. */
const url = (tls: BoundAddress['tls'], port: number) =>
  `${tls === null ? 'http' : 'https'}://127.0.0.1:${port}/`

/** Checks that it is possible to listen there, and rejects with the reason where it is not. */
export async function probe(host: string, port: number): Promise<void> {
  // Whoever connects is not to wait for an answer, nor this for the end of it.
  const probing = createProbe((socket) => socket.destroy())
  const listening = once(probing, 'listening')
  probing.listen({ host, port })
  await listening
  probing.close()
  await once(probing, 'close')
}
