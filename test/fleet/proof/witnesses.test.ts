/** The host keys of a real sshd, and what a wait for a first boot makes of them. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtempDisposable, readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createRun, type Run } from '#engine/inventory/rules/run.ts'
import { createProofs, readHostKeys } from '#fleet/proof/proofs.ts'
import { findRun, saveRun } from '#fleet/run/run-rows.ts'
import { createDatabase } from '#fleet/state/database.ts'
import { createChanges } from '#kit/host/changes.ts'
import { createShell } from '#kit/host/shell.ts'
import { findPort } from '#test/support/http/ports.ts'
import { MAC } from '#test/support/server/machine-fixture.ts'
import { originOf } from '#test/support/server/runs.ts'
import { waitUntil } from '#test/support/waiting.ts'

const runTool = $({ quiet: true, verbose: false })

/** Makes a host key in a folder of its own; resolves to its path. */
async function makeHostKey(folder: string, name: string): Promise<string> {
  const path = join(folder, name)
  await runTool`ssh-keygen -q -t ed25519 -N ${''} -f ${path}`
  return path
}

/** Starts it on 127.0.0.1 with that host key alone. */
async function startSshd(key: string, port: number) {
  // It insists on this folder, however it is configured.
  await mkdir('/run/sshd', { recursive: true })
  const options = [`ListenAddress=127.0.0.1:${port}`, `HostKey=${key}`, 'PidFile=none']
  const words = ['-D', '-e', '-f', '/dev/null', ...options.flatMap((option) => ['-o', option])]
  const child = spawn('/usr/sbin/sshd', words, { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  let said = ''
  child.stderr.on('data', (piece: Buffer) => void (said += piece.toString()))
  await waitUntil(
    async () => said.includes('Server listening'),
    () => said,
  )
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

const test = suite('host keys of new systems')

const HOST = '127.0.0.1'
const shell = createShell({ env: process.env })
const look = (port: number) => readHostKeys(shell, HOST, port)

test('SSH shows its host keys, and a closed port or another service that there is none', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-ssh-'))
  const port = await findPort()
  assert.equal(await look(port), [])
  const key = await makeHostKey(folder.path, 'one')
  {
    await using _sshd = await startSshd(key, port)
    const [, base64 = ''] = (await readFile(`${key}.pub`, 'utf8')).split(' ')
    const digest = createHash('sha256').update(base64, 'base64').digest('hex')
    assert.equal(await look(port), [digest])
    const without = { ...shell, has: async () => false }
    assert.is(await readHostKeys(without, HOST, port), null)
  }
  let said = '220 mail.example\r\n'
  const words = createServer((socket) => socket.end(said))
  words.listen(port, HOST)
  await once(words, 'listening')
  assert.equal(await look(port), [])
  said = ''
  assert.is(await look(port), null, 'an SSH that is busy says nothing')
  words.close()
})

const START = Date.parse('2026-11-26T08:00:00.000Z')
const RUN: Run = {
  ...createRun('run-00000001', originOf(MAC), new Date(START).toISOString()),
  result: 'done',
  phase: 'done',
}

/** A machine that booted its disk ten minutes ago; `from` is the key of the system that runs before its flash. */
async function play(from: string | null, to: string | null, port: number) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-proofs-'))
  const path = join(folder.path, 'state.db')
  await using database = await createDatabase({ path, release: '1', line: 'current' })
  const clock = { ms: 0, answers: true }
  const changes = createChanges()
  const proofs = createProofs({
    database,
    changes,
    log: console,
    settings: () => ({ enabled: true, limit: 60, port }),
    findCall: () => null,
    now: () => new Date(START + clock.ms),
    elapsed: () => clock.ms,
    findAnswers: async () => new Map([[MAC, clock.answers]]),
    readKeys: () => look(port),
  })
  changes.announce({ topic: 'boot', mac: MAC, isToDisk: true })
  clock.ms += 600_000
  {
    await using _old = from === null ? null : await startSshd(from, port)
    proofs.order(MAC, 'order-1')
    await proofs.settle(MAC)
  }
  // The live system.
  await proofs.leave(MAC)
  const run = { ...RUN, updated_at: new Date(START + clock.ms).toISOString() }
  await database.write((sql) => saveRun(sql, run))
  await proofs.begin(run)
  clock.answers = false
  await proofs.look()
  clock.answers = true
  await using _new = to === null ? null : await startSshd(to, port)
  await proofs.look()
  clock.ms += 61_000
  await proofs.sweep()
  const proof = findRun(database.sql, MAC, run.id)?.run.proof
  return [proof?.state, proof?.how]
}

test('a host key that was not there before proves the new system, and the old one proves nothing', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-ssh-'))
  const port = await findPort()
  const one = await makeHostKey(folder.path, 'one')
  const other = await makeHostKey(folder.path, 'other')
  assert.equal(await play(one, other, port), ['booted', 'ssh'])
  assert.equal(await play(null, one, port), ['booted', 'ssh'])
  assert.equal(await play(one, one, port), ['seen', 'network'])
  assert.equal(await play(one, null, port), ['seen', 'network'])
})

test.run()
