import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createStateFolder, makeToken } from '#test/support/server/state.ts'

const test = suite('tokens and settings')
const WISH = { name: 'ci', scopes: ['flash', 'read'], expires_at: null } as const

test('a token is found by its text alone, which is nowhere on disk', async () => {
  await using folder = await createStateFolder()
  let made
  {
    await using state = await folder.open()
    made = await makeToken(state.tokens, WISH)
    assert.match(made.token, /^flasher_[0-9a-f]{12}_[\w-]{43}$/)
    assert.equal(state.tokens.find(made.token)?.scopes, ['read', 'flash'])
    for (const text of ['', made.token.slice(0, -1), `${made.token} `, made.record.id]) {
      assert.is(state.tokens.find(text), null)
    }
    const rows = JSON.stringify(state.database.sql.all('SELECT * FROM tokens'))
    assert.not.ok(rows.includes(made.token))
  }
  await using state = await folder.open()
  assert.is(state.tokens.find(made.token)?.id, made.record.id)
})

test('a token is revoked with all that it made, and with nothing else', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  const make = async (name: string, maker: string | null) => {
    const made = await state.tokens.create({ ...WISH, name, maker }, 10)
    assert.ok(made.ok)
    return made.value
  }
  const first = await make('first', null)
  const second = await make('second', first.record.id)
  const third = await make('third', second.record.id)
  const other = await make('other', null)
  await state.tokens.revoke(first.record.id)
  assert.equal(
    [first, second, third, other].map(({ token }) => state.tokens.find(token)?.name),
    [undefined, undefined, undefined, 'other'],
  )
})

test('one name once, and no more than there may be, however many ask at once', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  const ask = (name: string) => state.tokens.create({ ...WISH, name }, 3)
  const same = await Promise.all(Array.from({ length: 10 }, () => ask('a')))
  const others = await Promise.all(['b', 'c', 'd', 'e'].map(ask))
  assert.equal(
    [...same, ...others].map((made) => (made.ok ? 'made' : made.refusal)),
    ['made', ...Array(9).fill('name-taken'), 'made', 'made', 'too-many', 'too-many'],
  )
  const [first] = await state.tokens.list()
  assert.ok(await state.tokens.revoke(first?.id ?? ''))
  assert.ok((await ask('a')).ok)
})

test('a use is noted at once and stored at the end', async () => {
  await using folder = await createStateFolder()
  const at = '2026-11-21T06:55:53.000Z'
  {
    await using state = await folder.open({ now: () => new Date(at) })
    const { token, record } = await makeToken(state.tokens, WISH)
    assert.is(record.last_used_at, null)
    state.tokens.find(token)
    assert.is((await state.tokens.list())[0]?.last_used_at, at)
  }
  await using state = await folder.open()
  assert.is((await state.tokens.list())[0]?.last_used_at, at)
})

test('revoked and expired tokens open nothing', async () => {
  await using folder = await createStateFolder()
  const clock = { at: Date.parse('2026-11-21T06:55:53.000Z') }
  await using state = await folder.open({ now: () => new Date(clock.at) })
  const first = await makeToken(state.tokens, WISH)
  const second = await makeToken(state.tokens, {
    ...WISH,
    name: 'b',
    expires_at: '2026-11-22T00:00:00Z',
  })
  const broken = await makeToken(state.tokens, { ...WISH, name: 'c', expires_at: 'someday' })
  assert.is(state.tokens.find(broken.token), null)
  assert.ok(await state.tokens.revoke(first.record.id))
  assert.not(await state.tokens.revoke(first.record.id))
  assert.not(await state.tokens.revoke('unknown'))
  assert.is(state.tokens.find(first.token), null)
  assert.ok(state.tokens.find(second.token))
  clock.at = Date.parse('2026-11-22T00:00:00Z')
  assert.is(state.tokens.find(second.token), null)
  assert.is((await state.tokens.list()).length, 2)
})

test('settings are kept, changed together, taken away, and announced', async () => {
  await using folder = await createStateFolder()
  {
    await using state = await folder.open()
    const heard: string[] = []
    state.changes.listen(({ topic }) => heard.push(topic))
    await state.store.save({ 'backup.cadence': 'daily', 'backup.enabled': '1', constructor: 'x' })
    await state.store.save({ 'backup.enabled': null })
    assert.is(state.store.find('backup.enabled'), null)
    assert.is(state.store.find('toString'), null)
    assert.equal(heard, ['settings', 'settings'])
  }
  await using state = await folder.open()
  assert.equal({ ...state.store.list() }, { 'backup.cadence': 'daily', constructor: 'x' })
  {
    await using visitor = await folder.open({ visit: true })
    await visitor.store.save({ 'backup.cadence': 'weekly' })
  }
  assert.is(state.store.find('backup.cadence'), 'weekly')
})

test.run()
