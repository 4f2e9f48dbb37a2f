/** What is wanted of a JSON document, and the objects and lists that are built of it. */

/** What is wanted of a value; one of another kind than this says is taken as `small`. */
export type Wanted =
  /** The value, where its text is short; else a stand-in of its kind. */
  | { readonly kind: 'small' }
  /** Its very bytes, within these limits. */
  | { readonly kind: 'verbatim'; readonly maxBytes: number; readonly maxValues: number }
  /** An object with these keys alone; with `namesOthers` the first few others as well, as null. */
  | {
      readonly kind: 'object'
      readonly keys: ReadonlyMap<string, Wanted>
      readonly namesOthers?: boolean
    }
  /** A list of at most so many; the rest is counted. */
  | { readonly kind: 'list'; readonly of: Wanted; readonly most: number }

const MAX_NAMED = 8

type OpenValue = OpenObject | OpenList

interface OpenObject {
  readonly wanted: Extract<Wanted, { readonly kind: 'object' }>
  readonly fields: Map<string, unknown>
  key: string
  named: number
}

interface OpenList {
  readonly wanted: Extract<Wanted, { readonly kind: 'list' }>
  readonly items: unknown[]
  count: number
}

const isList = (frame: OpenValue): frame is OpenList => frame.wanted.kind === 'list'

export function createSiftFrames(wanted: Wanted) {
  const frames: OpenValue[] = []
  let [value, leftOut, key]: [unknown, number, string] = [undefined, 0, '']

  function put(made: unknown) {
    const frame = frames.at(-1)
    if (frame === undefined) value = made
    else if (isList(frame)) frame.items.push(made)
    else frame.fields.set(frame.key, made)
  }

  function findWanted(frame: OpenObject): Wanted | null {
    key = frame.key
    const known = frame.wanted.keys.get(key)
    if (known !== undefined) return known
    if (frame.wanted.namesOthers === true && frame.named < MAX_NAMED) {
      frame.named += 1
      frame.fields.set(key, null)
    }
    return null
  }

  return {
    put,
    /** What is wanted of the value that begins; null: nothing. */
    findOpen(): Wanted | null {
      const frame = frames.at(-1)
      if (frame === undefined) return wanted
      if (!isList(frame)) return findWanted(frame)
      frame.count += 1
      return frame.count <= frame.wanted.most ? frame.wanted.of : null
    },
    /** Whether the value that begins is built item by item. */
    open(wish: Wanted | null, opening: number): boolean {
      if (wish?.kind === 'object' && opening === 0x7b) {
        frames.push({ wanted: wish, fields: new Map(), key: '', named: 0 })
      } else if (wish?.kind === 'list' && opening === 0x5b) {
        frames.push({ wanted: wish, items: [], count: 0 })
      } else return false
      return true
    },
    close() {
      const frame = frames.pop()
      if (frame === undefined) return
      if (isList(frame)) {
        leftOut = frame.count - frame.items.length
        put(frame.items)
      } else put(Object.fromEntries(frame.fields))
    },
    setKey(named: string) {
      const frame = frames.at(-1)
      if (frame !== undefined && !isList(frame)) frame.key = named
    },
    /** The key of the value that began last. */
    key: () => key,
    value: () => value,
    leftOut: () => leftOut,
  }
}
