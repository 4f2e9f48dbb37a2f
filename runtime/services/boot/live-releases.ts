/** Finds a release of the earlier line, in both forms that its site's addresses may have. */
import { LIVE_SUMS, RELEASE_MANIFEST } from '../../../appliance/assets.ts'
import {
  parseLiveSums,
  planLiveRelease,
  planSignedLiveRelease,
} from '../../core/boot/live-release.ts'
import { listReleaseBases } from '../../core/boot/release.ts'
import { Fault, renderError } from '../../core/foundation/fault.ts'
import {
  findManifest,
  measure,
  orNull,
  requireManifest,
  type FoundRelease,
  type ReleaseFinderDependencies,
  type ReleaseQuery,
} from './release-finder.ts'
import { readReleaseText, wrongRelease } from './release-manifest-reader.ts'

/** A Fault `upstream-failed` where no place has the release, or its list leaves out a file. */
export async function findLiveRelease(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
): Promise<FoundRelease> {
  if (query.keys.length > 0) return await findSigned(parts, query)
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
  throw notFound(tag, first)
}

const notFound = (tag: string, first: unknown) =>
  new Fault('upstream-failed', `release ${tag} was not found: ${renderError(first)}`, {
    cause: first,
    hint: 'Check FLASHER_RELEASES_BASE_URL, FLASHER_BOOT_RELEASE_REPO and the tag.',
  })

/** By its manifest, which is what was signed. */
async function findSigned(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
): Promise<FoundRelease> {
  let first: unknown = null
  const found = await findManifest(parts, query, (thrown) => {
    first ??= thrown
  })
  if (found === null) {
    requireManifest(query, first)
    throw notFound(query.tag, first)
  }
  const { base, release } = found
  const plan = planSignedLiveRelease(release, query.tag)
  if (!plan.ok) throw wrongRelease(`${base}${RELEASE_MANIFEST}`, plan.refusal)
  return { base, plan: plan.value }
}
