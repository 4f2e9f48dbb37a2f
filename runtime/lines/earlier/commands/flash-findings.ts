/** Finds out everything about a flash that can be known before the first byte is written. */
import { decideRefusals } from '../../../core/flash/flash.ts'
import type { Source } from '../../../services/image/source.ts'
import type { Findings } from '../rules/flash-report.ts'
import type { FlashRequest } from '../rules/flash-request.ts'
import type { FlashDependencies } from './flash-parts.ts'

/**
 * Image, inputs and tools of the later steps, then the target, in this order. What speaks against
 * the plan is collected; what is missing (files, tools) is thrown.
 */
export async function findOut(
  request: FlashRequest,
  source: Source,
  { checks, loadProvisioner }: FlashDependencies,
  signal: AbortSignal,
): Promise<Findings> {
  const { dryRun, provisioning } = request
  const wishes = { format: request.format, sha256: request.options.sha256 }
  const { image, imageProblem, sha256 } = await checks.checkImage(source, wishes, signal)
  if (provisioning.mode !== 'none') await (await loadProvisioner()).check(provisioning)
  const target = await checks.checkTarget(request.target, image, signal)
  const refusals = decideRefusals(image, target, request.options)
  const options = { ...request.options, sha256 }
  return { dryRun, image, imageProblem, target, options, provisioning, refusals }
}
