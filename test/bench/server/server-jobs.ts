/** Runs load in processes of its own, and makes one figure of several runs. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Job, Load } from './server-load.ts'
import { median } from '../measure.ts'
import type { Subject } from './server-subjects.ts'

/** What a job is about, save the server that it is for. */
export type Task<J extends Job = Job> = J extends Job ? Omit<J, 'port' | 'pid'> : never

export async function runLoad(task: Task, subject: Subject): Promise<Load> {
  const child = startLoad(task, subject)
  return await awaitLoad(child)
}

/** Opens pages that stay open until they are closed. */
export async function openPages(task: Task, subject: Subject) {
  const child = startLoad(task, subject)
  await once(child, 'message')
  return {
    async close(): Promise<Load> {
      child.send('close')
      return await awaitLoad(child)
    },
  }
}

function startLoad(task: Task, { port, pid }: Subject): ChildProcess {
  const child = fork(join(import.meta.dirname, 'server-load.ts'))
  child.send({ ...task, port, pid })
  return child
}

function awaitLoad(child: ChildProcess): Promise<Load> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: 'open' | Load) => {
      if (message === 'open') return
      if (message.wrong > 0) {
        child.kill()
        reject(new Error(`${message.wrong} of ${message.count} answers were no success`))
      } else resolve(message)
    })
    child.once('exit', (code) => reject(new Error(`the load ended with ${code}`)))
  })
}

export const rateOf = ({ count, seconds }: Load) => count / seconds

/** Processor seconds of the server for one answer: other work on the machine hardly changes it. */
export const costOf = ({ serverCpu, count }: Load) => serverCpu / count

/** The median of what `of` says of each run. */
export const middle = (loads: readonly Load[], of: (load: Load) => number) => median(loads.map(of))

/** The median of the ratios of runs that stood side by side. */
export const ratioOf = (
  ours: readonly Load[],
  theirs: readonly Load[],
  of: (load: Load) => number,
) =>
  median(
    ours.flatMap((load, run) => {
      const other = theirs[run]
      return other === undefined ? [] : [of(load) / of(other)]
    }),
  )

export interface Bar {
  readonly what: string
  readonly value: number
  readonly limit: number
  /** Whether it must be at least or at most that. */
  readonly is: 'least' | 'most'
}

export const isHeld = ({ value, limit, is }: Bar) =>
  is === 'least' ? value >= limit : value <= limit
