/** What people with few rights, and people who lost theirs, try: nothing of it gives them more. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  addPerson,
  asForm,
  createCurrentServer,
  PERSON_PASSWORD,
} from '#test/support/people/current-server.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'

const test = suite('attacks of people')

test('who logs in with a name guesses the password of somebody else no faster', async () => {
  await using server = await createCurrentServer()
  await addPerson(server, 'lea', 'look')
  const logIn = async (username: string, password: string) =>
    (await server.logIn({ username, password })).status
  for (let times = 0; times < 3; times += 1) {
    assert.is(await logIn('', `guess ${times}`), 401)
    assert.is(await logIn('lea', PERSON_PASSWORD), 303, 'a slip of others costs nothing')
  }
  assert.is(await logIn('', 'guess 4'), 401)
  assert.is(await logIn('lea', PERSON_PASSWORD), 429, 'now the address waits')
})

test('who changes their own password while their role is taken away does not keep it', async () => {
  await using server = await createCurrentServer()
  const anna = await addPerson(server, 'anna', 'administrate')
  const next = 'another password of theirs'
  const { id = '' } = server.state.peopleStore.findByName('anna') ?? {}
  const operator = await server.operator()
  const fields = { current: PERSON_PASSWORD, password: next, repeated: next }
  const [changed] = await Promise.all([
    anna('/ui/account/password', asForm(fields)),
    operator(`/ui/people/${id}/role`, asForm({ role: 'look' })),
  ])
  const cookie = changed.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const fresh = server.withCookie(cookie)
  assert.equal([(await fresh('/machines')).status, (await fresh('/ui/people')).status], [200, 403])
})

test('without the login without a name, a session that a cache with the same key opened is none', async () => {
  await using server = await createCurrentServer({ FLASHER_PEOPLE_NAMELESS_LOGIN: 'off' })
  const operator = await server.operator()
  assert.is((await operator('/machines')).status, 200)
  await addPerson(server, 'anna', 'administrate')
  assert.is((await operator('/machines')).status, 401)
  const { id = '' } = server.state.peopleStore.findByName('anna') ?? {}
  await server.state.peopleStore.remove(id)
  assert.is((await operator('/machines')).status, 200, 'nobody is shut out')
  assert.is((await server.logIn({ password: PASSWORD })).status, 303)
})

test.run()
