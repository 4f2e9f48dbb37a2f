/** Puts what a benchmark has made between its two markers in docs/performance.md. */
import { readFileSync, writeFileSync } from 'node:fs'

const PATH = 'docs/performance.md'

/** `name` is that of the markers and of the chart: `<!-- bench:flash -->`, performance-flash.svg. */
export function publish(name: string, words: string, chart: string, about: string, table: string) {
  const [start, end] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`]
  const text = readFileSync(PATH, 'utf8')
  const [before, rest] = text.split(start)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`${PATH} lacks ${start} … ${end}`)
  const picture = `![${about}](performance-${name}.svg)`
  writeFileSync(PATH, `${before}${[start, words, picture, table, end].join('\n\n')}${after}`)
  writeFileSync(`docs/performance-${name}.svg`, chart)
}
