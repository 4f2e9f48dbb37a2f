/** Counts what the server does, and renders it (`GET /metrics`, Prometheus text). */
import type { RecordTime } from '../answers/caller.ts'
import { after, type MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { keptJson } from '../answers/answers.ts'
import { refuse } from '../answers/faults.ts'
import type { Route } from '../answers/route.ts'

type MetricLabels = Readonly<Record<string, string>>

export type Metrics = ReturnType<typeof createMetrics>

interface Gauge {
  readonly labels: MetricLabels
  readonly value: number
}

interface Times {
  readonly buckets: number[]
  sum: number
  count: number
}

const BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30]
/** Where a measured time is no moment. */
const OWN_BOUNDS: Readonly<Record<string, readonly number[]>> = {
  flasher_flash_seconds: [10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200],
}
const boundsOf = (name: string) => OWN_BOUNDS[name] ?? BOUNDS

const HELP: Readonly<Record<string, string>> = {
  flasher_boot_total: 'First boots of flashed systems by result.',
  flasher_boot_bytes_total: 'Requested bytes of boot files.',
  flasher_boot_tokens_refused_total: 'Requests refused because of their boot token, by subject.',
  flasher_capture_total: 'Captures of disks by result.',
  flasher_catalog_age_seconds: 'Age of the catalog snapshot.',
  flasher_flash_bytes_total: 'Bytes written by flashes.',
  flasher_flash_seconds: 'Duration of flashes.',
  flasher_flash_line: 'Machines that are being flashed, or are waiting.',
  flasher_flash_total: 'Flashes by result.',
  flasher_http_request_seconds: 'Time until a response begins.',
  flasher_machines: 'Machines by boot mode.',
  flasher_plan_requests_total: 'Plans by mode.',
  flasher_pxe_requests_total: 'Boot scripts by mode and offer.',
  flasher_runs: 'Flashes in progress; stalled: no report for a while.',
  flasher_sse_clients: 'Open live channels.',
  flasher_unacknowledged_events: 'Unacknowledged events.',
  process_resident_memory_bytes: 'Resident memory.',
}

/** More label sets than this for one name mean that a label is no closed list. */
const MAX_SERIES = 500

export function createMetrics() {
  const counters = new Map<string, Map<string, number>>()
  const times = new Map<string, Map<string, Times>>()
  const gauges = new Map<string, () => Promise<readonly Gauge[]>>()

  return {
    /** Adds one (or `by`) to a counter; labels from short closed lists, never a MAC. */
    count(name: string, labels: MetricLabels = {}, by = 1): void {
      const series = counters.getOrInsertComputed(name, () => new Map())
      const key = renderLabels(labels)
      if (series.has(key) || series.size < MAX_SERIES) series.set(key, (series.get(key) ?? 0) + by)
    },
    /** Takes measured times, in seconds. Rows appear with the first one. */
    timer(name: string, labels: MetricLabels = {}): (seconds: number) => void {
      const series = times.getOrInsertComputed(name, () => new Map())
      const key = renderLabels(labels)
      const bounds = boundsOf(name)
      let entry = series.get(key)
      return (seconds) => {
        if (entry === undefined) {
          if (series.size >= MAX_SERIES) return
          entry = { buckets: bounds.map(() => 0), sum: 0, count: 0 }
          series.set(key, entry)
        }
        const at = bounds.findIndex((bound) => seconds <= bound)
        if (at >= 0) entry.buckets[at] = (entry.buckets[at] ?? 0) + 1
        entry.sum += seconds
        entry.count += 1
      }
    },
    /** A value that is asked for when somebody looks: labels and value, any number of rows. */
    gauge(name: string, read: () => Promise<readonly Gauge[]>): void {
      gauges.set(name, read)
    },
    async render(): Promise<string> {
      const gauged = [...gauges].map(async ([name, values]) => {
        const found = await values()
        const rows = found.map(({ labels, value }) => `${name}${renderLabels(labels)} ${value}`)
        return renderFamily(name, 'gauge', rows)
      })
      const counted = [...counters].map(([name, series]) => {
        const rows = [...series].map(([labels, value]) => `${name}${labels} ${value}`)
        return renderFamily(name, 'counter', rows)
      })
      const timed = [...times].map(([name, series]) => {
        const rows = [...series].flatMap(([labels, entry]) => renderTimes(name, labels, entry))
        return renderFamily(name, 'histogram', rows)
      })
      return [...counted, ...timed, ...(await Promise.all(gauged))].join('')
    },
  }
}

/** By the hundred of the status. */
export function timeRoute(metrics: Metrics, method: string, route: string): RecordTime {
  const timers: ((seconds: number) => void)[] = []
  return (status, seconds) => {
    const hundred = Math.floor(status / 100)
    const timer = (timers[hundred] ??= metrics.timer('flasher_http_request_seconds', {
      method,
      route,
      status: `${hundred}xx`,
    }))
    timer(seconds)
  }
}

function renderFamily(name: string, type: string, lines: readonly string[]): string {
  const help = HELP[name] === undefined ? [] : [`# HELP ${name} ${HELP[name]}`]
  return [...help, `# TYPE ${name} ${type}`, ...lines].map((line) => `${line}\n`).join('')
}

function renderTimes(name: string, labels: string, { buckets, sum, count }: Times) {
  let below = 0
  const inner = labels === '' ? '' : `${labels.slice(1, -1)},`
  const rows = boundsOf(name).map((bound, at) => {
    below += buckets[at] ?? 0
    return `${name}_bucket{${inner}le="${bound}"} ${below}`
  })
  return [
    ...rows,
    `${name}_bucket{${inner}le="+Inf"} ${count}`,
    `${name}_sum${labels} ${sum}`,
    `${name}_count${labels} ${count}`,
  ]
}

/** Several times for each request of a machine: no arrays are made. */
function renderLabels(labels: MetricLabels): string {
  let text = ''
  for (const name in labels) {
    text += `${text === '' ? '{' : ','}${name}="${escape(labels[name] ?? '')}"`
  }
  return text === '' ? '' : `${text}}`
}

/** Nearly all labels are plain words. */
const escape = (value: string) =>
  /["\\\n]/.test(value)
    ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
    : value

/**
 * Makes both routes; `/healthz` answers whatever the `Host` header is, and OPTIONS as well. `findObstacle`: why the server
 * cannot change anything at the moment, for load balancers, which ask `/healthz?ready`.
 */
export const healthRoutes = (
  version: string,
  findObstacle: () => MaybePromise<string | null> = () => null,
): readonly Route[] => [
  {
    ...tell(
      '/healthz',
      'Whether the server answers; with `?ready`, also whether it can change anything',
      HEALTHY,
    ),
    isForAnyHost: true,
    handle(event) {
      if (!event.url.searchParams.has('ready')) return keptJson(HEALTHY)
      return after(findObstacle(), (obstacle) => {
        if (obstacle !== null) throw refuse(503, obstacle)
        return keptJson(HEALTHY)
      })
    },
  },
  tell('/version', 'Which release answers', { version }),
]

const tell = (path: string, summary: string, answer: Readonly<Record<string, string>>): Route => ({
  method: 'GET',
  path,
  access: 'open',
  doc: {
    summary,
    answers: {
      200: {
        type: 'object',
        required: Object.keys(answer),
        properties: Object.fromEntries(Object.keys(answer).map((name) => [name, TEXT])),
      },
    },
  },
  handle: () => keptJson(answer),
})

const HEALTHY = { status: 'ok' }
const TEXT = { type: 'string' }
