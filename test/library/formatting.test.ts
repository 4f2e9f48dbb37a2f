import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createShell } from '../../runtime/services/shell.ts'

const test = suite('formatting')

/** What a program that imports the module prints. */
const printed = (code: string) => {
  const program = `import { printInspect, printTable } from './runtime/library/formatting.ts'\n${code}`
  const argv = [process.execPath, '--input-type=module-typescript', '--eval', program]
  return createShell({ env: process.env }).require(argv)
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
