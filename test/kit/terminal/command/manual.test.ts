import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { COMMAND_LINE as CACHE } from '#cache/rules/commands.ts'
import { COMMAND_LINE as WEB } from '#server/current/commands/rules/commands.ts'
import { WIZARD_LINE } from '#flasher/wizard/options.ts'
import { COMMAND_LINE } from '#flasher/commands/rules/commands.ts'
import { TUI_LINE as TUI } from '#flasher/panes/rules/tui-commands.ts'
import { createShell } from '#kit/host/shell.ts'
import { renderManual } from '#kit/terminal/command/usage.ts'

const test = suite('manual')
const shell = createShell({ env: process.env })
/** The page includes what the program does where no command is named. */
const page = renderManual({
  ...COMMAND_LINE,
  ...WIZARD_LINE,
  environment: [...WIZARD_LINE.environment, ...COMMAND_LINE.environment],
  about: [...WIZARD_LINE.about, ...COMMAND_LINE.about],
})

test('docs/flasher.1 is fresh: pnpm docs:manual makes it', async () => {
  assert.is(await readFile('docs/flasher.1', 'utf8'), page)
})
test('docs/flasher-tui.1 is fresh: pnpm docs:manual makes it', async () => {
  assert.is(await readFile('docs/flasher-tui.1', 'utf8'), renderManual(TUI))
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
    for (const input of [page, renderManual(TUI), renderManual(WEB), renderManual(CACHE)]) {
      const { exitCode, stdout, stderr } = await shell.run(argv, { input })
      assert.equal({ argv, exitCode, said: stdout + stderr }, { argv, exitCode: 0, said: '' })
    }
  }
})
test('the servers have one, with environment and files', async () => {
  for (const line of [WEB, CACHE]) {
    const text = renderManual(line)
    assert.match(text, /^\.TH FLASHER-(WEB|CACHE) 1 [\d-]+ /m)
    for (const [name] of [...line.environment, ...line.files]) {
      assert.ok(text.includes(name.replaceAll('-', '\\-')), name)
    }
  }
})
test('reads as it is meant', async () => {
  if (!(await shell.has('groff'))) return
  const argv = ['groff', '-man', '-Tascii', '-rLL=200n', '-P-cbou']
  const text = await shell.require(argv, { input: page })
  assert.match(text, /^ +flasher - write operating-system images to disks and verify them$/m)
  assert.match(text, /^ +--progress \{text\|ndjson\|none\}$/m)
  assert.match(text, /^ +flasher flash --image IMAGE --target DISK \[OPTION\.\.\.\]$/m)
})
test.run()
