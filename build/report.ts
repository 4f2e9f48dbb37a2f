/** Tells how a build goes: lines for people, one of them with the time left; or JSON for programs. */
import process from 'node:process'
import { styleText } from 'node:util'
import type { Released } from './pack/release.ts'
import {
  expectSeconds,
  renderEvent,
  renderSeconds,
  type BuildEvent,
  type Durations,
} from './progress.ts'
import type { Step } from './steps/step.ts'
import type { Comparison } from './twice.ts'

interface ReportOptions {
  readonly json: boolean
  readonly steps: readonly Step[]
  readonly durations: Durations
}

export interface Report {
  readonly say: (event: BuildEvent) => void
  readonly note: (line: string) => void
  readonly fail: (text: string) => void
  readonly finish: (files: readonly Released[], folder: string) => void
  readonly compare: (comparisons: readonly Comparison[]) => void
}

export const createReport = (options: ReportOptions): Report =>
  options.json ? createJsonReport() : createTextReport(options)

const writeJson = (value: object) => {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}

const createJsonReport = (): Report => ({
  say: writeJson,
  note: (line) => process.stderr.write(`${line}\n`),
  fail: (why) => writeJson({ event: 'failed', why }),
  finish: (files, folder) => writeJson({ event: 'finished', folder, files }),
  compare: (files) => writeJson({ event: 'compared', files }),
})

/** How often the line with the time left is drawn anew. */
const TICK_MS = 1000
const CLEAR_LINE = '\r\u001B[K'

function createTextReport({ steps, durations }: ReportOptions): Report {
  const { stdout } = process
  const live = stdout.isTTY
  const start = performance.now()
  const waiting = new Set(steps.map(({ name }) => name))
  let running: { readonly says: string; readonly step: string; readonly since: number } | null =
    null
  let timer: NodeJS.Timeout | null = null

  const write = (line: string) => stdout.write(`${live ? CLEAR_LINE : ''}${line}\n`)
  const left = () => {
    const spent = running === null ? 0 : (performance.now() - running.since) / 1000
    const ahead = [...waiting].filter((name) => name !== running?.step)
    const now = running === null ? 0 : (durations[running.step] ?? spent + 10) - spent
    return expectSeconds(ahead, durations) + Math.max(1, now)
  }
  const draw = () => {
    if (running === null) return
    const spent = renderSeconds((performance.now() - running.since) / 1000)
    const line = `· ${running.says}: ${spent}, about ${renderSeconds(left())} left`
    stdout.write(`${CLEAR_LINE}${line.slice(0, stdout.columns - 1)}`)
  }

  function say(event: BuildEvent): void {
    if (event.event === 'started') {
      running = { says: event.says, step: event.step, since: performance.now() }
      if (live) timer ??= setInterval(draw, TICK_MS)
      else write(`${renderEvent(event)}, about ${renderSeconds(left())} left`)
      return
    }
    waiting.delete(event.step)
    running = null
    if (timer !== null) clearInterval(timer)
    timer = null
    write(event.event === 'failed' ? styleText('red', renderEvent(event)) : renderEvent(event))
  }

  return {
    say,
    note: write,
    fail: (text) => write(styleText('red', `✗ ${text}`)),
    finish(files, folder) {
      const width = Math.max(...files.map(({ asset }) => asset.length))
      const rows = files.map(({ asset, bytes }) => `  ${asset.padEnd(width)}  ${megabytes(bytes)}`)
      const spent = renderSeconds((performance.now() - start) / 1000)
      write([`in ${folder} after ${spent}:`, ...rows].join('\n'))
    },
    compare(comparisons) {
      const width = Math.max(...comparisons.map(({ asset }) => asset.length))
      for (const {
        asset,
        digests: [one, another],
      } of comparisons) {
        const verdict = one === another ? `same bytes  ${one}` : `differs  ${one}  ${another}`
        write(`${one === another ? '✓' : '✗'} ${asset.padEnd(width)}  ${verdict}`)
      }
    },
  }
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1).padStart(6)} MB`
