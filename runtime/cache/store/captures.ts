/** Receives captured images, verifies them, and keeps them until an operator accepts or rejects them. */
import { createHash, randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import {
  MAX_CAPTURE_PART_BYTES,
  type CaptureEnd,
} from '../../engine/capture/rules/capture-upload.ts'
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import { appendPart, finishCapture, resumeChecks, type CapturePart } from './capture-parts.ts'
import { selectRecords } from '../../kit/host/records.ts'
import { createSilences } from '../blobs/silences.ts'
import { CaptureRecordSchema, createUsedOrders } from './capture-records.ts'
import {
  closeCapture,
  createCapture,
  dropCapture,
  findCapture,
  removeAbandoned,
  restoreCaptures,
  toCapture,
  type Capture,
  type CapturesContext,
  type CaptureState,
} from './capture-states.ts'
import type { ReceiverDependencies } from './upload-states.ts'
import { makeFolder, syncFolder } from '../../kit/host/folders.ts'

/** What a token that holds says of the capture that begins with it. */
interface CaptureTicket {
  readonly token: string
  readonly order: string
  readonly issuedAt: number
}

const MAX_CAPTURES = 32
const SWEEP_MS = 600_000

export async function createCaptures(parts: ReceiverDependencies) {
  const folder = join(parts.data, 'captures')
  await makeFolder(folder, 0o700)
  const closing = new AbortController()
  const { signal } = closing
  const notes = selectRecords(parts.records, 'capture', CaptureRecordSchema)
  const used = await createUsedOrders(parts.records, parts.now)
  const silences = await createSilences(parts.records, 'quiet-captures', parts.elapsed)
  const states = new Map<string, CaptureState>()
  const context = { ...parts, folder, notes, silences, used, states, signal }
  await restoreCaptures(context)
  const sweep = () => removeAbandoned(context)
  await sweep()
  resumeChecks(context)
  const timer = setInterval(() => {
    sweep().catch((thrown: unknown) => parts.log.warn(`captures: ${renderError(thrown)}`))
  }, SWEEP_MS).unref()

  return {
    /** The oldest first. */
    list: (): readonly Capture[] =>
      [...context.states.values()].filter(({ failure }) => failure === null).map(toCapture),
    /** A Fault `not-found` where it was accepted, was removed, or never was. */
    find: (id: string): Capture => toCapture(findCapture(context, id)),
    /** Whether a token is the one with which it was begun. */
    isOwner: (id: string, token: string): boolean =>
      context.states.get(id)?.record.tokenDigest === digestOf(token),
    /** For a token that a person asks for. */
    makeOrder: () => `hand-${randomBytes(12).toString('base64url')}`,
    /** A new one, or the one that this token has begun before. */
    begin: (request: Pick<Capture, 'name' | 'source'>, ticket: CaptureTicket) =>
      begin(context, request, ticket),
    /** Continues at the offset; what came before a failure stays. */
    append: (id: string, part: CapturePart, bytes: AsyncIterable<Uint8Array>) =>
      appendPart(context, id, part, bytes),
    /** Verifies it, and waits so long for that. A Fault where it is not what was announced. */
    finish: (id: string, end: CaptureEnd, waitMs: number) =>
      finishCapture(context, id, end, waitMs),
    /** Puts the image into the folder of the cache. */
    accept: (id: string, name: string | null) => acceptCapture(context, id, name),
    /** Removes it and what has come of it. */
    async reject(id: string) {
      const state = findCapture(context, id)
      if (state.record.end !== null && state.isBusy) throw moving(state)
      await closeCapture(context, state)
    },
    /** Removes captures that nobody continued for a day. */
    sweep,
    async [Symbol.asyncDispose]() {
      closing.abort(new Fault('cancelled', 'the cache is stopping'))
      clearInterval(timer)
      await Promise.all([...context.states.values()].map(({ check }) => check?.done))
    },
  }
}

async function begin(
  context: CapturesContext,
  { name, source }: Pick<Capture, 'name' | 'source'>,
  { token, order, issuedAt }: CaptureTicket,
): Promise<{ readonly capture: Capture; readonly isNew: boolean }> {
  const { states, used, notes, folder, now } = context
  const same = [...states.values()].find(({ record }) => record.order === order)
  if (used.has(order) || (same !== undefined && isUsedUp(same, issuedAt))) throw usedUp()
  if (same?.record.issuedAt === issuedAt) return { capture: toCapture(same), isNew: false }
  if (context.isTaken(name)) throw taken(name)
  const others = [...states.values()].filter((state) => state !== same && state.failure === null)
  if (others.length >= MAX_CAPTURES) throw tooMany()
  const id = randomBytes(16).toString('hex')
  const createdAt = now().toISOString()
  const kept = { ...NOTHING_YET, createdAt, touchedAt: createdAt }
  const record = { name, source, order, issuedAt, tokenDigest: digestOf(token), ...kept }
  const state = createCapture(id, record)
  // Before anything is awaited, so that two requests at once make one capture.
  states.set(id, state)
  context.silences.end(id)
  try {
    // The machine has started over.
    if (same !== undefined) await dropCapture(context, same)
    // Only asked for: each part reserves its own.
    await context.room.reserve(id, () => MAX_CAPTURE_PART_BYTES)
    context.room.release(id)
    await using handle = await open(join(folder, id), 'wx', 0o600)
    await handle.sync()
    await syncFolder(folder)
    await notes.write(id, record)
    return { capture: toCapture(state), isNew: true }
  } catch (thrown) {
    await dropCapture(context, state)
    throw thrown
  }
}

const NOTHING_YET = { durableBytes: 0, announced: null, end: null, isDecoded: false } as const

const isUsedUp = ({ record, check, failure }: CaptureState, issuedAt: number): boolean =>
  record.issuedAt > issuedAt || record.end !== null || check !== null || failure !== null

async function acceptCapture(context: CapturesContext, id: string, given: string | null) {
  const state = findCapture(context, id)
  const { end } = state.record
  const name = given ?? state.record.name
  if (end === null) throw unfinished(state)
  if (state.isBusy) throw moving(state)
  if (context.isTaken(name)) throw taken(name)
  state.isBusy = true
  try {
    const checkedIndex = state.record.isDecoded ? end.index_sha256 : undefined
    const digests = { sha256: end.sha256, checkedIndex }
    await context.dropped.place(join(context.folder, id), name, digests)
    await closeCapture(context, state)
    return { name, end, source: state.record.source }
  } finally {
    state.isBusy = false
  }
}

const digestOf = (token: string) => createHash('sha256').update(token).digest('hex')

const usedUp = () =>
  new Fault('login-required', 'the upload token was used already: it is good for one capture')
const taken = (name: string) =>
  new Fault('conflict', `an image named ${name} is in the cache already`, {
    hint: 'Remove it first, or choose another name.',
  })
const tooMany = () =>
  new Fault('busy', `${MAX_CAPTURES} captures are unfinished or wait for a decision`, {
    hint: 'Accept or reject some of them.',
  })
const unfinished = ({ record: { name } }: CaptureState) =>
  new Fault('conflict', `${name} is not complete yet`)
const moving = ({ record: { name } }: CaptureState) =>
  new Fault('conflict', `${name} is being moved`)
