/** The rules of notifications: which events are for whom, what is said of them, where it may go, and when again. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  describeRule,
  isWanted,
  type NotifyRule,
  refuseOutgoing,
  renderMail,
  renderSlack,
  renderWebhook,
  TargetSchema,
} from '#fleet/notify/rules/channel.ts'
import {
  collect,
  composeMessage,
  GIVE_UP_MS,
  isDue,
  judgeAnswer,
  nameKind,
  NOTHING_COLLECTED,
  planRetry,
} from '#fleet/notify/rules/message.ts'
import type { RecordedEvent } from '#fleet/state/rules/event-table.ts'

const test = suite('rules of notifications')

const MAC = '52:54:00:00:00:01'
const eventOf = (given: Partial<RecordedEvent> = {}): RecordedEvent => ({
  id: 7,
  ts: '2026-11-27T06:00:00.000Z',
  kind: 'machine.flash_failed',
  subject_kind: 'machine',
  subject_id: MAC,
  actor: 'pxe-client',
  source_ip: null,
  summary: `${MAC} reported that its flash failed: <b>*disk*</b> & "more"`,
  details: { armed_by: 'person:anna', run: 'r1' },
  acknowledged: false,
  ...given,
})
const ruleOf = (given: Partial<NotifyRule>): NotifyRule => ({
  id: '00000000',
  events: ['flash-failed'],
  search: '',
  person: '',
  ...given,
})

test('an event is selected by its group, its machine and whoever stands behind it', () => {
  const isFor = (rules: readonly Partial<NotifyRule>[], event = eventOf()) =>
    isWanted({ id: 'one', rules: rules.map(ruleOf) }, event, isFound)
  assert.is(isFor([{}]), true)
  assert.is(isFor([]), false)
  assert.is(isFor([{ events: ['booted'] }]), false)
  assert.is(isFor([{ events: ['needs-attention'] }]), true)
  assert.is(isFor([{ search: 'label:a' }]), true)
  assert.is(isFor([{ search: 'label:b' }]), false)
  assert.is(isFor([{ person: 'anna' }]), true)
  assert.is(isFor([{ person: 'otto' }]), false)
  assert.is(isFor([{ person: 'otto' }], eventOf({ actor: 'token:ci@otto' })), true)
  assert.is(isFor([{ person: 'administrator' }], eventOf({ actor: 'token:ci' })), true)
  assert.is(isFor([{ events: ['booted'] }, {}]), true, 'one of them is enough')
  const server = eventOf({ kind: 'system.disk.low', subject_kind: 'system', subject_id: null })
  assert.is(isFor([{ events: ['server-fault'] }], server), true)
  assert.is(isFor([{ events: ['server-fault'], search: 'label:a' }], server), false)
})

test('a receiver that fails does not hear of itself, and the others do', () => {
  const event = eventOf({ kind: 'notification.failed', details: { receiver: 'one' } })
  const rules = [ruleOf({ events: ['needs-attention', 'server-fault'] })]
  const hears = (id: string) => isWanted({ id, rules }, event, () => true)
  assert.equal([hears('one'), hears('two')], [false, true])
})

test('a rule is said in words', () => {
  assert.is(
    describeRule(ruleOf({ events: ['flash-failed', 'booted'], search: 'label:a', person: 'anna' })),
    'Flash failed, Booted, of machines that match label:a, by anna',
  )
  assert.is(describeRule(ruleOf({})), 'Flash failed')
  assert.is(nameKind('machine.boot_not_seen'), 'Failed to boot')
  assert.is(nameKind('machine.upserted'), 'machine.upserted')
})

const isFound = (search: string, mac: string) => search === 'label:a' && mac === MAC

const compose = (count: number, event = eventOf()) => {
  let collected = NOTHING_COLLECTED
  for (let n = 0; n < count; n += 1) collected = collect(collected, { ...event, id: n })
  return composeMessage(collected, () => ({ name: 'node-7', labels: ['lab'] }))
}

test('one event is its own title, many are counted, and what is listed is bounded', () => {
  const one = compose(1)
  assert.match(one.title, /^node-7 \(52:54:00:00:00:01\) reported that its flash failed/)
  assert.is(one.path, '/ui/machines/52%3A54%3A00%3A00%3A00%3A01/runs/r1')
  const many = compose(97)
  assert.is(many.title, '97 × Flash failed')
  assert.is(many.count, 97)
  assert.is(many.events.length, 50)
})

const sent = (content = compose(1)) => ({
  id: 'msg_1',
  made_at: '2026-11-27T06:00:30.000Z',
  receiver: 'on-call',
  content,
  base: 'http://flasher.test:8080',
})

test('texts of machines are escaped in each form', () => {
  const slack = JSON.parse(renderSlack(sent()))
  assert.match(slack.text, '&lt;b&gt;*\u200bdisk*\u200b&lt;/b&gt; &amp;')
  assert.is(slack.parse, 'none')
  assert.match(
    slack.text,
    /^\*<http:\/\/flasher\.test:8080\/ui\/machines\/[^|>]+\/runs\/r1\|node-7 /,
  )
  const { html } = renderMail(sent())
  assert.match(html, '&lt;b&gt;*disk*&lt;/b&gt; &amp; &quot;more&quot;')
  const nasty = eventOf({ summary: `${MAC} failed\r\nBcc: everybody@example.org\u202e` })
  const mail = renderMail(sent(compose(1, nasty)))
  assert.not.match(mail.subject, /[\r\n\u202e]/)
})

test('texts of machines ring nobody', () => {
  const loud = compose(
    1,
    eventOf({ summary: `${MAC} @here <!channel> @Channel @everyone @room <@U1>` }),
  )
  assert.not.match(JSON.parse(renderSlack(sent(loud))).text, /@\w|<[!@]/)
})

test('the body of a webhook has its documented fields', () => {
  const { type, timestamp, data } = JSON.parse(renderWebhook(sent(compose(97))))
  assert.equal([type, timestamp], ['notification.events', '2026-11-27T06:00:30.000Z'])
  assert.equal(Object.keys(data), ['receiver', 'title', 'url', 'count', 'events'])
  assert.equal(Object.keys(data.events[0]), [
    'id',
    'time',
    'kind',
    'summary',
    'subject_kind',
    'subject',
    'machine',
    'actor',
    'url',
  ])
  assert.is(data.url, 'http://flasher.test:8080/ui/events')
  assert.equal(data.events[0].machine, { mac: MAC, name: 'node-7', labels: ['lab'] })
})

const refuse = (address: string, networks: readonly string[] = [], port = 443) =>
  refuseOutgoing({ address, port }, { networks, own: ['192.0.2.7'], ownPorts: [8080] })

test('nothing goes to this host, to links or to metadata, unless a setting names it', () => {
  const refused = [
    '127.0.0.1',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '169.254.169.254',
    'fe80::1',
    'fe80::1%eth0',
    '0.0.0.0',
    '224.0.0.1',
    '100.100.100.200',
    'fd00:EC2::254',
    'fd00:0ec2:0:0::254',
    'fd20:ce::254',
    '192.0.2.7',
    // Other spellings of the same, as somebody may type them.
    '0:0:0:0:0:0:0:1',
    '0:0:0:0:0:ffff:7f00:1',
    '0:0:0:0:0:ffff:c000:207',
    // What a translator between IPv6 and IPv4 makes of these.
    '64:ff9b::7f00:1',
    '64:ff9b::169.254.169.254',
    '64:ff9b::c000:207',
  ]
  for (const address of refused) assert.is.not(refuse(address), null, address)
  for (const address of ['192.0.2.8', '10.0.0.1', '2001:db8::1']) assert.is(refuse(address), null)
  assert.is.not(refuse('127.0.0.1', ['0.0.0.0/0']), null, 'that names no loopback')
  assert.is(refuse('127.0.0.1', ['127.0.0.0/8']), null)
  assert.is(refuse('192.0.2.7', ['192.0.2.7']), null)
  assert.is.not(refuse('127.0.0.1', ['127.0.0.0/8'], 8080), null, 'the server itself')
  assert.is.not(refuse('0::ffff:c000:207', ['192.0.2.7'], 8080), null, 'the server itself')
  assert.is(refuse('64:ff9b::c000:208'), null)
  assert.is(refuse('0.0.0.0', ['0.0.0.0/0']), '0.0.0.0 is not the address of a host')
})

test('a message is tried for a day, later and later, and a receiver may ask for an hour', () => {
  const queuedAt = Date.parse('2026-11-27T00:00:00Z')
  let [now, attempts] = [queuedAt, 0]
  for (;;) {
    attempts += 1
    const next = planRetry({ attempts, queuedAt, now })
    if (next === null) break
    assert.ok(next > now && next - now <= 3 * 3_600_000)
    now = next
  }
  assert.is(now, queuedAt + GIVE_UP_MS)
  assert.ok(attempts < 20, `${attempts} attempts`)
  const asked = (wanted: number) => planRetry({ attempts: 1, queuedAt, now: queuedAt, wanted })
  assert.is(asked(60_000), queuedAt + 60_000)
  assert.is(asked(10 * 3_600_000), queuedAt + 3_600_000)
  assert.is(isDue(now, now - 1), false)
  assert.ok(isDue(now, now - GIVE_UP_MS), 'the clock was set back')
})

test('an answer is reported in words, without what could be an order to a terminal', () => {
  assert.is(judgeAnswer(204, '', null).failure, null)
  assert.match(judgeAnswer(302, '', null).failure ?? '', 'redirects (HTTP 302)')
  const { failure } = judgeAnswer(400, 'invalid_\u001b[2J\r\npayload', null)
  assert.match(failure ?? '', /^the receiver answered HTTP 400: invalid_\S+ payload$/)
})

const isTaken = (target: object) => TargetSchema.safeParse(target).success

test('addresses that carry a password, and fields that could be several, are refused', () => {
  assert.ok(isTaken({ kind: 'webhook', url: 'https://example.org/hook' }))
  for (const url of ['https://a:b@example.org/', 'ftp://example.org/', 'file:///etc/passwd', 'x']) {
    assert.is(isTaken({ kind: 'webhook', url }), false, url)
  }
  const mail = { kind: 'mail', host: 'mail.example.org', port: 587, security: 'starttls', user: '' }
  const addressed = (to: string) => isTaken({ ...mail, from: 'a@example.org', to: [to] })
  assert.ok(addressed('b@example.org'))
  for (const to of ['b@example.org,c@example.org', 'b@example.org\r\nBcc: c@d', '<b@c>', 'b']) {
    assert.is(addressed(to), false, to)
  }
})

test.run()
