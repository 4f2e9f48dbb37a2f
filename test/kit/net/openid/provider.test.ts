/** The client of a provider against real ones: what it asks, how long it waits, and what it keeps. */
import { createServer } from 'node:http'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createProvider } from '#kit/net/openid/provider.ts'
import { CLIENT, startOpenIdProvider } from '#test/support/people/openid-provider.ts'

const test = suite('the client of a provider')

const FLOW = {
  redirectUri: 'http://flasher.test/ui/login/openid/callback',
  state: 'a state',
  nonce: 'a nonce',
  verifier: 'v'.repeat(43),
}

function open(issuer: string, waitMs = 300) {
  const news: (string | null)[] = []
  const provider = createProvider({
    issuer,
    clientId: CLIENT.id,
    clientSecret: CLIENT.secret,
    clientSecretFile: '',
    scope: 'openid',
    env: {},
    onChange: (failure) => news.push(failure?.detail ?? null),
    waitMs,
  })
  return { ...provider, news, [Symbol.dispose]: provider.close }
}

test('many who log in at once ask once, and the listener hears of a change once', async () => {
  await using real = await startOpenIdProvider({ origins: ['http://flasher.test'] })
  using provider = open(real.issuer, 5000)
  const begun = await Promise.all(Array.from({ length: 20 }, () => provider.begin(FLOW, false)))
  assert.ok(begun.every(({ ok }) => ok))
  assert.equal(real.asked, ['/.well-known/openid-configuration'])
  assert.equal(provider.news, [null])
  const again = await provider.begin(FLOW, true)
  assert.ok(again.ok && new URL(again.value).searchParams.get('prompt') === 'login')
})

test('a provider that hangs is waited for so long and no longer, whoever asks', async () => {
  await using real = await startOpenIdProvider({ origins: [] })
  real.faults.set('/openid-configuration', 'hangs')
  using provider = open(real.issuer)
  const answers = await Promise.all([provider.begin(FLOW, false), provider.begin(FLOW, false)])
  for (const answer of answers) {
    assert.equal(answer, { ok: false, refusal: { why: 'away', detail: 'no answer within 0.3 s' } })
  }
  assert.is(provider.failure()?.why, 'away')
  assert.equal(provider.news, ['no answer within 0.3 s'])
})

test('an answer that never ends is given up as well', async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  using provider = open(`http://127.0.0.1:${port}`)
  const answer = await provider.begin(FLOW, false)
  assert.is(answer.ok, false)
  assert.is(provider.failure()?.detail, 'no answer within 0.3 s')
  server.closeAllConnections()
  server.close()
})

test('a file with the secret is read anew for each login, and missed in words', async () => {
  await using real = await startOpenIdProvider({ origins: [] })
  const provider = createProvider({
    issuer: real.issuer,
    clientId: CLIENT.id,
    clientSecret: '',
    clientSecretFile: '/nonexistent/secret',
    scope: 'openid',
    env: {},
    onChange: () => {},
  })
  const answer = await provider.begin(FLOW, false)
  provider.close()
  const detail = '/nonexistent/secret (oidc.client_secret_file) cannot be read'
  assert.equal(answer, { ok: false, refusal: { why: 'settings', detail } })
})

test.run()
