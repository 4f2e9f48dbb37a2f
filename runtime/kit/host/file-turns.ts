/** Lets whoever reads a file and then replaces it do so without another one of this process in between. */
import { createQueue } from './queue.ts'

/** The turns of each path; there are as many as a state folder has files. */
const queues = new Map<string, ReturnType<typeof createQueue>>()

/**
 * Runs work on the file at `path` once all earlier work on it is done. Work must not wait for other
 * work on the same path.
 */
export function inTurnOf<T>(path: string, work: () => Promise<T>): Promise<T> {
  const queue = queues.get(path) ?? createQueue(1)
  queues.set(path, queue)
  return queue(work)
}
