/** One flash from the checks to its end, whoever ordered it; tells what happens, and never throws. */
import { Fault, renderError } from '../../../../core/foundation/fault.ts'
import type { FlashEvent, FlashPlan } from '../../../../core/flash/flash.ts'
import type { FlashServices } from './flash-services.ts'
import { planOrder } from './flash-services.ts'
import type { FlashEnd, FlashOrder, Hooks } from './start.ts'

interface FlashRunDependencies {
  readonly parts: FlashServices
  readonly isRoot: boolean
  /** Cancels. */
  readonly signal: AbortSignal
  /** Seconds on a steady clock. */
  readonly now: () => number
}

interface Watcher {
  onPlan(plan: FlashPlan): void
  onEvent(event: FlashEvent): void
}

/** How far it has come. */
interface FlashState {
  stage: 'checking' | 'writing' | 'written'
  bytesWritten: number
}

/** `hooks.onEnd` is for the caller: what it says needs a screen. */
export async function executeFlash(
  order: FlashOrder,
  hooks: Hooks,
  watcher: Watcher,
  course: FlashRunDependencies,
): Promise<FlashEnd> {
  const state: FlashState = { stage: 'checking', bytesWritten: 0 }
  try {
    return await carryOut(order, hooks, watcher, course, state)
  } catch (thrown) {
    const isCancel =
      course.signal.aborted || (thrown instanceof Fault && thrown.code === 'cancelled')
    const { code, hint } =
      thrown instanceof Fault ? thrown : ({ code: 'unexpected', hint: undefined } as const)
    return {
      kind: isCancel ? 'cancelled' : 'failed',
      code: isCancel ? 'cancelled' : code,
      reason: isCancel ? 'cancelled' : renderError(thrown),
      hint: hint ?? null,
      leaves: LEAVES[state.stage](order.disk),
    }
  }
}

/** What became of the disk. */
const LEAVES: Readonly<Record<FlashState['stage'], (disk: string) => string>> = {
  checking: (disk) => `Nothing was written to ${disk}.`,
  writing: (disk) =>
    `${disk} was left without a partition table, so that it cannot boot: flash it again.`,
  written: (disk) => `The image is on ${disk}; the step after the write is what failed.`,
}

async function carryOut(
  order: FlashOrder,
  hooks: Hooks,
  watcher: Watcher,
  { parts, isRoot, signal, now }: FlashRunDependencies,
  state: FlashState,
): Promise<FlashEnd> {
  await using source = await parts.sources.open(order.image.location, { signal })
  const checked = await parts.checks.checkImage(source, order.image, signal)
  const planned = await planOrder(parts, order, checked, signal)
  if (!planned.ok) throw new Fault('plan-refused', planned.refusal.join('; '))
  if (!isRoot) throw new Fault('root-required', 'writing to a disk needs root', SUDO)
  const plan = planned.value
  watcher.onPlan(plan)
  hooks.onFlashStart?.(order, plan)
  const before = now()
  for await (const event of parts.writer.execute(plan, source, { signal })) {
    note(event, state)
    watcher.onEvent(event)
    hooks.onProgress?.(event)
  }
  const verified = plan.verify !== 'none'
  return { kind: 'done', plan, bytesWritten: state.bytesWritten, seconds: now() - before, verified }
}

const SUDO = { hint: 'Run it again as root, for example with sudo.' } as const

function note(event: FlashEvent, state: FlashState) {
  if (event.event === 'writing') {
    state.stage = 'writing'
    if (event.phase === 'write') state.bytesWritten = event.bytes_written
  }
  if (event.event === 'synced') state.stage = 'written'
}
