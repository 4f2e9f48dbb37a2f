/** The one error class, with a code from a closed list, a message and a hint; errors of the system in words. */

/** Every surface maps these to its own terms (exit codes, HTTP statuses) with a checked table. */
export const FAULT_CODES = [
  'misuse', // arguments that make no sense
  'input-missing', // a named file or URL is not there
  'input-invalid', // a file is there, but is invalid
  'plan-refused', // validation refused it; nothing was written
  'source-broken', // reading the image failed, or it changed while it was read
  'image-broken', // the image's bytes are damaged, cut off or followed by garbage
  'digest-mismatch', // the image is not the one that was asked for
  'write-failed', // the disk did not take the bytes
  'verify-failed', // the disk does not hold what was written
  'target-raced', // the disk changed between the check and the first byte
  'provision-failed', // the step after the write failed
  'root-required',
  'tool-missing',
  'tool-failed', // an external tool ended with an error
  'cancelled',
  'not-found', // what was asked for is not here
  'login-required',
  'forbidden', // logged in, but not allowed
  'conflict', // it is in use, or being done already
  'stale', // it has changed since the caller read it
  'too-large',
  'busy', // too much at once; try again later
  'no-leader', // no server may decide at the moment; try again
  'storage-full',
  'upstream-failed', // another server did not answer, or not as expected
] as const

export type FaultCode = (typeof FAULT_CODES)[number]

export interface FaultOptions {
  /** How to fix it, as one sentence for the person who reads it. */
  readonly hint?: string | undefined
  readonly cause?: unknown
  /** Where a name stands for several things: the names of each. */
  readonly alternatives?: readonly string[]
}

export class Fault extends Error {
  override readonly name = 'Fault'
  readonly code: FaultCode
  readonly hint: string | undefined
  readonly alternatives: readonly string[]

  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.hint = options.hint
    this.alternatives = options.alternatives ?? []
  }
}

/** Errors of the system become a clause for people. */
export function renderError(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const known = thrown instanceof Fault ? null : describeSystemError(thrown)
  return known?.message ?? (thrown.message || thrown.name)
}

/** Returns how to fix what was thrown, as one sentence; undefined where that is not known. */
export const hintOf = (thrown: unknown): string | undefined =>
  thrown instanceof Fault
    ? (thrown.hint ?? describeSystemError(thrown.cause)?.hint)
    : describeSystemError(thrown)?.hint

/** What Node says besides the code; a field that is absent is unknown. */
interface SystemFacts {
  readonly code: string
  readonly syscall: string
  readonly path: string | null
  readonly hostname: string | null
  readonly address: string | null
  readonly port: number | null
}

interface SystemText {
  /** A clause without a full stop. */
  readonly message: string
  /** How to fix it, as a sentence. */
  readonly hint?: string
}

/** Null where it is none, or one for which there are no words. */
export function describeSystemError(thrown: unknown): SystemText | null {
  const facts = findFacts(thrown)
  if (facts === null || !Object.hasOwn(TEXTS, facts.code)) return null
  return TEXTS[facts.code]?.(facts) ?? null
}

const FREE = 'Free space there, then try again.'
const RIGHTS = 'Run it as root or as the owner, or change the permissions.'
const DISK = '"dmesg" shows what the kernel saw. Check the cable; the disk may be failing.'
const CABLE = 'Check the address, the network cable and the routes of this machine.'

const fileOf = ({ path }: SystemFacts, unnamed: string) => path ?? unnamed

const called = (name: string | null) => (name === null ? '' : ` ${name}`)
const aboutFile = ({ path }: Pick<SystemFacts, 'path'>) => (path === null ? '' : `: ${path}`)

function peerOf({ hostname, address, port }: SystemFacts): string {
  const host = hostname ?? address
  if (host === null) return 'the server'
  const name = host.includes(':') ? `[${host}]` : host
  return port === null ? name : `${name}:${port}`
}

const portOf = ({ address, port }: SystemFacts) =>
  port === null ? `the address${called(address)}` : `port ${port} on ${address ?? 'this machine'}`

