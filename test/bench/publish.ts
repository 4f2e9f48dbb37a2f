/** Puts what a benchmark has made between its two markers in a document. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const PERFORMANCE = 'docs/performance.md'
const FORMATTER = fileURLToPath(new URL('../../node_modules/.bin/oxfmt', import.meta.url))

/** `name` is that of the markers and of the chart: `<!-- bench:flash -->`, performance-flash.svg. */
export function publish(name: string, words: string, chart: string, about: string, table: string) {
  const picture = `![${about}](performance-${name}.svg)`
  publishText(name, [words, picture, table].join('\n\n'))
  writeFileSync(`docs/performance-${name}.svg`, chart)
}

/** `path`: a document that has both markers; tables come out as `pnpm check` wants them. */
export function publishText(name: string, text: string, path: string = PERFORMANCE) {
  const [start, end] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`]
  const [before, rest] = readFileSync(path, 'utf8').split(start)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`${path} lacks ${start} … ${end}`)
  writeFileSync(path, `${before}${[start, text, end].join('\n\n')}${after}`)
  execFileSync(FORMATTER, [path])
}
