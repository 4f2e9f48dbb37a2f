/** The power of a disk with a write cache is cut: files keep their old or their new content, and what was said stays. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFile,
  mkdir,
  mkdtempDisposable,
  readdir,
  readFile,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createFaultyDisk } from '#test/support/disk/faulty-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { contentOf } from '#test/support/system/name-writer.ts'

const test = suite('power cuts')
const run = $({ quiet: true, verbose: false })
const WRITER = join(import.meta.dirname, '../../support/system/name-writer.ts')

/** How each is made, and the size of its disk. */
const FILE_SYSTEMS: Readonly<
  Record<string, readonly [make: readonly string[], megabytes: number]>
> = {
  ext4: [['mkfs.ext4', '-q', '-E', 'lazy_itable_init=0,lazy_journal_init=0'], 64],
  xfs: [['mkfs.xfs', '-q'], 320],
  btrfs: [['mkfs.btrfs', '-q'], 160],
}

interface Cut {
  /** Cut when this was said, and so many milliseconds later. */
  readonly after: RegExp
  readonly ms: number
  /** The rename after which the writer waits for ever; absent: it does not. */
  readonly held?: number
}

/** What the writer said, and what is on the disk afterwards. */
async function cutPower(
  type: string,
  { after, ms, held }: Cut,
  look: (said: string, at: string) => Promise<void>,
) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-power-'))
  const [data, at] = [join(folder.path, 'data'), join(folder.path, 'mounted')]
  await mkdir(at)
  const [make, megabytes] = FILE_SYSTEMS[type] ?? [[], 0]
  await writeFile(data, '')
  await truncate(data, megabytes * 2 ** 20)
  let said = ''
  {
    // What is not flushed is in the cache alone, and goes with it.
    await using disk = await createFaultyDisk({
      nbdkit: ['--filter=cache', 'file', data, 'cache=writeback'],
    })
    await run`${make} ${disk.device}`
    await run`mount ${disk.device} ${at}`
    const argv = [WRITER, at, ...(held === undefined ? [] : [String(held)])]
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] })
    const closed = once(child, 'close')
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    while (!after.test(said) && child.exitCode === null) await sleep(2)
    await sleep(ms)
    disk.vanish()
    // What is said from here on may have been meant for the disk before.
    child.kill('SIGKILL')
    await closed
    await copyFile(data, `${data}.cut`)
  }
  await using rest = await createLoop({ backing: `${data}.cut` })
  await run`mount ${rest.device} ${at}`
  await look(said, at)
}

const lastOf = (said: string, what: string) =>
  Number([...said.matchAll(new RegExp(`^${what} (\\d+)$`, 'gm'))].at(-1)?.[1] ?? 0)

const hasContent = async (path: string, n: number) =>
  (await readFile(path, 'utf8').catch(() => null)) === contentOf(n)

async function check(said: string, at: string) {
  const [begun, replaced] = [lastOf(said, 'begin'), lastOf(said, 'replaced')]
  const [placed, removed] = [lastOf(said, 'placed'), lastOf(said, 'removed')]
  const state = await readFile(join(at, 'state.json'), 'utf8')
  const possible = [replaced, Math.max(begun, replaced + 1)].map(contentOf)
  assert.ok(
    possible.includes(state),
    `the old or the new: ${said.slice(-200)}${state.slice(0, 40)}`,
  )
  for (let n = 1; n <= placed; n += 1) {
    assert.ok(await hasContent(join(at, `new-${n}`, 'below', 'a.json'), n), `in new folders: ${n}`)
  }
  const names = await readdir(at)
  assert.equal(
    names.filter((name) => name.startsWith('part-') && Number(name.slice(5)) <= placed),
    [],
    'what was placed has its own name alone',
  )
  const images = names.flatMap((name) => (name.startsWith('image-') ? Number(name.slice(6)) : []))
  assert.ok(!images.some((n) => n < removed), `what was removed stays away: ${images}`)
  for (const n of images)
    assert.ok(await hasContent(join(at, `image-${n}`), n), `image ${n} is whole`)
  if (placed > 0 && removed === placed) assert.ok(images.includes(placed), 'what was placed stays')
}

for (const type of Object.keys(FILE_SYSTEMS)) {
  test(`${type}: at any moment`, async () => {
    for (const [round, ms] of [0, 9].entries()) {
      await cutPower(type, { after: new RegExp(`removed ${5 + round * 3}\n`), ms }, check)
    }
  })

  test(`${type}: after a file has its new name, before its folder is synced`, async () => {
    await cutPower(type, { after: /renamed\n/, ms: 5, held: 7 }, async (said, at) => {
      assert.is(lastOf(said, 'begin'), lastOf(said, 'replaced') + 1, 'it was held there')
      await check(said, at)
    })
  })
}

test.run()
