/** A queue of jobs: a limited number run at once; each can be watched and cancelled, and stays listed. */
import { z, type ZodType } from 'zod'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { createQueue } from './queue.ts'
import type { Storage } from 'unstorage'

/** What is known of every job; each kind of job adds its own fields. Times are ISO. */
export const JobStateSchema = z.object({
  status: z.enum(['queued', 'running', 'completed', 'failed', 'cancelled']),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  error: z.string().nullable(),
})

export type JobState = Readonly<z.infer<typeof JobStateSchema>>

export const QUEUED: JobState = {
  status: 'queued',
  started_at: null,
  finished_at: null,
  error: null,
}

export const isOver = ({ status }: JobState): boolean => status !== 'queued' && status !== 'running'

export interface Job<State extends JobState> {
  readonly key: string
  /** The work itself replaces it to report progress. */
  state: State
  readonly signal: AbortSignal
  /** What was thrown, or why it was cancelled; null unless it failed or was cancelled. */
  failure: unknown
  /** Resolves once it has ended, however it ended, and its `onEnd` is done. */
  readonly ended: Promise<void>
}

interface JobWork<State extends JobState> {
  run(job: Job<State>): Promise<void>
  /** Records the outcome, which the state holds by now. Best effort: what it throws is ignored. */
  onEnd?(job: Job<State>): Promise<void>
}

/** What outlives the process: see `openJobRecords` below. */
export interface JobRecords<State extends JobState> extends AsyncDisposable {
  /** By their keys, those that began last at the end; all have ended. */
  readonly before: readonly (readonly [key: string, state: State])[]
  /** Which of them had not ended when the process before did. */
  readonly cutOff: readonly string[]
  save(key: string, state: State): void
  remove(key: string): void
}

interface JobsOptions<State extends JobState> {
  readonly parallel: number
  /** Once more jobs are listed, the oldest that have ended are forgotten. */
  readonly maxListed: number
  now(): Date
  onChange?(state: State): void
  /** Completes the state of a job that has just ended. */
  toEnded?(state: State): State
  readonly records?: JobRecords<State> | undefined
  /** Records the end of a job that a restart cut off. Best effort, before the first job runs. */
  onCutOff?(state: State): Promise<void>
}

export type Jobs<State extends JobState> = ReturnType<typeof createJobs<State>>

