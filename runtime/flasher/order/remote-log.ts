/** The log of a run that failed, for the server: what was on the screen, the run's steps, the kernel's last lines. */
import { printable } from '../../kit/foundation/printable.ts'
import type { HardwareReader } from '../../engine/inventory/hardware-reader.ts'

interface LogDependencies {
  readonly hardware: Pick<HardwareReader, 'readKernelLog'>
  /** The last lines that the person saw. */
  readonly transcript: () => readonly string[]
}

/** Enough for anybody; the server keeps the tail of what is longer. */
const MAX_LOG_CHARACTERS = 200_000

export async function renderLog(
  { hardware, transcript }: LogDependencies,
  steps: readonly string[],
  reason: string,
): Promise<string> {
  const kernel = await hardware.readKernelLog()
  const lines = [
    `failed: ${reason}`,
    '',
    '--- the last lines on the screen',
    ...transcript(),
    ...steps,
    '',
    '--- the last lines of the kernel',
    ...kernel,
  ]
  return `${lines.map(printable).join('\n')}\n`.slice(-MAX_LOG_CHARACTERS)
}
