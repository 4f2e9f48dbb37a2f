/** Reads what the tests of some files printed: which files failed, with the texts of their failures. */
import { stripVTControlCharacters } from 'node:util'

export interface RunResults {
  /** Whether the run came to its end, so that each file had its turn. */
  readonly isWhole: boolean
  /** How many tests there were in the files that had their turn; a file that broke off counts as one. */
  readonly tests: number
  /** The processor's seconds; null where the run did not come to its end. */
  readonly processorSeconds: number | null
  /** The files that had their turn, in order. */
  readonly files: readonly string[]
  readonly failures: readonly FileFailure[]
}

export interface FileFailure {
  /** The file, from the folder of the tests. */
  readonly file: string
  readonly text: string
  readonly failed: number
}

/** What is printed first of a test that fails, in the moment it does. */
export const FAILURE = /^ {3}FAIL: /

const FILE = /^\S+\.test\.ts$/
const COUNT = /\((\d+) \/ (\d+)\)$/
const TOTAL = /^ {2}Total: +\d+$/
const PROCESSOR = /^Processor: ([\d.]+) s$/

/** What one run printed, colours or not. */
export function readResults(output: string): RunResults {
  const lines = stripVTControlCharacters(output).split('\n')
  const end = lines.findIndex((line) => TOTAL.test(line))
  const isWhole = end !== -1
  const files = splitFiles(isWhole ? lines.slice(0, end) : lines)
  const processor = lines.flatMap((line) => PROCESSOR.exec(line)?.[1] ?? [])[0]
  const last = isWhole ? undefined : files.pop()
  const failures = files.map(judge).filter(({ failed }) => failed > 0)
  if (last !== undefined) {
    failures.push({ file: last.file, text: last.lines.join('\n').trim(), failed: 1 })
  }
  return {
    isWhole,
    tests: files.reduce((sum, file) => sum + countTests(file), last === undefined ? 0 : 1),
    processorSeconds: isWhole && processor !== undefined ? Number(processor) : null,
    files: [...files, ...(last === undefined ? [] : [last])].map(({ file }) => file),
    failures,
  }
}

interface PrintedFile {
  readonly file: string
  readonly lines: string[]
}

function splitFiles(lines: readonly string[]): PrintedFile[] {
  const files: PrintedFile[] = []
  for (const line of lines) {
    if (FILE.test(line)) files.push({ file: line, lines: [] })
    else files.at(-1)?.lines.push(line)
  }
  return files
}

const countTests = ({ lines }: PrintedFile): number =>
  lines.reduce((sum, line) => sum + Number(COUNT.exec(line)?.[2] ?? 0), 0)

function judge({ file, lines }: PrintedFile): FileFailure {
  const failed = lines.reduce((sum, line) => {
    const [, ran = '0', of = '0'] = COUNT.exec(line) ?? []
    return sum + Number(of) - Number(ran)
  }, 0)
  const start = lines.findIndex((line) => FAILURE.test(line))
  return { file, failed, text: lines.slice(Math.max(0, start)).join('\n').trim() }
}
