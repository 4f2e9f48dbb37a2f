/** The answer to a question about many disks is about what the question showed, and about nothing else. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('questions about many')
const MACS = ['52:54:00:a1:00:07', '52:54:00:a1:00:08'] as const
const [SHOWN, OTHER] = ['ab'.repeat(32), 'cd'.repeat(32)]

async function open() {
  const stack = new AsyncDisposableStack()
  const home = stack.use(await createServerHome())
  const server = stack.use(await home.start([], { FLASHER_ADMIN_PASSWORD: 'secret words' }))
  const { cookie } = await login(server.url, 'secret words')
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', cookie)
    return fetch(`${server.url}${path}`, { redirect: 'manual', ...init, headers })
  }
  const put = (mac: string, bty_image_ref: string) =>
    ask(
      `/machines/${mac}`,
      asJson({ boot_mode: 'flasher-flash-once', target_disk_serial: 'S1', bty_image_ref }, 'PUT'),
    )
  for (const mac of MACS) await put(mac, SHOWN)
  return {
    put,
    async bulk(more: Readonly<Record<string, string>> = {}) {
      const body = new URLSearchParams([
        ...MACS.map((mac) => ['macs', mac]),
        ['action', 'flash'],
        ...Object.entries(more),
      ])
      return await (await ask('/ui/machines/bulk', { method: 'POST', body })).text()
    },
    batches: async () => (await (await ask('/batches')).json()).batches.length,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const seenIn = (page: string): string => /name="seen" value="([^"]+)"/.exec(page)?.[1] ?? ''

test('an image that was assigned since is asked about anew', async () => {
  await using site = await open()
  const seen = seenIn(await site.bulk())
  assert.ok(seen !== '')
  await site.put(MACS[0], OTHER)
  const again = await site.bulk({ sure: '2', seen })
  assert.match(again, 'Something has changed since this was shown')
  assert.is(await site.batches(), 0)
  assert.is.not(seenIn(again), seen)
  await site.bulk({ sure: '2', seen: seenIn(again) })
  assert.is(await site.batches(), 1)
})

test('a script that posts the number alone is not asked', async () => {
  await using site = await open()
  await site.bulk({ sure: '2' })
  assert.is(await site.batches(), 1)
})

test.run()
