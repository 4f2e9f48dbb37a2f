/** What a storm came to, as Markdown and as goals. */
import type { Bar } from '../server/server-jobs.ts'
import { FINDINGS, KINDS_FOUND, type Book } from './cluster-book.ts'
import type { ForwardedCost } from './cluster-forwarded.ts'
import type { StormOptions } from './cluster-storm.ts'
import { STEPS, TAKEOVER_KINDS, type Takeover } from './cluster-takeovers.ts'

interface StormResult {
  readonly options: StormOptions
  readonly seconds: number
  readonly book: Book
  readonly taken: readonly Takeover[]
  readonly forwarded: ForwardedCost
}

const micros = (value: number) => Math.round(value)
const one = (milliseconds: number) => (milliseconds / 1000).toFixed(1)

const shareOf = (sorted: readonly number[], share: number) =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN

/** Those by a server that stood by when the fault began. */
const countedOf = (taken: readonly Takeover[], faults: readonly string[]) =>
  taken.filter(({ fault, wasReady }) => wasReady && faults.includes(fault))

const COUNTED: readonly string[] = Object.values(TAKEOVER_KINDS).flatMap(({ faults }) => faults)

const sort = (values: readonly number[]) => values.toSorted((a, b) => a - b)

/** Without what it waited for a processor since it took the lease, which is no time of ours. */
const ownTime = ({ milliseconds, times }: Takeover) => milliseconds - times.waited

const renderRow = (name: string, values: readonly number[], more: readonly string[] = []) => {
  const sorted = sort(values)
  const shares = [0.5, 0.99].map((share) =>
    sorted.length === 0 ? '' : one(shareOf(sorted, share)),
  )
  return `| ${[name, ...more, ...shares].join(' | ')} |`
}

function renderTakeovers(taken: readonly Takeover[]): readonly string[] {
  const rows = Object.entries(TAKEOVER_KINDS).map(([name, { faults, within }]) => {
    const counted = countedOf(taken, faults)
    const times = counted.map(({ milliseconds }) => milliseconds)
    const own = counted.length === 0 ? '' : one(shareOf(sort(counted.map(ownTime)), 0.99))
    return `${renderRow(name, times, [String(times.length)])} ${own} | ${within} |`
  })
  const counted = countedOf(taken, COUNTED)
  const steps = STEPS.map((name, at) =>
    renderRow(
      name,
      counted.map((each) => each.steps[at] ?? 0),
    ),
  )
  return [
    [
      '| The leader was | Takeovers | p50 s | p99 s | p99 s without waits | Wanted s |',
      '|---|---:|---:|---:|---:|---:|',
      ...rows,
    ].join('\n'),
    `Counted are takeovers by a server that stood by when the fault began; ${taken.length - counted.length} others came after other faults, or while none stood by. Without waits: less the time that the next leader waited for a processor since it had the lease.`,
    [
      '| Of these takeovers | p50 s | p99 s |',
      '|---|---:|---:|',
      ...steps,
      renderRow(
        'a processor since the lease',
        counted.map(({ times }) => times.worked),
      ),
      renderRow(
        'waits for one since the lease',
        counted.map(({ times }) => times.waited),
      ),
    ].join('\n'),
  ]
}

/** What the document shows: how many of the promises were broken. */
export function renderFound({ options, seconds, book }: StormResult): string {
  const { servers, machines, qemu, faults, seed } = options
  const head = `${servers} servers, ${machines} made-up machines${qemu === 0 ? '' : `, ${qemu} in QEMU`}, ${faults} faults of the list with seed ${seed}, ${Math.round(seconds / 60)} minutes.`
  return [
    head,
    [
      '| Found | Count |',
      '|---|---:|',
      // A machine that is made up has no disk.
      ...KINDS_FOUND.filter((kind) => kind !== 'half' || qemu > 0).map(
        (kind) => `| ${FINDINGS[kind]} | ${book.countOf(kind)} |`,
      ),
    ].join('\n'),
  ].join('\n\n')
}

export function renderStorm(result: StormResult): string {
  const { book, taken, forwarded } = result
  const counts = [...book.counts()]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([what, count]) => `| ${what} | ${count} |`)
  return [
    renderFound(result),
    ...renderTakeovers(taken),
    ['| Done | Count |', '|---|---:|', ...counts].join('\n'),
    `A boot script that the leader answers itself takes ${micros(forwarded.direct)} µs of a processor; by way of another server ${micros(forwarded.leader)} µs there and ${micros(forwarded.standby)} µs on the way.`,
  ].join('\n\n')
}

/** The promises, and the bounds of takeovers. */
export function listBars({ book, taken }: StormResult): readonly Bar[] {
  const none = KINDS_FOUND.map((kind): Bar => ({
    what: FINDINGS[kind],
    value: book.countOf(kind),
    limit: 0,
    is: 'most',
  }))
  const takeovers = Object.entries(TAKEOVER_KINDS).flatMap(
    ([name, { faults, within }]): readonly Bar[] => {
      const times = sort(countedOf(taken, faults).map(ownTime))
      if (times.length === 0) return []
      const value = shareOf(times, 0.99) / 1000
      const what = `takeover, leader ${name}, p99 in s without waits for a processor`
      return [{ what, value, limit: within, is: 'most' }]
    },
  )
  return [...none, ...takeovers]
}
