/** The clock of programs that run: a test sets it, hours back or years ahead, while they work. */
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const LIBRARY = '/usr/$LIB/faketime/libfaketimeMT.so.1'

export interface MovedClock {
  /** What a program is started with that shall have this clock. */
  readonly env: Readonly<Record<string, string>>
  /** From now on it is so many seconds ahead of ours, or behind it. */
  set(seconds: number): Promise<void>
  /** What the programs take for the present, in milliseconds. */
  now(): number
}

/** Only the clock on the wall is moved: durations stay as they are. Needs Debian's `faketime`. */
export async function createMovedClock(folder: string): Promise<MovedClock> {
  const path = join(folder, 'clock')
  let ahead = 0
  const clock = {
    env: {
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: path,
      // Read at each look at the clock, so that it moves in the middle of everything.
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    },
    async set(seconds: number) {
      // Never half a file: another process reads it at any moment.
      await writeFile(`${path}.new`, `${seconds < 0 ? '' : '+'}${seconds}s\n`)
      await rename(`${path}.new`, path)
      ahead = seconds
    },
    now: () => Date.now() + ahead * 1000,
  }
  await clock.set(0)
  return clock
}
