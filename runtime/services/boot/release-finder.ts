/** Finds a release at its site: by its manifest, or by the checksums of its three files if there is none. */
import { RELEASE_MANIFEST } from '../../../appliance/assets.ts'
import { BOOT_ARCHS, setFileName, type BootArch } from '../../core/boot/boot-set.ts'
import { Fault, renderError } from '../../core/foundation/fault.ts'
import { parseJson } from '../../core/foundation/json-reader.ts'
import {
  describeBareRelease,
  LATEST,
  listReleaseApis,
  listReleaseBases,
  parseLatestTag,
  parseRedirectedTag,
  planRelease,
  versionOfTag,
  type Artifact,
  type Release,
  type ReleasePlan,
} from '../../core/boot/release.ts'
import { isAnswered } from '../net/http-documents.ts'
import { askOnce } from '../net/json-client.ts'
import type { Sources } from '../image/sources.ts'
import {
  MAX_TEXT_BYTES,
  readManifestText,
  readReleaseText,
  targetOf,
  TEXT_MS,
  verifyManifest,
  wrongRelease,
  type ReleaseTexts,
  type SignedQuery,
} from './release-manifest-reader.ts'

export interface ReleaseFinderDependencies extends ReleaseTexts {
  readonly sources: Pick<Sources, 'open'>
}

export interface ReleaseQuery extends SignedQuery {
  readonly site: string
  readonly repository: string
  readonly tag: string
}

export interface FoundRelease {
  /** The address of the folder of its files; ends in a slash. */
  readonly base: string
  readonly plan: ReleasePlan
}

/** Tries the places where the site may keep the tag. A Fault `upstream-failed` where none has it. */
export async function findRelease(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
): Promise<FoundRelease> {
  const { tag } = query
  let first: unknown = null
  const found = await findManifest(parts, query, (thrown) => {
    first ??= thrown
  })
  if (found !== null) return { base: found.base, plan: planFrom(found.release, found.base, tag) }
  requireManifest(query, first)
  // Where no server answered at all, none would answer for other names either.
  const bare = isAnswered(first) ? await findBareRelease(parts, query) : null
  if (bare !== null) return bare
  throw new Fault('upstream-failed', `release ${tag} was not found: ${renderError(first)}`, {
    cause: first,
    hint: 'Check [releases] base_url, boot.release_repo and the tag.',
  })
}

/** Null where one of several places fails: the next one is tried, unless all of it was cancelled. */
export const orNull = <T>(
  signal: AbortSignal,
  work: Promise<T>,
  onFailure?: (thrown: unknown) => void,
) =>
  work.catch((thrown: unknown) => {
    signal.throwIfAborted()
    onFailure?.(thrown)
    return null
  })

function planFrom(release: Release, base: string, tag: string): ReleasePlan {
  const plan = planRelease(release, tag)
  if (!plan.ok) throw wrongRelease(`${base}${RELEASE_MANIFEST}`, plan.refusal)
  return plan.value
}

/** Where the manifest lies, its text verified. Null: at none of the places; `onFailure` learns why, place by place. */
export async function findManifest(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
  onFailure: (thrown: unknown) => void,
): Promise<{ readonly base: string; readonly release: Release } | null> {
  const { site, repository, tag, signal } = query
  for (const base of listReleaseBases(site, repository, tag)) {
    const text = await orNull(signal, readManifestText(parts, query, base), onFailure)
    if (text === null) continue
    return { base, release: await verifyManifest(parts, query, base, text) }
  }
  return null
}

/** What was signed is the manifest: without one nothing can be trusted where keys are configured. */
export function requireManifest({ keys, tag }: ReleaseQuery, first: unknown): void {
  if (keys.length === 0 || !isAnswered(first)) return
  throw new Fault(
    'upstream-failed',
    `release ${tag} has no signed manifest: ${renderError(first)}`,
    {
      cause: first,
      hint: 'releases.public_keys requires release.toml and release.toml.sig; without it neither is needed.',
    },
  )
}

/** Null: no place has the list of checksums that the trio of this tag would have. */
async function findBareRelease(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
): Promise<FoundRelease | null> {
  const { site, repository } = query
  const tag = query.tag === LATEST ? await findLatestTag(parts, query) : query.tag
  const version = tag === null ? null : versionOfTag(tag)
  if (tag === null || version === null) return null
  const places = [tag, ...(query.tag === LATEST ? [LATEST] : [])]
  for (const base of places.flatMap((one) => listReleaseBases(site, repository, one))) {
    const lists = await readLists(parts, query, base, version)
    if (lists.length === 0) continue
    const described = describeBareRelease(tag, version, lists)
    if (!described.ok) throw wrongRelease(base, described.refusal)
    const artifacts = await measure(parts, query, base, described.value)
    const plan = planRelease({ version, tag, artifacts }, tag)
    if (!plan.ok) throw wrongRelease(base, plan.refusal)
    return { base, plan: plan.value }
  }
  return null
}

/** Those of the architectures that have one; empty where a PC's is missing. */
async function readLists(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
  base: string,
  version: string,
) {
  const lists: { readonly arch: BootArch; readonly text: string }[] = []
  for (const arch of BOOT_ARCHS) {
    const url = `${base}${setFileName({ arch, version, part: 'checksums' })}`
    // Where all fails, the manifest's failure is the one to report.
    const text = await orNull(query.signal, readReleaseText(parts, query, url))
    if (text !== null) lists.push({ arch, text })
    else if (arch === 'x86_64') return []
  }
  return lists
}

/** A list of checksums has no sizes; the server knows them. */
export async function measure(
  { sources }: ReleaseFinderDependencies,
  { signal }: ReleaseQuery,
  base: string,
  files: readonly Omit<Artifact, 'sizeBytes'>[],
): Promise<readonly Artifact[]> {
  const artifacts: Artifact[] = []
  for (const file of files) {
    const url = `${base}${file.name}`
    await using source = await sources.open(url, { signal })
    const { sizeBytes } = source
    if (sizeBytes === null) throw wrongRelease(url, 'the server does not say how long it is')
    artifacts.push({ ...file, sizeBytes })
  }
  return artifacts
}

/** By the address to which `latest` redirects, else by the hosting's JSON API. */
async function findLatestTag(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
): Promise<string | null> {
  const { site, repository, signal } = query
  for (const base of listReleaseBases(site, repository, LATEST)) {
    const url = `${base}${RELEASE_MANIFEST}`
    const location = await orNull(signal, readRedirect(parts, query, url))
    const tag = location === null ? null : parseRedirectedTag(location)
    if (tag !== null) return tag
  }
  for (const url of listReleaseApis(site, repository)) {
    const text = await orNull(signal, readReleaseText(parts, query, url))
    const tag = parseLatestTag(parseJson(text ?? ''))
    if (tag !== null) return tag
  }
  return null
}

/** Null: the server does not redirect this address. */
async function readRedirect(
  { env, textMs = TEXT_MS }: ReleaseFinderDependencies,
  query: ReleaseQuery,
  url: string,
): Promise<string | null> {
  const { headers } = await askOnce(env, targetOf(url), {
    redirects: 'answer',
    maxBytes: MAX_TEXT_BYTES,
    timeoutMs: textMs,
    signal: query.signal,
  })
  return headers.location ?? null
}
