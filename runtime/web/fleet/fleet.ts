/** Everything that happens to machines: stored, put on record and announced, whoever asked for it. */
import type { FieldError } from '../../core/foundation/field-error.ts'
import type { Mac } from '../../core/machine/mac.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import { accept, refuse, type Result } from '../../core/foundation/result.ts'
import type { ServerServices } from './server-services.ts'
import type { Metrics } from '../http/metrics.ts'
import type { Contact, Transition } from './transition.ts'
import type { Note, NoteSubject } from '../http/event-note.ts'
import type { By } from '../http/caller.ts'
import { countRun } from './run-metrics.ts'
import { renderLost } from './run-events.ts'

type Outcome = 'flashed' | 'failed'

type Acted<M> =
  | { readonly result: 'done'; readonly machine: M | null }
  | { readonly result: 'refused'; readonly reason: string }
  | { readonly result: 'missing' }

type UpsertRefusal =
  | { readonly why: 'fields'; readonly fields: readonly FieldError[] }
  | { readonly why: 'stale' }

export interface Fleet<M extends MachineBase> {
  /**
   * As `PUT /machines/{mac}`: creates or replaces. `isExpected` sees the record that would be
   * replaced, in the same step.
   */
  upsert(
    mac: Mac,
    body: unknown,
    by: By,
    isExpected?: (before: M | null) => boolean,
  ): Promise<Result<M, UpsertRefusal>>
  /** False when there was none. */
  remove(mac: Mac, by: By): Promise<boolean>
  /**
   * Lets `turn` change a record and stores what it made; null when there is no such machine.
   * `turn` can be called twice and must be pure. `known`: the record, for who has just read it.
   */
  updateMachine<T extends Transition<M>>(
    mac: Mac,
    by: By,
    updateMachine: (machine: M) => T,
    known?: M,
  ): Promise<T | null>
  /** One of the line's actions, or `delete`. Nothing is done when `isDryRun`. */
  act(mac: Mac, wish: ActionRequest, by: By): Promise<Acted<M>>
  /** Tells that a machine reported the end of a flash. */
  announceOutcome(mac: Mac, outcome: Outcome): void
  /** Resolves with the next end that a machine reports, or null when `signal` is aborted. */
  awaitOutcome(mac: Mac, signal: AbortSignal): Promise<Outcome | null>
}

interface ActionRequest {
  readonly action: string
  readonly parameters: unknown
  readonly contact: Contact
  readonly isDryRun?: boolean
}

export function createFleet<M extends MachineBase>(
  parts: Pick<ServerServices<M>, 'line' | 'machines' | 'runs' | 'feed' | 'now'> & {
    readonly metrics: Metrics
  },
  noteAll: (notes: readonly Note[], on: NoteSubject) => Promise<void>,
): Fleet<M> {
  const { line, machines, feed } = parts
  const waiting = new Map<string, Set<(outcome: Outcome) => void>>()
  const armer = ({ actor, ip }: By) => ({ actor, ip, at: parts.now().toISOString() })
  const announce = (mac: Mac) => feed.announce({ topic: 'machine', mac })

  async function updateMachine<T extends Transition<M>>(
    mac: Mac,
    by: By,
    rule: (machine: M) => T,
    known?: M,
  ): Promise<T | null> {
    const decide = (machine: M): T => {
      const decided = rule(machine)
      const signed = line.noteArmer(machine, decided.machine, armer(by))
      return signed === decided.machine ? decided : { ...decided, machine: signed }
    }
    const before = known ?? (await machines.find(mac))
    if (before === null) return null
    let made = decide(before)
    if (made.machine !== before) {
      let isGone = false
      await machines.update(mac, (now) => {
        isGone = now === null
        if (now === null) return null
        made = decide(now)
        return made.machine === now ? null : made.machine
      })
      if (isGone) return null
      announce(mac)
    }
    await noteAll(made.notes, { subject_id: mac, ...by })
    return made
  }

  async function upsert(
    mac: Mac,
    body: unknown,
    by: By,
    isExpected: (before: M | null) => boolean = () => true,
  ): Promise<Result<M, UpsertRefusal>> {
    const now = parts.now().toISOString()
    let isNew = false
    let answer: Result<M, UpsertRefusal> = refuse({ why: 'stale' })
    await machines.update(mac, (before) => {
      isNew = before === null
      if (!isExpected(before)) {
        answer = refuse({ why: 'stale' })
        return null
      }
      const parsed = line.parseUpsert(body, before, { mac, now })
      answer = parsed.ok
        ? accept(line.noteArmer(before, parsed.value, armer(by)))
        : refuse({ why: 'fields', fields: parsed.refusal })
      return answer.ok ? answer.value : null
    })
    return await settle(answer)

    async function settle(made: Result<M, UpsertRefusal>) {
      if (!made.ok) return made
      announce(mac)
      const kind = isNew ? 'machine.created' : 'machine.upserted'
      const summary = `${mac} was ${isNew ? 'created' : 'changed'}`
      await noteAll([{ kind, summary, details: line.describe(made.value) }], {
        subject_id: mac,
        ...by,
      })
      return accept(made.value)
    }
  }

  async function remove(mac: Mac, by: By): Promise<boolean> {
    const before = await machines.find(mac)
    if (!(await machines.remove(mac))) return false
    const lost = await parts.runs.giveUp(mac, 'Its machine was deleted.')
    announce(mac)
    const details = before === null ? null : line.describe(before)
    const note: Note = { kind: 'machine.deleted', summary: `${mac} was deleted`, details }
    const notes = lost === null ? [note] : [note, renderLost(lost)]
    await noteAll(notes, { subject_id: mac, ...by })
    if (lost !== null) countRun(parts.metrics, lost)
    return true
  }

  async function act(mac: Mac, wish: ActionRequest, by: By): Promise<Acted<M>> {
    const { action, parameters, contact, isDryRun = false } = wish
    if (action === 'delete') {
      const isThere = isDryRun ? (await machines.find(mac)) !== null : await remove(mac, by)
      return isThere ? { result: 'done', machine: null } : { result: 'missing' }
    }
    const rule = line.actions[action]
    if (rule === undefined) return { result: 'refused', reason: `there is no action ${action}` }
    let reason: string | null = null
    const decide = (machine: M): Transition<M> => {
      const decided = rule.apply(machine, parameters, contact)
      reason = decided.ok ? null : decided.refusal
      return decided.ok && !isDryRun ? decided.value : { machine, notes: [] }
    }
    const made = await updateMachine(mac, by, decide)
    if (made === null) return { result: 'missing' }
    return reason === null
      ? { result: 'done', machine: made.machine }
      : { result: 'refused', reason }
  }

  return {
    upsert,
    remove,
    updateMachine,
    act,
    announceOutcome(mac, outcome) {
      for (const resolve of waiting.get(mac) ?? []) resolve(outcome)
    },
    awaitOutcome(mac, signal) {
      const { promise, resolve } = Promise.withResolvers<Outcome | null>()
      const waiters = waiting.get(mac) ?? new Set()
      waiting.set(mac, waiters.add(resolve))
      const stop = () => resolve(null)
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
      return promise.finally(() => {
        signal.removeEventListener('abort', stop)
        waiters.delete(resolve)
        if (waiters.size === 0) waiting.delete(mac)
      })
    },
  }
}
