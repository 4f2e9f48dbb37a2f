/** pnpm docs:measured: puts the records of docs/measured/ into their pages. Benchmarks write records with it as well. */
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MEASURED, parseBlocks, renderMeasured, type Measured } from './measured.ts'

const FORMATTER = fileURLToPath(new URL('../../../node_modules/.bin/oxfmt', import.meta.url))
const pathOf = (page: string, name: string) => join(dirname(page), 'measured', `${name}.json`)

/** Reads all records, by name. */
export const readMeasured = (): ReadonlyMap<string, Measured> =>
  new Map(
    globSync('docs/measured/*.json')
      .toSorted()
      .map((path) => [
        basename(path, '.json'),
        MEASURED.parse(JSON.parse(readFileSync(path, 'utf8'))),
      ]),
  )

/** Records what a benchmark has just made on this machine, and shows it in `page`. */
export function recordMeasured(name: string, page: string, text: string): void {
  const [processor] = cpus()
  const gib = Math.round(totalmem() / 2 ** 30)
  const where = `${cpus().length} cores (${processor?.model.trim() ?? 'unknown'}), ${gib} GiB of memory, Linux ${release()}`
  const on = new Date().toISOString().slice(0, 'yyyy-mm-dd'.length)
  const record = { page, on, where, blocks: parseBlocks(text) }
  mkdirSync(join(dirname(page), 'measured'), { recursive: true })
  writeFileSync(pathOf(page, name), `${JSON.stringify(record, null, 2)}\n`)
  showMeasured(name, record)
}

function showMeasured(name: string, record: Measured): void {
  const { page } = record
  const [start, end] = [`<!-- measured:${name} -->`, `<!-- /measured:${name} -->`]
  const [before, rest] = readFileSync(page, 'utf8').split(start)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`${page} lacks ${start} … ${end}`)
  writeFileSync(page, `${before}${[start, renderMeasured(record), end].join('\n\n')}${after}`)
  execFileSync(FORMATTER, [page, pathOf(page, name)])
}

if (import.meta.main) for (const [name, record] of readMeasured()) showMeasured(name, record)
