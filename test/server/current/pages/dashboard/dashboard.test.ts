/** The dashboard, as the real program renders it. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '../../../../support/server/flasher-web.ts'
import { bodyOf } from '../../../../support/server/runs.ts'
import { asJson } from '../../../../support/server/server.ts'

const test = suite('the dashboard')
const MAC = '52:54:00:00:00:07'
const PASSWORD = 'secret words'

test('a failed machine stands in one card only', async () => {
  await using home = await createServerHome()
  await using server = await home.start([], { FLASHER_ADMIN_PASSWORD: PASSWORD })
  const { cookie } = await login(server.url, PASSWORD)
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, {
      ...init,
      headers: { 'content-type': 'application/json', cookie },
    })
  const fields = { name: 'bench-7', boot_mode: 'flasher-tui' }
  assert.is((await ask(`/machines/${MAC}`, asJson(fields, 'PUT'))).status, 200)
  for (const report of [bodyOf(), bodyOf({ phase: 'failed', reason: 'write error at byte 7' })]) {
    const posted = await ask(`/pxe/${MAC}/progress`, asJson(report))
    assert.ok(posted.ok, await posted.text())
  }
  const page = await (await ask('/ui/dashboard')).text()
  const cards = page.split(/<section[^>]* class="card/).slice(1)
  const titles = cards.flatMap((card) =>
    card.includes('bench-7') ? [/<h2[^>]*>([^<]*)/.exec(card)?.[1]?.trim()] : [],
  )
  assert.equal(titles, ['Needs attention'], page)
  assert.match(page, 'write error at byte 7')
})

test.run()
