/**
 * Uploads, captures, downloads and releases, whose program is killed at each step: they go on.
 *
 * `FLASHER_BEFORE=CHECKOUT` lets the program of another checkout be the one that is killed.
 */
import { readdir, readFile, stat, truncate, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDownload, createFetch } from '#test/support/partial/fetches.ts'
import { SAFE, type Transfer } from '#test/support/partial/transfer.ts'
import { createCaptured, createUpload } from '#test/support/partial/uploads.ts'
import { makeFolder } from '#test/support/server/image-cache.ts'

const test = suite('partial files and kill -9')
const BEFORE = process.env['FLASHER_BEFORE']
const AT = SAFE + 400_000

interface Kind {
  readonly name: string
  create(state: string): Promise<Transfer> | Transfer
  /** Whether it goes on where the kill was, rather than where the last part ended. */
  readonly trustsMemory: boolean
}

const KINDS: readonly Kind[] = [
  { name: 'an upload', create: createUpload, trustsMemory: false },
  { name: 'a capture', create: createCaptured, trustsMemory: false },
  { name: 'a download', create: createDownload, trustsMemory: true },
  { name: 'a release', create: createFetch, trustsMemory: true },
]

interface Case {
  readonly name: string
  /** How many bytes are there when it is killed. */
  readonly at: number
  /** What happens to the disk until the next start. */
  harm?(transfer: Transfer): Promise<void>
  from(kind: Kind): number
}

/** Another run of the kernel, for which only what was made durable counts. */
async function cutPower(transfer: Transfer): Promise<void> {
  const path = transfer.file()
  const { size } = await stat(path)
  await truncate(path, SAFE)
  await truncate(path, size)
  const record = transfer.record()
  if (record === null) return
  const text = await readFile(record, 'utf8')
  await writeFile(record, text.replace(/"bootId":"[^"]*"/, '"bootId":"another"'))
}

const CASES: readonly Case[] = [
  { name: 'before its first byte', at: 0, from: () => 0 },
  {
    name: 'while bytes come, and the power goes as well',
    at: AT,
    harm: cutPower,
    from: ({ trustsMemory }) => (trustsMemory ? 0 : SAFE),
  },
  {
    name: 'and its bytes are lost',
    at: AT,
    harm: ({ file }) => unlink(file()),
    from: () => 0,
  },
  {
    name: 'and what was remembered of it is lost',
    at: AT,
    async harm(transfer) {
      const record = transfer.record()
      if (record !== null) await unlink(record)
    },
    from: ({ name }) => (name === 'a release' ? AT : 0),
  },
  {
    name: 'while bytes come, and files that are nobody’s lie beside it',
    at: AT,
    async harm({ file }) {
      for (const name of ['f'.repeat(64), 'not a name', 'e'.repeat(32)])
        await writeFile(join(dirname(file()), name), 'x')
    },
    from: ({ trustsMemory }) => (trustsMemory ? AT : SAFE),
  },
]

for (const kind of KINDS) {
  for (const { name, at, harm, from } of CASES) {
    test(`${kind.name} that is killed ${name}`, async () => {
      await using state = await makeFolder()
      await using transfer = await kind.create(state.path)
      await transfer.start(BEFORE)
      await transfer.bring(at)
      await transfer.kill()
      await harm?.(transfer)
      await transfer.start()
      const finished = await transfer.finish()
      assert.is(finished.from, from(kind))
      assert.ok(finished.offered.equals(transfer.bytes))
      const left = await readdir(dirname(transfer.file())).catch(() => [])
      assert.equal(left, [])
    })
  }
}

test.run()
