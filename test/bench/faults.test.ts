/** The program that tries the tests with faults: what it draws from a small tree, and what is found there. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { NumberedFault } from './faults.ts'

const test = suite('faults')
const PROGRAM = path.join(import.meta.dirname, 'faults.ts')
const folder = mkdtempSync(path.join(os.tmpdir(), 'flasher-faults-'))
const tree = path.join(folder, 'tree')
const copies = path.join(folder, 'copies')
test.after(() => rmSync(folder, { recursive: true, force: true }))

const OPTIONS = { strict: true, module: 'nodenext', target: 'esnext', types: [], noEmit: true }

const FILES: Readonly<Record<string, string>> = {
  'tsconfig.json': JSON.stringify({
    compilerOptions: { ...OPTIONS, allowImportingTsExtensions: true },
    include: ['runtime'],
  }),
  'runtime/kit/net/limit.ts': 'export const isWithin = (size: number): boolean => size < 10\n',
  'runtime/kit/text/pieces.ts': `export function describe(size: number): string {
  if (size === 0) return 'nothing'
  return \`\${size} pieces\`
}
export function increase(size: number | undefined): number {
  if (size === undefined) return 0
  return size + 1
}
`,
  'runtime/bin/demo.ts': `import { isWithin } from '../kit/net/limit.ts'
console.log(isWithin(3) ? 'fits' : 'too large')
`,
  'runtime/bin/demo.mjs': `import './demo.ts'\n`,
  'test/kit/net/limit.test.ts': `import { isWithin } from '../../../runtime/kit/net/limit.ts'
if (!isWithin(9) || isWithin(10)) throw new Error('a wrong limit')
`,
  'test/kit/text/pieces.test.ts': `import { spawn } from 'node:child_process'
import { describe } from '../../../runtime/kit/text/pieces.ts'
// It outlives its test, and knows nothing but a folder.
const left = ['-e', 'setInterval(() => {}, 1000)', process.cwd() + '/left']
spawn(process.execPath, left, { detached: true, env: {}, stdio: 'ignore' }).unref()
if (describe(2) !== '2 pieces') throw new Error('a wrong text')
`,
  'test/kit/text/always-fails.test.ts': `import '../../../runtime/kit/text/pieces.ts'
throw new Error('each time')
`,
  'test/bin/demo.test.ts': `import { execFileSync } from 'node:child_process'
const said = execFileSync(process.execPath, ['runtime/bin/demo.mjs'], { encoding: 'utf8' })
if (said !== 'fits\\n') throw new Error(said)
`,
}

test.before(() => {
  for (const [file, text] of Object.entries(FILES)) {
    mkdirSync(path.dirname(path.join(tree, file)), { recursive: true })
    writeFileSync(path.join(tree, file), text)
  }
  mkdirSync(copies)
  git('init', '--quiet')
  git('add', '.')
  git('-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '--quiet', '--message', 'a tree')
})

function git(...argv: string[]): string {
  const { status, stdout, stderr } = spawnSync('git', ['-C', tree, ...argv], { encoding: 'utf8' })
  assert.is(status, 0, stderr)
  return stdout
}

function run(...more: string[]) {
  const argv = [PROGRAM, '--tree', tree, ...more]
  const env = { ...process.env, TMPDIR: copies }
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8', env })
  assert.is(status, 0, stderr)
  assert.equal(readdirSync(copies), [])
  assert.equal(listPrograms(copies), [])
  assert.is(git('worktree', 'list').trim().split('\n').length, 1)
  return stdout
}

/** The commands that name the folder. */
const listPrograms = (named: string): readonly string[] =>
  spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter((command) => command.includes(named))

const readFaults = (file: string): readonly NumberedFault[] =>
  JSON.parse(readFileSync(file, 'utf8')).faults

/** `pieces.ts:2 check skipped: not found`. */
function describe({ file, line, kind, result }: NumberedFault): string {
  const by = result.test === null ? '' : ` by ${path.basename(result.test)}`
  return `${path.basename(file)}:${line} ${kind}: ${result.outcome}${by}`
}

const EXPECTED = [
  'demo.ts:2 condition turned: found by demo.test.ts',
  'limit.ts:1 limit off by one: found by limit.test.ts',
  'pieces.ts:2 check skipped: not found',
  'pieces.ts:2 condition turned: found by pieces.test.ts',
  'pieces.ts:6 check skipped: types',
  'pieces.ts:6 condition turned: types',
]
const first = path.join(folder, 'first.json')

test('each fault of the tree is found by the test that looks at it, or by none', () => {
  const printed = run('--seed', '5', '--json', first)
  assert.equal(readFaults(first).map(describe).toSorted(), EXPECTED)
  assert.match(printed, '| All | 3 | 1 | 0 | 2 |')
})

test('the same seed draws the same again', () => {
  const second = path.join(folder, 'second.json')
  run('--seed', '5', '--json', second, '--workers', '1')
  const [one, other] = [first, second].map((file) =>
    readFaults(file).map(({ number, before, after }) => [number, before, after]),
  )
  assert.equal(other, one)
})

test.run()
