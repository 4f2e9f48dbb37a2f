import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseToml } from '#kit/config/rules/toml.ts'
import { parseArguments } from '#kit/terminal/command/rules/arguments.ts'
import { completeArguments } from '#kit/terminal/command/rules/command.ts'
import { COMMAND_LINE } from '#server/current/commands/rules/commands.ts'
import { parseSettings } from '#server/current/settings/rules/settings.ts'
import { readBlocks } from '#test/support/docs.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'

const ANALYSE = '/usr/bin/systemd-analyze'

const test = suite('docs/server.md')

if (existsSync(ANALYSE)) {
  test('systemd finds nothing wrong with the unit', async () => {
    const [unit = ''] = readBlocks('server.md', 'ini')
    const dir = await mkdtemp(join(tmpdir(), 'flasher-unit-'))
    try {
      // The program and its user are not installed here.
      const here = unit
        .replace('/usr/local/bin/flasher-web', process.execPath)
        .replaceAll(/^(User|Group)=flasher$/gm, '$1=daemon')
      const path = join(dir, 'flasher-web.service')
      await writeFile(path, here)
      const { status, stderr } = spawnSync(ANALYSE, ['verify', path], { encoding: 'utf8' })
      assert.is(stderr, '')
      assert.is(status, 0)
      const security = spawnSync(ANALYSE, ['security', '--offline=yes', '--threshold=30', path], {
        encoding: 'utf8',
      })
      assert.is(security.status, 0, security.stdout)
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  })
}

test('every configuration that it shows is one', () => {
  const blocks = readBlocks('server.md', 'toml')
  assert.ok(blocks.length >= 3)
  for (const text of blocks) {
    const parsed = parseToml(text)
    assert.ok(parsed.ok, text)
    if (!parsed.ok) continue
    const layers = [{ path: 'docs', text, values: parsed.value }]
    assert.equal(parseSettings({ env: {}, saved: {}, layers }).problems, [], text)
  }
})

test('every command that it shows is one', () => {
  const lines = readBlocks('server.md', 'sh').flatMap((block) => block.split('\n'))
  const commands = lines.filter((line) => line.startsWith('flasher-web '))
  assert.ok(commands.length >= 6)
  for (const line of commands) {
    const [, ...argv] = line.replace(/\s*#.*$/, '').split(' ')
    assert.is(parseArguments(COMMAND_LINE, completeArguments(COMMAND_LINE, argv)).ok, true, line)
  }
})

test('the client that it shows is one', async () => {
  const [script = ''] = readBlocks('remote.md', 'sh')
  await using home = await createServerHome()
  await using server = await home.start()
  const here = script.replace('http://flasher.lan:8080', server.url)
  assert.is.not(here, script)
  // Alone: the server answers from another process.
  const child = spawn('sh', ['-ec', here], { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const [code] = await once(child, 'close')
  assert.is(code, 0)
  assert.match(said, /^\{.*"inventory".*\}\{.*\}$/s)
})

test.run()
