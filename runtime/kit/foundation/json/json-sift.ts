/** Takes the wanted parts out of JSON as its bytes arrive; the rest is checked, and never built. */
import { createGathering } from './gathering.ts'
import { createJsonGrammar, type JsonDefect } from './json-grammar.ts'
import { createSiftFrames, type Wanted } from './json-sift-frames.ts'
import { accept, refuse, type Result } from '../result.ts'

/** A value as it came. */
export interface Verbatim {
  /** Null: it was over a limit, and left out. */
  readonly bytes: Uint8Array | null
  /** Its first byte. */
  readonly opening: number
}

export interface Sifted {
  readonly value: unknown
  /** Values as they came, by their keys. */
  readonly verbatim: ReadonlyMap<string, Verbatim>
  /** How many items of the (last) list were left out. */
  readonly leftOut: number
}

const MAX_SMALL_BYTES = 2048
const MAX_KEY_BYTES = 256

/** A value that is taken as a whole. */
interface Closed {
  readonly wanted: Wanted
  readonly opening: number
  readonly gathering: ReturnType<typeof createGathering>
  values: number
}

export type JsonSift = ReturnType<typeof createJsonSift>

/**
 * Creates a sift for one JSON value that comes in pieces. It builds what `wanted` describes and
 * only checks the rest; more than `maxDepth` open containers are a defect.
 */
export function createJsonSift(wanted: Wanted, maxDepth: number) {
  const frames = createSiftFrames(wanted)
  const verbatim = new Map<string, Verbatim>()
  let closed: Closed | null = null
  /** The depth of the value that is taken or skipped as a whole; -1: none is. */
  let closedAt = -1
  let name: ReturnType<typeof createGathering> | null = null
  let bytes: Uint8Array = new Uint8Array()
  let held = 0

  function keep(key: string, kept: Verbatim) {
    held -= verbatim.get(key)?.bytes?.byteLength ?? 0
    verbatim.set(key, kept)
  }

  function endClosed({ wanted: wish, opening, gathering }: Closed, before: number) {
    closed = null
    const taken = gathering.end(bytes, before)
    held += taken?.byteLength ?? 0
    if (wish.kind === 'verbatim') keep(frames.key(), { bytes: taken, opening })
    else frames.put(taken === null ? standIn(opening) : JSON.parse(taken.toString('utf8')))
  }

  const grammar = createJsonGrammar(maxDepth, {
    begin(at, opening, depth) {
      if (closedAt >= 0) {
        if (closed !== null) closed.values += 1
        return
      }
      const wish = frames.findOpen()
      if (frames.open(wish, opening)) return
      closedAt = depth
      if (wish === null) return
      const most = wish.kind === 'verbatim' ? wish.maxBytes : MAX_SMALL_BYTES
      closed = { wanted: wish, opening, values: 0, gathering: createGathering(most) }
      closed.gathering.begin(at)
    },
    end(before, depth) {
      if (closedAt < 0) frames.close()
      else if (closedAt === depth) {
        closedAt = -1
        if (closed !== null) endClosed(limitValues(closed), before)
      }
    },
    beginKey(at) {
      if (closedAt >= 0) return
      name = createGathering(MAX_KEY_BYTES)
      name.begin(at)
    },
    endKey(before) {
      if (name === null) return
      frames.setKey(readKey(name.end(bytes, before)))
      name = null
    },
  })

  return {
    /** The next bytes; false from the first defect on. */
    push(piece: Uint8Array): boolean {
      bytes = piece
      if (!grammar.push(piece)) return false
      name?.interrupt(piece)
      if (closed !== null) limitValues(closed).gathering.interrupt(piece)
      return true
    },
    /** About how many bytes of it are in memory. */
    held: () => held + (closed?.gathering.held() ?? 0),
    defect: grammar.defect,
    /** No more bytes come. */
    end(): Result<Sifted, JsonDefect> {
      bytes = new Uint8Array()
      const defect = grammar.end()
      if (defect !== null) return refuse(defect)
      return accept({ value: frames.value(), verbatim, leftOut: frames.leftOut() })
    },
  }
}

function limitValues(closed: Closed): Closed {
  const { wanted, values, gathering } = closed
  if (wanted.kind === 'verbatim' && values > wanted.maxValues) gathering.drop()
  return closed
}

/** A key that is too long for any of ours is none of ours. */
function readKey(taken: Buffer | null): string {
  if (taken === null) return '(a long key)'
  const text = taken.toString('utf8')
  const key: unknown = text.includes('\\') ? JSON.parse(`"${text}"`) : text
  return typeof key === 'string' ? key : ''
}

/** For a value that is too long for what it is: as long as that, and of its kind. */
function standIn(opening: number): unknown {
  if (opening === 0x22) return ' '.repeat(MAX_SMALL_BYTES)
  if (opening === 0x7b) return {}
  return opening === 0x5b ? [] : Number.MAX_VALUE
}
