/** Finds a release of the earlier line, in both forms that its site's addresses may have. */
import { LIVE_SUMS } from '../../../appliance/assets.ts'
import { parseLiveSums, planLiveRelease } from '../../core/boot/live-release.ts'
import { listReleaseBases } from '../../core/boot/release.ts'
import { Fault, renderError } from '../../core/foundation/fault.ts'
import {
  measure,
  orNull,
  readReleaseText,
  wrongRelease,
  type FoundRelease,
  type ReleaseFinderDependencies,
  type ReleaseQuery,
} from './release-finder.ts'

/** A Fault `upstream-failed` where no place has the release, or its list leaves out a file. */
export async function findLiveRelease(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
): Promise<FoundRelease> {
  const { site, repository, tag, signal } = query
  let first: unknown = null
  for (const base of listReleaseBases(site, repository, tag)) {
    const url = `${base}${LIVE_SUMS}`
    const text = await orNull(signal, readReleaseText(parts, query, url), (thrown) => {
      first ??= thrown
    })
    if (text === null) continue
    const listed = parseLiveSums(text)
    if (!listed.ok) throw wrongRelease(url, listed.refusal)
    const files = await measure(parts, query, base, listed.value)
    return { base, plan: planLiveRelease(tag, files) }
  }
  throw new Fault('upstream-failed', `release ${tag} was not found: ${renderError(first)}`, {
    cause: first,
    hint: 'Check FLASHER_RELEASES_BASE_URL, FLASHER_BOOT_RELEASE_REPO and the tag.',
  })
}
