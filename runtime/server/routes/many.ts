/** One action on many machines, row by row, and the batch that is made of it. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { By } from '#kit/web/answers/caller.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { BegunBatch } from './batch-maker.ts'
import type { Site } from './site.ts'

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
  const batch = await beginBatch(site, request, targets, by)
  const orders: ActedMany['orders'][number][] = []
  const onDone = (mac: Mac, made: M) => void orders.push({ mac, order: site.line.nameOrder(made) })
  const act = createAct(site, request, { batch, onDone }, by)
  const results: ActedRow[] = []
  for (const [at, target] of targets.entries()) {
    results.push(await act(target))
    if (at % STEP === STEP - 1) await batch?.keep()
    await letOthersIn(at)
  }
  if (batch === null) return { batch, results, orders }
  const name = await batch.settle()
  await recordBatch(site, { id: batch.id, name, action: request.action }, results, by)
  return { batch: batch.id, results, orders }
}

async function beginBatch<M extends MachineBase>(
  site: Site<M>,
  request: ManyRequest,
  targets: readonly Target[],
  by: By,
): Promise<BegunBatch<M> | null> {
  const { batches } = site
  if (request.isDryRun === true || batches === undefined) return null
  if (!(await isTakenByOne(site, request, targets, by))) return null
  const { action, q = null } = request
  return await batches.begin({ action, macs: targets.map(({ mac }) => mac), q, by })
}

async function isTakenByOne<M extends MachineBase>(
  site: Site<M>,
  request: ManyRequest,
  targets: readonly Target[],
  by: By,
): Promise<boolean> {
  const attempt = createAct(site, { ...request, isDryRun: true }, NOT_KEPT, by)
  for (const [at, target] of targets.entries()) {
    if ((await attempt(target)).result === 'done') return true
    await letOthersIn(at)
  }
  return false
}

const NOT_KEPT = { batch: null, onDone: () => undefined }

interface ActKeeping<M> {
  readonly batch: BegunBatch<M> | null
  onDone(mac: Mac, made: M): void
}

function createAct<M extends MachineBase>(
  { line, fleet, machines }: Site<M>,
  { action, parameters, isDryRun = false }: ManyRequest,
  { batch, onDone }: ActKeeping<M>,
  by: By,
) {
  const findConflict = line.actions[action]?.conflicts?.()
  const request = { action, parameters, isDryRun, findConflict, batch: batch?.id ?? null }
  return async ({ mac, refusal = null, parameters: own }: Target): Promise<ActedRow> => {
    const before = machines.newest(mac)
    const acted =
      refusal === null
        ? await fleet.act(mac, own === undefined ? request : { ...request, parameters: own }, by)
        : ({ result: 'refused', reason: refusal } as const)
    const reason = acted.result === 'refused' ? acted.reason : null
    const made = acted.result === 'done' ? acted.machine : null
    if (made !== null) onDone(mac, made)
    batch?.note(mac, before, made, acted.result === 'missing' ? MISSING : reason)
    return { mac, result: acted.result, reason }
  }
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
