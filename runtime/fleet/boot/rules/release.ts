/** Releases of the live environment: their addresses, their manifest, and which files are fetched. */
import { z } from 'zod'
import { RELEASE_MANIFEST, LIVE_SUMS, LIVE_TRIO } from '#appliance/assets.ts'
import {
  BOOT_ARCHS,
  parseLoaderFile,
  parseSetFile,
  setFileName,
  TRIO,
  type BootArch,
  type PerArch,
} from './boot-set.ts'
import { parseSha256For } from '#kit/foundation/checksum.ts'
import { segment } from './ipxe.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { parseToml } from '#kit/config/rules/toml.ts'
import type { LiveSet } from './boot-decision.ts'

export const LATEST = 'latest'

/** May become part of an address: never `..`. */
export const ReleaseTagSchema = z
  .string()
  .regex(/^[A-Za-z0-9][\w.+-]{0,99}$/, 'a tag like v1.2.3, or latest')

export interface Artifact {
  readonly name: string
  readonly sizeBytes: number
  readonly sha256: string
}

type ListedFile = Omit<Artifact, 'sizeBytes'>

export interface Release {
  readonly version: string
  readonly tag: string
  readonly artifacts: readonly Artifact[]
}

export interface ReleasePlan {
  readonly release: Release
  readonly files: readonly Artifact[]
  /** Small lists beside the trios; they must agree with the manifest. */
  readonly lists: readonly { readonly name: string; readonly files: readonly Artifact[] }[]
  readonly sets: Partial<PerArch<string>>
  readonly totalBytes: number
}

const MAX_ARTIFACTS = 1000
/** No file of a release is larger. */
const MAX_BYTES = 64 * 2 ** 30

const ManifestSchema = z.object({
  version: z.string().regex(/^[0-9][0-9A-Za-z.+~-]{0,63}$/),
  tag: ReleaseTagSchema,
  artifacts: z
    .array(
      z.object({
        name: z.string().regex(/^[A-Za-z0-9][\w.+~-]{0,199}$/),
        size: z.int().min(1).max(MAX_BYTES),
        sha256: z.string().regex(/^[0-9a-f]{64}$/i),
      }),
    )
    .max(MAX_ARTIFACTS),
})

/** `release.toml`; the refusal is a clause. */
export function parseRelease(text: string): Result<Release, string> {
  const document = parseToml(text)
  if (!document.ok) {
    const { message, line, column } = document.refusal
    return refuse(`line ${line}, column ${column}: ${message}`)
  }
  const parsed = ManifestSchema.safeParse(document.value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    return refuse(`${issue?.path.join('.') || 'the document'} is invalid`)
  }
  const { version, tag, artifacts } = parsed.data
  const names = new Set(artifacts.map(({ name }) => name))
  if (names.size !== artifacts.length) return refuse('it lists a file twice')
  return accept({
    version,
    tag,
    artifacts: artifacts.map(({ name, size, sha256 }) => ({
      name,
      sizeBytes: size,
      sha256: sha256.toLowerCase(),
    })),
  })
}

/** Refused in words: another release, or an incomplete trio. */
export function planRelease(release: Release, tag: string): Result<ReleasePlan, string> {
  const other = findOtherTag(release, tag)
  if (other !== null) return refuse(other)
  const archs = BOOT_ARCHS.filter((arch) => arch === 'x86_64' || isListed(release, arch))
  const { version, artifacts } = release
  const trioOf = (arch: BootArch) => TRIO.map((part) => setFileName({ arch, version, part }))
  const missing = archs
    .flatMap(trioOf)
    .filter((name) => !artifacts.some((one) => one.name === name))
  if (missing.length > 0) return refuse(`it ${notListed(missing)}`)
  const lists = archs.map((arch) => ({
    name: setFileName({ arch, version, part: 'checksums' }),
    files: pickFiles(release, trioOf(arch)),
  }))
  const loaders = release.artifacts.filter(({ name }) => parseLoaderFile(name) !== null)
  const files = [...lists.flatMap((list) => list.files), ...loaders]
  return accept({
    release,
    files,
    lists,
    sets: Object.fromEntries(archs.map((arch) => [arch, version])),
    totalBytes: sumBytes(files),
  })
}

/** Null: the right release. */
const findOtherTag = (release: Release, tag: string): string | null =>
  tag === LATEST || tag === release.tag
    ? null
    : `it is the manifest of ${release.tag}, not of ${tag}`

export function versionOfTag(tag: string): string | null {
  const version = tag.replace(/^v/, '')
  return ManifestSchema.shape.version.safeParse(version).success ? version : null
}

/** The hosting's JSON about the newest release, likeliest first. */
export function listReleaseApis(site: string, repository: string): readonly string[] {
  const path = `repos/${repository.split('/').map(segment).join('/')}/releases/latest`
  const isGithub = URL.parse(site)?.host === 'github.com'
  const roots = isGithub ? ['https://api.github.com'] : [site, `${site}/api/v1`, `${site}/api/v3`]
  return roots.map((root) => `${root}/${path}`)
}

/** Null: no usable tag. */
export const parseLatestTag = (json: unknown): string | null =>
  z.object({ tag_name: ReleaseTagSchema }).safeParse(json).data?.tag_name ?? null

