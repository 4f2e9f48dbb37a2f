/** Puts what a benchmark has made between its two markers in a document. */
import { writeFileSync } from 'node:fs'
import { recordMeasured } from '#test/support/documents/measured-records.ts'

const PERFORMANCE = 'docs/performance.md'

/** `name` is that of the markers and of the chart: `<!-- measured:flash -->`, performance-flash.svg. */
export function publish(name: string, words: string, chart: string, about: string, table: string) {
  const picture = `![${about}](performance-${name}.svg)`
  publishText(name, [words, picture, table].join('\n\n'))
  writeFileSync(`docs/performance-${name}.svg`, chart)
}

/** `path`: a document that has both markers; what is put there is recorded in docs/measured/ as well. */
export const publishText = (name: string, text: string, path: string = PERFORMANCE) =>
  recordMeasured(name, path, text)