/** Lists those of `records`, too. Disposing of it cancels all jobs and waits for their ends. */
export function createJobs<State extends JobState>(options: JobsOptions<State>) {
  const { records, maxListed, toEnded = (state) => state } = options
  const jobs = new Map<string, OwnJob<State>>()
  for (const [key, state] of records?.before ?? []) jobs.set(key, createJob(key, state, NOTHING))
  const enqueue = createQueue(options.parallel)
  const now = () => options.now().toISOString()
  for (const key of records?.cutOff ?? []) {
    const state = jobs.get(key)?.state
    if (state !== undefined) enqueue(async () => options.onCutOff?.(state)).catch(() => undefined)
  }

  function show(job: OwnJob<State>) {
    options.onChange?.(job.state)
    records?.save(job.key, job.state)
  }

  async function run(job: OwnJob<State>) {
    if (isOver(job.state)) return
    job.state = { ...job.state, status: 'running', started_at: now() }
    show(job)
    const [outcome] = await Promise.allSettled([Promise.try(() => job.work.run(job))])
    if (outcome.status === 'fulfilled') return end(job, 'completed', null)
    const { aborted, reason } = job.signal
    await (aborted ? end(job, 'cancelled', reason) : end(job, 'failed', outcome.reason))
  }

  async function end(job: OwnJob<State>, status: JobState['status'], failure: unknown) {
    job.failure = failure
    const error = failure === null ? null : renderError(failure)
    job.state = toEnded({ ...job.state, status, error, finished_at: now() })
    show(job)
    await job.work.onEnd?.(job).catch(() => undefined)
  }

  /** Resolves once it has ended; changes nothing of one that had ended before. Null: no such job. */
  async function cancel(key: string, reason: Fault): Promise<Job<State> | null> {
    const job = jobs.get(key)
    if (job === undefined || isOver(job.state)) return job ?? null
    job.controller.abort(reason)
    if (job.state.status === 'queued') job.resolve(end(job, 'cancelled', reason))
    await job.ended
    return job
  }

  /** One that is queued or running stays: it was started anew after its end. */
  function forget(key: string) {
    const job = jobs.get(key)
    if (job === undefined || !isOver(job.state)) return
    jobs.delete(key)
    records?.remove(key)
  }

  return {
    /** Runs work that is not listed when its turn in the queue has come. */
    enqueue,
    cancel,
    forget,
    /** Newest first. */
    list: (): readonly Job<State>[] => [...jobs.values()].toReversed(),
    find: (key: string): Job<State> | null => jobs.get(key) ?? null,
    /** Takes the place of the job that had this key before, which must have ended. */
    start(key: string, state: State, work: JobWork<State>): Job<State> {
      const job = createJob(key, state, work)
      jobs.delete(key)
      jobs.set(key, job)
      for (const one of jobs.values()) {
        if (jobs.size > maxListed && isOver(one.state)) forget(one.key)
      }
      show(job)
      void enqueue(() => run(job)).then(() => job.resolve())
      return job
    },
    async [Symbol.asyncDispose]() {
      const reason = new Fault('cancelled', 'the server stops')
      for (const key of jobs.keys()) void cancel(key, reason)
      for (const { ended } of jobs.values()) await ended
      await records?.[Symbol.asyncDispose]()
    },
  }
}

interface OwnJob<State extends JobState> extends Job<State> {
  readonly controller: AbortController
  readonly work: JobWork<State>
  resolve(work?: Promise<void>): void
}

const NOTHING = { run: async () => {} }

function createJob<State extends JobState>(key: string, state: State, work: JobWork<State>) {
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  if (isOver(state)) resolve()
  const controller = new AbortController()
  const { signal } = controller
  const job: OwnJob<State> = { key, state, work, controller, signal, failure: null, ended, resolve }
  return job
}

/**
 * Reads the jobs that the process before has stored; those that it cut off become failed at `now`.
 * What has not the shape is left out. Keys must be ones that the storage's driver takes.
 */
export async function openJobRecords<State extends JobState>(
  storage: Storage,
  shape: ZodType<State>,
  now: Date,
): Promise<JobRecords<State>> {
  let last: Promise<unknown> = Promise.resolve()
  /** Best effort, one after another: the state that was saved last is the one that stays. */
  const enqueue = (work: () => Promise<void>) => {
    last = last.then(work).catch(() => undefined)
  }
  const save = (key: string, state: State) =>
    enqueue(() => storage.setItem(key, JSON.stringify(state)))

  const error = 'interrupted by a restart of the program'
  const failed = { status: 'failed', finished_at: now.toISOString(), error } as const
  const before: [string, State][] = []
  const cutOff: string[] = []
  // A list of what was done before must not keep a program from starting.
  for (const key of await storage.getKeys().catch((): string[] => [])) {
    const state = shape.safeParse(await storage.getItem(key).catch(() => null)).data
    if (state === undefined) continue
    before.push([key, isOver(state) ? state : { ...state, ...failed }])
    if (isOver(state)) continue
    cutOff.push(key)
    save(key, { ...state, ...failed })
  }
  const begun = ({ started_at, finished_at }: State) => started_at ?? finished_at ?? ''
  return {
    before: before.toSorted(([, one], [, two]) => (begun(one) < begun(two) ? -1 : 1)),
    cutOff,
    save,
    remove: (key) => enqueue(() => storage.removeItem(key)),
    [Symbol.asyncDispose]: async () => void (await last),
  }
}
