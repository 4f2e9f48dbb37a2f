/** Which files a program stands for, and which packages the device needs. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { collectImports, packageOf, parseImports, resolveImport } from '#build/cache/imports.ts'

const test = suite('imports')

const FILES: Readonly<Record<string, string>> = {
  'bin/a.mjs': "import { enableCompileCache } from 'node:module'\nawait import('./a.ts')\n",
  'bin/a.ts': [
    "import type { Gone } from '../types/gone.ts'",
    "import { z } from 'zod'",
    'import {',
    '  one,',
    "} from '../core/one.ts'",
    "const lazy = () => import('../core/two.ts')",
  ].join('\n'),
  'core/one.ts': "import { two, type Two } from './two.ts'\nexport * from 'hono/html'\n",
  'core/two.ts': "import '@inquirer/core'\nimport { one } from './one.ts'\n",
}
const read = (path: string) => {
  const text = FILES[path]
  if (text === undefined) throw new Error(`no ${path}`)
  return text
}

test('follows every way of importing, round in circles too, and no types', () => {
  assert.equal(collectImports(['bin/a.mjs'], read), {
    files: ['bin/a.mjs', 'bin/a.ts', 'core/one.ts', 'core/two.ts'],
    packages: ['@inquirer/core', 'hono', 'zod'],
  })
})

test('a missing file is named', () => {
  assert.throws(() => collectImports(['core/none.ts'], read), /no core\/none\.ts/)
})

test('a room is where package.json says, and an unknown one is an error', () => {
  assert.is(resolveImport('test/a.test.ts', '#kit/host/shell.ts'), 'runtime/kit/host/shell.ts')
  assert.is(resolveImport('a/b.ts', './c.ts'), 'a/c.ts')
  assert.is(resolveImport('a/b.ts', 'zx/core'), null)
  assert.throws(() => resolveImport('a/b.ts', '#attic/c.ts'), /a\/b\.ts imports #attic\/c\.ts/)
  assert.throws(() => resolveImport('a/b.ts', '#kit/c.js'), /no such room/)
})

test('a package has one or two parts', () => {
  assert.is(packageOf('zx/core'), 'zx')
  assert.is(packageOf('@inquirer/core/deep'), '@inquirer/core')
})

test('what looks like an import within a text is none', () => {
  assert.equal(parseImports("const said = 'import x from y'\n// import { a } from './a.ts'\n"), [])
})
test('what the live system starts brings no server with it', () => {
  const { files, packages } = collectImports([
    'runtime/bin/flasher.mjs',
    'runtime/bin/flasher-live.mjs',
  ])
  const server =
    /^runtime\/(server\/(?!earlier\/rules\/)|kit\/(web|program)\/)|\/routes\/|\/pages\//
  assert.equal(
    files.filter((file) => server.test(file)),
    [],
  )
  assert.not(packages.includes('h3'))
})

test.run()
