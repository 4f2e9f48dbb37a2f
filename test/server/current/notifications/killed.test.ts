/** Notifications of a real server that is killed in mid-delivery, and before it has made a message: nothing is lost, and a message keeps its id. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SIGNING_KEY } from '#test/support/notify/notify-lab.ts'
import { failLogin, startHoldingReceiver } from '#test/support/notify/receivers.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('notifications of a server that is killed')
const PASSWORD = 'a password for tests'
const ENV = {
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

  const first = await home.start([], ENV)
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

  const second = await home.start([], ENV)
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

  await using third = await home.start([], ENV)
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
