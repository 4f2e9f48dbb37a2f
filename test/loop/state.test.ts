import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, cp, mkdir, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { watchSpace } from '#fleet/state/disk-space.ts'
import { createLoop, type Loop } from '#test/support/disk/loop.ts'
import {
  AT,
  createStateFolder,
  faultOf,
  machineOf,
  macOf,
  noteOf,
  openServices,
  RELEASE,
} from '#test/support/server/state.ts'

const test = suite('state on real disks')
const run = $({ quiet: true, verbose: false })
const WRITER = join(import.meta.dirname, '../support/server/state-writer.ts')
const OURS = { release: RELEASE, line: 'current' }

/** The loop device's file system; unmounted with the device. */
async function mountLoop(loop: Loop, at: string): Promise<string> {
  await mkdir(at)
  await run`mount ${loop.device} ${at}`
  return at
}

async function createFolder() {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-disk-'))
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) }
}

test('what was acknowledged survives a power cut', async () => {
  await using folder = await createFolder()
  await using loop = await createLoop({ megabytes: 48 })
  await run`mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 ${loop.device}`
  const disk = await mountLoop(loop, join(folder.dir, 'disk'))
  const child = spawn(process.execPath, [WRITER, join(disk, 'state.db'), RELEASE], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (text: string) => {
    said += text
  })
  // The disk as it is at that moment: what the kernel still had in memory is not in the file.
  const cut = join(folder.dir, 'cut')
  try {
    while (said.length < 4000 && child.exitCode === null) await sleep(5)
    child.kill('SIGSTOP')
    await copyFile(loop.backing, cut)
  } finally {
    child.kill('SIGKILL')
    await once(child, 'close')
  }
  await using after = await createLoop({ backing: cut })
  const rest = await mountLoop(after, join(folder.dir, 'rest'))
  await using state = await openServices({ path: join(rest, 'state.db'), ...OURS })
  const stored = new Set(
    state.database.sql.all('SELECT summary FROM events').map((row) => row['summary']),
  )
  const events = said.split('\n').filter((line) => line.startsWith('event '))
  assert.ok(events.length > 50)
  assert.equal(
    events.filter((line) => !stored.has(line)),
    [],
  )
  for (const machine of await state.machines.list()) assert.ok(machine.labels.length > 0)
})

test('a full disk is said, loses nothing, and is over once there is room', async () => {
  await using folder = await createFolder()
  await using loop = await createLoop({ megabytes: 16 })
  await run`mkfs.ext4 -q -m 0 ${loop.device}`
  const disk = await mountLoop(loop, join(folder.dir, 'disk'))
  await using state = await openServices({ path: join(disk, 'state.db'), ...OURS })
  await state.machines.update(macOf(1), () => machineOf(1))
  await state.journal.record(noteOf())
  const ballast = join(disk, 'ballast')
  await fillDisk(disk, ballast)
  const big = { ...noteOf(), details: { x: 'y'.repeat(16_000) } }
  const faults: string[] = []
  for (let n = 0; n < 400 && faults.length === 0; n += 1) {
    await state.journal.record(big).catch((thrown: unknown) => {
      faults.push(
        thrown instanceof Error && 'code' in thrown ? String(thrown.code) : String(thrown),
      )
    })
  }
  assert.equal(faults, ['storage-full'])
  const fault = await faultOf(
    state.machines.update(
      macOf(1),
      (before) => before && { ...before, labels: big.details.x.match(/.{60}/g) ?? [] },
    ),
  )
  assert.match(fault.message, 'full')
  assert.match(fault.hint ?? '', 'Free space')
  assert.equal(await state.machines.find(macOf(1)), machineOf(1))
  state.machines.see(macOf(1), { at: AT, ip: '192.0.2.1' })
  const before = (await state.journal.list({ limit: 500 })).length
  await rm(ballast)
  await state.journal.record(noteOf({ summary: 'room again' }))
  assert.is((await state.journal.list({ limit: 500 })).length, before + 1)
  assert.is((await state.machines.find(macOf(1)))?.last_seen_ip, '192.0.2.1')
  assert.is(state.database.sql.get('PRAGMA integrity_check')?.['integrity_check'], 'ok')
})

test('an upgrade that finds no room leaves the old database in its place', async () => {
  await using folder = await createFolder()
  await using source = await createStateFolder()
  {
    await using state = await source.open()
    const text = 'x'.repeat(300)
    await state.store.save(
      Object.fromEntries(Array.from({ length: 8000 }, (_, n) => [`s${n}`, text + n])),
    )
    await state.machines.update(macOf(1), () => machineOf(1))
  }
  await using loop = await createLoop({ megabytes: 16 })
  await run`mkfs.ext4 -q -m 0 ${loop.device}`
  const disk = await mountLoop(loop, join(folder.dir, 'disk'))
  const path = join(disk, 'state.db')
  await cp(source.path, path)
  await fillDisk(disk, join(disk, 'ballast'))
  const fault = await faultOf(openServices({ path, ...OURS, release: '2.0.0' }))
  assert.is(fault.code, 'storage-full')
  await rm(join(disk, 'ballast'))
  await using state = await openServices({ path, ...OURS, release: '2.0.0' })
  assert.is(state.database.reset?.from_version, RELEASE)
  assert.is(await state.machines.count(), 1)
  assert.is(Object.keys(state.store.list()).length, 8000)
})

test('a disk that fills up is on record once, before it is full', async () => {
  await using folder = await createFolder()
  await using loop = await createLoop({ megabytes: 64 })
  await run`mkfs.ext4 -q -m 0 ${loop.device}`
  const disk = await mountLoop(loop, join(folder.dir, 'disk'))
  await using state = await openServices({ path: join(disk, 'state.db'), ...OURS })
  const warned: string[] = []
  using watch = watchSpace({
    path: disk,
    journal: state.journal,
    warnBelow: () => 2 ** 30,
    onLow: (message) => void warned.push(message),
  })
  assert.not((await watch.look()).isLow)
  await writeFile(join(disk, 'ballast'), Buffer.alloc(50 * 2 ** 20))
  await run`sync -f ${disk}`
  for (let n = 0; n < 3; n += 1) assert.ok((await watch.look()).isLow)
  assert.is(warned.length, 1)
  assert.is((await state.journal.list({ limit: 10, kind: 'system.disk.low' })).length, 1)
  assert.is(await state.journal.countAlarms(), 1)
})

/** Leaves some 100 KiB. */
async function fillDisk(disk: string, ballast: string) {
  const { bavail, bsize } = await statfs(disk)
  await writeFile(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 100_000)))
  await run`sync -f ${disk}`
}

test.run()
