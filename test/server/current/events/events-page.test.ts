/** /ui/events and its exports: what changed, filters that stay, dates of the page's zone, safe files. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { JournalEvent } from '#fleet/state/journal.ts'
import { foldSteps } from '#server/current/events/events-page.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('events page')
const PASSWORD = 'secret words'
const MAC = '52:54:00:00:00:01'

async function open(env: Readonly<Record<string, string>> = {}) {
  const stack = new AsyncDisposableStack()
  const home = stack.use(await createServerHome())
  const server = stack.use(await home.start([], { FLASHER_ADMIN_PASSWORD: PASSWORD, ...env }))
  const { cookie } = await login(server.url, PASSWORD)
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', cookie)
    return fetch(`${server.url}${path}`, { redirect: 'manual', ...init, headers })
  }
  return {
    url: server.url,
    ask,
    read: async (path: string) => await (await ask(path)).text(),
    put: (fields: object, mac = MAC) => ask(`/machines/${mac}`, asJson(fields, 'PUT')),
    post: (path: string, fields: Readonly<Record<string, string>>) =>
      ask(path, { method: 'POST', body: new URLSearchParams(fields) }),
    newest: async (query: string) =>
      (await (await ask(`/events?${query}&limit=1`)).json()).events[0],
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** What people read: no tags, one blank. */
const wordsOf = (page: string) =>
  page
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&gt;', '>')
    .replace(/\s+/g, ' ')

test('a change of a machine is recorded with what was there before', async () => {
  await using site = await open()
  await site.put({ labels: ['rack-1'] })
  await site.put({ labels: ['rack-1', 'rack-2'], boot_mode: 'flasher-tui' })
  const changed = await site.newest('kind=machine.upserted')
  assert.equal(changed.details.changes, {
    labels: { before: ['rack-1'], after: ['rack-1', 'rack-2'] },
    boot_mode: { before: 'ipxe-exit', after: 'flasher-tui' },
  })
  const page = wordsOf(await site.read('/ui/events?kind=machine.upserted'))
  assert.match(page, 'On network boot from Boot its disk → to Open the wizard')
  assert.match(page, 'Labels from rack-1 → to rack-1, rack-2')
  assert.match(page, /\d{4}-\d\d-\d\d, today/)
  await site.put({ labels: ['rack-1', 'rack-2'], boot_mode: 'flasher-tui' })
  const same = await site.newest('kind=machine.upserted')
  assert.equal([same.summary, same.details.changes], [`${MAC} was saved without a change`, {}])
  await site.post(`/ui/machines/${MAC}/do/lock`, {})
  const locked = await site.newest('kind=machine.lock')
  assert.equal(locked.details.changes, { locked: { before: false, after: true } })
})

test('who erased what: the machine by its name, the disk by its serial number', async () => {
  await using site = await open()
  await site.put({ name: 'edge-17' })
  const image = { name: 'debian.img.zst', src: null, ref: null, sha256: null, format: null }
  const disk = { path: '/dev/sda', model: 'Samsung SSD 980', serial: 'S5GXNX0T1', tran: 'nvme' }
  const report = bodyOf({ run: runIdOf(1), phase: 'started', mode: 'flash', image, disk })
  assert.is((await site.ask(`/pxe/${MAC}/progress`, asJson(report))).status, 204)
  const page = wordsOf(await site.read('/ui/events?erased=1'))
  assert.match(page, `edge-17 ${MAC} started to flash debian.img.zst to Samsung SSD 980`)
  assert.match(page, '( S5GXNX0T1 )')
})

test('logins and backups that have not ended are shown to those who ask for them', async () => {
  await using site = await open()
  await site.put({})
  const words = 'An operator logged in'
  const page = await site.read('/ui/events')
  assert.match(page, 'was created')
  assert.not.match(page, words)
  assert.match(page, 'href="/ui/events?routine=1"')
  for (const query of ['routine=1', 'kind=auth.login.succeeded', 'actor=operator', 'text=logged']) {
    assert.match(await site.read(`/ui/events?${query}`), words, query)
  }
})

test('a machine that cannot be armed with others says which action leads to it', async () => {
  await using site = await open()
  await site.put({ name: 'edge-17' })
  const answer = await site.post('/ui/machines/bulk', { action: 'flash', macs: MAC })
  const words = 'Its network boot flashes nothing: choose Set network boot, then Flash once.'
  assert.match(wordsOf(await answer.text()), words)
})

