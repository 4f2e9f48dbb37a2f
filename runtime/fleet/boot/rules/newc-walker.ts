/** Walks through the cpio archives ("newc") of an initrd by their names; the content is skipped. */

export type NewcStep =
  | { readonly kind: 'more' }
  | { readonly kind: 'found' }
  /** Something else than an archive begins at this offset of the chunk. */
  | { readonly kind: 'rest'; readonly at: number }
  | { readonly kind: 'broken' }

interface NewcWalker {
  /** Push nothing after any other answer than `more`. */
  push(chunk: Uint8Array): NewcStep
  /** At least one archive was read, the last one to its end. */
  isAtEnd(): boolean
}

const HEADER_BYTES = 110
const MAGIC = /^07070[12][0-9a-f]{104}$/i
const SIZE_AT = 6 + 6 * 8
const NAME_SIZE_AT = 6 + 11 * 8
/** The kernel's limit for a path. */
const MAX_NAME_BYTES = 4096
const TRAILER = 'TRAILER!!!'
const MORE: NewcStep = { kind: 'more' }

/** `missing`: bytes still to collect, or to pass over (`skip`). */
type WalkState =
  | { readonly kind: 'between' }
  | { readonly kind: 'header' | 'name'; missing: number }
  | { readonly kind: 'skip'; missing: number; readonly next: 'header' | 'between' }

/** `wanted`: a path without a leading slash or dot. */
export function createNewcWalker(wanted: string): NewcWalker {
  let state: WalkState = { kind: 'between' }
  let archives = 0
  let collected: Uint8Array[] = []
  let [dataBytes, nameBytes] = [0, 0]

  function endHeader(text: string): NewcStep {
    if (!MAGIC.test(text)) return { kind: 'broken' }
    dataBytes = readField(text, SIZE_AT)
    nameBytes = readField(text, NAME_SIZE_AT)
    if (nameBytes === 0 || nameBytes > MAX_NAME_BYTES) return { kind: 'broken' }
    // Header and name together end at a multiple of 4.
    state = { kind: 'name', missing: padded(HEADER_BYTES + nameBytes) - HEADER_BYTES }
    return MORE
  }

  function endName(text: string): NewcStep {
    const name = text.slice(0, nameBytes - 1).replace(/^(?:\.?\/)+/, '')
    if (name === wanted) return { kind: 'found' }
    const isLast = name === TRAILER
    if (isLast) archives += 1
    state = { kind: 'skip', missing: padded(dataBytes), next: isLast ? 'between' : 'header' }
    return MORE
  }

  /** The number of bytes used, or the final step. */
  function advance(chunk: Uint8Array): number | NewcStep {
    if (state.kind === 'between') {
      const used = chunk.findIndex((byte) => byte !== 0)
      if (used < 0) return chunk.length
      if (chunk[used] !== ZERO_DIGIT) return { kind: 'rest', at: used }
      state = { kind: 'header', missing: HEADER_BYTES }
      return used
    }
    const bytes = Math.min(state.missing, chunk.length)
    state.missing -= bytes
    if (state.kind === 'skip') {
      if (state.missing === 0) state = begin(state.next)
      return bytes
    }
    collected.push(Uint8Array.from(chunk.subarray(0, bytes)))
    if (state.missing > 0) return bytes
    const text = Buffer.concat(collected).toString('latin1')
    collected = []
    const step = state.kind === 'header' ? endHeader(text) : endName(text)
    return step.kind === 'more' ? bytes : step
  }

  return {
    push(chunk) {
      let at = 0
      while (at < chunk.length || (state.kind === 'skip' && state.missing === 0)) {
        const step = advance(chunk.subarray(at))
        if (typeof step === 'number') at += step
        else return step.kind === 'rest' ? { kind: 'rest', at: at + step.at } : step
      }
      return MORE
    },
    isAtEnd: () => archives > 0 && state.kind === 'between',
  }
}

const ZERO_DIGIT = 0x30

const begin = (next: 'header' | 'between'): WalkState =>
  next === 'between' ? { kind: 'between' } : { kind: 'header', missing: HEADER_BYTES }

const readField = (text: string, at: number) => Number.parseInt(text.slice(at, at + 8), 16)

const padded = (bytes: number) => Math.ceil(bytes / 4) * 4
