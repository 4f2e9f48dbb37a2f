/** What can be imported has declarations: each type that they name can be reached. */
import { spawnSync } from 'node:child_process'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('declarations')

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
})

test.run()
