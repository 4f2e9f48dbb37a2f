/**
 * Which tests load a file, nearest first: by the imports of the test files, and of the programs in
 * `runtime/bin` that a test or its support names. What a program loads only later is among its imports.
 */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { readDurations } from '#test/support/runner/durations.ts'

const TYPES = /^(?:import|export) type\b[^']*'.*'$/gm
const REFERENCE = /(['"`])(\.{1,2}\/[^'"`\n]+\.(?:ts|mjs))\1/g
const PROGRAMS = 'runtime/bin/'
/** A program is as far away as so many imports; a word that both paths have brings a test so many nearer. */
const [PROGRAM_STEPS, WORD_STEPS] = [3, 2]

export interface Witness {
  /** The test file, from the tree's folder. */
  readonly file: string
  /** The seconds that it took in an earlier run; null where nobody knows. */
  readonly seconds: number | null
}

export function createWitnesses(tree: string, isWanted: (test: string) => boolean) {
  const files = globSync('{appliance,build,runtime,test}/**/*.{ts,mjs}', { cwd: tree }).toSorted()
  const texts = new Map(files.map((file) => [file, readFileSync(path.join(tree, file), 'utf8')]))
  const programs = files.filter((file) => file.startsWith(PROGRAMS))
  /** Who refers to a file, also for its types alone; who loads it, and how far away it is then. */
  const importers = new Map<string, Set<string>>()
  const loaders = new Map<string, Map<string, number>>()
  const durations = readDurations()
  const secondsOf = (test: string) => durations.get(path.relative('test', test)) ?? null
  for (const [file, text] of texts) {
    const load = (name: string, steps: number) =>
      loaders.getOrInsertComputed(name, () => new Map()).getOrInsert(file, steps)
    for (const name of listReferences(file, text)) {
      importers.getOrInsertComputed(name, () => new Set()).add(file)
    }
    for (const name of listReferences(file, text.replaceAll(TYPES, ''))) load(name, 1)
    if (file.startsWith('runtime/') && !file.startsWith(PROGRAMS)) continue
    for (const name of programs.filter((each) => isNamed(each, text))) load(name, PROGRAM_STEPS)
  }

  /** A boot in QEMU comes last, a test of the same name first, then the nearest, then the fastest. */
  function rank(test: string, file: string, steps: number): readonly number[] {
    const isSame = path.basename(test, '.test.ts') === path.basename(file, '.ts')
    const common = listWords(test).intersection(listWords(file)).size
    const distance = steps - WORD_STEPS * common
    // Where nothing is known, what imports little is taken for fast.
    const duration = secondsOf(test) ?? listReferences(test, texts.get(test) ?? '').length / 10
    return [Number(test.startsWith('test/vm/')), Number(!isSame), distance, duration]
  }
  return {
    /** The files that import this one, for its types as well. */
    listImporters: (file: string): readonly string[] =>
      [...(importers.get(file) ?? [])].filter((name) => name.endsWith('.ts')),
    listTests: (file: string): readonly Witness[] =>
      [...measureSteps(file, loaders)]
        .filter(([name]) => name.endsWith('.test.ts') && isWanted(name))
        .map(([test, steps]) => ({ test, order: rank(test, file, steps) }))
        .toSorted((one, two) => compare(one.order, two.order) || (one.test < two.test ? -1 : 1))
        .map(({ test }) => ({ file: test, seconds: secondsOf(test) })),
  }
}

/** The words of a path below its first folder, without their plurals. */
const listWords = (file: string): ReadonlySet<string> =>
  new Set(
    file
      .replace(/\..*/, '')
      .split(/[/-]/)
      .slice(1)
      .map((word) => word.replace(/s$/, '')),
  )

const listReferences = (file: string, text: string): readonly string[] =>
  [...text.matchAll(REFERENCE)].map(([, , name = '']) => path.join(path.dirname(file), name))

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
