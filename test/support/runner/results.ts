/** Reads what uvu prints: which files failed, with the texts of their failures. */
import { stripVTControlCharacters } from 'node:util'

export interface RunResults {
  /** How many tests there were; null where the run broke off. */
  readonly total: number | null
  /** How many tests there were in the files that had their turn. */
  readonly seen: number
  readonly failures: readonly FileFailure[]
}

export interface FileFailure {
  /** The file, from the folder of the tests. */
  readonly file: string
  readonly text: string
  readonly failed: number
}

const FILE = /^\S+\.test\.ts$/
/** Whether uvu names a file with this line: what follows is of its tests. */
export const isFileLine = (line: string) => FILE.test(stripVTControlCharacters(line))

const COUNT = /\((\d+) \/ (\d+)\)$/
const TOTAL = /^ {2}Total: +(\d+)$/

/** What one run of uvu printed, colours or not. A file that broke off the run counts as one failure. */
export function readResults(output: string): RunResults {
  const lines = stripVTControlCharacters(output).split('\n')
  const totals = lines.flatMap((line) => TOTAL.exec(line)?.[1] ?? [])
  const total = totals[0] === undefined ? null : Number(totals[0])
  const files = splitFiles(lines)
  const failures = files.map(judge).filter(({ failed }) => failed > 0)
  const last = files.at(-1)
  const complete = total === null ? files.slice(0, -1) : files
  const seen = total ?? complete.reduce((sum, file) => sum + countTests(file), 0)
  if (total !== null || last === undefined) return { total, seen, failures }
  const brokenOff = { file: last.file, text: last.lines.join('\n'), failed: 1 }
  return {
    total,
    seen: seen + 1,
    failures: [...failures.filter(({ file }) => file !== last.file), brokenOff],
  }
}

interface PrintedFile {
  readonly file: string
  readonly lines: string[]
}

function splitFiles(lines: readonly string[]): PrintedFile[] {
  const files: PrintedFile[] = []
  for (const line of lines) {
    if (isFileLine(line)) files.push({ file: line, lines: [] })
    else files.at(-1)?.lines.push(line)
  }
  return files
}

const countTests = ({ lines }: PrintedFile): number =>
  lines.reduce((sum, line) => sum + Number(COUNT.exec(line)?.[2] ?? 0), 0)

function judge({ file, lines }: PrintedFile): FileFailure {
  const end = lines.findIndex((line) => TOTAL.test(line))
  const own = end === -1 ? lines : lines.slice(0, end)
  const failed = own.reduce((sum, line) => {
    const [, ran = '0', of = '0'] = COUNT.exec(line) ?? []
    return sum + Number(of) - Number(ran)
  }, 0)
  const start = own.findIndex((line) => line.trimStart().startsWith('FAIL '))
  return { file, failed, text: own.slice(Math.max(0, start)).join('\n').trimEnd() }
}
