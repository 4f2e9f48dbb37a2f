/** Reports to the cache service which images machines are bound to, so that it keeps those. */
import { renderCacheBase } from './rules/blob-address.ts'
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import { createCacheClient } from './cache-client.ts'
import type { CapturedMachine } from './rules/captured-machine.ts'
import type { Change, Changes } from '../../kit/host/changes.ts'
import type { Environment } from '../../kit/host/shell.ts'

interface PinnerDependencies {
  /** The cache service's address as it is set now; null: none. */
  url(): string | null
  /** The cache service's API token; null: nothing is reported. */
  token(): Promise<string | null>
  /** The refs of all machines, each as often as it comes. */
  bound(): Promise<readonly (string | null)[]>
  /** The refs that channels point to, which are kept although no machine has them; absent: none. */
  promised?(): readonly string[]
  /** Lists the machines of which images were ordered; absent: none. */
  captured?(): Promise<readonly CapturedMachine[]>
  /** What the cache service calls this server. */
  readonly holder: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly changes: Changes
  readonly log: { warn(message: string): void }
  /** Milliseconds for changes to gather. */
  readonly waitMs?: number
  /** Milliseconds after which it is reported again, though nothing has changed. */
  readonly againMs?: number
}

/**
 * Reports at the start, soon after a machine has changed, and once in a while, until it is disposed
 * of. All of it is best effort: without reports the service goes by what was used. A report that
 * was refused is repeated only after a change of the settings or the catalog; one that got no
 * answer, after the next change.
 */
export function createPinner(dependencies: PinnerDependencies): AsyncDisposable {
  const { env, changes, holder, log, waitMs = 2000, againMs = 3_600_000 } = dependencies
  const { promised = () => [], captured: listCaptured = async () => [] } = dependencies
  const closing = new AbortController()
  let reported = ''
  let refused = ''
  /** Counts the changes after which a refused report may be accepted. */
  let chances = 0
  /** The kinds of failure that were logged since it last worked. */
  const complaints = new Set<string>()
  let waiting: NodeJS.Timeout | undefined
  let work: Promise<void> = Promise.resolve()

  async function report() {
    // A change from here on is another chance.
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

/** A catalog that changed is that of a service which answers, perhaps for the first time. */
const RELEVANT: ReadonlySet<Change['topic']> = new Set(['settings', 'catalog'])

/** Each ref once, in order, with how many machines have it. */
function countMachines(bound: readonly (string | null)[], promised: readonly string[]) {
  const counts = new Map(promised.map((ref) => [ref, 0]))
  for (const ref of bound) if (ref !== null) counts.set(ref, (counts.get(ref) ?? 0) + 1)
  const refs = [...counts.keys()].toSorted()
  return { refs, machines: refs.map((ref) => counts.get(ref) ?? 0) }
}
