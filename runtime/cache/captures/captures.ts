/** Receives captured images in parts from machines, verifies them, and keeps them until an operator accepts or rejects them. */
import { createHash, randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { z } from 'zod'
import {
  CaptureEndSchema,
  CaptureNameSchema,
  CaptureSourceSchema,
  MAX_CAPTURE_PART_BYTES,
  maxBytesOf,
  type CaptureEnd,
  type CaptureSource,
} from '#engine/capture/rules/order.ts'
import { Fault, isFull, renderError } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { hashStart } from '#kit/host/partial-files.ts'
import {
  awaitCheck,
  beginArrival,
  findArrival,
  forgetArrival,
  MAX_ARRIVALS,
  openArrivals,
  receivePart,
  removeArrival,
  startCheck,
  touch,
  type Arrival,
  type ArrivalDependencies,
  type Arrivals,
} from '#cache/arrivals/arrivals.ts'
import type { Storage } from 'unstorage'
import { selectRecords } from '#kit/host/records.ts'

const CaptureRecordSchema = z.object({
  name: CaptureNameSchema,
  source: CaptureSourceSchema,
  /** From its token: the order, when it was issued, and the SHA-256 of its text. */
  order: z.string(),
  issuedAt: z.number(),
  tokenDigest: z.string(),
  /** Bytes that are certainly on the disk. */
  durableBytes: z.int().min(0),
  createdAt: z.string(),
  touchedAt: z.string(),
  /** Being verified; null: nothing is. */
  announced: CaptureEndSchema.nullable().catch(null),
  /** Null: not verified yet. */
  end: CaptureEndSchema.nullable(),
})

type CaptureRecord = Readonly<z.infer<typeof CaptureRecordSchema>>
type CaptureState = Arrival<CaptureRecord>

export interface Capture extends Pick<
  CaptureRecord,
  'name' | 'source' | 'createdAt' | 'touchedAt' | 'end'
> {
  readonly id: string
  readonly status: 'receiving' | 'verifying' | 'waiting'
  readonly offset: number
}

/** `writing`: another request is sending a part. */
export type AppendRefusal =
  | { readonly why: 'offset'; readonly offset: number }
  | { readonly why: 'writing' }

/** `length` null: unknown. */
interface CapturePart {
  readonly offset: number
  readonly length: number | null
}

interface CaptureTicket {
  readonly token: string
  readonly order: string
  readonly issuedAt: number
}

interface CapturesDependencies extends ArrivalDependencies {
  /** Also where the image was removed. */
  isBound(name: string): boolean
}

interface CapturesContext extends CapturesDependencies {
  readonly arrivals: Arrivals<CaptureRecord>
  readonly used: UsedOrders
}

export type Captures = Awaited<ReturnType<typeof createCaptures>>

export async function createCaptures(parts: CapturesDependencies) {
  const used = await createUsedOrders(parts.records, parts.now)
  const arrivals = await openArrivals(parts, {
    word: 'capture',
    schema: CaptureRecordSchema,
    unknown: 'there is no such capture',
    isHashed: false,
    stateOf: ({ record }) => (record.end === null ? 'unfinished' : 'kept'),
    sweepOthers: used.sweep,
  })
  const context = { ...parts, arrivals, used }
  for (const state of arrivals.all.values()) await restore(context, state)
  await arrivals.sweep()
  for (const state of arrivals.all.values()) {
    const { announced, end } = state.record
    if (end === null && announced !== null) verify(context, state, announced)
  }

  return {
    /** The oldest first. */
    list: (): readonly Capture[] =>
      [...arrivals.all.values()].filter(({ failure }) => failure === null).map(toCapture),
    /** Throws a Fault `not-found` where it was accepted, was removed, or never was. */
    find: (id: string): Capture => toCapture(findArrival(arrivals, id)),
    isOwner: (id: string, token: string): boolean =>
      arrivals.all.get(id)?.record.tokenDigest === digestOf(token),
    makeOrder: () => `hand-${randomBytes(12).toString('base64url')}`,
    /** Returns the earlier one where this token has begun one. */
    begin: (request: Pick<Capture, 'name' | 'source'>, ticket: CaptureTicket) =>
      begin(context, request, ticket),
    /** What came before a failure stays. */
    append: (id: string, part: CapturePart, bytes: AsyncIterable<Uint8Array>) =>
      append(context, id, part, bytes),
    /** Waits at most `waitMs`. Throws a Fault where the image is not what was announced. */
    finish: (id: string, end: CaptureEnd, waitMs: number) => finish(context, id, end, waitMs),
    isBound: parts.isBound,
    accept: (id: string, name: string | null) => acceptCapture(context, id, name),
    async reject(id: string) {
      const state = findArrival(arrivals, id)
      if (state.record.end !== null && state.isBusy) throw moving(state)
      await close(context, state)
    },
    sweep: arrivals.sweep,
    [Symbol.asyncDispose]: arrivals[Symbol.asyncDispose],
  }
}

const toCapture = ({ name: id, record, check }: CaptureState): Capture => {
  const { name, source, durableBytes: offset, createdAt, touchedAt, end } = record
  const status = end !== null ? 'waiting' : check !== null ? 'verifying' : 'receiving'
  return { id, name, source, status, offset, createdAt, touchedAt, end }
}

async function restore(context: CapturesContext, state: CaptureState): Promise<void> {
  const { arrivals, log } = context
  const { name, end, durableBytes } = state.record
  const file = await stat(arrivals.files.pathOf(state.name)).catch(() => null)
  // The restart came while the file was moved into the folder.
  if (end !== null && (file === null || file.nlink > 1)) await close(context, state)
  else if (state.offset < durableBytes) {
    log.warn(`the unfinished capture of ${name} is damaged: it was removed`)
    await removeArrival(arrivals, state)
  }
}

async function begin(
  context: CapturesContext,
  { name, source }: Pick<Capture, 'name' | 'source'>,
  { token, order, issuedAt }: CaptureTicket,
): Promise<{ readonly capture: Capture; readonly isNew: boolean }> {
  const { arrivals, used, now } = context
  const same = [...arrivals.all.values()].find(({ record }) => record.order === order)
  if (used.has(order) || (same !== undefined && isUsedUp(same, issuedAt))) throw usedUp()
  if (same?.record.issuedAt === issuedAt) return { capture: toCapture(same), isNew: false }
  checkName(context, name)
  const others = [...arrivals.all.values()].filter(
    (state) => state !== same && state.failure === null,
  )
  if (others.length >= MAX_ARRIVALS) throw tooMany()
  const createdAt = now().toISOString()
  const kept = { ...NOTHING_YET, createdAt, touchedAt: createdAt }
  const record = { name, source, order, issuedAt, tokenDigest: digestOf(token), ...kept }
  const begun = await beginArrival(arrivals, record, async (state) => {
    // The machine has started over.
    if (same !== undefined) await removeArrival(arrivals, same)
    // Only a check: each part reserves its own.
    await arrivals.room.reserve(state.name, () => MAX_CAPTURE_PART_BYTES)
    arrivals.room.release(state.name)
    await using writer = await arrivals.files.open(state)
    await writer.keep({})
  })
  return { capture: toCapture(begun), isNew: true }
}

const NOTHING_YET = { durableBytes: 0, announced: null, end: null } as const

const isUsedUp = ({ record, check, failure }: CaptureState, issuedAt: number): boolean =>
  record.issuedAt > issuedAt || record.end !== null || check !== null || failure !== null

async function append(
  { arrivals }: CapturesContext,
  id: string,
  part: CapturePart,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Result<Capture, AppendRefusal>> {
  const state = findArrival(arrivals, id)
  const refusal = findRefusal(state, part)
  if (refusal !== null) return refuse(refusal)
  const { source } = state.record
  const admit = (end: number) => {
    if (end > maxBytesOf(source)) throw tooLong(source)
  }
  const reserved = part.length ?? MAX_CAPTURE_PART_BYTES
  await receivePart(arrivals, state, bytes, {
    from: part.offset,
    admit,
    reserved,
    news: { announced: null },
  })
  return accept(toCapture(state))
}

function findRefusal(state: CaptureState, { offset, length }: CapturePart): AppendRefusal | null {
  const { durableBytes, end, source } = state.record
  if (end !== null || state.check !== null || state.failure !== null) throw complete()
  if (state.isBusy) return { why: 'writing' }
  if (offset !== durableBytes) return { why: 'offset', offset: durableBytes }
  if (offset + (length ?? 0) > maxBytesOf(source)) throw tooLong(source)
  return null
}

async function finish(
  context: CapturesContext,
  id: string,
  end: CaptureEnd,
  waitMs: number,
): Promise<Result<Capture, AppendRefusal>> {
  const { arrivals } = context
  const state = findArrival(arrivals, id)
  if (state.failure !== null) throw state.failure
  const refusal = announceEnd(context, state, end)
  if (refusal !== null) return refuse(refusal)
  await awaitCheck(state, waitMs)
  return accept(toCapture(state))
}

/** Throws a Fault for another end than before. */
function announceEnd(
  context: CapturesContext,
  state: CaptureState,
  end: CaptureEnd,
): AppendRefusal | null {
  const announced = state.record.end ?? (state.check === null ? null : state.record.announced)
  if (announced !== null) {
    if (isSameEnd(announced, end)) return null
    throw complete()
  }
  const refusal = findRefusal(state, atEnd(end))
  if (refusal === null) verify(context, state, end)
  return refusal
}

/** What refuses a part behind the last byte refuses the end as well. */
const atEnd = ({ bytes }: CaptureEnd): CapturePart => ({ offset: bytes, length: 0 })

const isSameEnd = (a: CaptureEnd, b: CaptureEnd): boolean =>
  a.bytes === b.bytes && a.sha256 === b.sha256 && a.index_sha256 === b.index_sha256

/** Stored at once, so that another end is refused from now on. */
function verify(context: CapturesContext, state: CaptureState, end: CaptureEnd): void {
  const { arrivals, log } = context
  state.record = { ...state.record, announced: end }
  async function work(signal: AbortSignal): Promise<void> {
    const { name } = state.record
    await arrivals.files.save(state, touch(arrivals, state))
    await compare(context, state, end, signal)
    await arrivals.files.save(state, { announced: null, end, ...touch(arrivals, state) })
    log.info(`${name} was captured (${end.bytes} bytes, SHA-256 ${end.sha256}): it waits`)
  }
  const forget = () => useUp(context, state, () => forgetArrival(arrivals, state))
  startCheck(arrivals, state, work, forget)
}

/** Reads it back, then lets everybody read. A Fault `digest-mismatch` or `image-broken`. */
async function compare(
  { arrivals, indexes }: CapturesContext,
  state: CaptureState,
  { bytes, sha256, index_sha256: indexSha256 }: CaptureEnd,
  signal: AbortSignal,
): Promise<void> {
  await using writer = await arrivals.files.open(state)
  const { handle } = writer
  const { size: sizeBytes } = await handle.stat()
  if (sizeBytes !== bytes) throw differs(`${sizeBytes} bytes`, `${bytes} bytes`)
  const found = (await hashStart(handle, bytes, signal)).digest('hex')
  if (found !== sha256) throw differs(`the SHA-256 ${found}`, sha256)
  const { name } = state.record
  const index = await indexes.check(handle, { name, sizeBytes, signal })
  if (index !== indexSha256) {
    throw differs(index === null ? 'no frame index' : `an index with SHA-256 ${index}`, indexSha256)
  }
  await handle.chmod(0o644)
  await handle.sync()
}

async function acceptCapture(context: CapturesContext, id: string, given: string | null) {
  const { arrivals, dropped } = context
  const state = findArrival(arrivals, id)
  const { end } = state.record
  const name = given ?? state.record.name
  if (end === null) throw unfinished(state)
  if (state.isBusy) throw moving(state)
  checkName(context, name)
  state.isBusy = true
  try {
    await dropped.adopt(arrivals.files.pathOf(state.name), name, {
      sha256: end.sha256,
      checkedIndex: end.index_sha256,
    })
    await close(context, state)
    return { name, end, source: state.record.source }
  } finally {
    state.isBusy = false
  }
}

const close = (context: CapturesContext, state: CaptureState): Promise<void> =>
  useUp(context, state, () => removeArrival(context.arrivals, state))

/** On a full disk the order's record takes the space of what is removed. */
async function useUp(
  { used, log }: CapturesContext,
  { record: { name, order } }: CaptureState,
  remove: () => Promise<void>,
): Promise<void> {
  const isRecorded = await used.add(order).then(
    () => true,
    (thrown: unknown) => {
      if (!isFull(thrown)) throw thrown
      return false
    },
  )
  await remove()
  if (isRecorded) return
  // Logged only: the decision has happened, and the order is known until a restart.
  await used.add(order).catch((thrown: unknown) => {
    log.warn(`could not record that the order of ${name} was carried out: ${renderError(thrown)}`)
  })
}

const differs = (found: string, expected: string) =>
  new Fault('digest-mismatch', `the received file has ${found}, but ${expected} was announced`, {
    hint: 'Nothing was kept. Capture the disk again.',
  })

const digestOf = (token: string) => createHash('sha256').update(token).digest('hex')

const complete = () => new Fault('conflict', 'the capture is complete already')
const tooLong = ({ disk }: CaptureSource) =>
  new Fault('too-large', `an image of a disk of ${disk.size_bytes} bytes cannot be that large`)
const usedUp = () =>
  new Fault('login-required', 'the upload token was used already: it is good for one capture')
/** Otherwise machines would be flashed with the capture without a question. */
function checkName({ isTaken, isBound }: CapturesContext, name: string): void {
  if (isTaken(name)) throw taken(name)
  if (isBound(name)) throw bound(name)
}
const bound = (name: string) =>
  new Fault('conflict', `machines are assigned an image named ${name}, which was removed`, {
    hint: 'Choose another name.',
  })
const taken = (name: string) =>
  new Fault('conflict', `an image named ${name} is in the cache already`, {
    hint: 'Remove it first, or choose another name.',
  })
const tooMany = () =>
  new Fault('busy', `${MAX_ARRIVALS} captures are unfinished or waiting for review`, {
    hint: 'Accept or reject some of them.',
  })
const unfinished = ({ record: { name } }: CaptureState) =>
  new Fault('conflict', `${name} is not complete yet`)
const moving = ({ record: { name } }: CaptureState) =>
  new Fault('conflict', `${name} is being moved`)

// The orders of captured images that were used up: no token of theirs begins another capture.

/** Far more than tokens that are valid at a time. */
const MAX_ORDERS = 1000

type UsedOrders = Awaited<ReturnType<typeof createUsedOrders>>

export async function createUsedOrders(records: Storage, now: () => Date) {
  // A damaged record still means that the order was used up.
  const OrderSchema = z.object({ usedAt: z.number() }).catch(() => ({ usedAt: now().getTime() }))
  const stored = selectRecords(records, 'order', OrderSchema)
  const listed = await stored.list()
  const byAge = listed.toSorted(([, a], [, b]) => a.usedAt - b.usedAt)
  const orders = new Set(byAge.map(([order]) => order))
  return {
    has: (order: string) => orders.has(order),
    async add(order: string) {
      const usedAt = now().getTime()
      orders.add(order)
      await stored.write(order, { usedAt })
    },
    /** By number, as the recorded times may be of a wrong clock. */
    async sweep() {
      for (const order of [...orders].slice(0, -MAX_ORDERS)) {
        orders.delete(order)
        await stored.remove(order)
      }
    },
  }
}
