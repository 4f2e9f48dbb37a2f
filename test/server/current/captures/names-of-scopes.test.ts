/** The name of a capture that somebody with a scope orders is refused with nothing that speaks of machines outside. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { fileSource } from '#engine/catalog/rules/image-upload.ts'
import { addPerson, createCurrentServer } from '#test/support/people/current-server.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('names of captures in a scope')

const [MINE, TOO, OTHER] = ['52:54:00:00:00:01', '52:54:00:00:00:02', '52:54:00:00:00:03']

test('an order outside is not noticed, one inside is, and a name that is assigned outside says nothing', async () => {
  await using server = await createCurrentServer({ FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9' })
  const operator = await server.operator()
  const anna = await addPerson(server, 'anna', 'operate', ['lab'])
  const capture = async (ask: typeof anna, mac: string, name: string) => {
    const asked = { name, disk_serial: 'S1' }
    const answer = await ask(`/machines/${mac}/capture`, asJson(asked))
    const detail: string = answer.status === 200 ? '' : (await answer.json()).detail
    if (answer.status === 200) await operator(`/machines/${MINE}/capture`, { method: 'DELETE' })
    return [answer.status, detail] as const
  }
  const removed = refOf(fileSource('removed.img.zst'))
  assert.ok(removed.ok)
  for (const [mac, labels, bty_image_ref] of [
    [MINE, ['lab'], null],
    [TOO, ['lab'], null],
    [OTHER, ['rack'], removed.value],
  ] as const) {
    const body = { boot_mode: 'ipxe-exit', labels, bty_image_ref }
    assert.is((await operator(`/machines/${mac}`, asJson(body, 'PUT'))).status, 200)
  }
  assert.is((await capture(operator, OTHER, 'outside.img.zst'))[0], 200)
  assert.is((await capture(operator, TOO, 'inside.img.zst'))[0], 200)
  assert.equal(await capture(anna, MINE, 'outside.img.zst'), [200, ''])
  const [inside, words] = await capture(anna, MINE, 'inside.img.zst')
  assert.is(inside, 409)
  assert.match(words, /same name/i)
  assert.equal(await capture(anna, MINE, 'removed.img.zst'), [
    409,
    'removed.img.zst is no name for a capture: choose another.',
  ])
  for (const name of ['outside.img.zst', 'removed.img.zst']) {
    assert.is((await capture(operator, MINE, name))[0], 409, 'whoever sees all learns it')
  }
})

test.run()
