/** Checks JSON byte by byte as it arrives and says where values begin and end; builds nothing. */
import {
  AGAIN,
  BEGINS,
  CLOSES,
  ENDS,
  KEY_BEGINS,
  KEY_ENDS,
  OPENS,
  PLAIN,
  STATE,
  STEPS,
  isNumberEnd,
} from './json-steps.ts'

export type JsonDefect = 'malformed' | 'too-deep'

/** The listener gets each value and key by its place in the bytes that are being fed. */
interface JsonListener {
  /** A value begins with this byte, inside of so many containers. */
  begin(at: number, byte: number, depth: number): void
  /** The innermost open value, inside of so many containers, has ended before this place. */
  end(before: number, depth: number): void
  /** A key of the innermost object, without its quotes. */
  beginKey(at: number): void
  endKey(before: number): void
}

const OPENS_OBJECT = 0x7b

/**
 * Creates a checker for one JSON value that comes in pieces; more than `maxDepth` open containers
 * are a defect.
 */
export function createJsonGrammar(maxDepth: number, listener: JsonListener) {
  /** For each open container: whether it is an object. */
  const objects = new Uint8Array(maxDepth + 1)
  let [state, depth] = [STATE.value, 0]
  let isTooDeep = false

  function open(byte: number) {
    depth += 1
    isTooDeep ||= depth > maxDepth
    if (isTooDeep) state = STATE.bad
    else objects[depth] = byte === OPENS_OBJECT ? 1 : 0
  }

  function endValue(before: number) {
    if (depth === 0) state = STATE.nothing
    else state = objects[depth] === 1 ? STATE.afterMember : STATE.afterItem
    listener.end(before, depth)
  }

  /** What else a step means; returns by how many bytes it goes on. */
  function act(step: number, at: number, byte: number): 0 | 1 {
    const again = (step & AGAIN) === 0 ? 1 : 0
    state = step & PLAIN
    if ((step & BEGINS) !== 0) listener.begin(at, byte, depth)
    if ((step & KEY_BEGINS) !== 0) listener.beginKey(at + 1)
    if ((step & KEY_ENDS) !== 0) listener.endKey(at)
    if ((step & OPENS) !== 0) open(byte)
    if ((step & CLOSES) !== 0) depth -= 1
    if ((step & ENDS) !== 0) endValue(at + again)
    return again
  }

  const defect = (): JsonDefect | null => {
    if (isTooDeep) return 'too-deep'
    return state === STATE.bad ? 'malformed' : null
  }

  return {
    /** The next bytes; false from the first defect on. */
    push(bytes: Uint8Array): boolean {
      const { length } = bytes
      // A local, because nearly every byte changes it.
      let now = state
      let at = 0
      while (at < length && now !== 0) {
        const byte = bytes[at] ?? 0
        const step = STEPS[(now << 8) | byte] ?? 0
        now = step
        if (step <= PLAIN) at += 1
        else {
          at += act(step, at, byte)
          now = state
        }
      }
      state = now
      return now !== STATE.bad
    },
    /** No more bytes come: null when they were one whole value. */
    end(): JsonDefect | null {
      if (depth === 0 && isNumberEnd(state)) endValue(0)
      return defect() ?? (state === STATE.nothing ? null : 'malformed')
    },
    defect,
  }
}
