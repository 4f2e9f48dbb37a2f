/** The dialog of an action on many machines as a page, for somebody who had to log in again: it is filled in and changes nothing. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { fillPage } from '#kit/web/ui/typed-page.ts'
import { createCurrentServer } from '#test/support/people/current-server.ts'

const test = suite('the dialog of an action on many machines')
const MAC = '52:54:00:a1:00:07'
const PATH = '/ui/machines/bulk'

test('shows what was typed again, asks what was asked, and changes nothing', async () => {
  await using server = await createCurrentServer()
  const admin = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const before = await (await admin(`/machines/${MAC}`)).text()
  const show = async (fields: readonly [string, string][]) => {
    const given: [string, string][] = [['macs', MAC], ['back', ''], ...fields]
    const answer = await admin(`${PATH}?${new URLSearchParams(given)}`)
    const typed = { at: 0, who: '-', action: PATH, page: '/ui/machines', lost: [] }
    return [answer.status, fillPage(await answer.text(), { ...typed, fields: given }) ?? '']
  }
  for (const [fields, shown] of [
    [
      [
        ['action', 'label'],
        ['at_once', '1'],
        ['add', 'rack-9'],
      ],
      /name="add"[^>]* value="rack-9"/,
    ],
    [
      [
        ['action', 'capture'],
        ['capture_name', 'mine-{mac}'],
      ],
      /value="mine-\{mac\}"/,
    ],
    [
      [
        ['action', 'mode'],
        ['at_once', '1'],
        ['boot_mode', 'ipxe-exit'],
      ],
      /value="ipxe-exit"[^>]*checked/,
    ],
    [
      [
        ['action', 'delete'],
        ['sure', '1'],
      ],
      /name="sure"(?![^>]* value="1")/,
    ],
    [
      [
        ['action', 'lock'],
        ['sure', ''],
      ],
      /Lock \(1\)/,
    ],
  ] satisfies [[string, string][], RegExp][]) {
    const [status, page] = await show(fields)
    assert.is(status, 200)
    assert.match(String(page), shown)
  }
  assert.is(await (await admin(`/machines/${MAC}`)).text(), before)
})

test.run()
