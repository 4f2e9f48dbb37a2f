/** Nothing is left lying: each file of the runtime can be reached, each package has a job. */
import { globSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listArrows, readTexts } from './support/arrows.ts'

const CODE = ['appliance/**/*.ts', 'build/**/*.ts', 'runtime/**/*.{ts,mjs,js}']

const texts = readTexts(CODE)
const arrows = listArrows(texts)
const textOf = (file: string) => texts.get(file) ?? ''
const about: {
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
} = JSON.parse(readFileSync('package.json', 'utf8'))

/** `hono/html` is of `hono`, `@inquirer/select` its own. */
const packageOf = (name: string) =>
  name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')
/** Packages whose files pages load: nothing imports them. */
const vendored = [
  ...textOf('runtime/kit/web/answers/assets.ts').matchAll(/^ {2}'?([\w.-]+)'?: \['/gm),
]
const test = suite('reach')

/** A page asks for a file by its name, and a script for its worker. */
const isNamed = (text: string, name: string) =>
  text.includes(`assetUrl('${name}')`) || text.includes(`new URL('./${name}', import.meta.url)`)

test('every file of the runtime is reached from a program or from the library', () => {
  const pages = globSync('runtime/kit/web/static/*')
  const named = [...texts].flatMap(([from, text]) =>
    pages
      .filter((to) => isNamed(text, to.slice('runtime/kit/web/static/'.length)))
      .map((to) => ({ from, to })),
  )
  const next = Map.groupBy([...arrows.filter(({ local }) => local), ...named], ({ from }) => from)
  const reached = new Set(globSync(['runtime/bin/*.{ts,mjs}', 'runtime/library/*.ts']))
  // A set that grows while it is walked is walked to its end.
  for (const from of reached) for (const { to } of next.get(from) ?? []) reached.add(to)
  const all = [...globSync('runtime/**/*.{ts,mjs}'), ...pages].toSorted()
  assert.equal(
    all.filter((file) => !reached.has(file)),
    [],
  )
})

test('every package that is shipped is used by what is shipped, or by the builder', () => {
  const used = new Set([
    ...arrows.map(({ to }) => packageOf(to)),
    ...vendored.map(([, name = '']) => name),
  ])
  assert.equal(
    Object.keys(about.dependencies).filter((name) => !used.has(name)),
    [],
  )
})

test('every other package is used by tests, by a script, or by a configuration', () => {
  const tests = [...readTexts(['test/**/*.ts']).values()].join('\n')
  const scripts = Object.values(about.scripts).join(' ')
  const types = readFileSync('tsconfig.json', 'utf8').match(/"types": \[(.*)\]/)?.[1] ?? ''
  assert.equal(
    Object.keys(about.devDependencies).filter((name) => {
      const isLoaded = tests.includes(`'${name}'`) || tests.includes(`'${name}/`)
      const isOfTypes = types.includes(`"${name.replace('@types/', '')}"`)
      // A package that brings no types of its own.
      const isOfPackage = name.replace('@types/', '') in about.dependencies
      return !isLoaded && !isOfPackage && !isOfTypes && !runs(scripts, name)
    }),
    [],
  )
})

/** Whether one of a package's commands stands in the scripts. */
function runs(scripts: string, name: string): boolean {
  const { bin = {} }: { readonly bin?: string | Readonly<Record<string, string>> } = JSON.parse(
    readFileSync(`node_modules/${name}/package.json`, 'utf8'),
  )
  const commands = typeof bin === 'string' ? [name] : Object.keys(bin)
  return commands.some((command) => scripts.split(/[^\w.-]+/).includes(command))
}

test.run()
