/** The architecture as a test: which folder may import what, how long files are, how they open. */
import { dirname } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listArrows, readTexts } from './support/arrows.ts'

const SHARED = ['runtime/web', 'runtime/terminal', 'runtime/services', 'runtime/core', 'appliance']
const LAYERS: readonly { at: string; folders: readonly string[]; packages?: readonly string[] }[] =
  [
    { at: 'appliance', folders: [], packages: [] },
    {
      at: 'build',
      folders: ['appliance'],
      packages: ['zx', 'sade', 'consola', 'smol-toml', 'node:'],
    },
    {
      at: 'runtime/core',
      folders: ['appliance'],
      packages: ['node:crypto', 'node:zlib', 'zod', 'smol-toml', '@decimalturn/toml-patch'],
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
      at: 'runtime/lines/current/rules',
      folders: ['runtime/core', 'appliance'],
      packages: ['zod'],
    },
    {
      at: 'runtime/lines/earlier/rules',
      folders: ['runtime/core', 'appliance'],
      packages: ['zod'],
    },
    { at: 'runtime/cache/rules', folders: ['runtime/core', 'appliance'], packages: ['zod'] },
    {
      at: 'runtime/lines/current',
      folders: [...SHARED, 'runtime/lines/current/rules'],
      packages: ['h3', 'hono'],
    },
    {
      at: 'runtime/lines/earlier',
      folders: [...SHARED, 'runtime/lines/earlier/rules'],
      packages: ['h3', 'hono'],
    },
    {
      at: 'runtime/cache',
      folders: [...SHARED, 'runtime/cache/rules'],
      packages: ['h3', 'hono'],
    },
    {
      at: 'runtime/library',
      folders: ['runtime/terminal', 'runtime/services', 'runtime/core', 'appliance'],
      packages: [],
    },
    {
      at: 'runtime/live',
      folders: ['runtime/services', 'runtime/core', 'appliance'],
      packages: [],
    },
    {
      at: 'runtime/bin',
      folders: ['runtime/lines/current', 'runtime/lines/earlier', 'runtime/cache', 'runtime/live'],
      packages: ['listhen', 'node:'],
    },
  ]

const text = readTexts(['appliance/**/*.ts', 'build/**/*.ts', 'runtime/**/*.ts'])
const files = [...text.keys()]
const layerOf = (file: string) => LAYERS.find(({ at }) => file.startsWith(`${at}/`))
const arrows = listArrows(text)
const listed = (found: typeof arrows) => found.map(({ from, to }) => `${from} -> ${to}`)
const test = suite('fence')

test('imports between folders point down', () => {
  const bad = arrows.filter(({ from, to, local }) => {
    const [here, there] = [layerOf(from), layerOf(to)]
    return local && here !== there && !here?.folders.includes(there?.at ?? '')
  })
  assert.equal(listed(bad), [])
})
test('only some folders may use a given package', () => {
  const bad = arrows.filter(({ from, to, local }) => {
    const packages = layerOf(from)?.packages
    return (
      !local &&
      packages !== undefined &&
      !packages.some((name) => to === name || to.startsWith(name.endsWith(':') ? name : `${name}/`))
    )
  })
  assert.equal(listed(bad), [])
})
test('a sub-folder never imports the folder above it', () => {
  assert.equal(
    listed(
      arrows.filter(({ from, to, local }) => local && dirname(from).startsWith(`${dirname(to)}/`)),
    ),
    [],
  )
})
test('no file is longer than 300 lines', () => {
  assert.equal(
    files.filter((file) => (text.get(file) ?? '').split('\n').length > 300),
    [],
  )
})
test('every file opens by saying what it is for', () => {
  assert.equal(
    files.filter((file) => !/^(#!.*\n)?\/\*\* /.test(text.get(file) ?? '')),
    [],
  )
})
test.run()
