/** A machine that has the trio's kernel and initrd already, and a server with its squashfs that may fail. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { basename } from 'node:path'
import { KERNEL_ARGS } from '#appliance/contract.ts'
import type { Trio } from './built-images.ts'
import { startHostileServer, type HostileServer } from '../http/hostile-server.ts'
import { HOST_SEEN_BY_GUESTS } from './ipxe.ts'
import { startQemu, type Qemu } from './qemu.ts'

export const NETBOOT_MAC = '52:54:00:12:34:56'
/** In words for the kernel's command line, it stands for where the squashfs is fetched from. */
export const SQUASHFS_ADDRESS = '@squashfs@'

/** What a transfer of the squashfs meets, by its number from 0; undefined: nothing bad. */
export interface Trouble {
  /** The connection ends after so many bytes of the body. */
  readonly cutAfter?: number
  /** The connection is closed before an answer. */
  readonly isGone?: boolean
  /** An answer of this status, without the squashfs. */
  readonly status?: number
}

export interface NetbootOptions {
  readonly megabytes?: number
  /** Nobody tells this machine what to do: it starts the wizard. */
  readonly isAlone?: boolean
  /** Words that are added to the kernel's command line. */
  readonly append?: readonly string[]
  /** Arguments that are added to those of QEMU. */
  readonly args?: readonly string[]
  /** Those of a network card that Linux finds before ours. */
  readonly cardBefore?: readonly string[]
  readonly trouble?: (transfer: number) => Trouble | undefined
  /** The date that the server tells. */
  readonly date?: Date
}

export interface Netboot extends AsyncDisposable {
  readonly machine: Qemu
  readonly server: HostileServer
  /** What was posted, with the path before it. */
  readonly posts: readonly string[]
  /** Returns the bytes of the squashfs that were sent, over all transfers. */
  countSent(): number
}

export async function startNetboot(trio: Trio, options: NetbootOptions = {}): Promise<Netboot> {
  await using undo = new AsyncDisposableStack()
  const posts: string[] = []
  const tally = { bytes: 0 }
  const server = undo.use(await startServer(trio.squashfs, { posts, tally }, options))
  const { port } = new URL(server.origin)
  const host = `${HOST_SEEN_BY_GUESTS}:${port}`
  const append = [
    'console=ttyS0,115200',
    `${KERNEL_ARGS.server}=${host}`,
    ...(options.isAlone === true ? [] : [`${KERNEL_ARGS.mac}=${NETBOOT_MAC}`]),
    ...(options.append ?? []),
  ]
  const squashfs = `http://${host}/boot/${basename(trio.squashfs)}`
  const words = append.join(' ').replaceAll(SQUASHFS_ADDRESS, squashfs)
  const boot = ['-kernel', trio.kernel, '-initrd', trio.initrd, '-append', words]
  const card = ['-netdev', 'user,id=net', '-device', `virtio-net-pci,netdev=net,mac=${NETBOOT_MAC}`]
  const cards = [...(options.cardBefore ?? []), ...card]
  const args = [...boot, ...cards, '-device', 'virtio-rng-pci', ...(options.args ?? [])]
  const machine = undo.use(await startQemu({ megabytes: options.megabytes ?? 1024, args }))
  const held = undo.move()
  return {
    machine,
    server,
    posts,
    countSent: () => tally.bytes,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

interface Records {
  readonly posts: string[]
  readonly tally: { bytes: number }
}

async function startServer(
  squashfs: string,
  { posts, tally }: Records,
  { trouble = () => undefined, date }: NetbootOptions,
): Promise<HostileServer> {
  const { size } = await stat(squashfs)
  const path = `/boot/${basename(squashfs)}`
  let transfers = 0
  return startHostileServer((request, response) => {
    if (date !== undefined) response.setHeader('date', date.toUTCString())
    if (request.method === 'POST') return void takePost(request, response, posts)
    if (request.url !== path) return response.writeHead(404).end()
    if (request.method === 'HEAD') return response.writeHead(200, { 'content-length': size }).end()
    const { isGone = false, status, cutAfter = Infinity } = trouble(transfers) ?? {}
    transfers += 1
    if (isGone) return request.socket.destroy()
    if (status !== undefined) return response.writeHead(status).end()
    send(request, response, { squashfs, size, cutAfter, tally })
  })
}

interface Sending {
  readonly squashfs: string
  readonly size: number
  readonly cutAfter: number
  readonly tally: { bytes: number }
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { squashfs, size, cutAfter, tally }: Sending,
): void {
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
  response.writeHead(from > 0 ? 206 : 200, {
    'content-length': size - from,
    ...(from > 0 ? { 'content-range': `bytes ${from}-${size - 1}/${size}` } : {}),
  })
  const end = Math.min(size, from + cutAfter) - 1
  const file = createReadStream(squashfs, { start: from, end })
  const before = request.socket.bytesWritten
  response.on('close', () => {
    tally.bytes += request.socket.bytesWritten - before
  })
  file.on('end', () => end < size - 1 && response.socket?.end())
  file.pipe(response, { end: end === size - 1 })
}

async function takePost(request: IncomingMessage, response: ServerResponse, posts: string[]) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  posts.push(`${request.url} ${Buffer.concat(chunks).toString()}`)
  response.writeHead(204).end()
}
