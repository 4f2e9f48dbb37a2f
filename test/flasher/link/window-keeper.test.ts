/** The window of pieces keeps its size, whatever nginx thinks of it. */
import { mkdtempDisposable, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createWindowKeeper } from '#flasher/link/peer-window.ts'

const test = suite('the size of a window')
const MIB = 1 << 20
const pieceOf = (at: number) => at.toString(16).padStart(2, '0').repeat(16)

async function open(windowBytes: number) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'flasher-window-'))
  const keeper = createWindowKeeper(folder.path, windowBytes)
  return {
    keeper,
    async add(...pieces: readonly number[]) {
      for (const piece of pieces) {
        await writeFile(join(folder.path, pieceOf(piece)), '')
        await sleep(5)
      }
    },
    addPart: () => writeFile(join(folder.path, `${pieceOf(9)}.0000000009`), ''),
    drop: (piece: number) => rm(join(folder.path, pieceOf(piece))),
    list: async () => (await readdir(folder.path)).toSorted(),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}

test('the oldest pieces go, and what is still being fetched stays', async () => {
  await using window = await open(3 * MIB + 5)
  await window.add(7, 2, 5)
  await window.addPart()
  await window.keeper.tidy()
  assert.is((await window.list()).length, 4)
  await window.add(1, 4)
  await window.keeper.tidy()
  assert.equal(
    await window.list(),
    [1, 4, 5, 9].map((at) => (at === 9 ? `${pieceOf(9)}.0000000009` : pieceOf(at))),
  )
})

test('a piece that nginx dropped and fetched again is a new one', async () => {
  await using window = await open(2 * MIB)
  await window.add(1, 2)
  await window.keeper.tidy()
  await window.drop(1)
  await window.keeper.tidy()
  await window.add(1, 3)
  await window.keeper.tidy()
  assert.equal(await window.list(), [1, 3].map(pieceOf))
})

test('a folder that is not there yet, or no longer, is no trouble', async () => {
  const window = await open(MIB)
  await window[Symbol.asyncDispose]()
  await window.keeper.tidy()
  await window.keeper.watch(AbortSignal.abort())
})

test.run()
