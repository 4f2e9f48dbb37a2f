/** Whether a planned image was replaced since the plan was made, as its server says now. */
import { createSources } from '../../engine/image/sources/sources.ts'
import type { RemoteDependencies } from './remote-hooks.ts'
import type { RemotePlan } from './remote-plan.ts'

/** What takes longer is left to the flash, which says what is wrong. */
const LONGEST_MS = 10_000

/** Finds out whether the image was replaced, and never throws; false where nothing is known. */
export async function isReplaced(
  { image, sha256 }: Pick<Extract<RemotePlan, { mode: 'flash' }>, 'image' | 'sha256'>,
  { env, signal: ending }: Pick<RemoteDependencies, 'env' | 'signal'>,
): Promise<boolean> {
  if (sha256 === null) return false
  const signal = AbortSignal.any([ending, AbortSignal.timeout(LONGEST_MS)])
  try {
    await using source = await createSources({ env }).open(image, { signal })
    return (source.sha256 ?? source.servedSha256 ?? sha256) !== sha256
  } catch {
    return false
  }
}
