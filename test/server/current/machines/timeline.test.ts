/** The timeline of a machine: everything in one list, in words, page by page. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { foldRepeated } from '#server/current/machines/timeline.ts'
import type { JournalEvent } from '#fleet/state/journal.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { bodyOf } from '#test/support/server/runs.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('the timeline of a machine')
const MAC = '52:54:00:00:00:07'
const PASSWORD = 'secret words'

const wordsOf = (page: string) =>
  page
    .slice(page.indexOf('<main'))
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')

test('contacts, runs and edits are in one list, in words, and can be limited', async () => {
  await using home = await createServerHome()
  await using server = await home.start([], { FLASHER_ADMIN_PASSWORD: PASSWORD })
  const { cookie } = await login(server.url, PASSWORD)
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, {
      ...init,
      headers: { 'content-type': 'application/json', cookie },
    })
  const read = async (view = '') =>
    wordsOf(await (await ask(`/ui/machines/${MAC}/timeline${view}`)).text())
  assert.is((await ask(`/ui/machines/${MAC}/timeline`)).status, 404)
  await ask(`/pxe/${MAC}`)
  const fields = { boot_mode: 'flasher-tui', labels: ['rack-1'], sanboot_drive: '0x81' }
  const changed = { ...fields, name: 'bench-7', target_disk_serial: 'S1' }
  const put = await ask(`/machines/${MAC}`, asJson(changed, 'PUT'))
  assert.ok(put.ok, await put.text())
  for (const report of [bodyOf(), bodyOf({ phase: 'failed', reason: 'write error at byte 7' })]) {
    const posted = await ask(`/pxe/${MAC}/progress`, asJson(report))
    assert.ok(posted.ok, await posted.text())
  }
  const whole = await read()
  for (const words of [
    'Made its first contact',
    'On network boot from',
    'Target disk from none → to S1',
    'by the operator from 127.0.0.1',
    'write error at byte 7',
  ]) {
    assert.ok(whole.includes(words), `${words}: ${whole}`)
  }
  assert.not.match(whole, /[0-9a-f]{20}|\{"/)
  assert.ok(whole.indexOf('write error') < whole.indexOf('first contact'), 'the newest is first')
  const boots = await read('?view=boots')
  assert.match(boots, 'Made its first contact')
  assert.not.match(boots, 'Target disk')
  const people = await read('?view=people')
  assert.match(people, 'Target disk')
  assert.not.match(people, 'first contact')
  assert.match(await read('?view=flashes'), 'write error at byte 7')
  assert.match(await read('?view=power'), 'Nothing of this kind yet.')
  assert.match(await read('?view=all&before_id=1'), 'Nothing of this kind yet.')
  const page = await (await ask(`/ui/machines/${MAC}`)).text()
  assert.match(page, `href="/ui/machines/${MAC}/timeline"`)
})

const event = (id: number, more: Partial<JournalEvent> = {}): JournalEvent => ({
  id,
  ts: `2026-11-27T00:00:0${id}.000Z`,
  kind: 'netboot.pxe.offered',
  subject_kind: 'machine',
  subject_id: MAC,
  actor: 'pxe-client',
  source_ip: null,
  summary: 'boots its own disk',
  details: { boot_mode: 'ipxe-exit' },
  acknowledged: false,
  ...more,
})

test('neighbours that say the same are one row, from the first to the last', () => {
  const folded = foldRepeated([event(5), event(4), event(3, { summary: 'other' }), event(2)])
  assert.equal(
    folded.map(({ newest, oldest, count }) => [newest.id, oldest.id, count]),
    [
      [5, 4, 2],
      [3, 3, 1],
      [2, 2, 1],
    ],
  )
  assert.is(foldRepeated([event(2), event(1, { details: { boot_mode: 'x' } })]).length, 2)
  assert.equal(foldRepeated([]), [])
})

test.run()
