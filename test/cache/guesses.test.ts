/** Passwords and tokens that are guessed at the cache: slowed and logged, at the page and as bearers. */
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  makeFolder,
  PASSWORD,
  QUIET,
  serveCache,
  startCache,
  TOKEN,
} from '#test/support/server/image-cache.ts'

const test = suite('guesses at the cache')
const CHOSEN = 'of-the-lab'

async function pin(base: string, token: string) {
  const answer = await fetch(`${base}/pins`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ holder: 'test', refs: [] }),
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

const logIn = (base: string, password: string) =>
  fetch(`${base}/ui/login`, {
    method: 'POST',
    body: new URLSearchParams({ password }),
    redirect: 'manual',
  })

/** Its clock stands still unless it is set forward. */
async function open() {
  const folder = await makeFolder()
  const clock = { now: 1_800_000_000_000 }
  const said: string[] = []
  const served = await serveCache(folder.path, {
    now: () => new Date(clock.now),
    log: { ...QUIET, warn: (line) => void said.push(line) },
    chosen: CHOSEN,
  })
  return {
    clock,
    said,
    pin: (token: string) => pin(served.base, token),
    logIn: (password: string) => logIn(served.base, password),
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('guessed bearers wait, those that are right among them', async () => {
  await using site = await open()
  assert.is((await site.pin(CHOSEN)).status, 204)
  for (let n = 0; n < 4; n++) assert.is((await site.pin(`guess-${n}`)).status, 401)
  const slowed = await site.pin(CHOSEN)
  assert.equal([slowed.status, slowed.headers.get('retry-after')], [429, '1'])
  assert.match(slowed.text, 'too many wrong tokens from this address')
  assert.is((await site.logIn(PASSWORD)).status, 429, 'the page is no way around it')
  assert.is((await site.pin(TOKEN)).status, 204, 'its own token cannot be guessed')
  site.clock.now += 1000
  assert.is((await site.pin('guess')).status, 401)
  assert.is((await site.pin('guess')).headers.get('retry-after'), '2')
  site.clock.now += 2000
  assert.is((await site.pin(CHOSEN)).status, 204)
  assert.equal(site.said, Array(5).fill('Wrong token (127.0.0.1)'))
})

test('wrong passwords at the page are logged, and slow bearers as well', async () => {
  await using site = await open()
  for (let n = 0; n < 4; n++) assert.is((await site.logIn('letmein')).status, 401)
  assert.is((await site.pin(CHOSEN)).status, 429)
  assert.equal(site.said, Array(4).fill('Failed login: wrong password (127.0.0.1)'))
})

test('of hundreds of guesses at once the program looks at a handful, and logs those', async () => {
  await using folder = await makeFolder()
  await using program = await startCache(join(folder.path, 'state'), {
    FLASHER_CACHE_TOKEN: CHOSEN,
    FLASHER_ADMIN_PASSWORD: 'correct-horse',
  })
  assert.is((await pin(program.base, CHOSEN)).status, 204)
  assert.is((await pin(program.base, 'correct-horse')).status, 204)
  const guesses = Array.from({ length: 500 }, (_, n) => pin(program.base, `guess-${n}`))
  const statuses = (await Promise.all(guesses)).map(({ status }) => status)
  const looked = statuses.filter((status) => status === 401).length
  assert.ok(looked >= 4 && looked <= 12, `${looked} were looked at`)
  assert.is(statuses.filter((status) => status === 429).length, 500 - looked)
  assert.is(program.said().match(/Wrong token \(127\.0\.0\.1\)/g)?.length, looked)
  assert.not.match(program.said(), 'guess-')
  assert.is((await pin(program.base, program.token)).status, 204)
})

test.run()
