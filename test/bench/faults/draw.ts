/** Draws faults by a seed from all places of a tree, weighted by the lines of its rooms, and has the types judge each. */
import path from 'node:path'
import { API } from 'typescript/unstable/sync'
import { createRandom } from '#test/support/collect.ts'
import { findPlaces, KINDS, type Kind, type Place } from './places.ts'

export interface Fault {
  readonly kind: Kind
  readonly room: string
  /** The file, from the tree's folder. */
  readonly file: string
  /** The number of the first line that changes, from 1. */
  readonly line: number
  /** The whole lines that change, before and after. */
  readonly before: string
  readonly after: string
  /** The file with the fault. */
  readonly text: string
}

interface Room {
  readonly name: string
  lines: number
  readonly places: ReadonlyMap<Kind, { readonly file: string; readonly place: Place }[]>
}

/** `tree` is a checkout with packages, `texts` its files; both stay as they are. */
export function createDraw(tree: string, texts: ReadonlyMap<string, string>, seed: number) {
  const overlay = new Map<string, string>()
  const config = path.join(tree, 'tsconfig.json')
  const api = new API({ cwd: tree, fs: { readFile: (file) => overlay.get(file) } })
  const files = [...texts.keys()].filter((file) => /^runtime\/.*\.ts$/.test(file))
  const random = createRandom(seed)
  const programOf = (changed: readonly string[]) => {
    const snapshot = api.updateSnapshot({
      ...(changed.length === 0 ? { openProjects: [config] } : {}),
      fileChanges: { changed: [...changed] },
    })
    const project = snapshot.getProject(config)
    if (project === undefined) throw new Error(`${config} is no project`)
    return project.program
  }
  const rooms = listRooms()
  const lines = rooms.reduce((sum, room) => sum + room.lines, 0)

  function listRooms(): readonly Room[] {
    const found = new Map<string, Room>()
    const program = programOf([])
    for (const file of files) {
      const source = program.getSourceFile(path.join(tree, file))
      if (source === undefined) throw new Error(`${file} is not of the project`)
      const room = found.getOrInsertComputed(roomOf(file), (name) => ({
        name,
        lines: 0,
        places: new Map(KINDS.map((kind) => [kind, []])),
      }))
      room.lines += source.text.split('\n').length - 1
      for (const place of findPlaces(source)) room.places.get(place.kind)?.push({ file, place })
    }
    return [...found.values()]
  }

  function drawRoom(): Room | undefined {
    let left = random() * lines
    return rooms.find((room) => (left -= room.lines) < 0)
  }

  return {
    rooms,
    /** The next fault, never the same twice; null after the last. */
    draw(): Fault | null {
      while (rooms.some((room) => listKinds(room).length > 0)) {
        // One that has no place left gives its turn away.
        const kinds = listKinds(drawRoom())
        const among = kinds[Math.floor(random() * kinds.length)] ?? []
        const [drawn] = among.splice(Math.floor(random() * among.length), 1)
        if (drawn !== undefined)
          return makeFault(drawn.file, texts.get(drawn.file) ?? '', drawn.place)
      }
      return null
    },
    /**
     * What the types say against it, or null. The file and those that import it are looked at: whole
     * programs take half a minute, and inferred types hardly reach farther.
     */
    judge({ file, text }: Fault, importers: readonly string[]): string | null {
      const changed = path.join(tree, file)
      overlay.set(changed, text)
      const program = programOf([changed])
      const all = new Set(program.getSourceFileNames())
      const looked = [file, ...importers].map((name) => path.join(tree, name))
      const faults = looked.flatMap((at) => {
        if (!all.has(at)) return []
        return [...program.getSyntacticDiagnostics(at), ...program.getSemanticDiagnostics(at)]
      })
      overlay.delete(changed)
      programOf([changed])
      return faults[0]?.text ?? null
    },
    [Symbol.dispose]() {
      try {
        api.close()
      } catch {
        // Ctrl-C has ended tsc already.
      }
    },
  }
}

/** Each feature has one room: two folders below `runtime`. */
const roomOf = (file: string): string => path.dirname(file).split('/').slice(1, 3).join('/') || '.'

const listKinds = (room: Room | undefined) =>
  [...(room?.places.values() ?? [])].filter((places) => places.length > 0)

function makeFault(file: string, text: string, { kind, start, end, text: by }: Place): Fault {
  const from = text.lastIndexOf('\n', start - 1) + 1
  const to = text.indexOf('\n', end)
  const changed = text.slice(0, start) + by + text.slice(end)
  return {
    kind,
    room: roomOf(file),
    file,
    text: changed,
    line: text.slice(0, from).split('\n').length,
    before: text.slice(from, to),
    after: changed.slice(from, to + changed.length - text.length),
  }
}
