/** Reports to the cache service which images machines are bound to, so that it keeps those. */
import { renderCacheBase } from './rules/blob-address.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { createCacheClient } from './cache-client.ts'
import type { CapturedMachine } from './rules/captured-machine.ts'
import type { Change, Changes } from '#kit/host/changes.ts'
import type { Environment } from '#kit/host/shell.ts'

interface PinnerDependencies {
  /** Null: none. */
  url(): string | null
  /** Null: nothing is reported. */
  token(): Promise<string | null>
  bound(): Promise<readonly (string | null)[]>
  /** Refs of channels, kept although no machine has them. */
  promised?(): readonly string[]
  captured?(): Promise<readonly CapturedMachine[]>
  /** The cache's name for this server. */
  readonly holder: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly changes: Changes
  readonly log: { warn(message: string): void }
  readonly waitMs?: number
  readonly againMs?: number
}

/**
 * Reports at the start, soon after a machine has changed, and regularly. Best effort: without
 * reports the service goes by uses. A refused report is repeated only after a change of settings or
 * catalog, an unanswered one after the next change.
 */
export function createPinner(dependencies: PinnerDependencies): AsyncDisposable {
  const { env, changes, holder, log, waitMs = 2000, againMs = 3_600_000 } = dependencies
  const { promised = () => [], captured: listCaptured = async () => [] } = dependencies
  const closing = new AbortController()
  let reported = ''
  let refused = ''
  /** Counts the changes after which a refused report may be accepted. */
  let chances = 0
  const complaints = new Set<string>()
  let waiting: NodeJS.Timeout | undefined
  let work: Promise<void> = Promise.resolve()

  async function report() {
    // A later change is another chance.
    const chance = chances
    const [base, token] = [renderCacheBase(dependencies.url() ?? ''), await dependencies.token()]
    if (base === '' || token === null || closing.signal.aborted) return
    const bound = await dependencies.bound()
    const { refs, machines } = countMachines(bound, promised())
    const captured = await listCaptured()
    const words = JSON.stringify([base, refs, machines, captured])
    if (words === reported || `${chance} ${words}` === refused) return
    const client = createCacheClient({ base, token, env, signal: closing.signal })
    const answer = await client.pin({ holder, refs, machines, captured })
    if (answer.ok) {
      reported = words
      complaints.clear()
      return
    }
    refused = `${chance} ${words}`
    // Another implementation may have no pins.
    if (answer.refusal.code !== 'not-found') complain(answer.refusal, 'refused')
  }

  /** `how`: one code may stand for a refusal and for silence. */
  function complain(thrown: unknown, how: 'refused' | 'failed') {
    const code = thrown instanceof Fault ? thrown.code : null
    const kind = `${how} ${code} ${dependencies.url()}`
    if (closing.signal.aborted || complaints.has(kind)) return
    complaints.add(kind)
    log.warn(
      `could not report to the cache service which images are needed: ${renderError(thrown)}`,
    )
  }

  function schedule() {
    waiting ??= setTimeout(() => {
      waiting = undefined
      work = work.then(report).catch((thrown: unknown) => complain(thrown, 'failed'))
    }, waitMs).unref()
  }

  const stopListening = changes.listen(({ topic }) => {
    if (RELEVANT.has(topic)) chances += 1
    if (RELEVANT.has(topic) || topic === 'machine') schedule()
  })
  const again = setInterval(() => {
    reported = ''
    chances += 1
    schedule()
  }, againMs).unref()
  schedule()

  return {
    async [Symbol.asyncDispose]() {
      closing.abort()
      stopListening()
      clearInterval(again)
      clearTimeout(waiting)
      await work
    },
  }
}

/** A catalog that changed means that its service answers, perhaps for the first time. */
const RELEVANT: ReadonlySet<Change['topic']> = new Set(['settings', 'catalog'])

function countMachines(bound: readonly (string | null)[], promised: readonly string[]) {
  const counts = new Map(promised.map((ref) => [ref, 0]))
  for (const ref of bound) if (ref !== null) counts.set(ref, (counts.get(ref) ?? 0) + 1)
  const refs = [...counts.keys()].toSorted()
  return { refs, machines: refs.map((ref) => counts.get(ref) ?? 0) }
}
