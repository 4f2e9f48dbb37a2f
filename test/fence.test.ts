/** The architecture as a test: which folder may import what, that nothing goes in circles, and that nothing is exported for nobody. */
import { readFileSync } from 'node:fs'
import { dirname, matchesGlob } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { type Arrow, listArrows, readTexts } from '#test/support/arrows.ts'
import { listUnusedExports } from '#test/support/exports.ts'
import { SELECTIONS } from '#test/support/runner/selections.ts'
import { MUTUAL_ROOMS, UPWARD_IMPORTS } from '#test/support/upward-imports.ts'

/** Imports point down this stack; places on one floor import nothing of each other. */
const FLOORS: readonly (readonly string[])[] = [
  ['runtime/bin'],
  ['runtime/server', 'runtime/flasher', 'runtime/cache', 'runtime/library'],
  ['runtime/fleet'],
  ['runtime/engine'],
  ['runtime/kit'],
  ['appliance'],
]
/** Rooms that are stacked: each may import those after it, none those before it. */
const STACKS: readonly (readonly string[])[] = [
  ['program', 'web', 'config', 'terminal', 'net', 'host', 'foundation'].map(
    (room) => `runtime/kit/${room}`,
  ),
  ['http', 'access', 'ui', 'answers'].map((room) => `runtime/kit/web/${room}`),
]
/** Release lines: neither knows the other. */
const LINES = ['runtime/server/current', 'runtime/server/earlier']

/** No file, no clock, no process: what these files import is as pure as they are. */
const PURE = /^appliance\/|\/rules\/|\.rules\.ts$|^runtime\/kit\/foundation\//
const PURE_PACKAGES = [
  'node:crypto',
  'node:util',
  'node:zlib',
  'zod',
  'destr',
  'smol-toml',
  '@decimalturn/toml-patch',
]

const OXLINT = z.object({
  overrides: z.array(
    z.object({ files: z.array(z.string()), rules: z.record(z.string(), z.unknown()) }),
  ),
})

/** Packages that a place may use; the longest place that matches decides, and elsewhere any may be used. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  appliance: [],
  'build/demo': ['zod', 'node:'],
  build: ['zx', 'sade', 'consola', 'modern-tar', 'smol-toml', 'vitepress', 'node:'],
  'runtime/bin': ['listhen', '@inquirer/select', 'node:'],
  'runtime/library': [],
  'runtime/server/current': ['h3', 'hono', 'consola', 'zod'],
  'runtime/server/current/print': ['uqr'],
  'runtime/server/earlier': ['h3', 'hono', 'consola', 'zod'],
  'runtime/server': ['h3', 'srvx', 'hono', 'zod', 'node:'],
  'runtime/cache/arrivals': ['zod', 'unstorage', 'node:'],
  'runtime/cache/captures': ['h3', 'zod', 'unstorage', 'node:'],
  'runtime/cache/blobs': ['unstorage', 'zod', 'node:'],
  'runtime/cache/store': ['unstorage', 'zod', 'node:'],
  'runtime/cache': ['h3', 'hono', 'consola', 'zod'],
  'runtime/kit/program': [],
  'runtime/kit/web': ['h3', 'srvx', 'hono', 'parse5', 'zod', 'node:'],
  'runtime/kit/terminal': ['consola', '@inquirer/select', '@inquirer/core', 'node:'],
}

/** What the builder may import of the programs: the words for errors are the same in all of them. */
const BUILDS = ['appliance', 'runtime/kit/foundation']

const text = readTexts(['appliance/**/*.ts', 'build/**/*.ts', 'runtime/**/*.{ts,mjs}'])
const tests = readTexts(['test/**/*.ts'])
const arrows = listArrows(text)
const locals = arrows.filter(({ local }) => local)
const render = (found: readonly Arrow[]) => found.map(({ from, to }) => `${from} -> ${to}`)
const isIn = (file: string, folder: string) => file.startsWith(`${folder}/`)
const floorOf = (file: string) =>
  FLOORS.findIndex((places) => places.some((place) => isIn(file, place)))
const placeOf = (file: string) => FLOORS.flat().find((place) => isIn(file, place))
/** `runtime/engine/flash` of every file below it. */
const roomOf = (file: string) => file.split('/').slice(0, 3).join('/')
/** The room of a program's file; `test/server` of a test's. */
const partOf = (file: string) =>
  dirname(file)
    .split('/')
    .slice(0, file.startsWith('runtime/') ? 3 : 2)
    .join('/')
const lineOf = (file: string) => LINES.find((line) => isIn(file, line))
const isAllowed = (name: string, to: string) =>
  to === name || to.startsWith(name.endsWith(':') ? name : `${name}/`)
const test = suite('fence')

