import { readdir } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login, passwordIn } from '#test/support/server/flasher-web.ts'

const test = suite('secrets of flasher-web')

test('what is logged holds no password', async () => {
  await using home = await createServerHome()
  const server = await home.start([], { FLASHER_LOG_LEVEL: 'debug' })
  const password = passwordIn(server.stdout())
  await login(server.url, password)
  server.child.kill('SIGTERM')
  const { stderr } = await server.ended
  assert.not.match(stderr, password)
})

test('no page, event, document or figure shows a secret, an edit included', async () => {
  await using home = await createServerHome()
  const secret = 'hunter2-hunter2-hunter2'
  await home.write(
    'a.toml',
    `[admin]\npassword = "${secret}"\n[withcache]\ntoken = "${secret}"\n[backup]\ndriver_options = { key = "${secret}" }\n`,
  )
  await using server = await home.start(['--config', home.at('a.toml')], {
    FLASHER_SERVER_SESSION_SECRET: secret,
    FLASHER_LOG_LEVEL: 'debug',
  })
  const { cookie } = await login(server.url, secret)
  const post = (fields: Readonly<Record<string, string>>) =>
    fetch(`${server.url}/ui/settings/config/edit`, {
      method: 'POST',
      headers: { cookie },
      body: new URLSearchParams(fields),
    })
  const edited = await post({ section: 'pxe', key: 'loop_limit', value: '9' })
  const refused = await post({ section: 'admin', key: 'password', value: 'hunter2-new' })
  assert.match(await home.text('a.toml'), 'loop_limit = 9')
  assert.not.match(await home.text('a.toml'), 'hunter2-new')
  const paths = [
    'ui/settings',
    'ui/events',
    'ui/dashboard',
    'ui/account',
    'ui/backups',
    'ui/netboot',
    'events',
    'metrics',
    'openapi.json',
    'workers/backups',
    'tokens',
  ]
  const texts = await Promise.all(
    paths.map(async (path) => {
      const answer = await fetch(`${server.url}/${path}`, { headers: { cookie } })
      assert.is(answer.status, 200, path)
      return answer.text()
    }),
  )
  paths.push('edited', 'refused')
  texts.push(await edited.text(), await refused.text())
  const leaks = paths.filter((_, index) => texts[index]?.includes('hunter2'))
  assert.equal(leaks, [])
  server.child.kill('SIGTERM')
  const { stdout, stderr } = await server.ended
  assert.not.match(`${stdout}${stderr}`, 'hunter2')
})

test('config show tells every value and its source, and no secret', async () => {
  await using home = await createServerHome()
  await home.write('a.toml', '[admin]\npassword = "hunter2"\n[pxe]\nloop_limit = 7\nlop = 1\n')
  const env = {
    FLASHER_CONFIG_FILE: home.at('a.toml'),
    FLASHER_SERVER_SESSION_SECRET: 'hunter2'.repeat(3),
  }
  const text = await home.run(['config', 'show'], env)
  assert.is(text.code, 0)
  assert.match(text.stdout, /^admin\.password +set +\/.*a\.toml$/m)
  assert.match(text.stdout, /^pxe\.loop_limit +7 +\/.*a\.toml$/m)
  assert.match(
    text.stdout,
    /^server\.host +127\.0\.0\.1 +environment variable FLASHER_SERVER_HOST$/m,
  )
  assert.match(text.stderr, /a\.toml:5: no such setting: pxe\.lop/)
  const json = await home.run(['config', 'show', '--json'], env)
  const document: unknown = JSON.parse(json.stdout)
  assert.ok(typeof document === 'object' && document !== null && 'settings' in document)
  const check = await home.run(['config', 'check'], env)
  assert.is(check.code, 0)
  for (const { stdout, stderr } of [text, json, check]) {
    assert.not.match(`${stdout}${stderr}`, 'hunter2')
  }
  // Looking makes nothing.
  assert.not.ok((await readdir(home.dir)).includes('state'))
})

test.run()
