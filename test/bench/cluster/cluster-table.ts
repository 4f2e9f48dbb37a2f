/** What a storm came to, as Markdown and as goals. */
import type { Bar } from '../server/server-jobs.ts'
import { FINDINGS, KINDS_FOUND, type Book } from './cluster-book.ts'
import type { ForwardedCost } from './cluster-forwarded.ts'
import type { StormOptions } from './cluster-storm.ts'
import { TAKEOVER_KINDS, type Takeover } from './cluster-takeovers.ts'

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

const timesOf = (taken: readonly Takeover[], faults: readonly string[]) =>
  taken
    .filter(({ fault, wasReady }) => wasReady && faults.includes(fault))
    .map(({ milliseconds }) => milliseconds)
    .toSorted((a, b) => a - b)

export function renderStorm({ options, seconds, book, taken, forwarded }: StormResult): string {
  const { servers, machines, faults, seed } = options
  const head = `${servers} servers, ${machines} made-up machines, ${faults} faults of the list with seed ${seed}, ${Math.round(seconds / 60)} minutes.`
  const rows = Object.entries(TAKEOVER_KINDS).map(([name, { faults: of, within }]) => {
    const times = timesOf(taken, of)
    const [p50, p99] =
      times.length === 0 ? ['', ''] : [one(shareOf(times, 0.5)), one(shareOf(times, 0.99))]
    return `| ${name} | ${times.length} | ${p50} | ${p99} | ${within} |`
  })
  const late =
    taken.length -
    Object.values(TAKEOVER_KINDS).reduce(
      (sum, { faults: of }) => sum + timesOf(taken, of).length,
      0,
    )
  const counts = [...book.counts()]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([what, count]) => `| ${what} | ${count} |`)
  return [
    head,
    [
      '| Found | Count |',
      '|---|---:|',
      ...KINDS_FOUND.map((kind) => `| ${FINDINGS[kind]} | ${book.countOf(kind)} |`),
    ].join('\n'),
    [
      '| The leader was | Takeovers | p50 s | p99 s | Wanted s |',
      '|---|---:|---:|---:|---:|',
      ...rows,
    ].join('\n'),
    `Counted are takeovers by a server that stood by when the fault began; ${late} others came after other faults, or while none stood by.`,
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
      const times = timesOf(taken, faults)
      if (times.length === 0) return []
      const value = shareOf(times, 0.99) / 1000
      return [{ what: `takeover, leader ${name}, p99 in s`, value, limit: within, is: 'most' }]
    },
  )
  return [...none, ...takeovers]
}
