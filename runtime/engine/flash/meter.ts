/** Measures a write: progress events with the rate and the time left of the last seconds, and how long each part of it was waited for. */
import type { Bottleneck, Waited, WaitedFor, WriteProgress } from './rules/flash.ts'
import type { SourceShare } from '#engine/image/rules/frame-map.ts'
import { createPace } from '#kit/foundation/size.ts'
import process from 'node:process'
import { Fault } from '#kit/foundation/fault.ts'
import type { Source } from '#engine/image/sources/source.ts'

interface MeterOptions {
  readonly phase: WriteProgress['phase']
  /** What bytesDone counts up to; null where it is not known. */
  readonly totalBytes: number | null
  /** What bytesRead counts up to: the time left when the total is not known. */
  readonly sourceBytes: number | null
  /** The bytes of the image as stored that were read by now. */
  readonly bytesRead: () => number
  /** What came from each source of the image; absent: progress does not mention it. */
  readonly shares?: (() => readonly SourceShare[]) | undefined
  /** The bytes that are on the disk before anything is added; absent: 0. */
  readonly bytesDone?: number
  /** Whether bytes that are there already are counted apart; absent: no. */
  readonly isDelta?: boolean
  /** The bottleneck at each look; absent: progress does not mention it. */
  readonly bottleneck?: () => Bottleneck | null
}

/**
 * Creates a meter, which counts bytes. Its events have rates in bytes per second and the time left
 * in seconds.
 */
export function createMeter(options: MeterOptions) {
  const { phase, totalBytes, sourceBytes, bottleneck, shares } = options
  let { bytesDone = 0 } = options
  let bytesKept = options.isDelta === true ? 0 : null
  const reading = createPace()
  const doing = createPace()
  return {
    add(bytes: number) {
      bytesDone += bytes
    },
    /** As `add`, of bytes that lay there already. */
    keep(bytes: number) {
      bytesDone += bytes
      bytesKept = (bytesKept ?? 0) + bytes
    },
    /** The progress by now. */
    snapshot(note?: string): { readonly event: 'writing' } & WriteProgress {
      const bytesRead = options.bytesRead()
      const seconds = performance.now() / 1000
      // A last sector is filled up: the image's own size is what counts.
      const done = totalBytes === null ? bytesDone : Math.min(bytesDone, totalBytes)
      reading.add(seconds, bytesRead)
      doing.add(seconds, done)
      const eta = totalBytes === null ? reading.eta(sourceBytes) : doing.eta(totalBytes)
      return {
        event: 'writing',
        phase,
        ...(note === undefined ? {} : { note }),
        bytes_read: bytesRead,
        bytes_written: done,
        total_bytes: totalBytes,
        rate: Math.round(doing.rate),
        eta_seconds: eta === null ? null : Math.ceil(eta),
        ...(bytesKept === null ? {} : { bytes_kept: bytesKept }),
        ...(shares === undefined ? {} : { sources: shares() }),
        ...(bottleneck === undefined ? {} : { bottleneck: bottleneck() }),
      }
    },
  }
}

/** Seconds. */
const now = () => performance.now() / 1000

export type Waits = ReturnType<typeof createWaits>

export function createWaits() {
  const clocks = { disk: createClock(), filling: createClock(), source: createClock() }
  let since = now()
  return {
    /** The same promise's outcome; its time counts. */
    async during<Value>(kind: keyof Waited, wait: Promise<Value>): Promise<Value> {
      clocks[kind].begin()
      try {
        return await wait
      } finally {
        clocks[kind].end()
      }
    },
    /** What was waited since the last look. */
    snapshot(): WaitedFor {
      const { disk, filling, source } = clocks
      const span = now() - since
      since = now()
      return { disk: disk.take(), filling: filling.take(), source: source.take(), span }
    },
  }
}

/** Runs while at least one wait is under way. */
function createClock() {
  let waiting = 0
  let since = 0
  let spent = 0
  const settle = () => {
    if (waiting > 0) spent += now() - since
    since = now()
  }
  return {
    begin() {
      settle()
      waiting += 1
    },
    end() {
      settle()
      waiting -= 1
    },
    take() {
      settle()
      const taken = spent
      spent = 0
      return taken
    },
  }
}