test('a change of a setting is recorded with both values, and no secret ever', async () => {
  await using site = await open({ FLASHER_WITHCACHE_TOKEN: 'the token of the cache' })
  await site.post('/ui/settings/config/edit', { section: 'pxe', key: 'loop_limit', value: '9' })
  const edited = await site.newest('kind=settings.config.updated')
  assert.equal(edited.details.changes, { 'pxe.loop_limit': { before: '5', after: '9' } })
  await site.post('/ui/settings/upstream', { netboot_repo: 'owner/name' })
  const saved = await site.newest('kind=settings.upstream.updated')
  assert.equal(saved.details.changes, {
    'boot.release_repo': { before: null, after: 'owner/name' },
  })
  const page = await site.read('/ui/events')
  assert.match(wordsOf(page), 'Boots until a loop is suspected from 5 → to 9')
  await site.post('/ui/settings/config/edit', {
    section: 'admin',
    key: 'password',
    value: 'hunter2',
  })
  const all = await site.read('/events.json')
  for (const secret of ['hunter2', PASSWORD, 'the token of the cache']) {
    assert.not.match(all, secret)
  }
})

test('dates are days of the zone that pages show, and both are included', async () => {
  await using site = await open({ FLASHER_DISPLAY_TZ: 'Pacific/Kiritimati' })
  await site.put({})
  const { ts } = await site.newest('kind=machine.created')
  const day = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Pacific/Kiritimati' })
  const at = (days: number) => day.format(new Date(Date.parse(ts) + days * 86_400_000))
  for (const [query, isThere] of [
    [`from=${at(0)}&to=${at(0)}`, true],
    [`from=${at(0)}`, true],
    [`to=${at(0)}`, true],
    [`from=${at(1)}`, false],
    [`to=${at(-1)}`, false],
  ] as const) {
    const page = await site.read(`/ui/events?kind=machine.created&${query}`)
    assert.is(page.includes(`${MAC}</a> was created`), isThere, query)
    const link = /href="(\/events\.csv[^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? ''
    assert.is((await site.read(link)).includes(MAC), isThere, link)
  }
})

const idsOf = (page: string) =>
  [...page.matchAll(/name="shown" value="(\d+)"/g)].map(([, id = '']) => id)

test('nothing is selected for acknowledging; what is selected, or all of the page, is acknowledged', async () => {
  await using site = await open()
  for (const n of [1, 2, 3]) {
    const mac = `52:54:00:00:03:0${n}`
    await site.ask(`/pxe/${mac}`)
    await site.ask(`/pxe/${mac}/status`, asJson({ status: 'failed', reason: 'no disk' }))
  }
  const page = await site.read('/ui/events')
  const [first = '', ...others] = idsOf(page)
  assert.is(others.length, 2)
  assert.not.match(page, /name="ids"[^>]*checked/)
  const acknowledge = async (fields: Readonly<Record<string, string>>) => {
    const answer = await site.ask('/ui/events/acknowledge', {
      method: 'POST',
      body: new URLSearchParams([
        ['back', '/ui/events'],
        ...idsOf(await site.read('/ui/events')).map((id) => ['shown', id]),
        ...Object.entries(fields),
      ]),
    })
    return await site.read(answer.headers.get('location') ?? '')
  }
  assert.match(await acknowledge({}), 'No event was selected')
  assert.match(await acknowledge({ ids: first }), '1 acknowledged.')
  assert.equal(idsOf(await site.read('/ui/events')), others)
  assert.match(await acknowledge({ all: '1' }), '2 acknowledged.')
  assert.match(await site.read('/ui/events?unacknowledged=1'), 'Nothing needs attention')
})

test('a range that is none is said to be so, and nothing is filtered by it', async () => {
  await using site = await open()
  for (const [query, words] of [
    ['from=2026-02-30', 'Enter dates as year-month-day'],
    ['to=yesterday', 'Enter dates as year-month-day'],
    ['from=2026-11-22&to=2026-11-21', 'The first day is after the last one.'],
  ] as const) {
    const answer = await site.ask(`/ui/events?routine=1&${query}`)
    assert.is(answer.status, 200)
    const page = await answer.text()
    assert.match(page, words)
    assert.match(page, 'An operator logged in')
  }
  assert.is((await site.ask('/events?since=yesterday')).status, 422)
})