/** From the address to which `latest` redirects; null: no tag in it. */
export function parseRedirectedTag(location: string): string | null {
  const path = /\/releases\/(?:download|tag)\/([^/?#]+)|\/releases\/([^/?#]+)\/download\//.exec(
    location,
  )
  const parsed = ReleaseTagSchema.safeParse(path?.[1] ?? path?.[2])
  return parsed.success && parsed.data !== LATEST ? parsed.data : null
}

/** Built from checksum lists; `sizes` by name. Refused if a list omits a file of its trio. */
export function describeBareRelease(
  tag: string,
  version: string,
  lists: readonly { readonly arch: BootArch; readonly text: string }[],
): Result<readonly ListedFile[], string> {
  const listed = readListed(
    lists.flatMap(({ arch, text }) =>
      TRIO.map((part) => ({ name: setFileName({ arch, version, part }), text })),
    ),
  )
  return listed.ok ? listed : refuse(`the list of ${tag} ${listed.refusal}`)
}

/** Refused with the files that the lists omit. */
function readListed(
  files: readonly { readonly name: string; readonly text: string }[],
): Result<readonly ListedFile[], string> {
  const found = files.map(({ name, text }) => ({ name, digest: parseSha256For(text, name) }))
  const missing = found.filter(({ digest }) => !digest.ok).map(({ name }) => name)
  if (missing.length > 0) return refuse(notListed(missing))
  return accept(
    found.flatMap(({ name, digest }) => (digest.ok ? [{ name, sha256: digest.value }] : [])),
  )
}

const notListed = (names: readonly string[]) => `does not list ${names.join(', ')}`

export const renderList = (files: readonly Artifact[]): string =>
  files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('')

/** Null: list and manifest agree; else a clause. */
export function findDisagreement(text: string, files: readonly Artifact[]): string | null {
  for (const { name, sha256 } of files) {
    const listed = parseSha256For(text, name)
    if (!listed.ok) return `it does not list ${name}`
    if (listed.value !== sha256) return `it says another digest of ${name} than ${RELEASE_MANIFEST}`
  }
  return null
}

/** Possible folders of a tag's files, likeliest first; each ends in a slash. */
export function listReleaseBases(site: string, repository: string, tag: string): readonly string[] {
  const owned = `${site}/${repository.split('/').map(segment).join('/')}`
  const paths =
    tag === LATEST
      ? ['releases/latest/download/']
      : [`releases/download/${segment(tag)}/`, `releases/${segment(tag)}/download/`]
  return [owned, site].flatMap((at) => paths.map((path) => `${at}/${path}`))
}

const isListed = (release: Release, arch: BootArch) =>
  release.artifacts.some(({ name }) => parseSetFile(name)?.arch === arch)

const pickFiles = ({ artifacts }: Release, names: readonly string[]): readonly Artifact[] =>
  names.flatMap((name) => artifacts.find((one) => one.name === name) ?? [])

const sumBytes = (files: readonly Artifact[]): number =>
  files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)

// A release of the earlier line: the live system's three files and their checksums, named alike in every one.

/** The squashfs's digest is in its initrd: the files are one set. */
export const LIVE_SET: LiveSet = { ...LIVE_TRIO, squashfsSha256: null }
const NAMES: readonly string[] = Object.values(LIVE_TRIO)

export function parseLiveSums(text: string): Result<readonly ListedFile[], string> {
  const listed = readListed(NAMES.map((name) => ({ name, text })))
  return listed.ok ? listed : refuse(`it ${listed.refusal}`)
}

export const planLiveRelease = (tag: string, files: readonly Artifact[]): ReleasePlan => ({
  release: { version: tag, tag, artifacts: files },
  files,
  lists: [{ name: LIVE_SUMS, files }],
  sets: {},
  totalBytes: sumBytes(files),
})

/** Refused in words: another release, or a missing file. */
export function planSignedLiveRelease(release: Release, tag: string): Result<ReleasePlan, string> {
  const other = findOtherTag(release, tag)
  if (other !== null) return refuse(other)
  const files = pickFiles(release, NAMES)
  const missing = NAMES.filter((name) => !files.some((file) => file.name === name))
  if (missing.length > 0) return refuse(`it ${notListed(missing)}`)
  return accept({ ...planLiveRelease(tag, files), release })
}

export interface ReleaseSource {
  readonly site: string
  readonly repository: string
}

/** `https://host/owner/name` (or a page below it) is split, unless `repository` is given, too. */
export function splitReleaseSource(site: string, repository: string): ReleaseSource {
  const given = { site: site.trim(), repository: repository.trim() }
  const url = given.repository === '' ? URL.parse(given.site) : null
  const [, found] = /^\/([\w.-]+\/[\w.-]+?)(?:\.git)?(?:\/.*)?$/.exec(url?.pathname ?? '') ?? []
  return url === null || found === undefined ? given : { site: url.origin, repository: found }
}

const USUAL_SITE = 'https://github.com'

/** `repository`: package.json's, `git+https://…/owner/name.git` or `owner/name`; null: none. */
export function proposeSource(repository: string | null): ReleaseSource {
  const address = (repository ?? '').replace(/^(?:git\+|github:)/, '')
  const short = /^[\w.-]+\/[\w.-]+$/.test(address)
  if (short) return { site: USUAL_SITE, repository: address }
  const found = splitReleaseSource(address, '')
  return /^https?:/.test(found.site) && found.repository !== ''
    ? found
    : { site: USUAL_SITE, repository: '' }
}

/** A proposed repository counts only for its own site. */
export const completeSource = (set: ReleaseSource, proposed: ReleaseSource): ReleaseSource => ({
  site: set.site || proposed.site,
  repository:
    set.repository || (set.site === '' || set.site === proposed.site ? proposed.repository : ''),
})
