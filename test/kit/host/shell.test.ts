/** Tools that are started: what their shell takes from the people who use it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createShell } from '#kit/host/shell.ts'

const test = suite('shell')

test("what people have in their shell's own files, functions and options is in no answer of a tool", async () => {
  const home = await mkdtemp(join(tmpdir(), 'flasher-shell-'))
  try {
    const words = 'echo the words of a person; export SEEN=yes'
    for (const name of ['.bashrc', 'every']) await writeFile(join(home, name), `${words}\n`)
    // As of a unit of systemd, which has no shell around it, and of `ssh host flasher …`.
    for (const around of [{}, { SHLVL: '0', SSH_CLIENT: '10.0.0.1 1 22' }]) {
      const shell = createShell({
        env: {
          PATH: process.env['PATH'],
          HOME: home,
          BASH_ENV: join(home, 'every'),
          'BASH_FUNC_cat%%': '() { echo a function; }',
          SHELLOPTS: 'xtrace',
          BASHOPTS: 'extdebug',
          ...around,
        },
      })
      const read = await shell.run(['cat'], { input: 'of a file' })
      assert.equal(read, { exitCode: 0, stdout: 'of a file', stderr: '' })
      assert.equal(await shell.run(['printenv', 'SEEN']), { exitCode: 1, stdout: '', stderr: '' })
    }
  } finally {
    await rm(home, { recursive: true })
  }
})

test.run()
