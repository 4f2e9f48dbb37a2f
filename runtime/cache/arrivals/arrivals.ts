/** Image files that clients send in parts: how they are received, verified and, once nobody continues them, removed. */
import { randomBytes } from 'node:crypto'
import type { Storage } from 'unstorage'
import type { ZodType } from 'zod'
import type { IndexChecks } from '#engine/image/frame/index-checks.ts'
import { Fault, renderError, type FaultCode } from '#kit/foundation/fault.ts'
import {
  createPartialFile,
  openPartialFiles,
  type PartialFile,
  type PartialFiles,
  type PartialRecord,
} from '#kit/host/partial-files.ts'
import { selectRecords } from '#kit/host/records.ts'
import { pause } from '#kit/host/watch.ts'
import type { BlobRoom } from '#cache/blobs/blob-room.ts'
import { describeFull } from '#cache/blobs/blobs.ts'
import { createSilences, type Silences } from '#cache/blobs/silences.ts'
import type { FileDigests } from '#cache/blobs/file-stamps.ts'

export interface ArrivalDependencies {
  readonly data: string
  readonly records: Storage
  readonly room: Pick<BlobRoom, 'reserve' | 'release' | 'space'>
  /** The folder of complete files, into which people drop images, too. */
  readonly dropped: { adopt(path: string, name: string, digests: FileDigests): Promise<void> }
  readonly indexes: IndexChecks
  isTaken(name: string): boolean
  now(): Date
  /** Milliseconds of a monotonic clock. */
  elapsed(): number
  readonly log: { info(message: string): void; warn(message: string): void }
}

interface ArrivalRecord extends PartialRecord {
  readonly name: string
  /** ISO time of the last byte. */
  readonly touchedAt: string
}

export interface Arrival<Kept extends ArrivalRecord = ArrivalRecord> extends PartialFile<Kept> {
  isBusy: boolean
  /** Its result is what went wrong, or null. */
  check: Promise<unknown> | null
  /** Why nothing was kept of it, for a client that asks again. */
  failure: Fault | null
}

interface ArrivalKind<Kept extends ArrivalRecord> {
  /** The word for it in records and messages; with an `s`, the name of its folder. */
  readonly word: 'upload' | 'capture'
  readonly schema: ZodType<Kept>
  readonly unknown: string
  /** Whether it is hashed as it comes; else only when it is verified. */
  readonly isHashed: boolean
  /** `kept`: it is not continued any more, but stays. */
  stateOf(arrival: Arrival<Kept>): 'unfinished' | 'kept' | 'over'
  sweepOthers?(): Promise<void>
}

interface ArrivalPart<Kept> {
  readonly from: number
  /** Throws for bytes that may not be there. */
  admit(end: number): void
  readonly news: Partial<Kept>
  /** Bytes; absent: room was reserved before. */
  readonly reserved?: number
}

export const MAX_ARRIVALS = 32
const ABANDONED_MS = 24 * 3_600_000
const SWEEP_MS = 600_000

export interface Arrivals<Kept extends ArrivalRecord = ArrivalRecord>
  extends ArrivalDependencies, ArrivalKind<Kept>, AsyncDisposable {
  readonly files: PartialFiles<Kept>
  readonly silences: Silences
  /** By name, the oldest first. */
  readonly all: Map<string, Arrival<Kept>>
  readonly signal: AbortSignal
  /** Removes those that nobody continued for a day; this runs every few minutes as well. */
  sweep(): Promise<void>
}

/** Includes those of the process before, and removes files that belong to none. */
export async function openArrivals<Kept extends ArrivalRecord>(
  parts: ArrivalDependencies,
  kind: ArrivalKind<Kept>,
) {
  const { word } = kind
  const records = selectRecords(parts.records, word, kind.schema)
  const folder = `${parts.data}/${word}s`
  const files = await openPartialFiles({ folder, modes: PRIVATE, records })
  const silences = await createSilences(parts.records, `quiet-${word}s`, parts.elapsed)
  const closing = new AbortController()
  const { signal } = closing
  const all = new Map<string, Arrival<Kept>>()
  for (const file of await files.list()) all.set(file.name, toArrival(file))
  await files.sweep((id) => all.has(id))
  const timer = setInterval(() => {
    arrivals.sweep().catch((thrown: unknown) => parts.log.warn(`${word}s: ${renderError(thrown)}`))
  }, SWEEP_MS).unref()
  const arrivals: Arrivals<Kept> = {
    ...parts,
    ...kind,
    files,
    silences,
    all,
    signal,
    async sweep() {
      await kind.sweepOthers?.()
      await removeAbandoned(arrivals)
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Fault('cancelled', 'the cache is stopping'))
      clearInterval(timer)
      await Promise.all([...all.values()].map(({ check }) => check))
    },
  }
  return arrivals
}

const PRIVATE = { folder: 0o700, file: 0o600 } as const