test('imports point down, but for those that are listed: the list may only become shorter', () => {
  const ours = locals.filter(({ from, to }) => floorOf(from) >= 0 && floorOf(to) >= 0)
  const up = ours.filter(({ from, to }) => {
    const [here, there] = [floorOf(from), floorOf(to)]
    return there < here || (there === here && placeOf(from) !== placeOf(to))
  })
  assert.equal(render(up).toSorted(), UPWARD_IMPORTS.toSorted())
})

test('an import of another room, or from two folders up, names the floor', () => {
  const bad = listArrows(new Map([...text, ...tests])).filter(
    ({ from, to, local, said }) =>
      local &&
      (text.has(to) || tests.has(to)) &&
      said.startsWith('.') &&
      from.endsWith('.ts') &&
      (partOf(from) !== partOf(to) || said.startsWith('../../')),
  )
  assert.equal(render(bad), [])
})

test('the builder imports what we ship and the words for errors', () => {
  const bad = locals.filter(
    ({ from, to }) =>
      isIn(from, 'build') && !isIn(to, 'build') && !BUILDS.some((folder) => isIn(to, folder)),
  )
  assert.equal(render(bad), [])
})

test('rules are pure: they import rules, tables and words for errors, and few packages', () => {
  const bad = arrows.filter(({ from, to, local }) => {
    if (!PURE.test(from)) return false
    return local ? !PURE.test(to) : !PURE_PACKAGES.some((name) => isAllowed(name, to))
  })
  assert.equal(render(bad), [])
})

test('a rule is known by its path, to the linter and to the selections of tests as well', () => {
  const lint = OXLINT.parse(JSON.parse(readFileSync('.oxlintrc.json', 'utf8')))
  const patterns = lint.overrides.flatMap(({ files, rules }) =>
    'no-restricted-globals' in rules ? files : [],
  )
  const isLinted = (file: string) => patterns.some((pattern) => matchesGlob(file, pattern))
  const shipped = [...text.keys()].filter((file) => !isIn(file, 'build'))
  const files = [...shipped, 'runtime/fleet/boot/offers.rules.ts', 'runtime/fleet/boot/offers.ts']
  assert.equal(
    files.filter((file) => PURE.test(file) !== isLinted(file)),
    [],
  )
  const selected = new RegExp(SELECTIONS['pure'] ?? '')
  assert.ok(selected.test('fleet/boot/offers.rules.test.ts'))
  assert.ok(selected.test('fleet/boot/rules/offer.test.ts'))
  assert.not.ok(selected.test('fleet/boot/offers.test.ts'))
})

test('only some folders may use a given package', () => {
  const places = Object.keys(PACKAGES).toSorted((one, other) => other.length - one.length)
  const bad = arrows.filter(({ from, to, local }) => {
    if (local || PURE.test(from)) return false
    const packages = PACKAGES[places.find((place) => isIn(from, place)) ?? '']
    return packages !== undefined && !packages.some((name) => isAllowed(name, to))
  })
  assert.equal(render(bad), [])
})

test('stacked rooms import downwards', () => {
  const bad = locals.filter(({ from, to }) =>
    STACKS.some((rooms) => {
      const [here, there] = [from, to].map((file) => rooms.findIndex((room) => isIn(file, room)))
      return here !== undefined && there !== undefined && here >= 0 && there >= 0 && there < here
    }),
  )
  assert.equal(render(bad), [])
})

test('the release lines never import each other', () => {
  const bad = locals.filter(({ from, to }) => {
    const [here, there] = [lineOf(from), lineOf(to)]
    return here !== undefined && there !== undefined && here !== there
  })
  assert.equal(render(bad), [])
})

test('no rooms need each other, types counted, but for those that are listed', () => {
  const rooms = locals
    .map(({ from, to }) => ({ from: roomOf(from), to: roomOf(to) }))
    .filter(({ from, to }) => from !== to && from.startsWith('runtime/'))
  assert.equal(findCycles(rooms), MUTUAL_ROOMS)
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

test('what is exported is imported by another file', () => {
  const everywhere = listArrows(new Map([...text, ...tests]))
  const textOf = (file: string) => text.get(file) ?? tests.get(file) ?? ''
  assert.equal(listUnusedExports(text, everywhere, textOf), [])
})

function findCycles(
  list: readonly { readonly from: string; readonly to: string }[],
): readonly (readonly string[])[] {
  const next = Map.groupBy(list, ({ from }) => from)
  const order = new Map<string, number>()
  const open: string[] = []
  const cycles: string[][] = []

  function visit(place: string): number {
    const number = order.size
    order.set(place, number)
    let low = number
    open.push(place)
    for (const { to } of next.get(place) ?? []) {
      if (!order.has(to)) low = Math.min(low, visit(to))
      else if (open.includes(to)) low = Math.min(low, order.get(to) ?? low)
    }
    if (low === number) {
      const cycle = open.splice(open.indexOf(place))
      if (cycle.length > 1) cycles.push(cycle.toSorted())
    }
    return low
  }

  for (const place of next.keys()) if (!order.has(place)) visit(place)
  return cycles
}

test.run()