test('filters stay from page to page and in the exports', async () => {
  await using site = await open()
  for (let n = 0; n < 110; n += 1) {
    await site.put({}, `52:54:00:00:01:${n.toString(16).padStart(2, '0')}`)
  }
  const query = 'kind=machine.created&actor=operator&from=2020-01-01'
  const page = await site.read(`/ui/events?${query}`)
  const older = /<a href="([^"]*)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? ''
  assert.match(older, /from=2020-01-01/)
  assert.match(older, /kind=machine\.created/)
  const second = await site.read(older)
  assert.match(second, '52:54:00:00:01:00')
  assert.not.match(second, 'An operator logged in')
  const exported = await (await site.ask('/events.json?kind=machine.created')).json()
  assert.is(exported.length, 110)
  assert.match(page, 'Kind: <strong>machine.created</strong>')
})

test('CSV: one row an event, and no cell that a spreadsheet would calculate', async () => {
  await using site = await open()
  const formulas = ['=cmd|"/c calc"!A1', '+1+1', '@SUM(A1)', '-2+3']
  for (const [n, serial] of formulas.entries()) {
    await site.put({ target_disk_serial: serial }, `52:54:00:00:02:0${n}`)
  }
  const answer = await site.ask('/events.csv?subject_kind=machine')
  assert.match(answer.headers.get('content-type') ?? '', /^text\/csv/)
  assert.is(answer.headers.get('content-disposition'), 'attachment; filename="events.csv"')
  const lines = (await answer.text()).split('\r\n')
  assert.is(
    lines[0],
    'id,time,kind,subject_kind,subject,actor,address,summary,changes,acknowledged,details',
  )
  assert.is(lines.length, formulas.length + 2)
  for (const line of lines.slice(1)) assert.not.match(line, /(?:^|,)"?[\s\0]*[=+@-]/)
})

test('exports are for those who may read', async () => {
  await using site = await open()
  for (const path of ['/events.csv', '/events.json']) {
    assert.is((await fetch(`${site.url}${path}`)).status, 401, path)
    const head = await site.ask(path, { method: 'HEAD' })
    assert.is(head.status, 200)
  }
})

const OTHER = '52:54:00:00:00:02'

const eventOf = (id: number, given: Partial<JournalEvent> = {}): JournalEvent => ({
  id,
  ts: `2026-11-27T10:00:${String(id).padStart(2, '0')}Z`,
  kind: 'machine.flash_started',
  subject_kind: 'machine',
  subject_id: MAC,
  summary: '',
  actor: 'pxe-client',
  source_ip: null,
  acknowledged: false,
  details: { run: 'one' },
  ...given,
})

const foldedIds = (events: readonly JournalEvent[]) =>
  foldSteps(events).map(({ event, earlier }) => [event.id, ...earlier.map(({ id }) => id)])

test('the steps of a flash are below its end, whatever other machines did meanwhile', () => {
  const events = [
    eventOf(7, { kind: 'machine.flashed' }),
    eventOf(6, { subject_id: OTHER }),
    eventOf(5),
    eventOf(4, { kind: 'netboot.pxe.plan' }),
    eventOf(3, { kind: 'machine.flashed' }),
    eventOf(2),
    eventOf(1, { kind: 'netboot.pxe.offered', subject_id: OTHER }),
  ]
  assert.equal(foldedIds(events), [
    [7, 5, 4],
    [6, 1],
    [3, 2],
  ])
})

test('what a new machine reports is one block', () => {
  const kinds = ['inventory', 'token.missing', 'discovered'].map((kind) => `machine.${kind}`)
  const events = ['netboot.pxe.offered', ...kinds].map((kind, at) => eventOf(9 - at, { kind }))
  assert.equal(foldedIds(events), [[9, 8, 7, 6]])
})

test('how a flash ended and what has to be acknowledged is never folded away', () => {
  const failed = { kind: 'machine.flash_failed' }
  assert.equal(foldedIds([eventOf(3), eventOf(2, failed), eventOf(1)]), [[3], [2, 1]])
  const done = { ...failed, acknowledged: true }
  assert.equal(foldedIds([eventOf(2), eventOf(1, done)]), [[2], [1]])
  assert.equal(foldedIds([eventOf(2), eventOf(1, { kind: 'netboot.loop.suspected' })]), [[2], [1]])
})

test('what somebody did to the machine stands between its steps', () => {
  const edit = { kind: 'machine.upserted', actor: 'operator' } as const
  assert.equal(foldedIds([eventOf(3), eventOf(2, edit), eventOf(1)]), [[3], [2], [1]])
  assert.equal(foldedIds([eventOf(2, { actor: 'system' }), eventOf(1)]), [[2], [1]])
  assert.equal(foldedIds([eventOf(2), eventOf(1, { subject_id: null })]), [[2], [1]])
})

test.run()
