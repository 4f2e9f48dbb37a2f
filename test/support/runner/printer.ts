/**
 * Prints what uvu says: at once, or, where two runs print beside each other, file by file, with how long
 * the slow ones took: a run that is cut off by a time limit shows where its time went.
 */
import { isFileLine } from './results.ts'

export type Printer = ReturnType<typeof createPrinter>

/** A file that took fewer seconds is not worth a line. */
const SLOW_SECONDS = 10

interface PrinterOptions {
  /** Whether nobody else prints at the same time. */
  readonly isAlone: boolean
  /** Milliseconds since the start of the program. */
  readonly now?: () => number
}

export function createPrinter(
  write: (text: string) => void,
  { isAlone, now = () => performance.now() }: PrinterOptions,
) {
  let began = now()
  /** What is kept of the file whose tests run, and the line that is not yet complete. */
  let held = ''
  let line = ''

  function flush() {
    const ended = now()
    const seconds = Math.round((ended - began) / 1000)
    const minutes = Math.floor(ended / 60_000)
    const time = `  ${seconds} s, until minute ${minutes}\n`
    write(seconds >= SLOW_SECONDS ? held + time : held)
    held = ''
    began = ended
  }
  return {
    print(text: string) {
      if (isAlone) return write(text)
      const lines = (line + text).split('\n')
      line = lines.pop() ?? ''
      for (const complete of lines) {
        if (isFileLine(complete)) flush()
        held += `${complete}\n`
      }
    },
    end() {
      held += line
      line = ''
      if (isAlone) write(held)
      else flush()
    },
  }
}
