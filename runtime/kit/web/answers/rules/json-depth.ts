/** Measures how deep JSON nests while its bytes arrive, so that too deep a document is never parsed. */

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** The smallest of the four: most bytes outside of texts come before it. */
const BRACKET = 0x5b
/** How much deeper it is after each byte, outside of texts. */
const STEPS = new Int8Array(256)
for (const opening of '[{') STEPS[opening.charCodeAt(0)] = 1
for (const closing of ']}') STEPS[closing.charCodeAt(0)] = -1

/** Creates a meter for one document that comes in pieces. */
export function createDepthMeter(maxDepth: number) {
  /** `text`: where a text goes on in the next bytes; -1: nowhere. */
  let state = { depth: 0, deepest: 0, text: -1 }
  return {
    /** The next bytes; false from the first that nests deeper than allowed. */
    push(bytes: Uint8Array): boolean {
      // Hardware trees have some 100,000 bytes: texts are skipped in a loop of their own, on locals.
      const { length } = bytes
      let { depth, deepest } = state
      let at = state.text < 0 ? 0 : skipText(bytes, state.text)
      while (at < length) {
        const byte = bytes[at] ?? 0
        at += 1
        if (byte === QUOTE) at = skipText(bytes, at)
        else if (byte >= BRACKET) {
          depth += STEPS[byte] ?? 0
          if (depth > deepest) deepest = depth
        }
      }
      state = { depth, deepest, text: at > length ? at - length - 1 : -1 }
      return deepest <= maxDepth
    },
  }
}

/**
 * The place behind the quote that ends the text; past the end, and one further on, where it does
 * not end here.
 */
function skipText(bytes: Uint8Array, from: number): number {
  let at = from
  while (at < bytes.length) {
    const byte = bytes[at]
    at += 1
    if (byte === QUOTE) return at
    if (byte === BACKSLASH) at += 1
  }
  return at + 1
}
