/** What tests open: before the first test of a suite or in a test, never while their files are loaded. */
import { stripTypeScriptTypes } from 'node:module'
import { compileFunction } from 'node:vm'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readTexts } from '#test/support/arrows.ts'

const test = suite('openings')

const IMPORT = /^import\b[^'`]*'[^'\n]*'$/gm
/** What is only computed may be awaited. */
const COMPUTING = /\bawait (?=packBuffer\(|makeCapture\()/g
const LISTENING = /^(?:const \w+ = )?[\w.]+\([^\n>]*\.(?:listen|bind)\(|^\w+\.(?:listen|bind)\(/m

/**
 * Why a test file may open something when it is loaded; null: it opens nothing. Only modules may await
 * outside of functions: compiled as the body of one, such a file is refused.
 */
function findOpening(source: string): string | null {
  const listening = LISTENING.exec(source)
  if (listening !== null) return listening[0]
  const code = stripTypeScriptTypes(source)
    .replaceAll(IMPORT, '')
    .replaceAll(/^export (?=\w)/gm, '')
    .replaceAll('import.meta', 'globalThis')
    .replaceAll(COMPUTING, '')
  try {
    compileFunction(code)
    return null
  } catch (thrown) {
    return String(thrown)
  }
}

test('no test file opens anything while it is loaded', () => {
  const files = readTexts(['test/**/*.test.ts'])
  assert.ok(files.size > 300)
  const found = [...files].flatMap(([file, source]) => {
    const opening = findOpening(source)
    return opening === null ? [] : [`${file}: ${opening}`]
  })
  assert.equal(found, [], 'opened() of test/support/opened.ts opens before the first test')
})

test('an opening is found in each of its forms, and only there', () => {
  for (const opening of [
    'const postgres = await startPostgres()',
    'const postgres: Postgres =\n  await startPostgres()',
    ';[browser, site] = await Promise.all([openBrowser(), startSite()])',
    "for (const name of NAMES) {\n  await writeFile(name, '')\n}",
    'await using site = await startSite()',
    "server.listen(0, '127.0.0.1')",
    "const server = createServer(answer).listen(0, '127.0.0.1')",
  ]) {
    assert.is.not(findOpening(opening), null, opening)
  }
  for (const other of [
    'const postgres = opened(test, () => startPostgres())',
    "test('they await it', async () => {\n  await using one: One = await openOne(import.meta.url)\n})",
    'export async function open(): Promise<void> {\n  server.listen(await findPort())\n}',
    "import { makeBytes } from '../collect.ts'\nconst { file } = await packBuffer(makeBytes(9))",
  ]) {
    assert.is(findOpening(other), null, other)
  }
})

test.run()