const TEXTS: Readonly<Record<string, (facts: SystemFacts) => SystemText>> = {
  EADDRINUSE: (facts) => ({
    message: `${portOf(facts)} is already in use by another program`,
    hint: `Stop that program${facts.port === null ? '' : ` ("ss -ltnp sport = :${facts.port}" names it)`}, or choose another port.`,
  }),
  EADDRNOTAVAIL: ({ address }) => ({
    message: `this machine has no address ${address ?? 'like that'}`,
    hint: '"ip address" lists its addresses.',
  }),
  EACCES: (facts) =>
    facts.port === null
      ? { message: `permission denied: ${fileOf(facts, 'the file')}`, hint: RIGHTS }
      : {
          message: `${portOf(facts)} may only be used by root`,
          hint: 'Choose a port from 1024 on, or run it as root.',
        },
  EPERM: (facts) => ({
    message: `not permitted: ${fileOf(facts, 'this operation')}`,
    hint: 'Run it as root.',
  }),
  ENOENT: (facts) =>
    facts.syscall.startsWith('spawn')
      ? {
          message: `the program ${fileOf(facts, 'that is needed')} is not installed`,
          hint: 'Install it, or check PATH.',
        }
      : { message: `${fileOf(facts, 'the file')} does not exist` },
  ENOTDIR: (facts) => ({
    message: `${fileOf(facts, 'the path')} does not exist: part of the path is not a folder`,
  }),
  EISDIR: (facts) => ({ message: `${fileOf(facts, 'this')} is a folder, not a file` }),
  EEXIST: (facts) => ({ message: `${fileOf(facts, 'the file')} exists already` }),
  ENOTEMPTY: (facts) => ({ message: `${fileOf(facts, 'the folder')} is not empty` }),
  ELOOP: (facts) => ({ message: `${fileOf(facts, 'the path')} is a link that leads to itself` }),
  ENAMETOOLONG: (facts) => ({ message: `the file name is too long${aboutFile(facts)}` }),
  ENOSPC: ({ path }) => ({
    message: path === null ? 'no space left on the disk' : `no space left on the disk of ${path}`,
    hint: FREE,
  }),
  EDQUOT: ({ path }) => ({
    message: `this user's disk quota is used up${aboutFile({ path })}`,
    hint: FREE,
  }),
  EFBIG: (facts) => ({ message: `${fileOf(facts, 'the file')} is too large for its file system` }),
  EROFS: (facts) => ({
    message: `${fileOf(facts, 'the file')} is on a read-only file system`,
    hint: 'Choose another place, or mount it writable.',
  }),
  EIO: ({ path }) => ({
    message: `input/output error${path === null ? ' on the disk' : ` on ${path}`}`,
    hint: DISK,
  }),
  ENXIO: (facts) => ({ message: `${fileOf(facts, 'the device')} is gone`, hint: DISK }),
  ENODEV: (facts) => ({ message: `${fileOf(facts, 'the device')} is gone`, hint: DISK }),
  EBUSY: (facts) => ({
    message: `${fileOf(facts, 'the device')} is in use by another program`,
    hint: 'Close that program or unmount it, then try again.',
  }),
  ETXTBSY: (facts) => ({
    message: `${fileOf(facts, 'the program')} is running and cannot be replaced`,
  }),
  EMFILE: () => ({ message: 'too many open files', hint: 'Raise the limit ("ulimit -n").' }),
  ENFILE: () => ({ message: 'too many open files on this machine' }),
  ENOMEM: () => ({ message: 'not enough memory', hint: 'Close other programs, or add memory.' }),
  ECONNREFUSED: (facts) => ({
    message: `nothing listens on ${peerOf(facts)}`,
    hint: 'Start the server there, or check its address and port.',
  }),
  ECONNRESET: (facts) => ({ message: `${peerOf(facts)} closed the connection` }),
  ETIMEDOUT: (facts) => ({
    message: `${peerOf(facts)} does not answer`,
    hint: 'Check that it is running and that no firewall is in between.',
  }),
  EHOSTUNREACH: (facts) => ({ message: `${peerOf(facts)} cannot be reached`, hint: CABLE }),
  ENETUNREACH: (facts) => ({ message: `${peerOf(facts)} cannot be reached`, hint: CABLE }),
  ENETDOWN: () => ({ message: 'the network is down', hint: CABLE }),
  ENOTFOUND: ({ hostname }) => ({
    message: `the host name${called(hostname)} does not exist`,
    hint: 'Check its spelling and the name server of this machine.',
  }),
  EAI_AGAIN: ({ hostname }) => ({
    message: `the host name${called(hostname)} cannot be looked up`,
    hint: 'Check the name server of this machine ("/etc/resolv.conf").',
  }),
}

/** A wrapper that says nothing itself: `fetch failed`, several addresses that were tried. */
const EMPTY = new Set(['', 'fetch failed'])

function findFacts(thrown: unknown): SystemFacts | null {
  if (!(thrown instanceof Error)) return null
  const inner = thrown instanceof AggregateError ? thrown.errors[0] : thrown.cause
  if (EMPTY.has(thrown.message) && inner !== undefined) return findFacts(inner)
  // The system's errors alone have a number; ours with such a code have words of their own.
  if (!('errno' in thrown)) return null
  const code = textIn(thrown, 'code')
  return code === null
    ? null
    : {
        code,
        syscall: textIn(thrown, 'syscall') ?? '',
        path: textIn(thrown, 'path'),
        hostname: textIn(thrown, 'hostname'),
        address: textIn(thrown, 'address'),
        port: 'port' in thrown && typeof thrown.port === 'number' ? thrown.port : null,
      }
}

function textIn(thrown: Error, key: string): string | null {
  const value: unknown = Object.entries(thrown).find(([name]) => name === key)?.[1]
  return typeof value === 'string' && value !== '' ? value : null
}

/** Null for any error but the system's, and for a Fault, whose code is ours. */
export const systemCodeOf = (thrown: unknown): string | null =>
  thrown instanceof Error &&
  !(thrown instanceof Fault) &&
  'code' in thrown &&
  typeof thrown.code === 'string'
    ? thrown.code
    : null

const isOneOf = (codes: readonly string[]) => (thrown: unknown) =>
  codes.includes(systemCodeOf(thrown) ?? '')

/** Nothing has this name, or what stands before it in the path is not a folder. */
export const isMissing = isOneOf(['ENOENT', 'ENOTDIR'])

/** For `catch`: the value where nothing has this name; anything else is thrown again. */
export const ifMissing =
  <Value>(value: Value) =>
  (thrown: unknown): Value => {
    if (isMissing(thrown)) return value
    throw thrown
  }

/** The file system, or its user's share of it, has no space left, or the file would be too large for it. */
export const isFull = isOneOf(['ENOSPC', 'EDQUOT', 'EFBIG'])
