/** Looks at machines from outside: which of them answer in the networks of this host, and which host keys their SSH has. */
import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { readFile } from 'node:fs/promises'
import { isIPv4, connect } from 'node:net'
import type { Shell } from '#kit/host/shell.ts'
import { parseNeighbours } from './rules/proof.ts'

const TABLE = '/proc/net/arp'
/** Nobody listens there (discard): the kernel only looks for the neighbour. */
const PORT = 9
/** How long the kernel is given to ask, milliseconds. */
const ASK_MS = 1500

/** Lists the neighbours of this host, as `parseNeighbours` says; empty where they cannot be read. */
export async function listNeighbours(): Promise<ReadonlyMap<string, string | null>> {
  return parseNeighbours(await readFile(TABLE, 'latin1').catch(() => ''))
}

/** The same, after the kernel was made to look for these addresses. */
export async function askNeighbours(
  addresses: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  const socket = createSocket('udp4')
  const { promise, resolve } = Promise.withResolvers<void>()
  // An address that cannot be reached is no neighbour, and shows as none.
  socket.on('error', () => undefined)
  const send = (address: string) =>
    new Promise<void>((done) => {
      socket.send(new Uint8Array(1), PORT, address, () => done())
    })
  await Promise.all(addresses.filter(isIPv4).map(send))
  setTimeout(resolve, ASK_MS).unref()
  await promise
  socket.close()
  return await listNeighbours()
}

/** Milliseconds for a connection, and then for the first words. */
const TALK_MS = 2000
const KEYS_MS = 10_000
const MAX_WORDS = 255

/** Resolves to their SHA-256; empty: no SSH is there; null: nobody can tell. */
export async function readHostKeys(
  { run, has }: Pick<Shell, 'run' | 'has'>,
  host: string,
  port: number,
): Promise<readonly string[] | null> {
  const words = await readWords(host, port)
  if (words === null) return null
  if (!words.startsWith('SSH-')) return []
  if (!(await has('ssh-keyscan'))) return null
  const argv = ['ssh-keyscan', '-T', '5', '-p', String(port), host]
  const { stdout } = await run(argv, { timeout: KEYS_MS })
  const keys = parseKeys(stdout)
  // An SSH whose keys could not be read may have any.
  return keys.length === 0 ? null : keys
}

/** The first words that it says by itself; empty: the port is closed; null: it says none in time. */
function readWords(host: string, port: number): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const socket = connect({ host, port, timeout: TALK_MS })
  socket.on('data', (bytes: Buffer) => resolve(bytes.toString('latin1', 0, MAX_WORDS)))
  socket.on('timeout', () => resolve(null))
  socket.on('end', () => resolve(null))
  socket.on('error', ({ code }: NodeJS.ErrnoException) => {
    resolve(code === 'ECONNREFUSED' ? '' : null)
  })
  return promise.finally(() => socket.destroy())
}

/** Each line is the host, the kind of the key, and the key in base64. */
const parseKeys = (text: string): readonly string[] =>
  text.split('\n').flatMap((line) => {
    const [, key] = /^[^#\s]\S* (?:ssh|ecdsa)-\S+ ([A-Za-z0-9+/]+=*)$/.exec(line.trim()) ?? []
    return key === undefined ? [] : [createHash('sha256').update(key, 'base64').digest('hex')]
  })
