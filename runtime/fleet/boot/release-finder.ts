/** Finds a release at its site: by its manifest, or by the checksums of its three files if there is none. */
import { RELEASE_MANIFEST, signatureOf, SIGNATURE_NAMESPACE, LIVE_SUMS } from '#appliance/assets.ts'
import { BOOT_ARCHS, setFileName, type BootArch } from './rules/boot-set.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
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
  parseRelease,
  parseLiveSums,
  planLiveRelease,
  planSignedLiveRelease,
} from './rules/release.ts'
import { askOnce, fetchDocument, isAnswered } from '#kit/net/json-client.ts'
import type { Sources } from '#engine/image/sources/sources.ts'
import { findSignatureFault } from '#kit/foundation/ssh-signature.ts'
import { describeFailure } from '#kit/net/rules/network-failure.ts'
import { parseHttpTarget, renderSafeUrl, type HttpTarget } from '#kit/net/rules/image-location.ts'
import type { Environment } from '#kit/host/shell.ts'

export interface ReleaseFinderDependencies extends ReleaseTexts {
  readonly sources: Pick<Sources, 'open'>
}

export interface ReleaseQuery extends SignedQuery {
  readonly site: string
  readonly repository: string
  readonly tag: string
}

interface FoundRelease {
  /** The folder of its files; ends in a slash. */
  readonly base: string
  readonly plan: ReleasePlan
}

/** Rejects with a Fault `upstream-failed` if no place has the tag. */
export async function findRelease(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
): Promise<FoundRelease> {
  const { tag } = query
  const found = await findManifest(parts, query)
  if (found.ok) {
    const { base, release } = found.value
    return { base, plan: planFrom(planRelease(release, tag), `${base}${RELEASE_MANIFEST}`) }
  }
  const cause = found.refusal
  requireManifest(query, cause)
  // If no server answered, none would for other names.
  const bare = isAnswered(cause) ? await findBareRelease(parts, query) : null
  if (bare !== null) return bare
  throw notFound(query, cause, 'Check the release site, the repository and the tag.')
}

/** Null: this place failed, try the next; a cancellation still throws. */
const orNull = <T>(signal: AbortSignal, work: Promise<T>) =>
  work.catch(() => {
    signal.throwIfAborted()
    return null
  })

function planFrom(plan: Result<ReleasePlan, string>, url: string): ReleasePlan {
  if (!plan.ok) throw wrongRelease(url, plan.refusal)
  return plan.value
}

/** From the first place that has it; the refusal is the first place's error. */
async function findText(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
  name: string,
): Promise<Result<{ readonly base: string; readonly text: string }, unknown>> {
  const { site, repository, tag, signal } = query
  let first: unknown = null
  for (const base of listReleaseBases(site, repository, tag)) {
    try {
      return accept({ base, text: await readReleaseText(parts, query, `${base}${name}`) })
    } catch (thrown) {
      signal.throwIfAborted()
      first ??= thrown
    }
  }
  return refuse(first)
}

/** The manifest, verified, and its place. Refused as in `findText`. */
async function findManifest(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
): Promise<Result<{ readonly base: string; readonly release: Release }, unknown>> {
  const found = await findText(parts, query, RELEASE_MANIFEST)
  if (!found.ok) return found
  const { base, text } = found.value
  return accept({ base, release: await verifyManifest(parts, query, base, text) })
}

/** Signatures cover the manifest: if keys are configured, nothing can be trusted without it. */
function requireManifest({ keys, tag }: ReleaseQuery, first: unknown): void {
  if (keys.length === 0 || !isAnswered(first)) return
  throw new Fault(
    'upstream-failed',
    `release ${tag} has no signed manifest: ${renderError(first)}`,
    {
      cause: first,
      hint: 'releases.public_keys requires release.toml and release.toml.sig; they are only needed with it.',
    },
  )
}

/** Null: no place has the trio's checksum list. */
async function findBareRelease(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
): Promise<FoundRelease | null> {
  const { site, repository } = query
  const tag = query.tag === LATEST ? await findLatestTag(parts, query) : query.tag
  const version = tag === null ? null : versionOfTag(tag)
  if (tag === null || version === null) return null
  const tags = [tag, ...(query.tag === LATEST ? [LATEST] : [])]
  for (const base of tags.flatMap((one) => listReleaseBases(site, repository, one))) {
    const lists = await readLists(parts, query, base, version)
    if (lists.length === 0) continue
    const described = describeBareRelease(tag, version, lists)
    if (!described.ok) throw wrongRelease(base, described.refusal)
    const artifacts = await measure(parts, query, base, described.value)
    return { base, plan: planFrom(planRelease({ version, tag, artifacts }, tag), base) }
  }
  return null
}

