/** One action on many machines, row by row, and the batch that is made of it. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { By } from '#kit/web/answers/caller.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { BegunBatch } from './batch-maker.ts'
import type { ActionRequest, Site } from './site.ts'

interface ManyRequest {
  readonly action: string
  readonly parameters: unknown
  readonly isDryRun?: boolean
  readonly q?: string | null
}

interface Target {
  readonly mac: Mac
  readonly refusal?: string | null
  /** Absent: those of all. */
  readonly parameters?: unknown
}

interface ActedRow {
  readonly mac: Mac
  readonly result: 'done' | 'refused' | 'missing'
  readonly reason: string | null
}

interface ActedMany {
  /** Null: a dry run, all were skipped, or this line keeps no batches. */
  readonly batch: string | null
  readonly results: readonly ActedRow[]
  readonly orders: readonly { readonly mac: Mac; readonly order: string }[]
}

/** Rows between two pauses, in which machines are answered. */
const STEP = 50

/** A refusal does not stop the rest. A dry run, or what no machine takes, makes no batch. */
export async function actOnMany<M extends MachineBase>(
  site: Site<M>,
  request: ManyRequest,
  targets: readonly Target[],
  by: By,
): Promise<ActedMany> {
  const { action } = request
  const batch = await beginBatch(site, request, targets, by)
  const asked = { ...request, ...withConflicts(site, action), batch: batch?.id ?? null }
  const orders: ActedMany['orders'][number][] = []
  const results: ActedRow[] = []
  for (const [at, target] of targets.entries()) {
    const { mac } = target
    const before = site.machines.newest(mac)
    const { result, reason, made } = await actOnOne(site, asked, target, by)
    if (made !== null) orders.push({ mac, order: site.line.nameOrder(made) })
    batch?.note(mac, before, made, result === 'missing' ? MISSING : reason)
    results.push({ mac, result, reason })
    if (at % STEP === STEP - 1) await batch?.keep()
    await letOthersIn(at)
  }
  if (batch === null) return { batch, results, orders }
  const name = await batch.settle()
  await recordBatch(site, { id: batch.id, name, action }, results, by)
  return { batch: batch.id, results, orders }
}

async function beginBatch<M extends MachineBase>(
  site: Site<M>,
  request: ManyRequest,
  targets: readonly Target[],
  by: By,
): Promise<BegunBatch<M> | null> {
  const { action, isDryRun = false, q = null } = request
  site.line.expectArming?.(targets.map(({ mac }) => site.machines.newest(mac)))
  if (isDryRun || site.batches === undefined) return null
  const attempt = { ...request, ...withConflicts(site, action), isDryRun: true }
  const macs = targets.map(({ mac }) => mac)
  for (const [at, target] of targets.entries()) {
    const { result } = await actOnOne(site, attempt, target, by)
    if (result === 'done') return await site.batches.begin({ action, macs, q, by })
    await letOthersIn(at)
  }
  return null
}

/** Each round finds its own. */
const withConflicts = <M extends MachineBase>({ line }: Site<M>, action: string) => ({
  findConflict: line.actions[action]?.conflicts?.(),
})

async function actOnOne<M extends MachineBase>(
  { fleet }: Site<M>,
  request: ActionRequest<M>,
  { mac, refusal = null, parameters = request.parameters }: Target,
  by: By,
) {
  if (refusal !== null) return { result: 'refused', reason: refusal, made: null } as const
  const acted = await fleet.act(mac, { ...request, parameters }, by)
  const reason = acted.result === 'refused' ? acted.reason : null
  return { result: acted.result, reason, made: acted.result === 'done' ? acted.machine : null }
}

/** Resolves in a later turn after every `step` rows; `at` counts from 0. */
export async function letOthersIn(at: number, step = STEP): Promise<void> {
  if (at % step === step - 1) await nextTurn()
}

const MISSING = 'There is no such machine.'

/** One event for all; what each machine got is in its own events. */
async function recordBatch<M extends MachineBase>(
  { recordAll }: Site<M>,
  { id, name, action }: { readonly id: string; readonly name: string; readonly action: string },
  results: readonly ActedRow[],
  by: By,
): Promise<void> {
  const done = results.filter(({ result }) => result === 'done').length
  const skipped = results.length - done
  const tail = skipped === 0 ? '' : `, ${skipped} skipped`
  const summary = `${name}: ${done} ${done === 1 ? 'machine' : 'machines'}${tail}`
  const details = { action, name, done, skipped }
  const event = { kind: 'batch.ordered', subject_kind: 'batch', summary, details } as const
  await recordAll([event], { subject_id: id, ...by })
}
