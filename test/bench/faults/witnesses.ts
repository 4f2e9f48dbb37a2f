/** Which tests load a file, nearest first: by imports, and by the names of programs that a test or its support starts. */
import path from 'node:path'
import { listArrows } from '#test/support/arrows.ts'
import { readDurations } from '#test/support/runner/durations.ts'

const TYPES = /^(?:import|export) type\b[^']*'.*'$/gm
const PROGRAMS = 'runtime/bin/'
/** A program is as far away as so many imports; a word that both paths have brings a test so many nearer. */
const [PROGRAM_STEPS, WORD_STEPS] = [3, 2]

export interface Witness {
  /** The test file, from the tree's folder. */
  readonly file: string
  /** The seconds that it took in an earlier run; null where nobody knows. */
  readonly seconds: number | null
}

/** `texts`: the files of the tree, by path from its folder. */
export function createWitnesses(
  texts: ReadonlyMap<string, string>,
  isWanted: (test: string) => boolean,
) {
  const programs = [...texts.keys()].filter((file) => file.startsWith(PROGRAMS))
  /** Who loads a file, and how far away it is then. */
  const loaders = new Map<string, Map<string, number>>()
  const durations = readDurations()
  const load = (name: string, loader: string, steps: number) =>
    loaders.getOrInsertComputed(name, () => new Map()).getOrInsert(loader, steps)
  const values = new Map([...texts].map(([file, text]) => [file, text.replaceAll(TYPES, '')]))
  for (const { from, to, local } of listArrows(values)) if (local) load(to, from, 1)
  for (const [file, text] of texts) {
    if (file.startsWith('runtime/') && !file.startsWith(PROGRAMS)) continue
    for (const name of programs.filter((each) => isNamed(each, text)))
      load(name, file, PROGRAM_STEPS)
  }

  /** A boot in QEMU comes last, a test of the same name first, then the nearest, then the fastest. */
  function rank(test: string, file: string, steps: number): readonly number[] {
    const isSame = path.basename(test, '.test.ts') === path.basename(file, '.ts')
    const distance = steps - WORD_STEPS * listWords(test).intersection(listWords(file)).size
    const seconds = durations.get(path.relative('test', test)) ?? 1
    return [Number(test.startsWith('test/vm/')), Number(!isSame), distance, seconds]
  }

  return (file: string): readonly Witness[] =>
    [...measureSteps(file, loaders)]
      .filter(([name]) => name.endsWith('.test.ts') && isWanted(path.relative('test', name)))
      .map(([test, steps]) => ({ test, order: rank(test, file, steps) }))
      .toSorted((one, two) => compare(one.order, two.order) || (one.test < two.test ? -1 : 1))
      .map(({ test }) => ({
        file: test,
        seconds: durations.get(path.relative('test', test)) ?? null,
      }))
}

/** The words of a path below its first folder, without their plurals. */
const listWords = (file: string): ReadonlySet<string> => {
  const words = file.replace(/\..*/, '').split(/[/-]/).slice(1)
  return new Set(words.map((word) => word.replace(/s$/, '')))
}

/** `flasher-web.mjs`, or `flasher-web` alone where the folder is named. */
function isNamed(program: string, text: string): boolean {
  const { base, name, ext } = path.parse(program)
  if (ext === '.mjs' && new RegExp(`['"\`/ ]${RegExp.escape(base)}\\b`).test(text)) return true
  return text.includes(PROGRAMS) && new RegExp(`['"\`/]${name}(?:\\.ts)?['"\`]`).test(text)
}

/** The least steps from a file to each that loads it, directly or not. */
function measureSteps(from: string, loaders: ReadonlyMap<string, ReadonlyMap<string, number>>) {
  const steps = new Map([[from, 0]])
  // A file that turns out to be nearer is appended again, and its loaders with it.
  const queue = [from]
  for (const file of queue) {
    const here = steps.get(file) ?? 0
    for (const [next, cost] of loaders.get(file) ?? []) {
      if ((steps.get(next) ?? Number.POSITIVE_INFINITY) <= here + cost) continue
      steps.set(next, here + cost)
      queue.push(next)
    }
  }
  return steps
}

function compare(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((value, index) => value !== other[index])
  return at === -1 ? 0 : (one[at] ?? 0) - (other[at] ?? 0)
}
