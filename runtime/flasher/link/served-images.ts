/** Asks a machine server for the images that it serves. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Environment } from '#kit/host/shell.ts'
import { exchange } from './server-exchange.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { detectFormat } from '#engine/image/rules/format.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'

interface ListOptions {
  readonly env: Environment
  readonly signal: AbortSignal
}

const TIMEOUT_MS = 30_000

/** Never throws; the refusal is a clause that is safe to show. */
export async function fetchServedImages(
  base: string,
  { env, signal }: ListOptions,
): Promise<Result<readonly ServedImage[], string>> {
  const answer = await exchange(`${base}/images`, { env, signal, timeoutMs: TIMEOUT_MS })
  if (!answer.ok) return refuse(answer.refusal.reason)
  const images = parseServedImages(base, answer.value)
  return images.ok ? accept(images.value) : refuse('its answer is no list of images')
}

interface ServedImage {
  readonly name: string
  readonly url: string
  /** Null: none that flasher writes. */
  readonly format: ImageFormat | null
  /** Null: the server does not say. */
  readonly sizeBytes: number | null
}

/** `base`: without a slash at its end. */
function parseServedImages(
  base: string,
  document: unknown,
): Result<readonly ServedImage[], 'not-a-list'> {
  if (!Array.isArray(document)) return refuse('not-a-list')
  return accept(
    document.flatMap((entry: unknown) => {
      if (!isRecord(entry)) return []
      const { name, size_bytes: size } = entry
      if (typeof name !== 'string' || name === '' || !name.isWellFormed()) return []
      const url = `${base}/images/${encodeURIComponent(name)}`
      const isSize = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0
      return [{ name, url, format: detectFormat(name), sizeBytes: isSize ? size : null }]
    }),
  )
}
