/** What is sent over a restore and a change of leaders, on a real database: nothing of an older state, and nothing without its note. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { nameClient, sendMail } from '#fleet/notify/mail.ts'
import { createMessages } from '#fleet/notify/messages.ts'
import { createOutgoing, type FindOutgoing } from '#fleet/notify/outgoing.ts'
import { createReceivers } from '#fleet/notify/receivers.ts'
import type { Receiver, TargetOf } from '#fleet/notify/rules/channel.ts'
import type { DeliveryOutcome } from '#fleet/notify/rules/message.ts'
import { createSender, sendHttp } from '#fleet/notify/sender.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { startMailServer, startReceiver } from '#test/support/notify/receivers.ts'
import { type BackupFixture, BY, openBackupFixture } from '#test/support/server/backups.ts'
import { AT, createStateFolder, macOf, noteOf } from '#test/support/server/state.ts'

const test = suite('sending notifications')
const ID = '2026-11-21T06-55-53Z'

const OLDER = 'an older state was restored, and nothing is sent from it'
const TAKEN: DeliveryOutcome = { failure: null, wanted: null }
const FAILED: DeliveryOutcome = { failure: 'no', wanted: null }

const RECORD = {
  name: 'hook',
  target: { kind: 'webhook', url: 'https://hook.test/' },
  rules: [{ id: '00000001', events: ['flash-failed'], search: '', person: '' }],
  paused: false,
  created_at: AT,
} as const

/** A sender whose sending is the test's, at a time that the test moves. */
function createBench({ database, journal }: BackupFixture, clock: { at: number }) {
  const messages = createMessages(database)
  const receivers = createReceivers(database)
  const sent: {
    readonly id: string
    readonly body: string
    readonly left: readonly string[] | undefined
  }[] = []
  const warned: string[] = []
  const bench = {
    messages,
    receivers,
    sent,
    warned,
    base: 'http://a.test',
    answer: async (): Promise<DeliveryOutcome> => TAKEN,
    /** What a leader that was replaced meets at each write. */
    lease: (_message: string): void => undefined,
  }
  const sender = createSender({
    database,
    receivers,
    messages: {
      ...messages,
      async change(id, edit) {
        bench.lease(id)
        return await messages.change(id, edit)
      },
    },
    secrets: { find: () => 'a secret' },
    matches: () => false,
    findNamed: () => null,
    async send({ message: { id, ...message }, left }) {
      sent.push({ id, body: JSON.stringify(message), left })
      return await bench.answer()
    },
    base: () => bench.base,
    record: journal.record,
    now: () => new Date(clock.at),
    log: { warn: (text) => void warned.push(text) },
  })
  return Object.assign(bench, {
    async add(): Promise<Receiver> {
      const added = await receivers.add({
        ...RECORD,
        rules: RECORD.rules.map((rule) => ({ ...rule, events: [...rule.events] })),
      })
      if (!added.ok) throw new Error(added.refusal)
      return added.value
    },
    fail: (n: number) =>
      journal.record(noteOf({ kind: 'machine.flash_failed', subject_id: macOf(n) })),
    /** Looks once, a minute later each time. */
    async tick() {
      clock.at += 60_000
      sender.tick()
      await sender.settle()
    },
    sender,
  })
}

