/** Inventories as the server reads them: from the bytes of a body, in pieces of any length. */
import { createInventorySift } from '../../../runtime/engine/inventory/rules/inventory.ts'
import type { Sifted } from '../../../runtime/kit/foundation/json/json-sift.ts'

/** Undefined where nothing is sent. Throws where it is no JSON. */
export function siftText(text: string, pieceBytes = 64 * 1024): Sifted | undefined {
  const sift = createInventorySift()
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    if (!sift.push(bytes.subarray(at, at + pieceBytes))) break
  }
  const sifted = sift.end()
  if (!sifted.ok) throw new Error(sifted.refusal)
  return sifted.value
}

export function siftBody(body: unknown): Sifted | undefined {
  const text = JSON.stringify(body)
  return text === undefined ? undefined : siftText(text)
}
