/** Puts what a benchmark has made between its two markers in a document, with the day and the machine. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'

const PERFORMANCE = 'docs/performance.md'

/** `name` is that of the markers and of the chart: `<!-- measured:flash -->`, performance-flash.svg. */
export function publish(name: string, words: string, chart: string, about: string, table: string) {
  const picture = `![${about}](performance-${name}.svg)`
  publishText(name, [words, picture, table].join('\n\n'))
  writeFileSync(`docs/performance-${name}.svg`, chart)
}

/** `path`: a document that has both markers. */
export function publishText(name: string, text: string, path: string = PERFORMANCE) {
  const gib = Math.round(totalmem() / 2 ** 30)
  const processor = cpus()[0]?.model.trim() ?? 'unknown'
  const where = `${cpus().length} cores (${processor}), ${gib} GiB of memory, Linux ${release()}`
  const measured = `Measured on ${new Date().toISOString().slice(0, 10)}: ${where}.`
  const [start, end] = [`<!-- measured:${name} -->`, `<!-- /measured:${name} -->`]
  const [before, rest] = readFileSync(path, 'utf8').split(start)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined) {
    throw new Error(`${path} lacks ${start} … ${end}`)
  }
  writeFileSync(path, `${before}${[start, text, measured, end].join('\n\n')}${after}`)
  execFileSync('node_modules/.bin/oxfmt', [path])
}
