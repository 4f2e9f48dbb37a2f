/** What can be imported has declarations whose types can be reached, and that explain everything. */
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
  const flaws = MODULES.flatMap((name) =>
    listFlaws(readFileSync(join(folder.path, `out/runtime/library/${name}.d.ts`), 'utf8')).map(
      (flaw) => `${name}: ${flaw}`,
    ),
  )
  assert.equal(flaws, [])
})

/** What a declaration file does not explain: exports, parameters, results, errors, examples. */
function listFlaws(text: string): readonly string[] {
  const exported =
    /(\/\*\*(?:(?!\*\/)[^])*\*\/\n)?export (?:declare )?(const|function|class|interface|type) (\w+)([^]*?)(?=\n(?:\/\*\*|export|declare)|$)/g
  return [...text.matchAll(exported)].flatMap(([, comment = '', kind = '', name = '', rest = '']) =>
    comment === ''
      ? [`${name}: no comment`]
      : listRequired(kind, rest)
          .filter((tag) => !comment.includes(tag))
          .map((tag) => `${name}: no ${tag.trim()}`),
  )
}

/** The tags that a comment must have; promises may be rejected, and their comments say with what. */
function listRequired(kind: string, rest: string): readonly string[] {
  const example = '@example\n * ```ts\n'
  if (kind === 'class') return [example]
  if (kind !== 'function' && !rest.includes('=>')) return []
  return [
    ...listParameters(rest).map((parameter) => `@param ${parameter} - `),
    ...(/(?:void|void>);?\s*$/.test(rest) ? [] : ['@returns ']),
    ...(rest.includes('Promise<') ? ['@throws {'] : []),
    example,
  ]
}

/** The names between the first parentheses; a pattern is called `options` in comments. */
function listParameters(signature: string): readonly string[] {
  let depth = 0
  let flat = ''
  for (const sign of signature) {
    if (')}]>'.includes(sign)) depth -= 1
    if (depth === 0 && sign === ')') break
    if (depth === 1) flat += sign
    if ('({[<'.includes(sign)) depth += 1
  }
  return flat
    .split(',')
    .map((one) => /^\s*(\w+)\??\s*:/.exec(one)?.[1] ?? (/^\s*\{/.test(one) ? 'options' : ''))
    .filter((name) => name !== '')
}

test.run()
