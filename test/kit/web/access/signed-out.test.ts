/** Sessions that were logged out of a cache: remembered over restarts, pruned when they are many. */
import { mkdtempDisposable, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSignedOut } from '#kit/web/access/session.ts'

const test = suite('signed-out sessions')

const START = 1_800_000_000
const WEEK = 7 * 24 * 3600

async function createFixture() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'flasher-signed-out-'))
  const clock = { second: START }
  const path = join(folder.path, 'signed-out.json')
  return {
    path,
    clock,
    open: (at = path) => createSignedOut({ path: at, now: () => new Date(clock.second * 1000) }),
    names: async () => Object.keys(JSON.parse(await readFile(path, 'utf8'))).toSorted(),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}

const issued = (sid: string, iat = START) => ({ sid, iat })

test('holds over a restart, readable for its owner alone, and for others at the next question', async () => {
  await using fixture = await createFixture()
  const [cache, server] = [fixture.open(), fixture.open()]
  assert.is(server.has(issued('one')), false)
  await Promise.all(['one', 'two'].map((id) => cache.add(id, START + WEEK)))
  for (const list of [cache, server, fixture.open()]) {
    assert.equal(
      ['one', 'two', 'three'].map((id) => list.has(issued(id))),
      [true, true, false],
    )
  }
  assert.is((await stat(fixture.path)).mode & 0o777, 0o600)
})

test('what has ended by itself goes once there are many: the clock may be wrong', async () => {
  await using fixture = await createFixture()
  await fixture.open().add('one', START + WEEK)
  fixture.clock.second += 2 * WEEK
  await fixture.open().add('two', START + 3 * WEEK)
  assert.equal(await fixture.names(), ['one', 'two'])
  const ended = Array.from({ length: 1200 }, (_, n) => [`e${n}`, START])
  await writeFile(fixture.path, JSON.stringify(Object.fromEntries(ended)))
  const list = fixture.open()
  await list.add('three', START + 3 * WEEK)
  assert.is((await fixture.names()).length, 1000)
  assert.ok(list.has(issued('three')))
})

test('a damaged list ends whatever is as old, for those who read and those who write it', async () => {
  await using fixture = await createFixture()
  for (const text of ['', '{', '[1]', '{"one":"two"}', 'null']) {
    await writeFile(fixture.path, text)
    await utimes(fixture.path, START, START)
    const list = fixture.open()
    const isOut = () => [START - 1, START, START + 1].map((at) => list.has(issued('one', at)))
    assert.equal(isOut(), [true, true, false], text)
    await fixture.open().add('two', START + WEEK)
    assert.equal([isOut(), list.has(issued('two', START + 1))], [[true, true, false], true], text)
  }
})

test('a logout that cannot be stored is none, and counts as long as this program runs', async () => {
  await using fixture = await createFixture()
  const list = fixture.open('/proc/signed-out.json')
  const failed = await list.add('one', START + WEEK).then(
    () => null,
    (thrown: unknown) => thrown,
  )
  assert.instance(failed, Error)
  assert.ok(list.has(issued('one')))
})

test.run()
