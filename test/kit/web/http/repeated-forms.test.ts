/** A form that arrives twice is carried out once, and both requests get its answer, for one session and until it does something else. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addCookie, seeOther } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { buttonRoute, formRoute } from '#kit/web/ui/form-notices.ts'
import { asForm } from '#test/support/people/current-server.ts'
import { MAC } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const test = suite('forms that are sent twice')

/** A form and a button; each answer says how often they were carried out. */
async function open(carryOut: () => Promise<void> = async () => {}) {
  let times = 0
  const server = await createTestServer({
    routes: () => [
      formRoute('/ui/arm', 'admin', async (event) => {
        times += 1
        addCookie(event, `time=${times}`)
        await carryOut()
        return seeOther(`/ui/armed?${times}`)
      }),
      buttonRoute('/ui/button', 'admin', () => seeOther(`/ui/pressed?${(times += 1)}`)),
    ],
  })
  const admin = await server.operator()
  const send = (ask = admin, fields: Readonly<Record<string, string>> = { mac: MAC }) =>
    ask('/ui/arm', asForm(fields))
  return { server, admin, send, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

const readPlace = async (asked: Promise<Response>) => (await asked).headers.get('location')

test('the second waits for the first, and shows what came of it', async () => {
  const begun = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  await using lab = await open(async () => {
    begun.resolve()
    await end.promise
  })
  const first = lab.send()
  await begun.promise
  const second = lab.send()
  end.resolve()
  assert.equal(await Promise.all([first, second].map(readPlace)), ['/ui/armed?1', '/ui/armed?1'])
  const third = lab.send()
  assert.match((await third).headers.get('set-cookie') ?? '', /time=1/)
  assert.is(await readPlace(third), '/ui/armed?1')
  assert.equal(
    [await readPlace(lab.admin('/ui/button', { method: 'POST' })), await readPlace(lab.send())],
    ['/ui/pressed?2', '/ui/armed?3'],
    'it means something new after another one',
  )
})

test('a button is pressed once, a form with other fields is another one, and so is that of another session', async () => {
  await using lab = await open()
  const other = await lab.server.operator()
  const press = () => readPlace(lab.admin('/ui/button', { method: 'POST' }))
  assert.equal([await press(), await press()], ['/ui/pressed?1', '/ui/pressed?1'])
  assert.is(await readPlace(lab.send()), '/ui/armed?2')
  assert.is(await readPlace(lab.send(other)), '/ui/armed?3')
  assert.is(await readPlace(lab.send(lab.admin, { mac: 'another' })), '/ui/armed?4')
  await lab.admin(`/machines/${MAC}`, asJson({}, 'PUT'))
  assert.is(await readPlace(lab.send(lab.admin, { mac: 'another' })), '/ui/armed?5')
})

test('what is refused is refused to both', async () => {
  let times = 0
  await using lab = await open(async () => {
    times += 1
    throw refuse(409, `refused ${times}`)
  })
  const answers = await Promise.all([lab.send(), lab.send()])
  assert.equal([answers.map(({ status }) => status), times], [[409, 409], 1])
})

test.run()
