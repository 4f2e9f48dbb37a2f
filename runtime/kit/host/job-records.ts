/** Stores jobs for the next process, which lists those that were cut off as failed. */
import type { Storage } from 'unstorage'
import type { ZodType } from 'zod'
import { isOver, type JobRecords, type JobState } from './jobs.ts'

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
