/** Notifications from an event to real receivers: what arrives, in which order, once, and what is said where it does not. */
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { askAs, startServer } from '#test/support/cluster/servers.ts'
import { SHORT_LEASE, timesOf } from '#test/support/cluster/times.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { createNotifyLab, SIGNING_KEY } from '#test/support/notify/notify-lab.ts'
import {
  failLogin,
  startHoldingReceiver,
  startMailServer,
  startReceiver,
} from '#test/support/notify/receivers.ts'
import { addPerson, asForm } from '#test/support/people/current-server.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { asJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('notifications')

const macOf = (n: number) => `52:54:00:00:00:${n.toString(16).padStart(2, '0')}`
const waitFor = (isSo: () => boolean, said = () => 'it arrives') =>
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
  await waitFor(() => receiver.received.length > 0)
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
  await waitFor(() => lab.server.state.messages.countWaiting() === 0)
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
  await waitFor(() => receiver.received.length === 1)
  await waitUntil(
    async () => (await lab.textOf(page)).includes('HTTP 500: try later'),
    () => 'the page says why',
  )
  await Promise.all([lab.fail(macOf(2)), lab.fail(macOf(3))])
  await lab.flush(page)
  await waitFor(() => receiver.received.length === 3)
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
  assert.match(await lab.textOf(page), 'redirects (HTTP 302). Enter the address it leads to')
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
  assert.match(await strict.textOf(other), '127.0.0.1 is this server. Allow it in')
  const named = `http://localhost:${target.port}/`
  await strict.ask(other, asForm({ name: 'webhook', url: named, secret: '' }))
  await strict.ask(`${other}/test`, { method: 'POST' })
  assert.match(await strict.textOf(other), /(?:127\.0\.0\.1|::1) is this server\. Allow it in/)
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
  await waitFor(() => receiver.received.length === 1)
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
  await waitFor(() => receiver.received.length === 1)
  const id = page.split('/').at(-1) ?? ''
  const { messages } = lab.server.state
  await waitFor(() => messages.findWaiting(id)?.failure != null)
  const old = new Date(Date.now() - 25 * 3_600_000).toISOString()
  const [first] = messages.list(id, 1)
  const now = new Date().toISOString()
  await messages.change(first?.id ?? '', (one) => ({ ...one, queued_at: old, next_at: now }))
  await waitFor(() => messages.findWaiting(id) === null)
  assert.match(await lab.textOf(page), 'Failed')
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
  await waitFor(() => receiver.received.length === 3)
  await waitFor(() => messages.find(first?.id ?? '')?.state === 'delivered')
  // At once it would be the second click of a double one.
  await lab.setRule(page, {})
  await again()
  await waitFor(() => receiver.received.length === 4)
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
  await waitFor(() => receiver.received.length === 1)
  const { data } = JSON.parse(receiver.received[0]?.body ?? '')
  assert.equal([data.count, data.events[0].subject], [1, macOf(1)])
  await lab.fail(macOf(3), { kind: 'machine.flashed' })
  await lab.flush(page)
  await waitFor(() => receiver.received.length === 2)
  assert.is(JSON.parse(receiver.received[1]?.body ?? '').data.events[0].subject, macOf(3))
})

const postgres = lendDatabases(test)

const ENV = {
  ...timesOf(SHORT_LEASE),
  FLASHER_DATABASE_KEY: 'a key of at least thirty-two characters',
  FLASHER_NOTIFY_NETWORKS: '127.0.0.0/8',
}

