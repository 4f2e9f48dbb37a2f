/** What can be imported has declarations whose types can be reached. */
import { spawnSync } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('declarations')

const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
const MODULES = Object.keys(exports)
  .map((name) => name.slice('./'.length))
  .filter((name) => !name.includes('.'))

test('the compiler writes a declaration for everything that can be imported', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-declarations-'))
  const project = join(folder.path, 'tsconfig.json')
  const compilerOptions = {
    noEmit: false,
    noCheck: true,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: resolve('.'),
    outDir: join(folder.path, 'out'),
    typeRoots: [resolve('node_modules/@types')],
  }
  const config = {
    extends: resolve('tsconfig.json'),
    compilerOptions,
    include: [resolve('runtime/library')],
  }
  writeFileSync(project, JSON.stringify(config))
  const { status, stdout } = spawnSync(resolve('node_modules/.bin/tsc'), ['--project', project])
  assert.is(stdout.toString(), '')
  assert.is(status, 0)
  for (const name of MODULES) {
    const text = readFileSync(join(folder.path, `out/runtime/library/${name}.d.ts`), 'utf8')
    assert.match(text, /^export /m, name)
  }
})

test.run()
