/** Notifications from an event to real receivers: what arrives, in which order, once, and what is said where it does not. */
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeAuthority } from '#test/support/http/authority.ts'
import { createNotifyLab, SIGNING_KEY } from '#test/support/notify/notify-lab.ts'
import { startMailServer, startReceiver } from '#test/support/notify/receivers.ts'
import { addPerson, asForm } from '#test/support/people/current-server.ts'
import { asJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('notifications')

const macOf = (n: number) => `52:54:00:00:00:${n.toString(16).padStart(2, '0')}`
const until = (isSo: () => boolean, said = () => 'it arrives') =>
  waitUntil(async () => isSo(), said, 20_000)

test('a webhook is signed, is one message for a batch that fails, and names machines', async () => {
  await using receiver = await startReceiver()
  await using lab = await createNotifyLab({ FLASHER_SERVER_PUBLIC_URL: 'http://flasher.test' })
  const rack = Array.from({ length: 97 }, (_, n) => macOf(n + 1))
  for (const [n, mac] of rack.entries()) {
    await lab.ask(`/machines/${mac}`, asJson({ name: `node-${n + 1}`, labels: ['lab'] }, 'PUT'))
  }
  const page = await lab.add('webhook', { url: `${receiver.url}/hook`, secret: SIGNING_KEY })
  await lab.setRule(page, { search: 'label:lab' })
  await lab.fail(macOf(200))
  await Promise.all(rack.map((mac) => lab.fail(mac)))
  await lab.flush(page)
  await until(() => receiver.received.length > 0)
  const [{ headers = {}, body = '', path } = {}] = receiver.received
  assert.is(path, '/hook')
  const verified = new Webhook(SIGNING_KEY).verify(body, headers)
  assert.equal(verified, JSON.parse(body))
  const { type, data } = JSON.parse(body)
  assert.is(type, 'notification.events')
  assert.is(data.title, '97 × Flash failed')
  assert.is(data.events[0].machine.name, 'node-1')
  assert.match(data.events[0].url, /^http:\/\/flasher\.test\/ui\/machines\//)
  assert.throws(() => new Webhook(SIGNING_KEY).verify(`${body} `, headers))
  await until(() => lab.server.state.messages.countWaiting() === 0)
  assert.is(receiver.received.length, 1)
  const text = await lab.textOf(page)
  assert.match(text, '97 × Flash failed')
  assert.not.match(text, SIGNING_KEY)
  const kept = await stat(join(lab.server.dir, 'notify.json'))
  assert.is(kept.mode & 0o777, 0o600)
})

test('what fails is tried again with the same id, and what follows waits behind it', async () => {
  await using receiver = await startReceiver((response, _request, count) => {
    response.statusCode = count === 1 ? 500 : 200
    response.end(count === 1 ? 'try later' : 'ok')
  })
  await using lab = await createNotifyLab()
  const page = await lab.add('webhook', { url: receiver.url, secret: SIGNING_KEY })
  await lab.setRule(page, {})
  await lab.fail(macOf(1))
  await lab.flush(page)
  await until(() => receiver.received.length === 1)
  await waitUntil(
    async () => (await lab.textOf(page)).includes('HTTP 500: try later'),
    () => 'the page says why',
  )
  await Promise.all([lab.fail(macOf(2)), lab.fail(macOf(3))])
  await lab.flush(page)
  await until(() => receiver.received.length === 3)
  const [first, second, third] = receiver.received
  assert.is(first?.headers['webhook-id'], second?.headers['webhook-id'])
  assert.is.not(third?.headers['webhook-id'], second?.headers['webhook-id'])
  assert.is(JSON.parse(first?.body ?? '').data.events[0].subject, macOf(1))
  assert.is(JSON.parse(third?.body ?? '').data.count, 2, 'what came meanwhile is one message')
})

test('Slack gets the request that it documents', async () => {
  await using receiver = await startReceiver()
  await using lab = await createNotifyLab()
  const page = await lab.add('slack', { secret: `${receiver.url}/services/T0/B0/x` })
  const tested = await lab.ask(`${page}/test`, { method: 'POST' })
  assert.match(tested.headers.get('location') ?? '', 'done=tested')
  const [{ method, path, headers, body } = {}] = receiver.received
  assert.equal(
    [method, path, headers?.['content-type'], headers?.['authorization']],
    ['POST', '/services/T0/B0/x', 'application/json', undefined],
  )
  assert.match(JSON.parse(body ?? '').text, 'Test of slack: notifications arrive')
  assert.not.match(await lab.textOf(page), 'services/T0')
})

type Mail = Awaited<ReturnType<typeof startMailServer>>['mails'][number]

function checkMail(mail: Mail | undefined) {
  const { isSecure, user, to, text } = mail ?? { isSecure: false, user: null, to: [], text: '' }
  assert.equal([isSecure, user], [true, 'flasher'])
  assert.equal(to, ['a@example.org', 'b@example.org'])
  assert.match(text, /^Message-ID: <msg_[0-9a-f]{24}@example\.org>/m)
  assert.match(text, /^Subject: Test of one: notifications arrive\r$/m)
  assert.match(text, 'text/html')
}

test('mail goes by STARTTLS or TLS, with a password only there, and a certificate is checked', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-mail-'))
  try {
    const { caFile, certificate } = await makeAuthority(folder)
    await using open = await startMailServer({ certificate })
    await using sealed = await startMailServer({ certificate, secure: true })
    await using plain = await startMailServer({ certificate, withoutStartTls: true })
    await using lab = await createNotifyLab({ FLASHER_CA_FILE: caFile })
    await using distrusting = await createNotifyLab()
    const mail = {
      host: '127.0.0.1',
      from: 'flasher@example.org',
      to: 'a@example.org, b@example.org',
    }
    const user = { user: 'flasher', secret: 'sesame' }
    const tried = async (on: typeof lab, fields: Readonly<Record<string, string>>) => {
      const page = await on.add('mail', { ...mail, ...fields })
      await on.ask(`${page}/test`, { method: 'POST' })
      return { page, text: await on.textOf(page) }
    }
    const { page } = await tried(lab, {
      name: 'one',
      port: String(open.port),
      security: 'starttls',
      ...user,
    })
    await tried(lab, { name: 'two', port: String(sealed.port), security: 'tls' })
    const wrong = { name: 'three', port: String(open.port), security: 'starttls', user: 'flasher' }
    const { text } = await tried(lab, { ...wrong, secret: 'open' })
    assert.match(text, 'refused the user or password')
    const bare = { name: 'four', port: String(plain.port), security: 'starttls' }
    assert.match((await tried(lab, bare)).text, 'offers no STARTTLS')
    const unknown = { port: String(open.port), security: 'starttls', ...user }
    const { text: distrusted } = await tried(distrusting, unknown)
    assert.match(distrusted, /the connection failed: .*certificate/)
    // A password stays with its server, and does not come back with it.
    for (const host of ['127.0.0.2', '127.0.0.1']) {
      await lab.ask(page, asForm({ ...mail, ...unknown, name: 'one', host, secret: '' }))
    }
    await lab.ask(`${page}/test`, { method: 'POST' })
    assert.match(await lab.textOf(page), 'refused the user or password')
    assert.is(open.mails.length, 1)
    checkMail(open.mails[0])
    assert.is(sealed.mails[0]?.isSecure, true)
    const refused = await lab.ask(
      '/ui/notifications/add/mail',
      asForm({ ...mail, name: 'five', port: '25', security: 'none', ...user }),
    )
    assert.match(refused.headers.get('location') ?? '', 'error=')
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('redirects, this host, endless answers and silence are reported in words', async () => {
  await using target = await startReceiver()
  await using receiver = await startReceiver((response, { path }) => {
    if (path === '/redirect') response.writeHead(302, { location: target.url }).end()
    else if (path === '/endless') {
      const more = () => {
        if (response.write('x'.repeat(65_536))) setImmediate(more)
        else response.once('drain', more)
      }
      more()
    }
  })
  await using lab = await createNotifyLab()
  const page = await lab.add('webhook', { url: `${receiver.url}/redirect`, secret: SIGNING_KEY })
  const tryAt = async (url: string) => {
    await lab.ask(page, asForm({ name: 'webhook', url, secret: '' }))
    await lab.ask(`${page}/test`, { method: 'POST' })
    return await lab.textOf(page)
  }
  await lab.ask(`${page}/test`, { method: 'POST' })
  assert.match(await lab.textOf(page), 'redirects (HTTP 302), which is not followed')
  assert.is(target.received.length, 0)
  await tryAt(`${receiver.url}/endless`)
  const [tested] = lab.server.state.messages.list(page.split('/').at(-1) ?? '', 1)
  assert.is(tested?.state, 'delivered', 'the beginning is read, and no more')
  assert.match(await tryAt(`https://127.0.0.1:${receiver.port}/`), 'does not speak TLS')
  assert.match(await tryAt('http://127.0.0.1:1/'), 'connection refused')
  assert.match(await tryAt('http://127.0.0.1:8080/'), 'is this server itself')
  assert.match(await tryAt('http://no-such-host.invalid/'), 'host name not found')
  assert.match(await tryAt('http://169.254.169.254/latest/'), 'link-local')
  await using strict = await createNotifyLab({ FLASHER_NOTIFY_NETWORKS: '' })
  const other = await strict.add('webhook', { url: target.url, secret: SIGNING_KEY })
  await strict.ask(`${other}/test`, { method: 'POST' })
  assert.match(await strict.textOf(other), '127.0.0.1 is this host')
  const named = `http://localhost:${target.port}/`
  await strict.ask(other, asForm({ name: 'webhook', url: named, secret: '' }))
  await strict.ask(`${other}/test`, { method: 'POST' })
  assert.match(await strict.textOf(other), /(?:127\.0\.0\.1|::1) is this host/)
  assert.is(target.received.length, 0)
})

test('a paused receiver hears nothing, a removed one is gone', async () => {
  await using receiver = await startReceiver()
  await using lab = await createNotifyLab()
  const page = await lab.add('webhook', { url: receiver.url, secret: SIGNING_KEY })
  await lab.setRule(page, {})
  await lab.ask(`${page}/pause`, { method: 'POST' })
  await lab.fail(macOf(1))
  await lab.ask(`${page}/resume`, { method: 'POST' })
  await lab.fail(macOf(2))
  await lab.flush(page)
  await until(() => receiver.received.length === 1)
  assert.match(receiver.received[0]?.body ?? '', macOf(2))
  assert.not.match(receiver.received[0]?.body ?? '', macOf(1))
  const removed = await lab.ask(`${page}/remove`, asForm({ confirm: 'yes' }))
  assert.match(removed.headers.get('location') ?? '', 'done=removed')
  assert.is((await lab.ask(page)).status, 404)
  const { events } = await (await lab.ask('/events?kind=notification.receiver.removed')).json()
  assert.is(events[0].subject_id, 'webhook')
  const lea = await addPerson(lab.server, 'lea', 'operate')
  assert.is((await lea('/ui/notifications')).status, 403)
  assert.is((await lea('/ui/notifications/add/webhook', asForm({}))).status, 403)
})

test('a message that was given up is sent again with its id, and one that was delivered with another', async () => {
  let isUp = false
  await using receiver = await startReceiver((response) => {
    response.statusCode = isUp ? 200 : 503
    response.end()
  })
  await using lab = await createNotifyLab()
  const page = await lab.add('webhook', { url: receiver.url, secret: SIGNING_KEY })
  await lab.setRule(page, {})
  await lab.fail(macOf(1))
  await lab.flush(page)
  await until(() => receiver.received.length === 1)
  const id = page.split('/').at(-1) ?? ''
  const { messages } = lab.server.state
  await until(() => messages.findWaiting(id)?.failure != null)
  const old = new Date(Date.now() - 25 * 3_600_000).toISOString()
  const [first] = messages.list(id, 1)
  const now = new Date().toISOString()
  await messages.change(first?.id ?? '', (one) => ({ ...one, queued_at: old, next_at: now }))
  await until(() => messages.findWaiting(id) === null)
  assert.match(await lab.textOf(page), 'Given up')
  // The event follows the note on the message.
  let events: readonly { readonly summary: string }[] = []
  await waitUntil(
    async () => {
      ;({ events } = await (await lab.ask('/events?kind=notification.failed')).json())
      return events.length > 0
    },
    () => 'an event says so',
  )
  assert.is(events.length, 1)
  assert.match(events[0]?.summary ?? '', 'have failed for a day')
  isUp = true
  const again = () => lab.ask(`${page}/again`, asForm({ message: first?.id ?? '' }))
  await again()
  await until(() => receiver.received.length === 3)
  await until(() => messages.find(first?.id ?? '')?.state === 'delivered')
  // At once it would be the second click of a double one.
  await lab.setRule(page, {})
  await again()
  await until(() => receiver.received.length === 4)
  const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
  assert.equal(new Set(ids.slice(0, 3)).size, 1)
  assert.is.not(ids[3], ids[0])
})

test('a rule counts for what happens after it, and what waited goes out by the former one', async () => {
  await using receiver = await startReceiver()
  await using lab = await createNotifyLab()
  const page = await lab.add('webhook', { url: receiver.url, secret: SIGNING_KEY })
  await lab.setRule(page, {})
  await lab.fail(macOf(1))
  await lab.fail(macOf(2), { kind: 'machine.flashed' })
  await lab.setRule(page, { events: 'flashed' })
  await until(() => receiver.received.length === 1)
  const { data } = JSON.parse(receiver.received[0]?.body ?? '')
  assert.equal([data.count, data.events[0].subject], [1, macOf(1)])
  await lab.fail(macOf(3), { kind: 'machine.flashed' })
  await lab.flush(page)
  await until(() => receiver.received.length === 2)
  assert.is(JSON.parse(receiver.received[1]?.body ?? '').data.events[0].subject, macOf(3))
})

test.run()
