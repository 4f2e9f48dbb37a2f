/** Which address is connected to: the checked one alone, found anew for each attempt, within its limit. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sendHttp } from '#fleet/notify/sender.ts'
import { sendMail } from '#fleet/notify/mail.ts'
import { createOutgoing, type FindOutgoing } from '#fleet/notify/outgoing.ts'
import { TAKEN } from '#fleet/notify/rules/outcome.ts'
import { startMailServer, startReceiver } from '#test/support/notify/receivers.ts'
import type { TargetOf } from '#fleet/notify/rules/channel.ts'

const test = suite('addresses of receivers')

const post = (url: string) => ({ url, body: '{}' })
const given = (find: FindOutgoing) => ({
  find,
  authorities: undefined,
  limitMs: 20_000,
  signal: new AbortController().signal,
})

const never: FindOutgoing = () => new Promise(() => undefined)

const mailAt = (port: number): TargetOf<'mail'> => ({
  kind: 'mail',
  host: 'mail.test',
  port,
  security: 'none',
  user: '',
  from: 'a@b.test',
  to: ['c@d.test'],
})
const CONTENT = { id: 'msg_1', subject: 's', text: 't', html: 'h' }

/** A name server that gives another answer each time. */
function changing(...answers: readonly (readonly string[])[]) {
  const asked: string[] = []
  const find = createOutgoing(
    () => ({ networks: ['127.0.0.1/32'], ownPorts: [] }),
    async (host) => {
      asked.push(host)
      return (answers[asked.length - 1] ?? []).map((address) => ({ address }))
    },
  )
  return { asked, find }
}

test('a name that changes after its check is not asked again, and is checked at the next attempt', async () => {
  await using receiver = await startReceiver()
  // No name server knows the name: whoever asked again would not arrive.
  const url = `http://name.invalid:${receiver.port}/hook`
  const { asked, find } = changing(['127.0.0.1'], ['127.0.0.2'], ['127.0.0.1', '169.254.169.254'])
  assert.equal(await sendHttp(post(url), given(find)), { failure: null, wanted: null })
  assert.is(receiver.received[0]?.headers['host'], `name.invalid:${receiver.port}`)
  const here = await sendHttp(post(url), given(find))
  assert.match(here.failure ?? '', /^nothing is sent there: 127\.0\.0\.2 is this host/)
  const mixed = await sendHttp(post(url), given(find))
  assert.match(mixed.failure ?? '', /169\.254\.169\.254 is a link-local address/)
  assert.match((await sendHttp(post(url), given(find))).failure ?? '', 'host name not found')
  assert.is(receiver.received.length, 1)
  assert.is(asked.length, 4, 'once for each attempt')
})

test('a name whose first address is dead is reached by the next one, and by none that was not checked', async () => {
  await using receiver = await startReceiver()
  await using smtp = await startMailServer()
  const find = createOutgoing(
    () => ({ networks: ['127.0.0.0/8', '::1'], ownPorts: [] }),
    async () => ['::1', '127.0.0.9', '127.0.0.1'].map((address) => ({ address })),
  )
  const dead = given(find)
  const url = `http://name.invalid:${receiver.port}/hook`
  assert.equal(await sendHttp(post(url), dead), { failure: null, wanted: null })
  assert.is(receiver.received.length, 1)
  assert.equal(await sendMail(mailAt(smtp.port), '', CONTENT, dead), TAKEN)
  assert.is(smtp.mails.length, 1)
  const closed = await sendMail(mailAt(1), '', CONTENT, dead)
  assert.is(closed.failure, 'connection refused')
})

test('a name server that never answers ends the attempt at its limit, and so does a stop', async () => {
  // Nothing else keeps this process: the limits of attempts do not.
  const awake = setInterval(() => undefined, 1000)
  const limit = 'the name server gave no address within 0.3 s'
  const short = { ...given(never), limitMs: 300 }
  assert.is((await sendHttp(post('http://name.test/'), short)).failure, limit)
  assert.is((await sendMail(mailAt(25), '', CONTENT, short)).failure, limit)
  const stopped = 'the server was stopped meanwhile'
  const ended = { ...given(never), signal: AbortSignal.abort() }
  assert.is((await sendHttp(post('http://name.test/'), ended)).failure, stopped)
  assert.is((await sendMail(mailAt(25), '', CONTENT, ended)).failure, stopped)
  clearInterval(awake)
})

test.run()
