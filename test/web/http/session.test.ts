/** Sessions that end together: which of one second have ended, and which begin after it. */
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { H3Event } from 'h3'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSecret } from '../../../runtime/services/access/secret.ts'
import { createSignedOut } from '../../../runtime/services/access/signed-out.ts'
import { createSessions } from '../../../runtime/web/http/session.ts'

const test = suite('sessions that end together')

async function createFixture() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'flasher-session-'))
  const secret = await createSecret({ path: join(folder.path, 'session-secret'), configured: '' })
  const clock = { time: 1_800_000_000_000 }
  const now = () => new Date(clock.time)
  const open = () =>
    createSessions({
      secret,
      now,
      signedOut: createSignedOut({
        path: join(folder.path, 'signed-out.json'),
        now,
        log: { warn: (message) => assert.unreachable(message) },
      }),
    })
  return { clock, open, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

type Sessions = ReturnType<typeof createSessions>

/** Of these `Set-Cookie` values, which open a session. */
const whichHold = (sessions: Sessions, lines: readonly string[]) =>
  lines.map((line) => {
    const headers = new Headers({ cookie: line.split(';')[0] ?? '' })
    return sessions.read({ req: { headers } } as H3Event) !== null
  })

test('a login in the second of a new password counts', async () => {
  await using fixture = await createFixture()
  const sessions = fixture.open()
  const before = sessions.issue(false)
  const mine = await sessions.endOthers(false)
  const lines = [before, mine, sessions.issue(false)]
  assert.equal(whichHold(sessions, lines), [false, true, true])
  assert.equal(whichHold(fixture.open(), lines), [false, true, true], 'after a restart')
  fixture.clock.time += 3_600_000
  assert.equal(whichHold(sessions, lines), [false, true, true], 'an hour later')
})

test('two new passwords in one second: the second ends what began after the first', async () => {
  await using fixture = await createFixture()
  const [server, cache] = [fixture.open(), fixture.open()]
  const first = await server.endOthers(false)
  const between = server.issue(false)
  const second = await server.endOthers(false)
  const lines = [first, between, second, server.issue(false)]
  for (const sessions of [server, cache, fixture.open()]) {
    assert.equal(whichHold(sessions, lines), [false, false, true, true])
  }
})

test('a session that goes on does not outlive the end of all', async () => {
  await using fixture = await createFixture()
  const sessions = fixture.open()
  await sessions.endOthers(false)
  const renewed = sessions.renew(false, 'an id that was read before')
  assert.equal(whichHold(sessions, [renewed]), [false])
})

test.run()
