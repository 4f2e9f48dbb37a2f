/** Prints what uvu says: at once, or, where two runs print beside each other, file by file. */
import { isFileLine } from './results.ts'

export type Printer = ReturnType<typeof createPrinter>

/** `isAlone`: nobody else prints at the same time. */
export function createPrinter(
  write: (text: string) => void,
  { isAlone }: { readonly isAlone: boolean },
) {
  /** What is kept of the file whose tests run, and the line that is not yet complete. */
  let held = ''
  let line = ''

  function flush() {
    write(held)
    held = ''
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
      flush()
    },
  }
}
