/** Finds a release of the earlier line, in both forms that its site's addresses may have. */
import { LIVE_SUMS, RELEASE_MANIFEST } from '#appliance/assets.ts'
import { parseLiveSums, planLiveRelease, planSignedLiveRelease } from './rules/live-release.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import {
  findManifest,
  findText,
  measure,
  planFrom,
  requireManifest,
  type FoundRelease,
  type ReleaseFinderDependencies,
  type ReleaseQuery,
} from './release-finder.ts'
import { isAnswered } from '#kit/net/http-documents.ts'
import { wrongRelease } from './release-manifest-reader.ts'

/** Rejects with a Fault `upstream-failed` if no address has it, or its list omits a file. */
export async function findLiveRelease(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
): Promise<FoundRelease> {
  const { keys, tag } = query
  if (keys.length > 0) return await findByManifest(parts, query, null)
  const found = await findText(parts, query, LIVE_SUMS)
  if (!found.ok) return await findByManifest(parts, query, found.refusal)
  const { base, text } = found.value
  const listed = parseLiveSums(text)
  if (!listed.ok) throw wrongRelease(`${base}${LIVE_SUMS}`, listed.refusal)
  const files = await measure(parts, query, base, listed.value)
  return { base, plan: planLiveRelease(tag, files) }
}

const notFound = (tag: string, cause: unknown) =>
  new Fault('upstream-failed', `release ${tag} was not found: ${renderError(cause)}`, {
    cause,
    hint: 'Check FLASHER_RELEASES_BASE_URL, FLASHER_BOOT_RELEASE_REPO and the tag.',
  })

/** The manifest is what was signed. `noSums`: why the checksum list could not be read. */
async function findByManifest(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
  noSums: unknown,
): Promise<FoundRelease> {
  if (noSums !== null && !isAnswered(noSums)) throw notFound(query.tag, noSums)
  const found = await findManifest(parts, query)
  if (!found.ok) {
    if (noSums !== null) throw notFound(query.tag, noSums)
    requireManifest(query, found.refusal)
    throw notFound(query.tag, found.refusal)
  }
  const { base, release } = found.value
  const plan = planSignedLiveRelease(release, query.tag)
  return { base, plan: planFrom(plan, `${base}${RELEASE_MANIFEST}`) }
}
