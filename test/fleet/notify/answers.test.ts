/** What a receiver may do before and after it has taken a message: take its time, refuse an address, leave its answer open. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sendHttp } from '#fleet/notify/sender.ts'
import { sendMail, nameClient } from '#fleet/notify/mail.ts'
import { createOutgoing } from '#fleet/notify/outgoing.ts'
import { TAKEN } from '#fleet/notify/rules/outcome.ts'
import { startMailServer, startReceiver } from '#test/support/notify/receivers.ts'
import type { TargetOf } from '#fleet/notify/rules/channel.ts'

const test = suite('answers of receivers')

const given = (limitMs: number) => ({
  find: createOutgoing(() => ({ networks: ['127.0.0.1'], ownPorts: [] })),
  authorities: undefined,
  limitMs,
  signal: new AbortController().signal,
})
const post = (url: string) => ({ url, body: '{}' })

const target = (port: number, to: readonly string[] = ['a@lab.test']): TargetOf<'mail'> => ({
  kind: 'mail',
  host: '127.0.0.1',
  port,
  security: 'none',
  user: '',
  from: 'flasher@lab.test',
  to: [...to],
})
const CONTENT = { id: 'msg_1', subject: 's', text: 't', html: 'h' }

test('an answer from 200 to 299 takes the message, whatever becomes of its body', async () => {
  await using receiver = await startReceiver((response, { path }) => {
    response.writeHead(path === '/busy' ? 503 : 200, { 'retry-after': '90' })
    response.write('later')
  })
  // A limit that no test lives to see.
  assert.equal(await sendHttp(post(`${receiver.url}/hook`), given(3_600_000)), TAKEN)
  const busy = await sendHttp(post(`${receiver.url}/busy`), given(3000))
  assert.equal(busy, { failure: 'the receiver answered HTTP 503: later', wanted: 90_000 })
})

test('Retry-After is heeded as seconds and as a date', async () => {
  let value = ''
  await using receiver = await startReceiver((response) => {
    response.writeHead(429, { 'retry-after': value }).end()
  })
  const ask = async (text: string) => {
    value = text
    return (await sendHttp(post(receiver.url), given(20_000))).wanted
  }
  const wanted = (await ask(new Date(Date.now() + 1_800_000).toUTCString())) ?? 0
  assert.ok(wanted > 1_700_000 && wanted <= 1_800_000, `${wanted} ms`)
  assert.is(await ask(new Date(Date.now() - 60_000).toUTCString()), 0)
  assert.is(await ask('120'), 120_000)
  assert.is(await ask('soon'), null)
})

test('a mail server may check a mail for as long as the standard says, and no longer', async () => {
  const checked = Promise.withResolvers<void>()
  await using smtp = await startMailServer({ check: () => checked.promise })
  const talk = { ...given(20_000), talkMs: 2000 }
  const late = await sendMail(target(smtp.port), '', CONTENT, { ...talk, takeMs: 300 })
  assert.is(late.failure, 'no end of the talk within 0.3 s')
  // It is taken well after all that may be said before.
  setTimeout(() => checked.resolve(), 3000)
  const slow = await sendMail(target(smtp.port), '', CONTENT, { ...talk, takeMs: 3_600_000 })
  assert.equal(slow, TAKEN)
  assert.is(smtp.mails.length, 2)
})

test('a mail server that says nothing ends the attempt at its limit', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const address = silent.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const said = await sendMail(target(port), '', CONTENT, { ...given(20_000), talkMs: 300 })
  assert.is(said.failure, 'no end of the talk within 0.3 s')
  silent.close()
})

const SAID: Readonly<Record<string, string>> = {
  'gone@lab.test': '550 user unknown',
  'grey@lab.test': '450 try again later',
  'Full@bücher.test': '452 mailbox full',
}

test('of a mail that some have, each address has its own outcome', async () => {
  await using smtp = await startMailServer({ refuse: (address) => SAID[address] ?? null })
  const all = ['a@lab.test', 'gone@lab.test', 'grey@lab.test', 'Full@bücher.test']
  const send = (to: readonly string[], left?: readonly string[]) =>
    sendMail(target(smtp.port, to), '', { ...CONTENT, left }, given(20_000))
  const first = await send(all)
  assert.match(first.failure ?? '', 'gone@lab.test (550 user unknown), grey@lab.test (450 try')
  assert.equal(first.partly, {
    later: ['grey@lab.test', 'Full@bücher.test'],
    never: { 'gone@lab.test': '550 user unknown' },
  })
  const again = await send(all, first.partly?.later)
  assert.equal(again.partly, { later: ['grey@lab.test', 'Full@bücher.test'], never: {} })
  assert.equal(await send(all, ['a@lab.test']), TAKEN)
  assert.equal(
    smtp.mails.map(({ to }) => to),
    [['a@lab.test'], ['a@lab.test']],
  )
  const nobody = await send(['gone@lab.test'])
  assert.match(nobody.failure ?? '', 'refused an address: 550 user unknown')
  assert.is(nobody.partly, undefined, 'it is tried again as a whole')
})

test('a client introduces itself with a name or address that servers take', async () => {
  assert.is(nameClient('flasher.lab.example', '192.0.2.7'), 'flasher.lab.example')
  for (const name of ['0391926cb167', 'flasher', 'localhost.localdomain', 'a_b.test', '10.0.0.1'])
    assert.is(nameClient(name, '192.0.2.7'), '[192.0.2.7]', name)
  assert.is(nameClient('flasher', '::ffff:192.0.2.7'), '[192.0.2.7]')
  assert.is(nameClient('flasher', 'fe80::1%eth0'), '[IPv6:fe80::1]')
  await using smtp = await startMailServer()
  assert.equal(await sendMail(target(smtp.port), '', CONTENT, given(20_000)), TAKEN)
  assert.match(smtp.names[0] ?? '', /\.|^\[127\.0\.0\.1\]$/)
})

test.run()
