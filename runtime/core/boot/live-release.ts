/** A release of the earlier line: the live system's three files and their checksums, named alike in every one. */
import { LIVE_SUMS, LIVE_TRIO } from '../../../appliance/assets.ts'
import { parseSha256For } from '../foundation/checksum.ts'
import { accept, refuse, type Result } from '../foundation/result.ts'
import type { LiveSet } from './boot-decision.ts'
import { LATEST, type Artifact, type Release, type ReleasePlan } from './release.ts'

/** The digest of the squashfs is in its initrd: the files are one set. */
export const LIVE_SET: LiveSet = { ...LIVE_TRIO, squashfsSha256: null }

/** What the checksum list says of the trio; refused, in a clause, where it leaves one out. */
export function parseLiveSums(
  text: string,
): Result<readonly Omit<Artifact, 'sizeBytes'>[], string> {
  const found = Object.values(LIVE_TRIO).map((name) => ({
    name,
    digest: parseSha256For(text, name),
  }))
  const missing = found.filter(({ digest }) => !digest.ok).map(({ name }) => name)
  if (missing.length > 0) return refuse(`it does not list ${missing.join(', ')}`)
  return accept(
    found.flatMap(({ name, digest }) => (digest.ok ? [{ name, sha256: digest.value }] : [])),
  )
}

export const planLiveRelease = (tag: string, files: readonly Artifact[]): ReleasePlan => ({
  release: { version: tag, tag, artifacts: files },
  files,
  lists: [{ name: LIVE_SUMS, files }],
  sets: {},
  totalBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
})

/** By its manifest; refused in words where it is another release than asked for, or leaves out a file. */
export function planSignedLiveRelease(release: Release, tag: string): Result<ReleasePlan, string> {
  if (tag !== LATEST && tag !== release.tag) {
    return refuse(`it is the manifest of ${release.tag}, not of ${tag}`)
  }
  const names = Object.values(LIVE_TRIO)
  const files = names.flatMap((name) => release.artifacts.filter((one) => one.name === name))
  const missing = names.filter((name) => !files.some((file) => file.name === name))
  if (missing.length > 0) return refuse(`it does not list ${missing.join(', ')}`)
  return accept({ ...planLiveRelease(tag, files), release })
}
