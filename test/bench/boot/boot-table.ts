/** The figures of images and boots as Markdown tables, each bar beside what was measured. */
import { median } from '../measure.ts'
import type { BootPart, JudgedPart } from './boot-budgets.ts'
import type { Booted } from './boot-cases.ts'

const MB = 1e6
/** Ratios to the peer of the same run. */
export const BARS = { promptRatio: 0.5, rootRatio: 0.45, boardRatio: 1.5 } as const

export interface Weight {
  readonly name: string
  readonly bytes: number
  readonly mostMb: number | null
}

export interface BootRow {
  readonly name: string
  readonly megabytes: number
  readonly boots: readonly Booted[]
}

export interface Pair {
  readonly ours: Booted
  readonly peer: Booted
}

const one = (value: number) => value.toFixed(1)
const two = (value: number) => value.toFixed(2)
const whole = (value: number) => Math.round(value).toString()
const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
/** What misses its bar is bold. */
const held = (text: string, isHeld: boolean) => (isHeld ? text : `**${text}**`)

const table = (head: readonly string[], line: string, rows: readonly (readonly string[])[]) =>
  [row(head), line, ...rows.map(row)].join('\n')

export const renderWeights = (weights: readonly Weight[]): string =>
  table(
    ['File', 'MB', 'At most'],
    '|---|---:|---:|',
    weights.map(({ name, bytes, mostMb }) => [
      name,
      held(one(bytes / MB), mostMb === null || bytes <= mostMb * MB),
      mostMb === null ? '' : String(mostMb),
    ]),
  )

export const renderBoots = (rows: readonly BootRow[]): string =>
  table(
    [
      'Start',
      'Memory, MiB',
      'Root mounted, s',
      'Prompt, s',
      'QEMU at most, MiB',
      'Free at the prompt, MiB',
      'Fetched, MB',
    ],
    '|---|---:|---:|---:|---:|---:|---:|',
    rows.map(({ name, megabytes, boots }) => {
      const middle = (of: (boot: Booted) => number) => median(boots.map(of))
      const fetched = middle(({ fetchedBytes }) => fetchedBytes)
      return [
        name,
        String(megabytes),
        one(middle(({ rootSeconds }) => rootSeconds)),
        one(middle(({ promptSeconds }) => promptSeconds)),
        whole(middle(({ peakMib }) => peakMib)),
        whole(middle(({ freeMib }) => freeMib)),
        fetched === 0 ? '' : one(fetched / MB),
      ]
    }),
  )

/** Each boot of ours against the peer's of the same turn; the median of these ratios. */
const ratioOf = (pairs: readonly Pair[], of: (boot: Booted) => number) =>
  median(pairs.map(({ ours, peer }) => of(ours) / of(peer)))

export function renderRatios(pairs: readonly Pair[]): string {
  const prompt = ratioOf(pairs, ({ promptSeconds }) => promptSeconds)
  const root = ratioOf(pairs, ({ rootSeconds }) => rootSeconds)
  return tableOfRatios('dracut', [
    ["start of the kernel to the wizard's prompt", prompt, BARS.promptRatio],
    ['start of the kernel to the root, mounted and proven', root, BARS.rootRatio],
  ])
}

export function renderBoardRatio(pairs: readonly Pair[]): string {
  const prompt = ratioOf(pairs, ({ promptSeconds }) => promptSeconds)
  const what = "board image: start of the kernel to the wizard's prompt"
  return tableOfRatios('the ISO', [[what, prompt, BARS.boardRatio]])
}

const tableOfRatios = (
  peer: string,
  rows: readonly (readonly [name: string, value: number, bar: number])[],
) =>
  table(
    [`As a ratio to ${peer}`, 'Measured', 'At most'],
    '|---|---:|---:|',
    rows.map(([name, value, bar]) => [name, held(two(value), value <= bar), two(bar)]),
  )

export const renderPoor = (
  poor: readonly { readonly megabytes: number; readonly says: string }[],
): string =>
  table(
    ['Memory, MiB', 'The machine says, and no kernel panics'],
    '|---:|---|',
    poor.map(({ megabytes, says }) => [String(megabytes), `\`${says}\``]),
  )

/** A build as a whole, in seconds. */
export interface BuildRow {
  readonly name: string
  readonly seconds: number
  readonly mostMinutes: number
}

export const renderBuilds = (rows: readonly BuildRow[]): string =>
  table(
    ['Build of all images', 'Minutes', 'Less than'],
    '|---|---:|---:|',
    rows.map(({ name, seconds, mostMinutes }) => [
      name,
      held(one(seconds / 60), seconds < mostMinutes * 60),
      String(mostMinutes),
    ]),
  )

const PARTS: Readonly<Record<BootPart, string>> = {
  script: 'boot script: the server answers',
  kernel: 'kernel: its transfer',
  initrd: "initrd: its transfer, and the kernel's start",
  root: 'root: its transfer, its digest, its mount',
  live: 'live system: up to the request for its plan',
  plan: 'plan: up to the first report',
  'first-byte': 'first byte: up to the report that it is written',
}

export const renderBudgets = (judged: readonly JudgedPart[]): string =>
  table(
    ['Part of a boot', 'Seconds', 'Budget'],
    '|---|---:|---:|',
    judged.map(({ part, seconds, budget }) => [
      PARTS[part],
      held(two(seconds), seconds <= budget),
      two(budget),
    ]),
  )
