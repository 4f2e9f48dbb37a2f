/** How long each part of a boot of ours may take, and by how much which of them took longer. */

/**
 * Seconds from the first line of the kernel to its first program. Nothing of ours is in it, so that it tells how fast a
 * machine is: budgets are for one that needs this long, and grow with it. They do not shrink.
 */
export const YARDSTICK_SECONDS = 2

/**
 * Budgets are seconds. `script` is the server's answer; `kernel` and `initrd` go from the request to the next one, or to
 * the initrd's first words; `root` goes on to the live system, proven; `live` to the request for the plan; `plan` to the
 * first report; `first-byte` to the report that the disk is written.
 */
export const BUDGETS = {
  script: 0.02,
  kernel: 1,
  initrd: 5,
  root: 5,
  live: 30,
  plan: 6,
  'first-byte': 1.5,
} as const

export type BootPart = keyof typeof BUDGETS
export const BOOT_PARTS = [
  'script',
  'kernel',
  'initrd',
  'root',
  'live',
  'plan',
  'first-byte',
] as const satisfies readonly BootPart[]

/** One boot: the seconds of each part, and those of the yardstick. */
export type MeasuredBoot = Readonly<Record<BootPart | 'yardstick', number>>

export interface JudgedPart {
  readonly part: BootPart
  readonly seconds: number
  /** What the part may take on a machine as fast as this one. */
  readonly budget: number
}

/** Several boots: the least of each part counts, for what else a machine does makes it longer alone. */
export function judgeParts(boots: readonly MeasuredBoot[]): readonly JudgedPart[] {
  const least = (of: BootPart | 'yardstick') => Math.min(...boots.map((boot) => boot[of]))
  const slowness = Math.max(1, least('yardstick') / YARDSTICK_SECONDS)
  return BOOT_PARTS.map((part) => ({
    part,
    seconds: least(part),
    budget: BUDGETS[part] * slowness,
  }))
}

/** A sentence for each part that is over its budget. */
export const listExceeded = (judged: readonly JudgedPart[]): readonly string[] =>
  judged
    .filter(({ seconds, budget }) => seconds > budget)
    .map(({ part, seconds, budget }) => {
      const more = seconds - budget
      const percent = Math.round((more / budget) * 100)
      return `${part} took ${seconds.toFixed(2)} s: ${more.toFixed(2)} s (${percent} %) more than its budget of ${budget.toFixed(2)} s`
    })
