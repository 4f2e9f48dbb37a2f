/** A whole medium as one compressed file. */
import type { Step } from './step.ts'

interface ZstdOptions {
  readonly name: string
  readonly says: string
  readonly from: string
  readonly makes: string
}

/** What is large on a medium is compressed already: a higher level would save next to nothing. */
const LEVEL = '-9'

export const zstdStep = ({ name, says, from, makes }: ZstdOptions): Step => ({
  name,
  says,
  // The bytes are the same for every number of threads but one.
  argv: ['zstd', '--quiet', '--no-progress', '-T2', LEVEL, from, '-o', `@${name}/${makes}`],
  inputs: [from],
  makes: [makes],
  tools: true,
})