// Counts the bytes of a source, and computes their digest on the way if one is expected.

export type Counted = ReturnType<typeof countSource>

/**
 * Wraps a source, so that its bytes are counted. With `sha256` the bytes must come in order: random
 * access is taken away, and they may come from several places, for their digest is compared.
 */
export function countSource(source: Source, sha256: string | null, waits?: Waits) {
  const { readAt, places } = source
  const here = places?.[0]
  const hash = sha256 === null ? null : startHash()
  let bytesRead = 0
  const timed = <Value>(wait: Promise<Value>) => waits?.during('source', wait) ?? wait
  async function countRead(readNext: NonNullable<Source['readAt']>, into: Buffer, offset: number) {
    const bytes = await timed(readNext(into, offset))
    bytesRead += bytes
    return bytes
  }
  const joined = hash === null ? undefined : source.joined
  const counted: Source = {
    ...source,
    readAt:
      readAt === null || hash !== null ? null : (into, offset) => countRead(readAt, into, offset),
    async *stream(from) {
      const chunks = joined?.(from) ?? source.stream(from)
      for await (const bytes of timeEach(chunks, timed)) {
        hash?.update(bytes)
        bytesRead += bytes.length
        if (joined === undefined) here?.taken(bytes.length)
        yield bytes
      }
    },
    ...(places === undefined
      ? {}
      : {
          places: places.map((place) => ({
            ...place,
            sizeBytes: source.sizeBytes,
            readAt: (into: Buffer, offset: number) => countRead(place.readAt, into, offset),
          })),
        }),
  }
  return {
    source: counted,
    bytesRead: () => bytesRead,
    /** Throws a Fault `digest-mismatch` unless the bytes that went by are the ones asked for. */
    checkDigest() {
      if (hash !== null) compareDigest(source, hash.digest('hex'), sha256)
    },
  }
}

/**
 * Throws a Fault `digest-mismatch` where the source has another digest than the one asked for;
 * null: not known.
 */
export function compareDigest({ name }: Source, found: string | null, sha256: string | null): void {
  if (sha256 === null || found === null || found === sha256) return
  const words = `its sha256 is ${found}, not ${sha256}`
  throw new Fault('digest-mismatch', `${name} is not the image asked for: ${words}`, {
    hint: 'Download it again, or correct the checksum.',
  })
}

// Loaded only for an image whose digest is known: that takes milliseconds.
const startHash = () => process.getBuiltinModule('node:crypto').createHash('sha256')

async function* timeEach(
  chunks: AsyncIterable<Buffer>,
  timed: <Value>(wait: Promise<Value>) => Promise<Value>,
): AsyncGenerator<Buffer> {
  const each = chunks[Symbol.asyncIterator]()
  try {
    for (let next = await timed(each.next()); next.done !== true; next = await timed(each.next())) {
      yield next.value
    }
  } finally {
    await each.return?.()
  }
}

/**
 * Opens the first of the source's places whose bytes have the digest, with the patience of an only
 * source: nothing compares what is read out of order, so nothing of it may come from elsewhere later.
 * `sha256` null: it is not known, and another place may have another image. Rejects with
 * what the last place failed for, a Fault `digest-mismatch` where it is another image.
 */
export async function openUnordered(
  source: Source,
  sha256: string | null,
  signal: AbortSignal,
): Promise<Source> {
  const openings = source.alone ?? [async () => source]
  const most = sha256 === null ? 1 : openings.length
  for (const [at, open] of openings.entries()) {
    try {
      const place = await open()
      if (sha256 !== null) await checkDigest(place, sha256, signal)
      return place
    } catch (thrown) {
      if (signal.aborted || at >= most - 1) throw thrown
    }
  }
  return source
}

async function checkDigest(source: Source, sha256: string, signal: AbortSignal) {
  const counted = countSource(source, sha256)
  try {
    for await (const _ of counted.source.stream()) signal.throwIfAborted()
    counted.checkDigest()
  } catch (thrown) {
    for (const place of source.places ?? []) place.refused(thrown)
    throw thrown
  }
}
