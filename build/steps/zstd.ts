/** A whole medium as one compressed file. */
import type { Step } from './step.ts'

interface ZstdOptions {
  readonly name: string
  readonly says: string
  readonly from: string
  readonly makes: string
  /** Absent: 9, for what is large on a medium is compressed already. */
  readonly level?: number
}

/** Plans the step that compresses one file. */
export const zstdStep = ({ name, says, from, makes, level = 9 }: ZstdOptions): Step => ({
  name,
  says,
  // The bytes are the same for every number of threads but one.
  argv: ['zstd', '--quiet', '--no-progress', '-T2', `-${level}`, from, '-o', `@${name}/${makes}`],
  inputs: [from],
  makes: [makes],
  tools: true,
})
