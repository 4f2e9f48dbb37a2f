/** Notifications of two servers on one PostgreSQL: only the one that leads sends, and its successor goes on with the same message. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { askAs, startServer } from '#test/support/cluster/servers.ts'
import { SHORT_LEASE, timesOf } from '#test/support/cluster/times.ts'
import { SIGNING_KEY } from '#test/support/notify/notify-lab.ts'
import { failLogin, startHoldingReceiver } from '#test/support/notify/receivers.ts'
import { asForm } from '#test/support/people/current-server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('notifications of servers on one database')
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

test.run()
