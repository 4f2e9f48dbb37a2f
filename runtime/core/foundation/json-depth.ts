/** Measures how deep JSON nests while its bytes arrive, so that too deep a document is never parsed. */

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** How much deeper it is after each byte, outside of texts. */
const STEPS = new Int8Array(256)
for (const opening of '[{') STEPS[opening.charCodeAt(0)] = 1
for (const closing of ']}') STEPS[closing.charCodeAt(0)] = -1

export function createDepthMeter(maxDepth: number) {
  let state = { depth: 0, deepest: 0, isText: false, isEscaped: false }
  return {
    /** The next bytes; false from the first that nests deeper than allowed. */
    feed(bytes: Uint8Array): boolean {
      // One loop on locals: hardware trees have some 100,000 bytes.
      let { depth, deepest, isText, isEscaped } = state
      for (let at = 0; at < bytes.length; at += 1) {
        const byte = bytes[at] ?? 0
        if (isText) {
          if (isEscaped) isEscaped = false
          else if (byte === BACKSLASH) isEscaped = true
          else if (byte === QUOTE) isText = false
          continue
        }
        isText = byte === QUOTE
        depth += STEPS[byte] ?? 0
        if (depth > deepest) deepest = depth
      }
      state = { depth, deepest, isText, isEscaped }
      return deepest <= maxDepth
    },
  }
}
