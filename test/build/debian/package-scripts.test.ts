import { execFileSync } from 'node:child_process'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SERVER_SCRIPTS } from '#build/debian/package-control.ts'

const test = suite('scripts of the Debian packages')
const FORMER = '/var/lib/dpkg/info/flasher-lab.postrm'
const COMMANDS = ['chmod', 'chown', 'rm', 'systemctl', 'useradd', 'userdel'] as const

/** Runs a script where every program is one of ours, which only writes down how it was called. */
async function run(script: string, argv: readonly string[], hasFormer = true) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-scripts-'))
  const log = join(folder.path, 'log')
  const lay = (name: string, lines: string) =>
    writeFile(join(folder.path, name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 })
  await writeFile(log, '')
  for (const name of COMMANDS) await lay(name, `echo "${name} $*" >>'${log}'`)
  await lay('getent', 'exit 0')
  await lay('dpkg-query', hasFormer ? `echo ${FORMER}` : 'exit 1')
  execFileSync('/bin/sh', ['-c', script, 'script', ...argv], { env: { PATH: folder.path } })
  return await readFile(log, 'utf8')
}

test('what is left of the former package cannot take the state along when it is purged', async () => {
  const { postinst = '' } = SERVER_SCRIPTS
  assert.match(await run(postinst, ['configure', '']), `rm -f ${FORMER}\n`)
  assert.not.match(await run(postinst, ['configure', '0.0.1'], false), 'rm ')
  assert.is(await run(postinst, ['abort-upgrade', '0.0.1']), '')
})

test('a purge keeps the state while another package serves it', async () => {
  const { postrm = '' } = SERVER_SCRIPTS
  const alone = postrm.replace('/usr/bin/flasher-web', '/nothing/is/here')
  const served = postrm.replace('/usr/bin/flasher-web', '/bin/sh')
  assert.match(await run(alone, ['purge']), /rm -rf \/var\/lib\/flasher\nuserdel flasher/)
  assert.not.match(await run(alone, ['remove']), /rm|userdel/)
  assert.not.match(await run(served, ['purge']), /rm|userdel/)
})

test.run()
