/** In which order test files run, and which of them share a process. */

/** Test files that run one after another in one process. */
export interface Job {
  readonly files: readonly string[]
  /** Seconds that they took last time, together. */
  readonly seconds: number
  readonly isPure: boolean
  /** QEMU keeps a processor busy, or two. */
  readonly isBoot: boolean
}

interface Surroundings {
  /** Seconds that each file took in the last run; files that are not in it are new, or quick. */
  readonly durations: ReadonlyMap<string, number>
  /** Whether a file touches nothing but memory, so that others may share its process. */
  readonly isPure: (file: string) => boolean
}

/** Seconds of a file of which no duration is known. */
const NEW = 1
/** Seconds of pure files that share a process: long enough to start it for, short enough to be spread. */
const MAX_SHARED_SECONDS = 20
const MAX_SHARED_FILES = 60

/** Longest first: what takes long must not be what everybody waits for in the end. */
export function planJobs(files: readonly string[], { durations, isPure }: Surroundings): Job[] {
  const secondsOf = (file: string) => durations.get(file) ?? NEW
  const jobs: (Job & { files: string[]; seconds: number })[] = []
  let shared: (typeof jobs)[number] | undefined
  for (const file of files) {
    const seconds = secondsOf(file)
    const isFull =
      shared === undefined ||
      shared.files.length >= MAX_SHARED_FILES ||
      shared.seconds + seconds > MAX_SHARED_SECONDS
    if (isPure(file) && shared !== undefined && !isFull) {
      shared.files.push(file)
      shared.seconds += seconds
      continue
    }
    const job = { files: [file], seconds, isPure: isPure(file), isBoot: file.startsWith('vm/') }
    jobs.push(job)
    if (isPure(file)) shared = job
  }
  return jobs.toSorted((one, other) => other.seconds - one.seconds)
}

interface Slots {
  readonly all: number
  /** How many of them may boot at the same time. */
  readonly boots: number
}

/**
 * The next job for a slot that is free, or null where it has to wait for a boot to end. Boots go before what takes
 * longer: they wait for each other, and would still do that when everything else is over.
 */
export function takeJob(waiting: Job[], running: readonly Job[], slots: Slots): Job | null {
  if (running.length >= slots.all) return null
  const mayBoot = running.filter(({ isBoot }) => isBoot).length < slots.boots
  const boot = mayBoot ? waiting.findIndex(({ isBoot }) => isBoot) : -1
  const index = boot === -1 ? waiting.findIndex(({ isBoot }) => !isBoot) : boot
  return index === -1 ? null : (waiting.splice(index, 1)[0] ?? null)
}
