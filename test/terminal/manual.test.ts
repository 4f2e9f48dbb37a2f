import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { WIZARD, WIZARD_ENVIRONMENT } from '../../runtime/lines/current/wizard/options.ts'
import { COMMAND_LINE } from '../../runtime/lines/earlier/rules/commands.ts'
import { createShell } from '../../runtime/services/shell.ts'
import { renderManual } from '../../runtime/terminal/manual.ts'

const test = suite('manual')
const shell = createShell({ env: process.env })
/** With what the program does where no command is named. */
const page = renderManual({
  ...COMMAND_LINE,
  main: WIZARD,
  environment: [...WIZARD_ENVIRONMENT, ...COMMAND_LINE.environment],
})

test('docs/flasher.1 is fresh: pnpm docs:manual makes it', async () => {
  assert.is(await readFile('docs/flasher.1', 'utf8'), page)
})
test('docs/cli.md names every command and every flag', async () => {
  const text = await readFile('docs/cli.md', 'utf8')
  for (const { words, flags } of COMMAND_LINE.commands) {
    assert.ok(text.includes(`flasher ${words.join(' ')}`), words.join(' '))
    for (const { name } of flags) assert.ok(text.includes(`\`--${name}`), name)
  }
})
test('groff and mandoc, where they are here, have nothing against it', async () => {
  const tools = [
    ['groff', '-man', '-Tutf8', '-ww', '-z'],
    ['mandoc', '-T', 'lint'],
  ] as const
  for (const argv of tools) {
    if (!(await shell.has(argv[0]))) continue
    const { exitCode, stdout, stderr } = await shell.run(argv, { input: page })
    assert.equal({ argv, exitCode, said: stdout + stderr }, { argv, exitCode: 0, said: '' })
  }
})
test('reads as it is meant', async () => {
  if (!(await shell.has('groff'))) return
  const argv = ['groff', '-man', '-Tascii', '-rLL=200n', '-P-cbou']
  const text = await shell.require(argv, { input: page })
  assert.match(
    text,
    /^ +flasher - write operating-system images onto disks, and prove that it worked$/m,
  )
  assert.match(text, /^ +--progress \{text\|ndjson\|none\}$/m)
  assert.match(text, /^ +flasher flash --image IMAGE --target DISK \[OPTION\.\.\.\]$/m)
})
test.run()
