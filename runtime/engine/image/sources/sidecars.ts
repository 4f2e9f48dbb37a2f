/** Reads the digest file beside an image: `<image>.sha256`. */
import { constants, open } from 'node:fs/promises'
import { basename } from 'node:path'
import { decodeList, parseSha256For } from '#kit/foundation/checksum.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { isMissing, systemCodeOf } from '#kit/foundation/system-error.ts'

/** No list of digests needs nearly so much. */
const MAX_BYTES = 1024 * 1024

/**
 * Lower case; null: no `<image>.sha256`. Rejects with a Fault `input-invalid` where it has nothing
 * about this image.
 */
export async function readSidecar(imagePath: string): Promise<string | null> {
  const path = `${imagePath}.sha256`
  const text = await readText(path)
  if (text === null) return null
  const digest = parseSha256For(text, basename(imagePath))
  if (digest.ok) return digest.value
  const why = {
    'not-listed': `${path} does not list ${basename(imagePath)}`,
    'not-a-checksum-list': `${path} is not a list of SHA-256 digests`,
  }[digest.refusal]
  throw new Fault('input-invalid', why, {
    hint: 'Name the right digest with --sha256, or move that file away.',
  })
}

async function readText(path: string): Promise<string | null> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const into = Buffer.alloc(MAX_BYTES + 1)
    const { bytesRead } = await file.read(into, 0, into.length, 0)
    return decodeList(into.subarray(0, Math.min(bytesRead, MAX_BYTES)))
  } catch (cause) {
    // A name of the greatest length has no sidecar.
    if (isMissing(cause) || systemCodeOf(cause) === 'ENAMETOOLONG') return null
    throw new Fault('input-invalid', `${path} cannot be read: ${renderError(cause)}`, { cause })
  }
}
