/** Reports how a build goes: to people through consola, to programs as a line of JSON for each event. */
import { relative } from 'node:path'
import process from 'node:process'
import type { Released } from '#build/pack/release.ts'
import {
  chooseColumns,
  expectSeconds,
  INTERRUPTED,
  renderBytes,
  renderEvent,
  renderSeconds,
  renderRunning,
  type BuildEvent,
  type Durations,
} from './progress.ts'
import type { Step } from '#build/steps/step.ts'
import { renderTable } from '#build/voice/table.ts'
import type { Comparison } from './twice.ts'
import type { Voice } from '#build/voice/voice.ts'

interface ReportOptions {
  readonly voice: Voice
  /** What is built, in a line. */
  readonly title: string
  readonly steps: readonly Step[]
  readonly durations: Durations
}

/** A file that was handed over. */
export interface Finished extends Released {
  /** The time of the step that made it; null when it came from the cache. */
  readonly seconds: number | null
}

export interface Report {
  readonly say: (event: BuildEvent) => void
  readonly note: (line: string) => void
  readonly fail: (why: string) => void
  readonly finish: (files: readonly Finished[], folder: string) => void
  readonly compare: (comparisons: readonly Comparison[]) => void
}

const writeJson = (value: object) => {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}

export const createJsonReport = (): Report => ({
  say: writeJson,
  note: (line) => process.stderr.write(`${line}\n`),
  fail: (why) => writeJson({ event: 'failed', why }),
  finish: (files, folder) => writeJson({ event: 'finished', folder, files }),
  compare: (files) => writeJson({ event: 'compared', files }),
})

export function createTextReport({ voice, title, steps, durations }: ReportOptions): Report {
  const { say, line } = voice
  const start = performance.now()
  const columns = chooseColumns(steps)
  const render = (event: BuildEvent) => renderEvent(event, columns)
  const waiting = new Set(steps.map(({ name }) => name))
  let cached = 0
  say.log(title)

  /** Seconds for all steps that are not done, one of which has run for `spent` seconds. */
  const expectLeft = (running: string, spent: number) => {
    const ahead = [...waiting].filter((name) => name !== running)
    const rest = (durations[running] ?? spent + 10) - spent
    return expectSeconds(ahead, durations) + Math.max(1, rest)
  }

  function sayStarted(event: BuildEvent & { readonly event: 'started' }): void {
    const since = performance.now()
    const at = steps.length - waiting.size + 1
    const of = steps.length
    if (!line.isShown) {
      const left = renderSeconds(expectLeft(event.step, 0))
      say.start(`${render(event)}: step ${at} of ${of}, about ${left} left`)
    }
    line.start(() => {
      const spent = (performance.now() - since) / 1000
      const left = expectLeft(event.step, spent)
      return renderRunning(event, { spent, left, at, of }, columns)
    })
  }

  function sayEvent(event: BuildEvent): void {
    if (event.event === 'started') {
      sayStarted(event)
      return
    }
    line.stop()
    waiting.delete(event.step)
    if (event.event === 'failed') {
      if (event.why === INTERRUPTED) say.warn(render(event))
      else say.fail(render(event))
    } else if (event.event === 'made') say.success(render(event))
    else {
      cached += 1
      say.ready(render(event))
    }
  }

  return {
    say: sayEvent,
    note: (text) => say.info(text),
    fail: (text) => say.fail(text),
    finish(files, folder) {
      const spent = renderSeconds((performance.now() - start) / 1000)
      say.success(`${steps.length} steps in ${spent}${renderCached(cached, steps.length)}`)
      say.box({
        title: renderFolder(folder),
        message: [...renderFiles(files), '', BESIDE].join('\n'),
      })
    },
    compare: (comparisons) => {
      for (const comparison of comparisons) sayComparison(say, comparison)
    },
  }
}

/** What lies in the folder as well. */
const BESIDE = 'with checksums, package lists and bills of materials'

function renderCached(cached: number, all: number): string {
  if (cached === 0) return ''
  return cached === all ? ', all from the cache' : `, ${cached} of them from the cache`
}

/** Relative when that is shorter and does not lead out of the working directory. */
function renderFolder(folder: string): string {
  const path = relative(process.cwd(), folder)
  return path === '' || path.startsWith('..') ? folder : `${path}/`
}

const renderFiles = (files: readonly Finished[]) =>
  renderTable(
    [
      { title: 'File', align: 'left' },
      { title: 'Size', align: 'right' },
      { title: 'Time', align: 'right' },
    ],
    files.map(({ asset, bytes, seconds }) => [
      asset,
      renderBytes(bytes),
      seconds === null ? 'cached' : renderSeconds(seconds),
    ]),
  )

function sayComparison(say: Voice['say'], { asset, digests: [one, another] }: Comparison): void {
  if (one === another) say.success(`${asset}\n  same bytes  ${one}`)
  else say.fail(`${asset}\n  differs     ${one}\n              ${another}`)
}