const toArrival = <Kept extends ArrivalRecord>(file: PartialFile<Kept>): Arrival<Kept> => ({
  ...file,
  isBusy: false,
  check: null,
  failure: null,
})

/** Throws a Fault `not-found`. */
export function findArrival<Kept extends ArrivalRecord>(
  { all, unknown }: Arrivals<Kept>,
  id: string,
): Arrival<Kept> {
  const arrival = all.get(id)
  if (arrival === undefined) throw new Fault('not-found', unknown)
  return arrival
}

export async function beginArrival<Kept extends ArrivalRecord>(
  arrivals: Arrivals<Kept>,
  record: Kept,
  store: (arrival: Arrival<Kept>) => Promise<void>,
): Promise<Arrival<Kept>> {
  const id = randomBytes(16).toString('hex')
  const arrival = toArrival(createPartialFile(id, record))
  // Before anything is awaited, so that parallel requests do not exceed the limits.
  arrivals.all.set(id, arrival)
  arrivals.silences.end(id)
  try {
    await store(arrival)
    return arrival
  } catch (thrown) {
    await removeArrival(arrivals, arrival)
    throw thrown
  }
}

export function touch({ silences, now }: Arrivals, { name }: Arrival) {
  silences.end(name)
  return { touchedAt: now().toISOString() }
}

/** Continues at the offset; what came before a failure stays. */
export async function receivePart<Kept extends ArrivalRecord>(
  arrivals: Arrivals<Kept>,
  arrival: Arrival<Kept>,
  bytes: AsyncIterable<Uint8Array>,
  { from, admit, news, reserved }: ArrivalPart<Kept>,
): Promise<void> {
  const { files, room, signal, isHashed } = arrivals
  const { removal } = arrival
  arrival.isBusy = true
  try {
    if (reserved !== undefined) {
      await room.reserve(arrival.name, () => Math.max(0, from + reserved - arrival.offset))
    }
    await using writer = await files.open(arrival)
    await writer.start(from)
    if (isHashed) await writer.hash(signal)
    try {
      await writer.receive(bytes, { signal, admit })
    } finally {
      if (arrival.offset > from && !removal.signal.aborted) {
        await writer.keep({ ...news, ...touch(arrivals, arrival) })
      }
    }
    removal.signal.throwIfAborted()
  } catch (thrown) {
    const { freeBytes } = await room.space()
    throw describeFull(thrown, freeBytes) ?? thrown
  } finally {
    if (reserved !== undefined) room.release(arrival.name)
    arrival.isBusy = false
  }
}

/** The upload is wrong, rather than our disk in trouble. */
const WRONG: ReadonlySet<FaultCode> = new Set(['digest-mismatch', 'image-broken', 'plan-refused'])

/** Throws what went wrong within that time. */
export async function awaitCheck({ check }: Arrival, waitMs: number): Promise<void> {
  const trouble = await Promise.race([check, pause(waitMs).then(() => null)])
  if (trouble !== null) throw trouble
}

/** `work` throws where the bytes are wrong; `forget` then removes them. */
export function startCheck(
  { signal, log, word }: Arrivals,
  arrival: Arrival,
  work: (signal: AbortSignal) => Promise<void>,
  forget: () => Promise<void>,
): void {
  /** Returned, not thrown: perhaps nobody awaits it. */
  async function check(): Promise<unknown> {
    try {
      await work(AbortSignal.any([signal, arrival.removal.signal]))
      return null
    } catch (thrown) {
      if (arrival.removal.signal.aborted) return thrown
      log.warn(
        `the ${word} of ${arrival.record.name} could not be finished: ${renderError(thrown)}`,
      )
      if (thrown instanceof Fault && WRONG.has(thrown.code)) {
        arrival.failure = thrown
        await forget().catch(() => undefined) // The next sweep repeats it.
      }
      return thrown
    } finally {
      arrival.check = null
    }
  }
  arrival.check = check()
}

export async function removeArrival(arrivals: Arrivals, arrival: Arrival): Promise<void> {
  arrivals.all.delete(arrival.name)
  arrival.removal.abort(new Fault('not-found', `the ${arrivals.word} was removed`))
  await forgetArrival(arrivals, arrival)
}

/** Removes bytes and record; the arrival stays listed. */
export async function forgetArrival({ room, files }: Arrivals, { name }: Arrival): Promise<void> {
  room.release(name)
  await files.remove(name)
}

async function removeAbandoned(arrivals: Arrivals): Promise<void> {
  const { all, silences, log, word } = arrivals
  for (const arrival of all.values()) {
    const state = arrivals.stateOf(arrival)
    const isAbandoned = silences.read(arrival.name) > ABANDONED_MS
    if (state === 'kept' || arrival.isBusy || arrival.check !== null || !isAbandoned) continue
    await removeArrival(arrivals, arrival)
    if (state === 'over') continue
    const { name } = arrival.record
    log.info(`removed the unfinished ${word} of ${name}: nobody continued it for a day`)
  }
  await silences.save([...all.keys()])
}
