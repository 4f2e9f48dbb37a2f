/** The architecture as a test: which folder may import what, how much a folder and a file may hold, and that nothing is exported for nobody. */
import { basename, dirname } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listArrows, readTexts, type Arrow } from './support/arrows.ts'
import { findCycles } from './support/cycles.ts'
import { listUnusedExports } from './support/exports.ts'

const SHARED = [
  'runtime/program',
  'runtime/web',
  'runtime/terminal',
  'runtime/services',
  'runtime/core',
  'appliance',
]
const RULES = { folders: ['runtime/core', 'appliance'], packages: ['zod'] } as const
const LINE_PACKAGES = ['h3', 'hono', 'consola']

interface Layer {
  readonly at: string
  /** What it may import besides itself. */
  readonly folders: readonly string[]
  /** Packages it may use; absent: any. */
  readonly packages?: readonly string[]
}

const LAYERS: readonly Layer[] = [
  { at: 'appliance', folders: [], packages: [] },
  { at: 'build/demo', folders: ['appliance'], packages: ['zod', 'node:'] },
  {
    at: 'build',
    // The words for errors are the same in every program.
    folders: ['build/demo', 'appliance', 'runtime/core/foundation'],
    packages: ['zx', 'sade', 'consola', 'smol-toml', 'node:'],
  },
  {
    at: 'runtime/core',
    folders: ['appliance'],
    packages: ['node:crypto', 'node:zlib', 'zod', 'destr', 'smol-toml', '@decimalturn/toml-patch'],
  },
  { at: 'runtime/services', folders: ['runtime/core', 'appliance'] },
  {
    at: 'runtime/web',
    folders: ['runtime/services', 'runtime/core', 'appliance'],
    packages: ['h3', 'srvx', 'hono', 'zod', 'node:'],
  },
  {
    at: 'runtime/terminal',
    folders: ['runtime/services', 'runtime/core'],
    packages: ['consola', '@inquirer/select', '@inquirer/core', 'sade', 'node:'],
  },
  {
    at: 'runtime/program',
    folders: ['runtime/web', 'runtime/terminal', 'runtime/services', 'runtime/core'],
    packages: [],
  },
  { at: 'runtime/lines/current/rules', ...RULES },
  { at: 'runtime/lines/earlier/rules', ...RULES },
  { at: 'runtime/cache/rules', ...RULES },
  {
    at: 'runtime/lines/current',
    folders: [...SHARED, 'runtime/lines/current/rules'],
    packages: LINE_PACKAGES,
  },
  {
    at: 'runtime/lines/earlier',
    folders: [...SHARED, 'runtime/lines/earlier/rules'],
    packages: LINE_PACKAGES,
  },
  { at: 'runtime/cache', folders: [...SHARED, 'runtime/cache/rules'], packages: LINE_PACKAGES },
  {
    at: 'runtime/library',
    folders: ['runtime/terminal', 'runtime/services', 'runtime/core', 'appliance'],
    packages: [],
  },
  { at: 'runtime/live', folders: ['runtime/services', 'runtime/core', 'appliance'], packages: [] },
  {
    at: 'runtime/bin',
    folders: [
      'runtime/lines/current',
      'runtime/lines/earlier',
      'runtime/cache',
      'runtime/live',
      'runtime/core/foundation',
    ],
    packages: ['listhen', 'node:'],
  },
]

/** Rooms of one floor that are stacked: each may import those after it, none those before it. */
const STACKS: readonly { readonly floor: string; readonly rooms: readonly string[] }[] = [
  { floor: 'runtime/web', rooms: ['fleet', 'live', 'ui', 'access', 'http'] },
]
/** Rooms that import no other room of their floor, or only one. */
const GROUNDS = [
  { floor: 'runtime/core', room: 'foundation', may: null },
  { floor: 'runtime/core', room: 'texts', may: 'foundation' },
  { floor: 'runtime/services', room: 'host', may: null },
] as const
const FLOORS = ['runtime/core', 'runtime/services', 'runtime/web', 'runtime/terminal'] as const

/** Tables of texts are data, named by their language: they may be long, and each surface has its own. */
const TABLES = /^runtime\/core\/texts\/\w+\//

const MAX_FILES = 25
const MAX_FILE_LINES = 300

