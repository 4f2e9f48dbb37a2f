/** The machines of the earlier line: what a search does not understand, and the question before one is deleted. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'

const test = suite('the earlier line: machines')
const MAC = '52:54:00:12:34:56'
const form = (fields: Readonly<Record<string, string>>) => ({
  method: 'POST',
  body: new URLSearchParams(fields),
})

test('a filter that is misspelt is named, with the one that may be meant', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const read = async (q: string) =>
    await (await ask(`/ui/machines?q=${encodeURIComponent(q)}`)).text()
  assert.match(
    await read('stat:failed'),
    /<code>stat:failed<\/code> is not a filter\. Did you mean/,
  )
  assert.match(await read('policy:flahs'), /finds nothing\. Did you mean[^]*policy:flash/)
  assert.not.match(await read('state:needs-attention policy:tui'), 'Did you mean')
})

test('POST /ui/machines/{mac}/delete', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const path = `/ui/machines/${MAC}/delete`
  const asked = await ask(path, form({ confirm: 'ask' }))
  assert.match(await asked.text(), /Delete <bdi>[^]*No disk is changed/)
  assert.is((await ask(`/machines/${MAC}`)).status, 200, 'a question deletes nothing')
  const again = await ask('/ui/machines/52:54:00:00:00:99/delete', form({ confirm: 'yes' }))
  assert.match(again.headers.get('location') ?? '', 'missing=')
  // Scripts post without an answer, and are not asked.
  const deleted = await ask(path, { method: 'POST' })
  assert.is(deleted.status, 303)
  assert.match(await (await ask(deleted.headers.get('location') ?? '')).text(), 'was deleted')
  assert.is((await ask(`/machines/${MAC}`)).status, 404)
})

test.run()
