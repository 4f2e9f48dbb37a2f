/** How long the tests of each file took, read from when uvu names the next one. */
import { stripVTControlCharacters } from 'node:util'
import { isFileLine } from './results.ts'

export interface FileDuration {
  /** The file, from the folder of the tests. */
  readonly file: string
  readonly seconds: number
}

/** Reads what one run of uvu prints as it arrives; `now`: milliseconds that never go back. */
export function createStopwatch(now: () => number = () => performance.now()) {
  const ended: FileDuration[] = []
  let current: { readonly file: string; readonly began: number } | null = null
  let line = ''

  function endFile() {
    if (current === null) return
    ended.push({ file: current.file, seconds: (now() - current.began) / 1000 })
    current = null
  }
  return {
    read(text: string) {
      const lines = (line + text).split('\n')
      line = lines.pop() ?? ''
      for (const complete of lines.filter(isFileLine)) {
        endFile()
        current = { file: stripVTControlCharacters(complete), began: now() }
      }
    },
    /** Ends the last file and returns all of them in their order. */
    end(): readonly FileDuration[] {
      endFile()
      return ended
    },
  }
}

/** The slowest `count` files, as lines; none where all of them were quick. */
export function describeSlowest(durations: readonly FileDuration[], count: number): string[] {
  const slow = durations
    .filter(({ seconds }) => seconds >= 1)
    .toSorted((one, other) => other.seconds - one.seconds)
  return slow
    .slice(0, count)
    .map(({ file, seconds }) => `${seconds.toFixed(0).padStart(5)} s  ${file}`)
}
