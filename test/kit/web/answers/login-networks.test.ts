/** One network cannot keep the others from logging in, however many addresses it has. */
import { scryptSync } from 'node:crypto'
import { once } from 'node:events'
import * as http from 'node:http'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createPasswords } from '#fleet/access/passwords.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { createTestServer, listen } from '#test/support/server/server.ts'

const test = suite('logging in from several networks')

/** Logs in from an address of this host's loopback. */
async function logIn(port: number, from: string, password: string): Promise<number> {
  const body = new URLSearchParams({ password }).toString()
  const request = http.request({
    port,
    host: '127.0.0.1',
    localAddress: from,
    path: '/ui/login',
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    agent: false,
  })
  request.end(body)
  const [answer]: http.IncomingMessage[] = await once(request, 'response')
  answer?.resume()
  return answer?.statusCode ?? 0
}

/** 0 for those that are still waiting when the server ends. */
const flood = (port: number, count: number) =>
  Array.from({ length: count }, (_, n) => logIn(port, `127.1.2.${n + 1}`, 'guess').catch(() => 0))

test('checks of one network that never end leave room for 25 of 25 from elsewhere', async () => {
  const held = Promise.withResolvers<void>()
  let checking = 0
  await using server = await createTestServer({
    async checkPassword(given) {
      if (given === PASSWORD) return true
      checking += 1
      await held.promise
      return false
    },
  })
  await using served = await listen(server)
  const answers = flood(served.port, 100)
  // So many are turned away only when its lanes are taken, and as many as may wait do.
  let refused = 0
  await new Promise<void>((resolve) => {
    for (const answer of answers) {
      void answer.then((status) => {
        refused += status === 429 ? 1 : 0
        if (refused === 82) resolve()
      })
    }
  })
  assert.is(checking, 2)
  const one = []
  for (let n = 0; n < 25; n++) one.push(await logIn(served.port, '127.9.9.1', PASSWORD))
  assert.equal(one, Array(25).fill(303))
  const many = Array.from({ length: 25 }, (_, n) => logIn(served.port, `127.9.${n}.1`, PASSWORD))
  assert.equal(await Promise.all(many), Array(25).fill(303), 'all at once')
  held.resolve()
  assert.is((await Promise.all(answers)).filter((status) => status === 401).length, 18)
  assert.is(await logIn(served.port, '127.1.2.200', PASSWORD), 303, 'and the lanes are free again')
})

test('with real hashes, 25 of 25 right logins pass beside a flood from another network', async () => {
  // A real one of less cost: 25 logins are a matter of seconds.
  const digest = scryptSync(PASSWORD.normalize('NFC'), 'saltsalt', 32, { N: 2 ** 12, r: 8, p: 1 })
  const hash = `$scrypt$ln=12,r=8,p=1$${btoa('saltsalt')}$${digest.toString('base64')}`
  const passwords = createPasswords({
    path: '/nonexistent',
    configured: () => ({ password: '', password_hash: hash }),
  })
  await using server = await createTestServer({ checkPassword: passwords.check })
  await using served = await listen(server)
  const isOver = { now: false }
  const guessers = Array.from({ length: 40 }, async (_, n) => {
    const seen: number[] = []
    for (let at = n; !isOver.now; at += 40) {
      seen.push(await logIn(served.port, `127.1.2.${(at % 254) + 1}`, 'guess').catch(() => 0))
    }
    return seen
  })
  const statuses = []
  for (let n = 0; n < 25; n++) {
    statuses.push(await logIn(served.port, '127.9.9.1', PASSWORD).catch(() => 0))
  }
  isOver.now = true
  assert.equal(statuses, Array(25).fill(303))
  const seen = (await Promise.all(guessers)).flat()
  assert.ok(seen.includes(429), 'it was a flood')
  assert.not.ok(seen.includes(503))
})

test.run()
