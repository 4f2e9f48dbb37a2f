/** How deep JSON nests, counted while its bytes arrive: what is too deep is never parsed. */

export interface DepthMeter {
  /** The next bytes; false from the first that nests deeper than allowed. */
  feed(bytes: Uint8Array): boolean
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d,
]

export function createDepthMeter(most: number): DepthMeter {
  let depth = 0
  let deepest = 0
  let isText = false
  let isEscaped = false

  const step = (byte: number) => {
    if (byte === QUOTE) isText = true
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) deepest = Math.max(deepest, ++depth)
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--
  }
  const stepInText = (byte: number) => {
    if (isEscaped) isEscaped = false
    else if (byte === BACKSLASH) isEscaped = true
    else if (byte === QUOTE) isText = false
  }
  return {
    feed(bytes) {
      for (const byte of bytes) {
        if (isText) stepInText(byte)
        else step(byte)
      }
      return deepest <= most
    },
  }
}
