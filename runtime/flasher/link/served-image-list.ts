/** Asks a machine server for the images that it serves. */
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import { parseServedImages, type ServedImage } from './served-images.ts'
import type { Environment } from '../../kit/host/shell.ts'
import { exchange } from './server-exchange.ts'

interface ListOptions {
  readonly env: Environment
  readonly signal: AbortSignal
}

const TIMEOUT_MS = 30_000

/** Fetches the list and never throws; the refusal is a clause that is safe to show. */
export async function fetchServedImages(
  base: string,
  { env, signal }: ListOptions,
): Promise<Result<readonly ServedImage[], string>> {
  const answer = await exchange(`${base}/images`, { env, signal, timeoutMs: TIMEOUT_MS })
  if (!answer.ok) return refuse(answer.refusal.reason)
  const images = parseServedImages(base, answer.value)
  return images.ok ? accept(images.value) : refuse('its answer is no list of images')
}
