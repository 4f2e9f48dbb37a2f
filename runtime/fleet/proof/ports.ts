/** Looks at one port of a machine: whether it is open, and which host keys its SSH has. */
import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import type { Shell } from '../../kit/host/shell.ts'
import type { PortSeen } from './rules/port.ts'

/** Milliseconds for a connection, and for the first words of SSH. */
const CONNECT_MS = 2000
const WORDS_MS = 2000
const KEYS_MS = 10_000
const MAX_WORDS = 255

/** Resolves to null where nobody can tell: no answer at all, or an error that is not a refusal. */
export async function readPort(
  { run, has }: Pick<Shell, 'run' | 'has'>,
  host: string,
  port: number,
): Promise<PortSeen | null> {
  const words = await readWords(host, port)
  if (words === null) return null
  if (words === 'refused') return { kind: 'closed', keys: [] }
  if (!words.text.startsWith('SSH-')) return { kind: 'open', keys: [] }
  if (!(await has('ssh-keyscan'))) return { kind: 'ssh', keys: [] }
  const argv = ['ssh-keyscan', '-T', '5', '-p', String(port), host]
  const { stdout } = await run(argv, { timeout: KEYS_MS })
  return { kind: 'ssh', keys: parseKeys(stdout) }
}

/** Each line is the host, the kind of the key, and the key in base64. */
const parseKeys = (text: string): readonly string[] =>
  text.split('\n').flatMap((line) => {
    const [, key] = /^[^#\s]\S* (?:ssh|ecdsa)-\S+ ([A-Za-z0-9+/]+=*)$/.exec(line.trim()) ?? []
    return key === undefined ? [] : [createHash('sha256').update(key, 'base64').digest('hex')]
  })

/** The first words that it says by itself, empty where it says none in time. */
function readWords(
  host: string,
  port: number,
): Promise<{ readonly text: string } | 'refused' | null> {
  const { promise, resolve } = Promise.withResolvers<{ text: string } | 'refused' | null>()
  const socket = connect({ host, port })
  let isOpen = false
  socket.setTimeout(CONNECT_MS, () => resolve(isOpen ? { text: '' } : null))
  socket.on('connect', () => {
    isOpen = true
    socket.setTimeout(WORDS_MS)
  })
  socket.on('data', (bytes: Buffer) => resolve({ text: bytes.toString('latin1', 0, MAX_WORDS) }))
  socket.on('end', () => resolve({ text: '' }))
  socket.on('error', (error: NodeJS.ErrnoException) => {
    resolve(isOpen ? { text: '' } : error.code === 'ECONNREFUSED' ? 'refused' : null)
  })
  return promise.finally(() => socket.destroy())
}
