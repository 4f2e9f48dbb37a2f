/** Fetches one release: finds it at its site, resumes earlier downloads, checks every file's digest, installs all together. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'
import { renderSafeUrl } from '#kit/net/rules/image-location.ts'
import { findDisagreement, renderList, type Artifact, type ReleasePlan } from './rules/release.ts'
import type { BootFolder } from './boot-files.ts'
import { describeFullDisk, requireSpace } from '#fleet/state/disk-space.ts'
import { isAnswered } from '#kit/net/http-documents.ts'
import { findRelease, type ReleaseFinderDependencies, type ReleaseQuery } from './release-finder.ts'
import { readReleaseText, wrongRelease } from './release-manifest-reader.ts'
import { moveName, removeTree } from '#kit/host/folders.ts'
import { bringFile, openIncoming, type IncomingFiles } from '#kit/host/digest-files.ts'

export interface ReleaseRunDependencies extends ReleaseFinderDependencies {
  readonly bootFiles: Pick<BootFolder, 'dir' | 'stage' | 'install'>
  /** Default: releases with a manifest or versioned names. */
  readonly find?: typeof findRelease
}

interface ReleaseOrder extends ReleaseQuery {
  readonly keep: number
  onFound(base: string, plan: ReleasePlan): void
  onFile(name: string, bytesDone: number, isDone: boolean): void
}

/** Hidden: nobody can fetch it below `/boot/`. */
const FOLDER = '.fetching'
const SPARE_BYTES = 16 * 2 ** 20

/** Throws a Fault that names the file at fault; then nothing has changed. */
export async function runRelease(
  parts: ReleaseRunDependencies,
  order: ReleaseOrder,
): Promise<ReleasePlan> {
  const { bootFiles, find = findRelease } = parts
  const { base, plan } = await find(parts, order)
  order.onFound(base, plan)
  await requireSpace(bootFiles.dir, plan.totalBytes + SPARE_BYTES, `Release ${plan.release.tag}`)
  // Resumes the downloads of a cancelled fetch.
  const incoming = await openIncoming(join(bootFiles.dir, FOLDER), plan.files)
  const staged = await bootFiles.stage()
  try {
    for (const list of plan.lists)
      await fetchList(parts, order, `${base}${list.name}`, staged, list)
    for (const file of plan.files)
      await fetchFile(parts, order, `${base}${file.name}`, incoming, file)
    for (const { name, sha256 } of plan.files)
      await moveName(incoming.pathOf(sha256), join(staged, name))
    order.signal.throwIfAborted()
    await bootFiles.install(staged, plan.sets, order.keep)
    return plan
  } catch (thrown) {
    throw (await describeFullDisk(thrown, bootFiles.dir)) ?? thrown
  } finally {
    await removeTree(staged)
    // A cancelled fetch may be resumed; a failed one starts anew.
    if (!order.signal.aborted) await removeTree(incoming.folder)
  }
}

async function fetchList(
  parts: ReleaseRunDependencies,
  order: ReleaseOrder,
  url: string,
  staged: string,
  { name, files }: ReleasePlan['lists'][number],
): Promise<void> {
  const text = await readReleaseText(parts, order, url).catch((thrown: unknown) => {
    order.signal.throwIfAborted()
    // The manifest has all digests, so a release without lists is whole.
    if (!isAnswered(thrown)) throw thrown
    return renderList(files)
  })
  const disagreement = findDisagreement(text, files)
  if (disagreement !== null) throw wrongRelease(url, disagreement)
  await writeFile(join(staged, name), text, { flag: 'wx' })
}

async function fetchFile(
  { sources }: ReleaseRunDependencies,
  { signal, onFile }: ReleaseOrder,
  url: string,
  incoming: IncomingFiles,
  file: Artifact,
): Promise<void> {
  const { name, sizeBytes, sha256 } = file
  const found = await bringFile(incoming, file, {
    signal,
    async *read(from) {
      await using source = await sources.open(url, { signal })
      yield* source.stream(from)
    },
    refuseLonger: () =>
      wrongRelease(url, `it is longer than the ${sizeBytes} bytes that it should have`),
    onBytes: (count) => onFile(name, count, false),
  })
  if (found === null) return onFile(name, sizeBytes, true)
  throw new Fault(
    'digest-mismatch',
    `${renderSafeUrl(url)} holds ${found}, but its release lists ${sha256}`,
    { hint: 'Nothing was changed; the release itself must be put right.' },
  )
}
