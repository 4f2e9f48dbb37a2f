/** Finds out everything about a flash that can be known before the first byte is written. */
import { Fault } from '../../../core/fault.ts'
import { decideRefusals } from '../../../core/flash.ts'
import { detectFormat, type ImageFacts, type ImageFormat } from '../../../core/image.ts'
import { readSidecar } from '../../../services/sidecars.ts'
import type { Source } from '../../../services/sources.ts'
import { untilAborted } from '../../../services/watch.ts'
import type { Findings } from '../rules/flash-report.ts'
import type { FlashRequest } from '../rules/flash-request.ts'
import type { FlashParts } from './flash-parts.ts'

/**
 * Image, inputs and tools of the later steps, then the target, in this order. What speaks against
 * the plan is collected; what is missing (files, tools) is thrown.
 */
export async function findOut(
  request: FlashRequest,
  source: Source,
  parts: FlashParts,
  signal: AbortSignal,
): Promise<Findings> {
  const { dryRun, provisioning } = request
  const format = request.format ?? detectFormat(source.fileName)
  const { image, imageProblem } = await untilAborted(signal, look(source, format, parts))
  const sha256 = request.options.sha256 ?? (await readDigest(image)) ?? source.sha256 ?? null
  if (provisioning.mode !== 'none') await (await parts.loadProvisioner()).check(provisioning)
  if (format !== null) await parts.decoders.check(format)
  const target = await untilAborted(signal, parts.disks.probe(request.target, image.path))
  const refusals = decideRefusals(image, target, request.options)
  const options = { ...request.options, sha256 }
  return { dryRun, image, imageProblem, target, options, provisioning, refusals }
}

const readDigest = async ({ path }: ImageFacts) => (path === null ? null : readSidecar(path))

/** An image whose content is no image is one more reason against the plan, not the only one told. */
async function look(source: Source, format: ImageFormat | null, { images }: FlashParts) {
  try {
    return { image: await images.probe(source, format), imageProblem: null }
  } catch (thrown) {
    if (!(thrown instanceof Fault) || !UNFIT.has(thrown.code)) throw thrown
    const { name, path, url, sizeBytes } = source
    const image: ImageFacts = { name, path, url, format, sizeBytes, virtual: { kind: 'unknown' } }
    return { image, imageProblem: thrown.message }
  }
}

const UNFIT = new Set<string>(['plan-refused', 'image-broken'])
