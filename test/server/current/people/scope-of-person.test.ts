/** The scope of a person: what their row, their cookie and their tokens say of it, and when a narrower one counts. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createAccounts } from '#fleet/access/accounts.ts'
import { MAX_SCOPE_CHARACTERS, parseScope } from '#fleet/access/rules/person.ts'
import { isSameReach, reachOf, sees } from '#kit/web/answers/rules/rights.ts'
import {
  addPerson,
  asForm,
  createCurrentServer,
  type CurrentServer,
} from '#test/support/people/current-server.ts'

const test = suite('scope of a person')

const LONGEST = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(letter === 'd' ? 60 : 61))

/** The longest that a name may be. */
const NAME = 'anna'.repeat(16)

test('a scope is labels as machines have them, of a length that a cookie can hold', () => {
  assert.equal(parseScope([' rack 1', 'lab', 'lab ']), { ok: true, value: ['lab', 'rack 1'] })
  assert.equal(parseScope([]), { ok: true, value: [] })
  assert.equal(parseScope(['lab', '']), { ok: false, refusal: 'scope-label' })
  assert.equal(parseScope(['läb']), { ok: false, refusal: 'scope-label' })
  assert.is(JSON.stringify(LONGEST).length, MAX_SCOPE_CHARACTERS)
  assert.ok(parseScope(LONGEST).ok)
  assert.equal(parseScope([...LONGEST, 'y']), { ok: false, refusal: 'scope-long' })
})

test('one label of the scope is enough, nothing is in an empty one, and who administrates has none', () => {
  const reach = ['lab', 'rack-1']
  assert.equal(
    [['lab'], ['x', 'rack-1'], ['Lab'], []].map((labels) => sees(reach, labels)),
    [true, true, false, false],
  )
  assert.is(sees([], ['lab']), false)
  assert.is(sees(null, []), true)
  assert.equal(reachOf({ role: 'operate', labels: reach }), reach)
  assert.is(reachOf({ role: 'administrate', labels: reach }), null)
  assert.ok(isSameReach(['a', 'b'], ['b', 'a']))
  assert.not.ok(isSameReach(['a'], null))
  assert.not.ok(isSameReach([], null))
})

test('the cookie says the scope, and a narrower one counts at the next request', async () => {
  await using server = await createCurrentServer()
  const ask = await addPerson(server, NAME, 'operate')
  const { id = '' } = server.state.peopleStore.findByName(NAME) ?? {}
  assert.is((await ask('/machines')).status, 200)
  const store = server.state.peopleStore
  const accounts = openAccounts(server)
  assert.ok((await accounts.setRights(id, { labels: LONGEST }, BY)).ok)
  assert.is(store.find(id)?.role, 'operate', 'the role stays')
  assert.is((await ask('/machines')).status, 401)
  const again = await server.logIn({ username: NAME, password: 'a password of their own' })
  assert.ok(again.cookie.length <= 'flasher-token='.length + 768, `${again.cookie.length}`)
  const renewed = server.withCookie(again.cookie)
  assert.is((await renewed('/machines')).status, 200)
})

const BY = { actor: 'operator', ip: null } as const

const openAccounts = ({ state: { peopleStore, tokens, journal } }: CurrentServer) =>
  createAccounts({ people: peopleStore, tokens, record: journal.record })

/** What a browser sends of the form of somebody as it stands on the page. */
async function readRights(ask: Ask, id: string) {
  const [, form = ''] = (await (await ask(`/ui/people/${id}`)).text()).split(
    `action="/ui/people/${id}/role"`,
  )
  const [, labels = ''] = /name="labels"[^>]* value="([^"]*)"/.exec(form) ?? []
  const [, role = ''] = /<option value="([^"]*)" selected/.exec(form) ?? []
  return { role, labels }
}

type Ask = Awaited<ReturnType<CurrentServer['operator']>>

test('the form of a scope shows what is stored, and saved unchanged it widens nothing', async () => {
  await using server = await createCurrentServer()
  await addPerson(server, 'anna', 'operate', ['lab'])
  const { peopleStore: store } = server.state
  const { id = '' } = store.findByName('anna') ?? {}
  const operator = await server.operator()
  for (const [labels, shown] of [
    [['Lab', 'lab'], 'Lab, lab'],
    [null, ''],
    [[], '-'],
    [[''], '-'],
    [['a,b'], '-'],
    [['a,b', 'lab'], 'lab'],
  ] as const) {
    // The same form of one session would be the other click of a double one.
    const again = await server.operator()
    await store.setRights(id, { labels })
    const fields = await readRights(again, id)
    assert.equal(fields, { role: 'operate', labels: shown })
    assert.is((await again(`/ui/people/${id}/role`, asForm(fields))).status, 303)
    const kept = shown === '-' ? [] : shown === '' ? null : shown.split(', ')
    assert.equal(store.find(id)?.labels, kept, JSON.stringify(labels))
  }
  await operator(`/ui/people/${id}/role`, asForm({ role: 'operate', labels: ' , ' }))
  assert.equal(store.find(id)?.labels, [], 'commas alone are no machine')
  await store.setRights(id, { role: null })
  const fields = await readRights(operator, id)
  assert.is(fields.role, '', 'nobody gets a role that was not chosen')
  await operator(`/ui/people/${id}/role`, asForm(fields))
  assert.is(store.find(id)?.role, null)
})

test.run()
