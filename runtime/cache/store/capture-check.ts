/** Verifies a captured image by what is stored of it: its SHA-256, its index, and each of its frames. */
import { open } from 'node:fs/promises'
import type { CaptureEnd } from '../../engine/capture/rules/capture-upload.ts'
import { Fault } from '../../kit/foundation/fault.ts'
import { hashStart } from '../../kit/host/file-hash.ts'
import type { IndexChecks } from '../../engine/image/frame/index-checks.ts'

/**
 * Throws a Fault `digest-mismatch` or `image-broken` where it differs; otherwise the file is on the disk,
 * for everybody to read.
 */
export async function checkCapture(
  { path, name }: { readonly path: string; readonly name: string },
  { bytes, sha256, index_sha256: indexSha256 }: CaptureEnd,
  indexes: IndexChecks,
  signal: AbortSignal,
): Promise<void> {
  await using handle = await open(path, 'r+')
  const { size: sizeBytes } = await handle.stat()
  if (sizeBytes !== bytes) throw differs(`${sizeBytes} bytes`, `${bytes} bytes`)
  const found = (await hashStart(handle, bytes, signal)).digest('hex')
  if (found !== sha256) throw differs(`the SHA-256 ${found}`, sha256)
  const index = await indexes.check(handle, { name, sizeBytes, signal })
  if (index !== indexSha256) {
    throw differs(index === null ? 'no frame index' : `an index with SHA-256 ${index}`, indexSha256)
  }
  await handle.chmod(0o644)
  await handle.sync()
}

const differs = (found: string, expected: string) =>
  new Fault('digest-mismatch', `what arrived has ${found}, but ${expected} was announced`, {
    hint: 'Nothing was kept. Capture the disk again.',
  })