test('a leader that is replaced in mid-send notes nothing more, and the next one sends the same message', async () => {
  await using receiver = await startHoldingReceiver()
  const { received, held, until } = receiver
  const name = await postgres.create()
  const database = postgres.urlOf(name)
  await using first = await startServer(database, ENV)
  await first.leads()
  const post = async (path: string, fields: Readonly<Record<string, string>>, on = first) => {
    const ask = await askAs(on)
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await ask(path, { ...asForm(fields), headers, redirect: 'manual' })
    return answer.headers.get('location') ?? String(answer.status)
  }
  const target = { name: 'lab', url: receiver.url, secret: SIGNING_KEY }
  const added = await post('/ui/notifications/add/webhook', target)
  assert.match(added, 'done=added')
  const page = added.replace(/\?.*$/, '')
  const rule = { events: 'login-failed', search: '', person: '' }
  assert.match(await post(`${page}/rules/new`, rule), 'done=saved')
  /** What was collected is sent before its time. */
  const flush = async (on: typeof first) => {
    await post(`${page}/pause`, {}, on)
    await post(`${page}/resume`, {}, on)
  }
  await using second = await startServer(database, ENV)
  await second.standsBy()
  await failLogin(first.url)
  await flush(first)
  await until(1)
  first.kill('SIGSTOP')
  await second.leads()
  await until(2)
  assert.is(received[1]?.body, received[0]?.body, 'it names the pages of the one that made it')
  assert.match(received[0]?.body ?? '', first.url)
  // The receiver takes what the former leader has sent, which may not say so any more.
  held[0]?.end('ok')
  first.kill('SIGCONT')
  assert.is((await first.process().ended).code, 1)
  await failLogin(second.url)
  await flush(second)
  await until(3)
  const states = async () =>
    JSON.stringify(await postgres.query(name, 'SELECT state FROM flasher.notify_messages'))
  let present = ''
  await waitUntil(
    async () => {
      present = await states()
      return present.split('delivered').length === 3
    },
    () => `both are noted, not ${present}`,
    20_000,
  )
  assert.is(received.length, 3)
  assert.is.not(received[2]?.body, received[0]?.body)
})

const PASSWORD = 'a password for tests'
const KILLED_ENV = {
  FLASHER_ADMIN_PASSWORD: PASSWORD,
  FLASHER_NOTIFY_NETWORKS: '127.0.0.0/8',
}

test('what was on its way comes again with its id, what waited comes, and nothing comes twice', async () => {
  await using receiver = await startHoldingReceiver()
  const { received, until } = receiver
  await using home = await createServerHome()
  const kill = async ({ child, ended }: Pick<typeof first, 'child' | 'ended'>) => {
    child.kill('SIGKILL')
    await ended
  }

  const first = await home.start([], KILLED_ENV)
  const { cookie } = await login(first.url, PASSWORD)
  const post = async (url: string, path: string, fields: Readonly<Record<string, string>>) => {
    const body = new URLSearchParams(fields)
    const options = { method: 'POST', headers: { cookie }, body, redirect: 'manual' } as const
    return (await fetch(`${url}${path}`, options)).headers.get('location') ?? ''
  }
  const target = { name: 'hook', url: receiver.url, secret: SIGNING_KEY }
  const added = await post(first.url, '/ui/notifications/add/webhook', target)
  const page = added.replace(/\?.*$/, '')
  const rule = { events: 'login-failed', search: '', person: '' }
  assert.match(await post(first.url, `${page}/rules/new`, rule), 'done=saved')
  /** What was collected is sent before its time. */
  const flush = async (url: string) => {
    await post(url, `${page}/pause`, {})
    await post(url, `${page}/resume`, {})
  }
  await failLogin(first.url)
  await flush(first.url)
  await until(1)
  await kill(first)

  const second = await home.start([], KILLED_ENV)
  await until(2)
  const [cut, again] = received.map(({ headers, body }) => ({ id: headers['webhook-id'], body }))
  assert.equal(again, cut)
  const { data } = JSON.parse(cut?.body ?? '')
  assert.equal([data.count, data.events[0].kind], [1, 'auth.login.failed'])
  // The second server listens at another port: the body has what the first one put into it.
  assert.is.not(second.url, first.url)
  assert.is(new URL(data.url).port, new URL(first.url).port)
  // The note of the delivery is on disk before the next message.
  await waitUntil(
    async () =>
      (await (await fetch(`${second.url}${page}`, { headers: { cookie } })).text()).includes(
        'Delivered',
      ),
    () => 'it is noted',
    20_000,
  )
  await failLogin(second.url)
  await kill(second)

  await using third = await home.start([], KILLED_ENV)
  await flush(third.url)
  await until(3)
  assert.is.not(received[2]?.headers['webhook-id'], cut?.id)
  await failLogin(third.url)
  await flush(third.url)
  await until(4)
  const counts = received.map(({ body }) => JSON.parse(body).data.count)
  assert.equal(counts, [1, 1, 1, 1])
})

test.run()
