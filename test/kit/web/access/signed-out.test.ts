/** Logged-out sessions: remembered over restarts, forgotten when they would have ended anyway. */
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSignedOut } from '../../../../runtime/kit/web/access/signed-out.ts'

const test = suite('signed-out sessions')

const START = 1_800_000_000_000
const DAY = 24 * 3600 * 1000

async function makeFixture() {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-signed-out-'))
  const path = join(folder, 'signed-out.json')
  const said: string[] = []
  const broken: string[] = []
  const clock = { time: START }
  return {
    path,
    said,
    broken,
    clock,
    open: (at = path) =>
      createSignedOut({
        path: at,
        now: () => new Date(clock.time),
        log: { warn: (message) => void said.push(message) },
        onDamage: (message) => void broken.push(message),
      }),
    after: (days: number) => new Date(clock.time + days * DAY),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

test('holds over a restart, readable for its owner alone', async () => {
  await using fixture = await makeFixture()
  const before = await fixture.open()
  await before.add('one', fixture.after(7))
  assert.equal([before.has('one'), before.has('two')], [true, false])
  assert.is((await stat(fixture.path)).mode & 0o777, 0o600)
  const after = await fixture.open()
  assert.equal([after.has('one'), after.has('two')], [true, false])
})

test('holds no more than it should, and what has ended by itself while it is few', async () => {
  await using fixture = await makeFixture()
  const list = await fixture.open()
  await list.add('one', fixture.after(7))
  fixture.clock.time += 8 * DAY
  await list.add('two', fixture.after(7))
  // The clock may be wrong: a session that was logged out must not come back when it is right.
  const began = `!:${START / 1000}`
  assert.equal(Object.keys(JSON.parse(await readFile(fixture.path, 'utf8'))), [began, 'one', 'two'])
  const ended = Array.from({ length: 1200 }, (_, n) => [`e${n}`, START])
  await writeFile(fixture.path, JSON.stringify(Object.fromEntries(ended)))
  const long = await fixture.open()
  await long.add('three', fixture.after(7))
  assert.is(Object.keys(JSON.parse(await readFile(fixture.path, 'utf8'))).length, 1000)
  assert.ok(long.has('three'))
  const many = Array.from({ length: 10_001 }, (_, n) => [`s${n}`, START + 20 * DAY])
  await writeFile(fixture.path, JSON.stringify(Object.fromEntries(many)))
  const full = await fixture.open()
  assert.equal([full.has('s0'), full.has('s10000')], [false, true])
})

test('many at once all hold', async () => {
  await using fixture = await makeFixture()
  const list = await fixture.open()
  await Promise.all(Array.from({ length: 50 }, (_, n) => list.add(`s${n}`, fixture.after(1))))
  const again = await fixture.open()
  assert.ok(Array.from({ length: 50 }, (_, n) => again.has(`s${n}`)).every(Boolean))
})

test('two programs on one file know of each other, and lose nothing of it', async () => {
  await using fixture = await makeFixture()
  const [server, cache] = [await fixture.open(), await fixture.open()]
  await server.add('one', fixture.after(7))
  await cache.add('two', fixture.after(7))
  await server.add('three', fixture.after(7))
  const next = await fixture.open()
  assert.equal(
    ['one', 'two', 'three'].map((id) => next.has(id)),
    [true, true, true],
  )
  await server.add('four', fixture.after(7))
  while (!cache.has('four')) await new Promise((resolve) => setTimeout(resolve, 20))
})

test('a file that is none is written anew, and one that cannot be written logs nobody in again', async () => {
  await using fixture = await makeFixture()
  for (const text of ['', '{', '[1]', '{"one":"two"}', 'null']) {
    await writeFile(fixture.path, text)
    const list = await fixture.open()
    assert.is(list.has('one'), false)
    assert.is(list.endedUpTo(), START / 1000, 'nobody knows who had logged out by then')
    // Said at the start, once, with what it means.
    assert.is(fixture.said.length, 1, text)
    assert.match(
      fixture.said.join(),
      /signed-out\.json is damaged and is written anew: sessions end/,
    )
    assert.equal(fixture.broken, fixture.said)
    await list.add('two', fixture.after(7))
    assert.equal([(await fixture.open()).has('two'), fixture.said.length], [true, 1])
    fixture.said.length = 0
    fixture.broken.length = 0
  }
  const list = await fixture.open('/proc/signed-out.json')
  await list.add('one', fixture.after(1))
  assert.is(list.has('one'), true)
  assert.match(fixture.said.join(), /forgotten at the next start/)
})

test('a sound file and none are nothing to report; one that breaks later is', async () => {
  await using fixture = await makeFixture()
  const list = await fixture.open()
  await list.add('one', fixture.after(7))
  assert.is((await fixture.open()).has('one'), true)
  await writeFile(fixture.path, '{}')
  assert.is((await fixture.open()).has('one'), false)
  assert.equal(fixture.said, [])
  await writeFile(fixture.path, 'garbage')
  while (fixture.said.length === 0) {
    assert.is(list.has('one'), true)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.match(fixture.said.join(), /is damaged/)
})

test.run()
