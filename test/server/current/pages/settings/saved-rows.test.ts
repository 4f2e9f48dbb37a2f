/** /ui/settings: what was saved or refused is said at its row, and each setting has one field. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { fieldOf, openSettingsSite as open, shownIn } from '#test/support/settings/settings-site.ts'

const test = suite('rows of the settings page')

test('a setting of the database has one field, also where a file sets it', async () => {
  await using site = await open()
  await site.home.write('a.toml', '[boot]\nrelease_repo = "a/b"\n')
  await using server = await site.start(['--config', site.home.at('a.toml')])
  const page = await server.page()
  assert.is(page.split(' name="boot.release_repo"').length - 1, 1)
  const row = fieldOf(page, 'boot.release_repo')
  assert.match(row, /name="boot\.release_repo"[^>]*value="a\/b"/)
})

test('what the page posts says its rows and keeps the search; programs get the address they know', async () => {
  await using site = await open()
  await using server = await site.start()
  const save = async (path: string, fields: Readonly<Record<string, string>>) => {
    const answer = await server.post(`/ui/settings/${path}`, fields)
    return answer.headers.get('location') ?? String(answer.status)
  }
  assert.is(
    await save('config', { q: 'a loop', 'pxe.loop_limit': '9', 'metrics.open': 'true' }),
    '/ui/settings?saved=config&at=pxe.loop_limit+metrics.open&q=a+loop#pxe.loop_limit',
  )
  const both = await server.page('?saved=config&at=metrics.open+pxe.loop_limit&q=zebra')
  assert.equal(shownIn(both).toSorted(), ['metrics.open', 'pxe.loop_limit'])
  for (const name of shownIn(both)) assert.match(fieldOf(both, name), '>Saved<')
  assert.not.match(fieldOf(both, 'display.timezone'), '>Saved<')
  // Nothing is said to be saved by an address that names no such thing.
  assert.not.match(await server.page('?saved=no&at=metrics.open'), '>Saved<')
  assert.is(
    await save('upstream', { q: '', netboot_repo: 'a/b' }),
    '/ui/settings?saved=upstream&at=boot.release_repo#netboot-release',
  )
  assert.is(await save('upstream', { netboot_repo: 'a/c' }), '/ui/settings?saved=upstream')
  assert.match(await save('upstream', { q: 'x', netboot_repo: '?' }), /&q=x#netboot-release$/)
  assert.is(await save('config', { q: 'x' }), '422')
})

test('a typo raises no event; what the server could not do does', async () => {
  await using site = await open()
  await using server = await site.start()
  const kinds = async () => {
    const answer = await server.ask('/ui/events?kind=settings.config.failed')
    return (await answer.text()).split(' was not changed: ').length - 1
  }
  const post = (fields: Readonly<Record<string, string>>) =>
    server.post('/ui/settings/config', fields)
  await post({ 'pxe.loop_limit': 'many', 'server.trusted_proxies': 'nobody' })
  assert.is(await kinds(), 0)
  await post({ 'pxe.loop_limit': 'many', 'server.port': '80' })
  const text = await (await server.ask('/ui/events?kind=settings.config.failed')).text()
  assert.match(text, 'server.port was not changed')
  assert.not.match(text, 'pxe.loop_limit was not changed')
})

test.run()
