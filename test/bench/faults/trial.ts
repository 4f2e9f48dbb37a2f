/** Makes one fault in a copy and runs the tests that load its file, nearest first, until one is a witness. */
import type { Copy, TestRun } from './copies.ts'
import type { Fault } from './draw.ts'
import type { Witness } from './witnesses.ts'

/** A test file hangs that takes so many times what it took before, or this part of the fault's limit. */
const [HANGING, MIN_SECONDS, PART_OF_LIMIT] = [4, 60, 3]
/** `types`: tsc finds it, and no test is asked. */
export const OUTCOMES = ['found', 'not found', 'not finished', 'types'] as const

export interface FaultResult {
  readonly outcome: (typeof OUTCOMES)[number]
  /** The test that found it, from the tree's folder, or null. */
  readonly test: string | null
  /** The first failure, or the message of tsc. */
  readonly reason: string
  /** How long tests ran for it until then. */
  readonly seconds: number
  /** How many test files ran, of how many that load the file. */
  readonly tried: number
  readonly tests: number
}

interface TrialDependencies {
  /** The copy without a fault. */
  readonly clean: Copy
  readonly listTests: (file: string) => readonly Witness[]
  /** The seconds for the tests of one fault. */
  readonly limit: number
  readonly signal: AbortSignal
}

export function createTrial({ clean, listTests, limit, signal }: TrialDependencies) {
  const cleanRuns = new Map<string, Promise<TestRun>>()
  let last: Promise<unknown> = Promise.resolve()

  /** Once for each test file, one after another. */
  function runClean(test: string, seconds: number): Promise<TestRun> {
    const run = cleanRuns.get(test) ?? last.then(() => clean.run({ test, seconds, signal }))
    cleanRuns.set(test, run)
    last = run
    return run
  }

  const limitOf = ({ seconds }: Witness) =>
    Math.max(
      Math.min(MIN_SECONDS, limit),
      seconds === null ? limit / PART_OF_LIMIT : HANGING * seconds,
    )

  /** Whether the fault makes the difference: the test passes without it, and fails with it again. */
  async function isWitness(copy: Copy, witness: Witness, run: TestRun): Promise<boolean> {
    const seconds = limitOf(witness)
    const without = await runClean(witness.file, seconds)
    if (without.outcome !== 'passed') return false
    // On a loaded machine one that is near its limit proves nothing.
    if (run.outcome === 'too long') return without.seconds < seconds / 2
    const second = await copy.run({ test: witness.file, seconds, signal })
    return second.outcome === 'failed' || second.outcome === 'too long'
  }

  /** Null where somebody wanted an end. */
  return async function tryFault(fault: Fault, copy: Copy): Promise<FaultResult | null> {
    const text = copy.read(fault.file)
    const tests = listTests(fault.file)
    let [tried, seconds] = [0, 0]
    const end = (outcome: FaultResult['outcome'], test: string | null = null, reason = '') => ({
      outcome,
      test,
      reason,
      tried,
      tests: tests.length,
      seconds: Math.round(seconds * 10) / 10,
    })
    copy.write(fault.file, fault.text)
    try {
      for (const witness of tests) {
        const left = limit - seconds
        const most = Math.min(left, limitOf(witness))
        if (most <= 0) return end('not finished')
        const run = await copy.run({ test: witness.file, seconds: most, signal })
        if (run.outcome === 'ended') return null
        seconds += run.seconds
        if (run.outcome === 'too long' && most === left) return end('not finished')
        tried += 1
        if (run.outcome === 'passed') continue
        const isFound = await isWitness(copy, witness, run)
        if (signal.aborted) return null
        if (isFound) return end('found', witness.file, run.reason)
      }
      return end('not found')
    } finally {
      copy.write(fault.file, text)
    }
  }
}
