/** Pauses batches of people who were removed, or may not do any more what they ordered. */
import type { Standing } from '#fleet/access/standing.ts'
import type { Batch } from '#fleet/batch/rules/batch.ts'
import { SYSTEM } from '#fleet/state/journal.ts'
import { renderError } from '#kit/foundation/fault.ts'
import type { Site } from '#server/routes/site.ts'
import type { Machine } from '../rules/machine.ts'
import { actOnBatch } from './batch-actions.ts'
import type { BatchKeeper } from './batch-keeper.ts'

interface BatchStopsDependencies {
  readonly site: Site<Machine>
  readonly keeper: BatchKeeper
  readonly standing: Standing
}

/** Milliseconds; another process may have changed people. */
const LOOK_MS = 1000

export function startBatchStops({ site, keeper, standing }: BatchStopsDependencies): Disposable {
  /** Null: somebody still answers for it. */
  function findReason({ id, by, resumed_by }: Batch): string | null {
    const actor = resumed_by ?? by.actor
    const refusal = standing.refuse(actor, 'machines', resumed_by === null ? by.at : undefined)
    if (refusal !== null) return refusal
    const isOutside = keeper.listOwn(id).some(({ labels }) => !standing.sees(actor, labels))
    return isOutside ? 'it has machines outside of the scope of who ordered it' : null
  }

  async function look(): Promise<void> {
    const open = keeper
      .list()
      .filter((batch) => batch.ended_at === null && batch.paused_at === null)
    for (const batch of open) {
      const why = findReason(batch)
      if (why !== null) await actOnBatch({ site, keeper }, batch, 'pause', SYSTEM, why)
    }
  }

  let running: Promise<unknown> | null = null
  const timer = setInterval(() => {
    running ??= look()
      .catch((thrown: unknown) => site.log.warn(`batches of who is gone: ${renderError(thrown)}`))
      .finally(() => {
        running = null
      })
  }, LOOK_MS).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
