/** What runs add to the metrics. */
import { IMAGE_FORMATS } from '../../core/image/image.ts'
import type { Run } from '../../core/machine/run.ts'
import { secondsOf } from '../../core/machine/run-view.ts'
import type { Runs } from '../../services/state/runs.ts'
import type { Metrics } from '../http/metrics.ts'

/** A run has ended; told once a run. */
export function countRun(metrics: Metrics, run: Run): void {
  const result = run.result ?? 'lost'
  const format = IMAGE_FORMATS.find((each) => each === run.image?.format) ?? 'other'
  metrics.count('flasher_flash_total', { result, format })
  metrics.count('flasher_flash_bytes_total', {}, run.bytes_written)
  const seconds = secondsOf(run)
  if (seconds !== null && result !== 'lost') {
    metrics.timer('flasher_flash_seconds', { result })(seconds)
  }
}

/** What goes on, asked for when somebody looks. */
export function gaugeRuns(metrics: Metrics, runs: Runs): void {
  metrics.gauge('flasher_runs', async () => {
    const live = runs.listLive()
    const stalled = live.filter((run) => run.stalled).length
    return [
      { labels: { state: 'running' }, value: live.length - stalled },
      { labels: { state: 'stalled' }, value: stalled },
    ]
  })
}
