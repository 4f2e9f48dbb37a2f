/** A release of the earlier line: the live system's three files and their checksums, named alike in every one. */
import { LIVE_SUMS, LIVE_TRIO } from '#appliance/assets.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { LiveSet } from './boot-decision.ts'
import {
  findOtherTag,
  notListed,
  pickFiles,
  readListed,
  sumBytes,
  type Artifact,
  type ListedFile,
  type Release,
  type ReleasePlan,
} from './release.ts'

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
