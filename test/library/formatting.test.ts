import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('formatting')

const run = promisify(execFile)

/** What a program that imports the module prints. */
async function printed(code: string): Promise<string> {
  const program = `import { printInspect, printTable } from './runtime/library/formatting.ts'\n${code}`
  const argv = ['--input-type=module-typescript', '--eval', program]
  return (await run(process.execPath, argv)).stdout
}

test('printTable and printInspect write to standard output', async () => {
  assert.is(
    await printed(`printTable([{ name: 'a.img', removable: true }], ['name', 'removable'])`),
    'NAME   REMOVABLE\n-----  ---------\na.img  yes\n',
  )
  assert.is(await printed('printTable([], [])'), '(no entries)\n')
  assert.is(await printed(`printInspect({ a: { b: 1 } })`), 'a:\n  b: 1\n')
})
test.run()
