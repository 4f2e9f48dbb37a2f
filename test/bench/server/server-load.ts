/** A process that makes load: takes one job from its parent, answers what it measured, and ends. */
import { runBoxes, type BoxesJob } from './server-machines.ts'
import { runLoop, type LoopJob } from './server-loop.ts'
import { runPages, type PagesJob } from './server-pages.ts'
import { runStreams, type StreamsJob } from './server-streams.ts'

export type Job = LoopJob | StreamsJob | BoxesJob | PagesJob

/** Milliseconds, of all answers. */
export interface Latencies {
  readonly p50: number
  readonly p99: number
  readonly worst: number
}

export interface Load {
  readonly seconds: number
  /** Answers (of pages: events) in that time. */
  readonly count: number
  readonly bytes: number
  /** Answers with another status than they should have. */
  readonly wrong: number
  readonly latencies: Latencies
  /** Processor seconds of the server's process tree, and of this process, in that time. */
  readonly serverCpu: number
  readonly loadCpu: number
}

process.once('message', (job: Job) => {
  run(job).then(
    (load) => process.send?.(load, () => process.exit(0)),
    (thrown: unknown) => {
      console.error(thrown)
      process.exit(1)
    },
  )
})

function run(job: Job): Promise<Load> {
  switch (job.kind) {
    case 'loop':
      return runLoop(job)
    case 'streams':
      return runStreams(job)
    case 'boxes':
      return runBoxes(job)
    case 'pages':
      return runPages(job)
  }
}
