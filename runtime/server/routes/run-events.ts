/** The events and metrics that runs produce. */
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import type { Run, RunResult } from '#engine/inventory/rules/run.ts'
import { secondsOf } from '#fleet/run/rules/run-view.ts'
import type { Runs } from '#fleet/run/runs.ts'
import type { RunUpdate } from '#fleet/run/run-posts.ts'
import type { PlainEvent } from '#kit/web/answers/plain-event.ts'
import type { Metrics } from '#kit/web/http/metrics.ts'

/** Of a run that began, a cancelled flash, and the run before that was lost. */
export function listRunEvents({ run, isNew, hasEnded, lost }: RunUpdate): readonly PlainEvent[] {
  // Its order records how a capture ends.
  const isCancelled = hasEnded && run.result === 'cancelled' && run.mode !== 'capture'
  return [
    ...(lost === null ? [] : [renderLost(lost)]),
    ...(isNew ? [renderStarted(run)] : []),
    ...(isCancelled ? [renderCancelled(run)] : []),
  ]
}

const renderStarted = (run: Run): PlainEvent => ({
  kind: run.mode === 'capture' ? 'machine.capture_started' : 'machine.flash_started',
  summary: `${run.mac} started to ${describeStart(run)}`,
  details: {
    run: run.id,
    mode: run.mode,
    image: run.image?.name ?? null,
    serial: run.disk?.serial ?? null,
    armed_by: run.armed_by?.actor ?? null,
  },
})

function describeStart({ mode, image, disk }: Run): string {
  const name = image?.name ?? 'an image'
  const on = disk?.model ?? disk?.path ?? 'a disk'
  if (mode === 'capture') return `capture ${on} as ${name}`
  return disk === null ? `flash ${name}` : `flash ${name} to ${on}`
}

const renderCancelled = ({ mac, id, reason }: Run): PlainEvent => ({
  kind: 'machine.flash_cancelled',
  summary: `${mac} reported that its flash was cancelled${reason === null ? '' : `: ${reason}`}`,
  details: { run: id, reason },
})

export const nameRun = (run: string, events: readonly PlainEvent[]): readonly PlainEvent[] =>
  events.map((event) => ({ ...event, details: { ...event.details, run } }))

/** An end comes twice, by `progress` and by `status`. */
export const isOnRecord = (
  ended: Pick<RunUpdate, 'run' | 'hasEnded'>,
  result: RunResult,
): boolean => result === 'failed' && !ended.hasEnded && ended.run.result === result

export const renderLost = ({ mac, id, mode, reason }: Run): PlainEvent => ({
  kind: mode === 'capture' ? 'machine.capture_lost' : 'machine.flash_lost',
  summary: `${mac} never finished a ${mode === 'capture' ? 'capture' : 'flash'}: ${reason ?? 'it stopped responding'}`,
  details: { run: id },
})

/** Called once a run. */
export function countRun(metrics: Metrics, run: Run): void {
  const result = run.result ?? 'lost'
  if (run.mode === 'capture') return metrics.count('flasher_capture_total', { result })
  const format = IMAGE_FORMATS.find((each) => each === run.image?.format) ?? 'other'
  metrics.count('flasher_flash_total', { result, format })
  metrics.count('flasher_flash_bytes_total', {}, run.bytes_written)
  const seconds = secondsOf(run)
  if (seconds !== null && result !== 'lost') {
    metrics.timer('flasher_flash_seconds', { result })(seconds)
  }
}

export function gaugeRuns(metrics: Metrics, runs: Runs): void {
  metrics.gauge('flasher_runs', async () => {
    const running = runs.listRunning()
    const stalled = running.filter((run) => run.stalled).length
    return [
      { labels: { state: 'running' }, value: running.length - stalled },
      { labels: { state: 'stalled' }, value: stalled },
    ]
  })
}