const text = readTexts(['appliance/**/*.ts', 'build/**/*.ts', 'runtime/**/*.{ts,mjs}'])
const tests = readTexts(['test/**/*.ts'])
const files = [...text.keys()]
const arrows = listArrows(text)
const locals = arrows.filter(({ local }) => local)
const layerOf = (file: string) => LAYERS.find(({ at }) => file.startsWith(`${at}/`))
const roomOf = (floor: string, file: string) =>
  file.startsWith(`${floor}/`) ? file.slice(floor.length + 1).split('/')[0] : undefined
const render = (found: readonly Arrow[]) => found.map(({ from, to }) => `${from} -> ${to}`)
const linesOf = (file: string) => (text.get(file) ?? '').split('\n').length
const isAllowed = (name: string, to: string) =>
  to === name || to.startsWith(name.endsWith(':') ? name : `${name}/`)
const test = suite('fence')

test('imports between floors point down', () => {
  const bad = locals.filter(({ from, to }) => {
    const [here, there] = [layerOf(from), layerOf(to)]
    const mayUse = (folder: string) =>
      folder === there?.at || (folder.startsWith(`${there?.at}/`) && to.startsWith(`${folder}/`))
    return here !== there && here?.folders.some(mayUse) !== true
  })
  assert.equal(render(bad), [])
})

test('only some folders may use a given package', () => {
  const bad = arrows.filter(({ from, to, local }) => {
    const packages = layerOf(from)?.packages
    return !local && packages !== undefined && !packages.some((name) => isAllowed(name, to))
  })
  assert.equal(render(bad), [])
})

test('a sub-folder never imports the folder above it', () => {
  const bad = locals.filter(({ from, to }) => dirname(from).startsWith(`${dirname(to)}/`))
  assert.equal(render(bad), [])
})

test('stacked rooms import downwards, and the lowest rooms import none', () => {
  const bad = locals.filter(({ from, to }) => {
    const isUpwards = STACKS.some(({ floor, rooms }) => {
      const [here, there] = [roomOf(floor, from), roomOf(floor, to)]
      return here !== undefined && there !== undefined && rooms.indexOf(there) < rooms.indexOf(here)
    })
    const isFromGround = GROUNDS.some(({ floor, room, may }) => {
      const there = roomOf(floor, to)
      const isOther = there !== undefined && there !== room && there !== may
      return roomOf(floor, from) === room && isOther
    })
    return isUpwards || isFromGround
  })
  assert.equal(render(bad), [])
})

test('no files need each other, types counted', () => {
  assert.equal(findCycles(locals), [])
})

test('no folders need each other, types counted', () => {
  const folders = locals
    .map(({ from, to }) => ({ from: dirname(from), to: dirname(to) }))
    .filter(({ from, to }) => from !== to)
  assert.equal(findCycles(folders), [])
})

test('only one file changes the names in folders, so that all changes outlive a power cut', () => {
  const changing = /\b(?:rename|rm|rmdir|unlink|link|symlink)(?:Sync)?\b[^}]*\} from 'node:fs/
  const changers = files.filter((file) => {
    const imports = (text.get(file) ?? '').split(/^import /m).slice(1)
    return file.startsWith('runtime/') && imports.some((each) => changing.test(each))
  })
  assert.equal(changers, ['runtime/services/host/folders.ts'])
})

test('a folder holds at most 25 files', () => {
  const every = [...files, ...tests.keys()]
  const counts = Map.groupBy(every, (file) => dirname(file))
  const bad = [...counts].filter(([, within]) => within.length > MAX_FILES)
  assert.equal(
    bad.map(([folder, within]) => `${folder}: ${within.length}`),
    [],
  )
})

test('no file name stands twice on one floor', () => {
  const bad = FLOORS.flatMap((floor) => {
    const within = files.filter((file) => file.startsWith(`${floor}/`) && !TABLES.test(file))
    const named = Map.groupBy(within, (file) => basename(file))
    return [...named.values()].filter(({ length }) => length > 1).flat()
  })
  assert.equal(bad, [])
})

test('what is exported is imported by another file', () => {
  const everywhere = listArrows(new Map([...text, ...tests]))
  const textOf = (file: string) => text.get(file) ?? tests.get(file) ?? ''
  assert.equal(listUnusedExports(text, everywhere, textOf), [])
})

test('no file is longer than 300 lines', () => {
  assert.equal(
    files.filter((file) => linesOf(file) > MAX_FILE_LINES && !TABLES.test(file)),
    [],
  )
})

test('every file opens by saying what it is for', () => {
  assert.equal(
    files.filter((file) => file.endsWith('.ts') && !/^(#!.*\n)?\/\*\* /.test(text.get(file) ?? '')),
    [],
  )
})

test.run()
