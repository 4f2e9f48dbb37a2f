/** What is sent over a restore and a change of leaders, on a real database: nothing of an older state, and nothing without its note. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createMessages } from '#fleet/notify/messages.ts'
import { createReceivers } from '#fleet/notify/receivers.ts'
import type { DeliveryOutcome } from '#fleet/notify/rules/outcome.ts'
import type { Receiver } from '#fleet/notify/rules/receiver.ts'
import { createSender } from '#fleet/notify/sender.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { BY, openBackupFixture, type BackupFixture } from '#test/support/server/backups.ts'
import { AT, createStateFolder, macOf, noteOf } from '#test/support/server/state.ts'

const test = suite('sending notifications')
const ID = '2026-11-21T06-55-53Z'

const OLDER = 'the state was replaced by an older one, from which nothing is sent'
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

test.run()
