/** Fetches one release: found by its manifest, every file checked against it, installed as a whole. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RELEASE_MANIFEST } from '../../appliance/assets.ts'
import { Fault, renderError } from '../core/fault.ts'
import { parseLocation, renderSafeUrl } from '../core/location.ts'
import {
  findDisagreement,
  listReleaseBases,
  parseRelease,
  planRelease,
  type Artifact,
  type ReleasePlan,
} from '../core/release.ts'
import type { BootFolder } from './boot-files.ts'
import { describeFullDisk, requireSpace } from './disk-space.ts'
import { fetchDocument } from './http-documents.ts'
import { openReleaseParts, type ReleaseParts } from './release-parts.ts'
import type { Environment } from './shell.ts'
import type { Sources } from './sources.ts'

export interface ReleaseRunParts {
  readonly bootFiles: BootFolder
  readonly sources: Pick<Sources, 'open'>
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
}

export interface ReleaseOrder {
  readonly site: string
  readonly repository: string
  readonly tag: string
  /** Earlier sets that are kept. */
  readonly keep: number
  readonly signal: AbortSignal
  onFound(base: string, plan: ReleasePlan): void
  onFile(name: string, bytesDone: number, isDone: boolean): void
}

const MOST_TEXT_BYTES = 1024 * 1024
const TEXT_MS = 30_000
/** Besides the files themselves. */
const SPARE_BYTES = 16 * 2 ** 20

/** Throws a Fault that says what was wrong with which file; then nothing was changed. */
export async function runRelease(
  parts: ReleaseRunParts,
  order: ReleaseOrder,
): Promise<ReleasePlan> {
  const { bootFiles } = parts
  const { base, plan } = await find(parts, order)
  order.onFound(base, plan)
  await requireSpace(bootFiles.dir, plan.totalBytes + SPARE_BYTES, `Release ${plan.release.tag}`)
  const incoming = await openReleaseParts(bootFiles.dir, plan.files)
  const staged = await bootFiles.stage()
  try {
    for (const list of plan.lists)
      await fetchList(parts, order, `${base}${list.name}`, staged, list)
    for (const file of plan.files)
      await fetchFile(parts, order, { url: `${base}${file.name}`, incoming, file })
    await incoming.moveInto(staged)
    order.signal.throwIfAborted()
    await bootFiles.install(staged, plan.sets, order.keep)
    return plan
  } catch (thrown) {
    throw (await describeFullDisk(thrown, bootFiles.dir)) ?? thrown
  } finally {
    // Gone already where it was installed.
    await rm(staged, { recursive: true, force: true })
    // Who cancels may go on later; what failed is fetched anew.
    if (!order.signal.aborted) await incoming.clear()
  }
}

/** Tries the places where the site may keep the tag. */
async function find(parts: ReleaseRunParts, order: ReleaseOrder) {
  const { site, repository, tag } = order
  let first: unknown = null
  for (const base of listReleaseBases(site, repository, tag)) {
    const text = await readText(parts, order, `${base}${RELEASE_MANIFEST}`).catch(
      (thrown: unknown) => {
        order.signal.throwIfAborted()
        first ??= thrown
        return null
      },
    )
    if (text !== null) return { base, plan: planFrom(text, `${base}${RELEASE_MANIFEST}`, tag) }
  }
  throw new Fault('upstream-failed', `release ${tag} was not found: ${renderError(first)}`, {
    cause: first,
    hint: 'Look at [releases] base_url, boot.release_repo and the tag.',
  })
}

function planFrom(text: string, url: string, tag: string): ReleasePlan {
  const release = parseRelease(text)
  if (!release.ok) throw wrong(url, release.refusal)
  const plan = planRelease(release.value, tag)
  if (!plan.ok) throw wrong(url, plan.refusal)
  return plan.value
}

const wrong = (url: string, reason: string) =>
  new Fault('upstream-failed', `${renderSafeUrl(url)} cannot be used: ${reason}`, {
    hint: 'Nothing was changed; the release itself must be put right.',
  })

async function fetchList(
  parts: ReleaseRunParts,
  order: ReleaseOrder,
  url: string,
  staged: string,
  { name, files }: ReleasePlan['lists'][number],
): Promise<void> {
  const text = await readText(parts, order, url)
  const disagreement = findDisagreement(text, files)
  if (disagreement !== null) throw wrong(url, disagreement)
  await writeFile(join(staged, name), text, { flag: 'wx' })
}

async function readText({ env }: ReleaseRunParts, { signal }: ReleaseOrder, url: string) {
  const location = parseLocation(url)
  if (!location.ok || location.value.kind !== 'http') {
    throw new Fault('misuse', `[releases] base_url must be an http(s) address`)
  }
  const answer = await fetchDocument({
    target: location.value.target,
    name: renderSafeUrl(url),
    env,
    mostBytes: MOST_TEXT_BYTES,
    timeoutMs: TEXT_MS,
    etag: null,
    signal,
  })
  return answer.kind === 'new' ? answer.text : ''
}

interface Fetch {
  readonly url: string
  readonly incoming: ReleaseParts
  readonly file: Artifact
}

async function fetchFile(
  { sources }: ReleaseRunParts,
  { signal, onFile }: ReleaseOrder,
  { url, incoming, file }: Fetch,
): Promise<void> {
  const { name, sizeBytes, sha256 } = file
  onFile(name, 0, false)
  const found = await incoming.bring(file, {
    signal,
    open: () => sources.open(url, { signal }),
    onBytes: (bytes) => onFile(name, bytes, false),
    onExcess() {
      throw wrong(url, `it is longer than the ${sizeBytes} bytes of its manifest`)
    },
  })
  if (found !== sha256) {
    throw new Fault(
      'digest-mismatch',
      `${renderSafeUrl(url)} holds ${found}, but ${RELEASE_MANIFEST} says ${sha256}`,
      { hint: 'Nothing was changed; the release itself must be put right.' },
    )
  }
  onFile(name, sizeBytes, true)
}