async function openBench() {
  const stack = new AsyncDisposableStack()
  const folder = stack.use(await createStateFolder())
  const clock = { at: Date.parse(AT) }
  const fixture = stack.use(
    await openBackupFixture(folder, { now: () => new Date(Math.min(clock.at, Date.parse(AT))) }),
  )
  return {
    fixture,
    clock,
    bench: createBench(fixture, clock),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('what waits in a restored state is given up, and only what happens after it is sent', async () => {
  await using opened = await openBench()
  const { fixture, bench } = opened
  const { id } = await bench.add()
  bench.answer = async () => FAILED
  await bench.fail(1)
  await bench.tick()
  // The first waits as a message and the second as an event, in the backup as well.
  await bench.fail(2)
  await fixture.backUp()
  bench.answer = async () => TAKEN
  await bench.tick()
  await bench.tick()
  assert.is(bench.sent.length, 3)
  assert.is(bench.messages.countWaiting(), 0)
  await fixture.backups.restore(ID, BY)
  const [first] = bench.sent
  assert.equal(
    bench.messages.list(id, 10).map((one) => [one.id, one.state, one.failure]),
    [[first?.id, 'given-up', OLDER]],
  )
  for (let n = 0; n < 3; n += 1) await bench.tick()
  assert.is(bench.sent.length, 3, 'nothing is sent again')
  await bench.fail(3)
  await bench.tick()
  assert.is(bench.sent.length, 4)
  const { body = '' } = bench.sent.at(-1) ?? {}
  assert.match(body, macOf(3))
  assert.not.match(body, macOf(2))
  assert.equal(bench.warned, [])
})

test('what is under way during a restore is not queued again when it fails', async () => {
  await using opened = await openBench()
  const { fixture, bench, clock } = opened
  const { id } = await bench.add()
  const held = Promise.withResolvers<DeliveryOutcome>()
  bench.answer = async () => FAILED
  await bench.fail(1)
  await bench.tick()
  await fixture.backUp()
  bench.answer = () => held.promise
  clock.at += 60_000
  bench.sender.tick()
  while (bench.sent.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  await fixture.backups.restore(ID, BY)
  held.resolve(FAILED)
  await bench.sender.settle()
  assert.is(bench.messages.list(id, 10)[0]?.state, 'given-up')
  await bench.tick()
  assert.is(bench.sent.length, 2)
})

test('what follows within 30 seconds is one message, and so is what came while it could not be delivered', async () => {
  await using opened = await openBench()
  const { bench, clock } = opened
  await bench.add()
  const lookAfter = async (seconds: number) => {
    clock.at = Date.parse(AT) + seconds * 1000 - 60_000
    await bench.tick()
    return bench.sent.map(({ body }) => JSON.parse(body).content.count)
  }
  await bench.fail(1)
  assert.equal(await lookAfter(1), [])
  for (const n of [2, 3]) await bench.fail(n)
  assert.equal(await lookAfter(29), [])
  bench.answer = async () => FAILED
  assert.equal(await lookAfter(30), [3])
  for (const n of [4, 5]) await bench.fail(n)
  bench.answer = async () => TAKEN
  assert.equal(await lookAfter(41), [3, 3])
  assert.equal(await lookAfter(42), [3, 3, 2])
})

/** What a mail server says that refuses addresses of a mail. */
const partly = (
  later: readonly string[],
  never: Readonly<Record<string, string>> = {},
): DeliveryOutcome => ({ failure: 'some', wanted: null, partly: { later, never } })

test('a mail that some have waits for the others alone, and holds up no other message', async () => {
  await using opened = await openBench()
  const { fixture, bench, clock } = opened
  const { id } = await bench.add()
  const heard = () => bench.sent.map(({ left }) => left)
  const losses = () => fixture.journal.list({ kind: 'notification.failed', limit: 10 })
  bench.answer = async () => partly(['grey@a.test'], { 'gone@a.test': '550 unknown' })
  await bench.fail(1)
  await bench.tick()
  assert.equal(
    bench.messages.list(id, 10).map(({ state }) => state),
    ['partly'],
  )
  assert.match((await losses())[0]?.summary ?? '', 'gone@a.test (550 unknown)')
  assert.not.match((await losses())[0]?.summary ?? '', 'grey@a.test')
  // The next one goes to all at once, and what it meets again is no news.
  bench.answer = async () => partly([], { 'gone@a.test': '550 unknown' })
  await bench.fail(2)
  clock.at -= 59_000
  await bench.tick()
  assert.equal(heard(), [undefined, undefined])
  assert.is((await losses()).length, 1)
  bench.answer = async () => TAKEN
  await bench.tick()
  assert.equal(heard(), [undefined, undefined, ['grey@a.test']])
  assert.is(bench.sent[0]?.id, bench.sent[2]?.id)
  assert.equal(
    bench.messages.list(id, 10).map(({ state, failure }) => [state, failure?.includes('gone@')]),
    [
      ['delivered', true],
      ['delivered', true],
    ],
  )
  // Who sends it again sends it to all.
  await bench.sender.sendAgain(bench.sent[0]?.id ?? '')
  await bench.tick()
  assert.is(heard().at(-1), undefined)
  assert.is(bench.messages.list(id, 10)[0]?.failure, null)
})

test('rules are changed while a mail server takes its time, and what waited goes out once', async () => {
  await using opened = await openBench()
  const { bench, clock } = opened
  const receiver = await bench.add()
  const held = Promise.withResolvers<DeliveryOutcome>()
  bench.answer = () => held.promise
  await bench.fail(1)
  clock.at += 60_000
  bench.sender.tick()
  while (bench.sent.length < 1) await new Promise((resolve) => setTimeout(resolve, 5))
  await bench.fail(2)
  await bench.sender.catchUp(receiver)
  assert.is(bench.messages.countWaiting(), 2)
  held.resolve(TAKEN)
  await bench.sender.settle()
  for (let n = 0; n < 3; n += 1) await bench.tick()
  assert.is(bench.sent.length, 2)
  assert.is(bench.messages.countWaiting(), 0)
})

/** What each write of a leader meets that was replaced. */
function refuse() {
  throw new Fault('no-leader', 'another server leads')
}

test('a leader that was replaced sends nothing, and one replaced in mid-send leaves the rest to the next', async () => {
  await using opened = await openBench()
  const { fixture, bench, clock } = opened
  await bench.add()
  bench.lease = refuse
  await bench.fail(1)
  await bench.tick()
  assert.is(bench.sent.length, 0, 'no attempt without its note')
  assert.match(bench.warned.join(), 'another server leads')
  // Replaced while the receiver takes it: the outcome is not noted.
  bench.lease = () => undefined
  bench.answer = async () => {
    bench.lease = refuse
    return TAKEN
  }
  await bench.tick()
  assert.is(bench.sent.length, 1)
  const [waiting] = bench.messages.list(bench.receivers.list()[0]?.id ?? '', 1)
  assert.equal([waiting?.state, waiting?.attempts], ['waiting', 1])
  await bench.tick()
  assert.is(bench.sent.length, 1)
  // The next leader is elsewhere and calls it otherwise, but what it sends is the same message.
  const next = createBench(fixture, clock)
  next.base = 'http://b.test'
  const [receiver] = next.receivers.list()
  await next.receivers.update(receiver?.id ?? '', (before) => ({ ...before, name: 'renamed' }))
  await next.tick()
  assert.equal(next.sent, bench.sent)
  assert.is(next.messages.countWaiting(), 0)
})

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
  assert.match(
    here.failure ?? '',
    /^127\.0\.0\.2 is this server\. Allow it in Settings → Notifications$/,
  )
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
  const stopped = 'the server was stopped in the meantime'
  const ended = { ...given(never), signal: AbortSignal.abort() }
  assert.is((await sendHttp(post('http://name.test/'), ended)).failure, stopped)
  assert.is((await sendMail(mailAt(25), '', CONTENT, ended)).failure, stopped)
  clearInterval(awake)
})

const answerGiven = (limitMs: number) => ({
  find: createOutgoing(() => ({ networks: ['127.0.0.1'], ownPorts: [] })),
  authorities: undefined,
  limitMs,
  signal: new AbortController().signal,
})

const target = (port: number, to: readonly string[] = ['a@lab.test']): TargetOf<'mail'> => ({
  kind: 'mail',
  host: '127.0.0.1',
  port,
  security: 'none',
  user: '',
  from: 'flasher@lab.test',
  to: [...to],
})

test('an answer from 200 to 299 takes the message, whatever becomes of its body', async () => {
  await using receiver = await startReceiver((response, { path }) => {
    response.writeHead(path === '/busy' ? 503 : 200, { 'retry-after': '90' })
    response.write('later')
  })
  // A limit that no test lives to see.
  assert.equal(await sendHttp(post(`${receiver.url}/hook`), answerGiven(3_600_000)), TAKEN)
  const busy = await sendHttp(post(`${receiver.url}/busy`), answerGiven(3000))
  assert.equal(busy, { failure: 'the receiver answered HTTP 503: later', wanted: 90_000 })
})

test('Retry-After is heeded as seconds and as a date', async () => {
  let value = ''
  await using receiver = await startReceiver((response) => {
    response.writeHead(429, { 'retry-after': value }).end()
  })
  const ask = async (text: string) => {
    value = text
    return (await sendHttp(post(receiver.url), answerGiven(20_000))).wanted
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
  const talk = { ...answerGiven(20_000), talkMs: 2000 }
  const late = await sendMail(target(smtp.port), '', CONTENT, { ...talk, takeMs: 300 })
  assert.is(late.failure, 'no end of the conversation within 0.3 s')
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
  const said = await sendMail(target(port), '', CONTENT, { ...answerGiven(20_000), talkMs: 300 })
  assert.is(said.failure, 'no end of the conversation within 0.3 s')
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
    sendMail(target(smtp.port, to), '', { ...CONTENT, left }, answerGiven(20_000))
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
  assert.equal(await sendMail(target(smtp.port), '', CONTENT, answerGiven(20_000)), TAKEN)
  assert.match(smtp.names[0] ?? '', /\.|^\[127\.0\.0\.1\]$/)
})

test.run()
