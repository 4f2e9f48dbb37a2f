/** What goes wrong beside a flash that reads through neighbours costs it the neighbours alone: no wait, and no end. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtempDisposable, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createWindowKeeper, openPeerWindow } from '#flasher/link/peer-window.ts'
import type { ServerClient } from '#flasher/link/server-client.ts'
import { accept, type Result } from '#kit/foundation/result.ts'
import { NGINX } from '#test/support/http/nginx.ts'

const test = suite('a window for neighbours')
const run = existsSync(NGINX) && process.getuid?.() === 0 ? test : test.skip
const LISTEN = '127.0.82.1'
const ANSWER = {
  key: '0123456789abcdef0123456789abcdef',
  before: ['127.0.82.2:8082'],
  hops: 1,
  allow: null,
  ask_seconds: 1,
}

// What never answers keeps no process alive.
const held = setInterval(() => {}, 1000)
test.after(() => clearInterval(held))

type Asked = ReturnType<ServerClient['askPeers']>
const never = (): Asked => new Promise<Result<unknown, never>>(() => {})

/** `answer` is called with the number of the question. */
function open(answer: (question: number) => Asked, listen = [LISTEN]) {
  let asked = 0
  const client = { askPeers: () => answer((asked += 1)) }
  const given = { env: process.env, signal: new AbortController().signal, places: { listen } }
  const location = 'http://127.0.0.1:9/a.img.zst'
  const opening = openPeerWindow({ ...given, location, sha256: '1'.repeat(64), client })
  return { opening, asked: () => asked }
}

/** The folder of the nginx that listens here; null: there is none. */
async function findFolder(): Promise<string | null> {
  for (const name of await readdir('/dev/shm')) {
    if (!name.startsWith('flasher-peers-')) continue
    const folder = join('/dev/shm', name)
    const conf = await readFile(join(folder, 'nginx.conf'), 'utf8').catch(() => '')
    if (conf.includes(`listen ${LISTEN}:`)) return folder
  }
  return null
}

run('a server that does not answer holds up neither the beginning nor the end', async () => {
  assert.is(await open(never).opening, null)
  const { opening, asked } = open(async (question) => (question === 1 ? accept(ANSWER) : never()))
  const window = await opening
  assert.ok(window)
  while (asked() < 2) await sleep(50)
  await window[Symbol.asyncDispose]()
  assert.is(await findFolder(), null)
})

run(
  'a process that was killed leaves nothing in memory for longer than until the next flash',
  async () => {
    const killed = spawn('sleep', ['60'])
    const [gone, alive] = [
      `/dev/shm/flasher-peers-${killed.pid}-test1`,
      `/dev/shm/flasher-peers-${process.pid}-test2`,
    ]
    for (const folder of [gone, alive]) {
      await mkdir(folder)
      await writeFile(join(folder, 'window'), 'bytes of an image')
    }
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    assert.is(await open(never).opening, null)
    assert.equal([existsSync(gone), existsSync(alive)], [false, true])
    await rm(alive, { recursive: true })
  },
)

run('a configuration that cannot be written is left as it was', async () => {
  const { opening, asked } = open(async (question) => accept({ ...ANSWER, hops: question }))
  await using window = await opening
  assert.ok(window)
  const path = join((await findFolder()) ?? '', 'nginx.conf')
  await rm(path)
  await mkdir(path)
  const before = asked()
  // Had the process ended, or the questions, nobody would ask again.
  while (asked() < before + 2) await sleep(50)
})

run('where another program has the port there are no neighbours', async () => {
  const other = createServer().listen(8082, LISTEN)
  await once(other, 'listening')
  const { opening, asked } = open(async () => accept(ANSWER))
  assert.is(await opening, null)
  assert.is(asked(), 1)
  other.close()
})

run('once nginx has ended, this machine is no neighbour any more', async () => {
  const { opening, asked } = open(async () => accept(ANSWER))
  await using window = await opening
  assert.ok(window)
  const folder = await findFolder()
  process.kill(Number(await readFile(join(folder ?? '', 'pid'), 'utf8')))
  while (existsSync(join(folder ?? '', 'pid'))) await sleep(20)
  await sleep(100)
  const before = asked()
  await sleep(2500)
  assert.is(asked(), before)
})

const MIB = 1 << 20
const pieceOf = (at: number) => at.toString(16).padStart(2, '0').repeat(16)

async function openKeeper(windowBytes: number) {
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
  await using window = await openKeeper(3 * MIB + 5)
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
  await using window = await openKeeper(2 * MIB)
  await window.add(1, 2)
  await window.keeper.tidy()
  await window.drop(1)
  await window.keeper.tidy()
  await window.add(1, 3)
  await window.keeper.tidy()
  assert.equal(await window.list(), [1, 3].map(pieceOf))
})

test('a folder that is not there yet, or no longer, is no trouble', async () => {
  const window = await openKeeper(MIB)
  await window[Symbol.asyncDispose]()
  await window.keeper.tidy()
  await window.keeper.watch(AbortSignal.abort())
})

test.run()