/** Empty if the PC's list is missing. */
async function readLists(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
  base: string,
  version: string,
) {
  const lists: { readonly arch: BootArch; readonly text: string }[] = []
  for (const arch of BOOT_ARCHS) {
    const url = `${base}${setFileName({ arch, version, part: 'checksums' })}`
    // If all fails, the manifest's failure is reported.
    const text = await orNull(query.signal, readReleaseText(parts, query, url))
    if (text !== null) lists.push({ arch, text })
    else if (arch === 'x86_64') return []
  }
  return lists
}

/** Sizes come from the server: checksum lists have none. */
async function measure(
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
    if (sizeBytes === null) throw wrongRelease(url, 'the server does not send its size')
    artifacts.push({ ...file, sizeBytes })
  }
  return artifacts
}

/** From the redirect of `latest`, else from the hosting's JSON API. */
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

/** Null: no redirect. */
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

// Reads the manifest of a release, and verifies its signature where one is required.

interface ReleaseTexts {
  readonly env: Environment
  /** For a small text, in milliseconds; default 30,000. */
  readonly textMs?: number
}

interface SignedQuery {
  /** SSH keys, one of which must have signed the manifest; empty: no signature needed. */
  readonly keys: readonly string[]
  readonly signal: AbortSignal
}

const MAX_TEXT_BYTES: number = 1024 * 1024
const TEXT_MS = 30_000

/** @throws a Fault `upstream-failed` if the signature or the manifest is wrong. */
async function verifyManifest(
  texts: ReleaseTexts,
  query: SignedQuery,
  base: string,
  text: string,
): Promise<Release> {
  const url = `${base}${RELEASE_MANIFEST}`
  if (query.keys.length > 0) await requireSignature(texts, query, url, text)
  const release = parseRelease(text)
  if (!release.ok) throw wrongRelease(url, release.refusal)
  return release.value
}

async function requireSignature(
  texts: ReleaseTexts,
  query: SignedQuery,
  url: string,
  message: string,
): Promise<void> {
  const signature = await readReleaseText(texts, query, signatureOf(url)).catch(
    (thrown: unknown) => {
      query.signal.throwIfAborted()
      throw wrongRelease(url, `its signature is required and missing: ${renderError(thrown)}`)
    },
  )
  const fault = findSignatureFault({
    message,
    signature,
    namespace: SIGNATURE_NAMESPACE,
    keys: query.keys,
  })
  if (fault !== null) throw wrongRelease(url, fault)
}

export async function readReleaseText(
  { env, textMs = TEXT_MS }: ReleaseTexts,
  { signal }: Pick<SignedQuery, 'signal'>,
  url: string,
): Promise<string> {
  const answer = await fetchDocument({
    target: targetOf(url),
    name: renderSafeUrl(url),
    env,
    maxBytes: MAX_TEXT_BYTES,
    timeoutMs: textMs,
    etag: null,
    signal,
  })
  return answer?.text ?? ''
}

function targetOf(url: string): HttpTarget {
  const target = parseHttpTarget(url)
  if (target !== null) return target
  throw new Fault('misuse', `[releases] base_url must be an http(s) address`)
}

export const wrongRelease = (url: string, reason: string) =>
  new Fault('upstream-failed', `${renderSafeUrl(url)} cannot be used: ${reason}`, {
    hint: 'Nothing was changed. The publisher of the release has to fix it.',
  })

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

/** A site that nobody reached is named alone: what was asked of it does not matter. */
function notFound({ site, tag }: ReleaseQuery, cause: unknown, hint: string): Fault {
  const isAway = !isAnswered(cause) && cause instanceof Fault
  const reason = isAway ? describeFailure(cause.cause)?.reason : undefined
  const host = URL.parse(site)?.host ?? site
  const words =
    reason === undefined
      ? `release ${tag} was not found: ${renderError(cause)}`
      : reason === 'host name not found'
        ? `${host} not found`
        : `${host}: ${reason}`
  return new Fault('upstream-failed', words, { cause, hint })
}

const CHECK = 'Check FLASHER_RELEASES_BASE_URL, FLASHER_BOOT_RELEASE_REPO and the tag.'

/** The manifest is what was signed. `noSums`: why the checksum list could not be read. */
async function findByManifest(
  parts: ReleaseFinderDependencies,
  query: ReleaseQuery,
  noSums: unknown,
): Promise<FoundRelease> {
  if (noSums !== null && !isAnswered(noSums)) throw notFound(query, noSums, CHECK)
  const found = await findManifest(parts, query)
  if (!found.ok) {
    if (noSums !== null) throw notFound(query, noSums, CHECK)
    requireManifest(query, found.refusal)
    throw notFound(query, found.refusal, CHECK)
  }
  const { base, release } = found.value
  const plan = planSignedLiveRelease(release, query.tag)
  return { base, plan: planFrom(plan, `${base}${RELEASE_MANIFEST}`) }
}
