/** What the cache knows of each captured image, in memory and on disk, from its first byte to its end. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { CaptureEnd, CaptureSource } from '../../engine/capture/rules/capture-upload.ts'
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import { isFull } from '../../kit/foundation/system-error.ts'
import type { RecordsOf } from '../../kit/host/records.ts'
import type { CaptureRecord, createUsedOrders } from './capture-records.ts'
import type { Silences } from '../blobs/silences.ts'
import type { ReceiverDependencies } from './upload-states.ts'
import { removeName } from '../../kit/host/folders.ts'

export interface Capture {
  readonly id: string
  readonly name: string
  readonly source: CaptureSource
  readonly status: 'receiving' | 'verifying' | 'waiting'
  /** So many bytes are here for sure. */
  readonly offset: number
  readonly createdAt: string
  /** ISO time of the last byte. */
  readonly touchedAt: string
  /** What was verified; null: it is not complete. */
  readonly end: CaptureEnd | null
}

export interface CaptureState {
  readonly id: string
  record: CaptureRecord
  /** A part is being received, or the image is being moved. */
  isBusy: boolean
  isGone: boolean
  /** Aborted when it is removed. */
  readonly ending: AbortController
  /** Of what was announced, while it is verified; what went wrong, or null. */
  check: { readonly end: CaptureEnd; readonly done: Promise<unknown> } | null
  /** Why nothing was kept of it, for a client that asks again. */
  failure: Fault | null
}

export interface CapturesContext extends ReceiverDependencies {
  readonly folder: string
  readonly notes: RecordsOf<CaptureRecord>
  readonly silences: Silences
  readonly used: Awaited<ReturnType<typeof createUsedOrders>>
  readonly states: Map<string, CaptureState>
  /** Aborted when the cache is closed. */
  readonly signal: AbortSignal
}

export const toCapture = ({ id, record, check }: CaptureState): Capture => {
  const { name, source, durableBytes: offset, createdAt, touchedAt, end } = record
  const status = end !== null ? 'waiting' : check !== null ? 'verifying' : 'receiving'
  return { id, name, source, status, offset, createdAt, touchedAt, end }
}

export function findCapture({ states }: CapturesContext, id: string): CaptureState {
  const state = states.get(id)
  if (state === undefined) throw new Fault('not-found', 'there is no such capture')
  return state
}

export const createCapture = (id: string, record: CaptureRecord): CaptureState => ({
  id,
  record,
  isBusy: false,
  isGone: false,
  ending: new AbortController(),
  check: null,
  failure: null,
})

export async function saveCapture(
  context: CapturesContext,
  state: CaptureState,
  news: Partial<CaptureRecord>,
): Promise<void> {
  const { notes, silences, now } = context
  silences.end(state.id)
  const record = { ...state.record, ...news, touchedAt: now().toISOString() }
  await notes.write(state.id, record)
  state.record = record
  if (state.isGone) await notes.remove(state.id)
}

/** Its order is used up from now on. */
export const closeCapture = (context: CapturesContext, state: CaptureState): Promise<void> =>
  useUp(context, state, () => dropCapture(context, state))

/** On a full disk the record of the order gets its space from what is removed. */
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
  // What was decided has happened, so that it does not fail for this: the order is known until a restart.
  await used.add(order).catch((thrown: unknown) => {
    log.warn(`that the order of ${name} is used up could not be stored: ${renderError(thrown)}`)
  })
}

export async function dropCapture(context: CapturesContext, state: CaptureState): Promise<void> {
  state.isGone = true
  state.ending.abort(new Fault('not-found', 'the capture was removed'))
  context.states.delete(state.id)
  await removeStored(context, state)
}

/** The state stays, so that the client learns why, however often it asks. */
export const forgetCapture = (context: CapturesContext, state: CaptureState): Promise<void> =>
  useUp(context, state, () => removeStored(context, state))

async function removeStored({ notes, folder }: CapturesContext, { id }: CaptureState) {
  await notes.remove(id)
  await removeName(join(folder, id))
}

/** Finds the captures of the process before, and removes files that belong to none. */
export async function restoreCaptures(context: CapturesContext): Promise<void> {
  const { folder, notes, states, log } = context
  for (const [id, record] of await notes.list()) {
    const state = createCapture(id, record)
    const file = await stat(join(folder, id)).catch(() => null)
    states.set(id, state)
    // It was being moved into the folder of the cache, and is there.
    if (record.end !== null && (file === null || file.nlink > 1)) await closeCapture(context, state)
    else if (file === null || file.size < record.durableBytes) {
      log.warn(`the unfinished capture ${record.name} is damaged: it was removed`)
      await dropCapture(context, state)
    }
  }
  for (const name of await readdir(folder)) {
    if (!states.has(name)) await removeName(join(folder, name))
  }
}

const ABANDONED_MS = 24 * 3_600_000

/** Those that nobody continued for a day. */
export async function removeAbandoned(context: CapturesContext): Promise<void> {
  const { states, silences, used, log } = context
  await used.sweep()
  for (const state of states.values()) {
    const { name, end } = state.record
    const isLeft = silences.read(state.id) > ABANDONED_MS
    if (end !== null || state.isBusy || state.check !== null || !isLeft) continue
    await dropCapture(context, state)
    log.info(`removed the unfinished capture ${name}: nobody continued it for a day`)
  }
  await silences.save([...states.keys()])
}
