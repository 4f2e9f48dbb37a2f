/** Draws faults by a seed from all places of a tree, weighted by the lines of its rooms, and has the types judge each. */
import { globSync } from 'node:fs'
import path from 'node:path'
import type { SourceFile } from 'typescript/unstable/ast'
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
}

interface Room {
  readonly name: string
  lines: number
  readonly places: ReadonlyMap<Kind, FoundPlace[]>
}

interface FoundPlace {
  readonly file: SourceFile
  readonly place: Place
}

/** Each feature has one room: two folders below `runtime`. */
export const roomOf = (file: string): string =>
  path.dirname(file).split('/').slice(1, 3).join('/') || '.'

/** `tree` is a checkout with packages; it stays as it is. */
export function createDraw(tree: string, seed: number) {
  const overlay = new Map<string, string>()
  const config = path.join(tree, 'tsconfig.json')
  const api = new API({ cwd: tree, fs: { readFile: (file) => overlay.get(file) } })
  const files = globSync('runtime/**/*.ts', { cwd: tree }).toSorted()
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
    for (const name of files) {
      const file = program.getSourceFile(path.join(tree, name))
      if (file === undefined) throw new Error(`${name} is not of the project`)
      const room = found.get(roomOf(name)) ?? createRoom(roomOf(name))
      found.set(room.name, room)
      room.lines += file.text.split('\n').length - 1
      for (const place of findPlaces(file)) room.places.get(place.kind)?.push({ file, place })
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
        if (drawn !== undefined) return makeFault(path.relative(tree, drawn.file.fileName), drawn)
      }
      return null
    },
    /**
     * What the types say against it, or null. The file and those that import it are looked at: whole
     * programs take half a minute, and inferred types hardly reach farther.
     */
    judge(file: string, text: string, importers: readonly string[]): string | null {
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

const createRoom = (name: string): Room => ({
  name,
  lines: 0,
  places: new Map(KINDS.map((kind) => [kind, []])),
})

const listKinds = (room: Room | undefined): readonly FoundPlace[][] =>
  [...(room?.places.values() ?? [])].filter((places) => places.length > 0)

function makeFault(file: string, { file: { text }, place }: FoundPlace): Fault {
  const from = text.lastIndexOf('\n', place.start - 1) + 1
  const end = text.indexOf('\n', place.end)
  const to = end === -1 ? text.length : end
  return {
    kind: place.kind,
    room: roomOf(file),
    file,
    line: text.slice(0, from).split('\n').length,
    before: text.slice(from, to),
    after: text.slice(from, place.start) + place.text + text.slice(place.end, to),
  }
}

/** The text with the fault: where its lines are found nearest to where they were; null where they are not. */
export function applyFault(
  text: string,
  { before, after, line }: Pick<Fault, 'before' | 'after' | 'line'>,
): string | null {
  const lines = text.split('\n')
  const wanted = before.split('\n')
  const found = lines.keys().filter((at) => wanted.every((one, index) => lines[at + index] === one))
  const [nearest] = [...found].toSorted(
    (one, two) => Math.abs(one + 1 - line) - Math.abs(two + 1 - line),
  )
  return nearest === undefined
    ? null
    : lines.toSpliced(nearest, wanted.length, ...after.split('\n')).join('\n')
}
