/** /ui/runs and the page of a run: days to filter by, names in the CSV file, what leads on from a run. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PASSWORD, startSite } from '#test/support/browser/browser.ts'
import { login } from '#test/support/server/flasher-web.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson } from '#test/support/server/server.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('pages of runs')

async function open(env: Readonly<Record<string, string>> = {}) {
  const site = await startSite(env)
  const { cookie } = await login(site.url, PASSWORD)
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', cookie)
    return fetch(`${site.url}${path}`, { redirect: 'manual', ...init, headers })
  }
  return {
    ask,
    url: site.url,
    boxes: site.boxes,
    read: async (path: string) => await (await ask(path)).text(),
    report: async (n: number, fields: Parameters<typeof bodyOf>[0]) => {
      const body = asJson(bodyOf({ run: runIdOf(n), ...fields }))
      assert.is((await fetch(`${site.url}/pxe/${macOf(1)}/progress`, body)).status, 204)
    },
    [Symbol.asyncDispose]: () => site[Symbol.asyncDispose](),
  }
}

const rowsOf = (page: string) => page.match(/<tr id="r-/g)?.length ?? 0
const dayOf = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)

test('runs are filtered by days, which pages, files and searches keep', async () => {
  await using site = await open({ FLASHER_DISPLAY_TIMEZONE: 'UTC' })
  await site.boxes.boot(1)
  await site.report(1, { phase: 'failed', reason: 'no space' })
  for (const [query, rows] of [
    ['', 1],
    [`?from=${dayOf(-1)}&to=${dayOf(1)}`, 1],
    [`?to=${dayOf(-2)}`, 0],
    [`?from=${dayOf(2)}&sort=machine`, 0],
    [`?from=${dayOf(-1)}&sort=machine`, 1],
  ] as const) {
    assert.is(rowsOf(await site.read(`/ui/runs${query}`)), rows, query)
  }
  const page = await site.read(`/ui/runs?from=${dayOf(-1)}&state=failed`)
  const csv = /href="(\/runs\.csv[^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? ''
  assert.match(csv, `since=${dayOf(-1)}T00%3A00%3A00.000Z`)
  assert.match(await site.read(csv), runIdOf(1))
  assert.match(page, `href="/ui/runs?state=done&amp;from=${dayOf(-1)}"`)
  const wrong = await site.read('/ui/runs?from=yesterday')
  assert.match(wrong, 'Enter dates as year-month-day')
  assert.is(rowsOf(wrong), 1)
})

/** The table of two runs, without its tags. */
const factsIn = (page: string) =>
  (/<table class="compared">[^]*?<\/table>/.exec(page)?.[0] ?? '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')

test('two runs that are selected in the list are compared, and drift is said', async () => {
  await using site = await open()
  const { boxes } = site
  const images: readonly { ref: string; name: string }[] = await (await site.ask('/images')).json()
  const [image, other] = images
  assert.ok(image && other)
  const fields = { boot_mode: 'flasher-flash-once', target_disk_serial: serialOf(1) }
  await boxes.boot(1)
  await boxes.tellDisks(1)
  const put = (ref: string) =>
    site.ask(`/machines/${macOf(1)}`, asJson({ ...fields, bty_image_ref: ref }, 'PUT'))
  for (const n of [1, 2]) {
    await put(image.ref)
    await boxes.boot(1)
    await boxes.plan(1)
    for (const phase of ['started', 'write', 'done'] as const) {
      await site.report(n, phase === 'started' ? { phase, mode: 'flash' } : { phase })
    }
    await boxes.done(1)
  }
  const values = [1, 2].map((n) => `${macOf(1)}/${runIdOf(n)}`)
  const compare = (given: readonly string[]) =>
    site.ask(
      `/ui/runs/compare?${new URLSearchParams([...given.map((each) => ['runs', each]), ['back', '/ui/runs?state=done']])}`,
    )
  const two = (await compare(values)).headers.get('location') ?? ''
  assert.is(
    two,
    `/ui/machines/${macOf(1)}/runs/${runIdOf(1)}?with=${encodeURIComponent(values[1] ?? '')}#compared`,
  )
  const compared = await site.read(two)
  assert.match(compared, '<h1>Two runs compared</h1>')
  assert.match(factsIn(compared.replace(/^[^]*<summary>/, '')), /Image (\S+) \1/)
  // The comparison is still there after the page has refreshed itself.
  const [, again = ''] = /hx-get="([^"]*\/runs\/[^"]*)"/.exec(compared) ?? []
  assert.match(await site.read(again.replaceAll('&amp;', '&')), 'facts are the same')
  const refused = (await compare(values.slice(1))).headers.get('location') ?? ''
  assert.match(refused, /^\/ui\/runs\?.*state=done/)
  assert.match(await site.read(refused), 'Select exactly two runs')
  assert.match(await site.read('/ui/runs'), 'formaction="/ui/runs/compare"')

  assert.not.match(await site.read('/ui/machines'), 'Drifted')
  await put(other.ref)
  const list = await site.read('/ui/machines?q=is:drifted')
  assert.match(list, `on disk: ${image.name.split('.')[0]}`)
  assert.match(list, /Drifted <span class="count">1</)
  const page = await site.read(`/ui/machines/${macOf(1)}`)
  assert.match(page.replace(/<[^>]*>/g, ''), `The disk has ${image.name}`)
  await put(image.ref)
  assert.not.match(await site.read('/ui/machines?q=is:drifted'), 'on disk:')
})

test('the page of an error leads back to its form, and keeps the count beside Events', async () => {
  await using site = await open()
  await site.boxes.boot(1)
  await site.report(1, { phase: 'failed', reason: 'no space' })
  const events = /href="\/ui\/events"[^>]*>.*?<\/a/s
  const [usual] = events.exec(await site.read('/ui/runs')) ?? []
  assert.match(usual ?? '', /class="count"[^>]*>1</)
  assert.is(events.exec(await site.read('/ui/nothing'))?.[0], usual)
  const refused = await site.ask('/ui/nothing', {
    method: 'POST',
    headers: { referer: `${site.url}/ui/netboot?x=1` },
  })
  assert.match(await refused.text(), /href="\/ui\/netboot\?x=1"\s*>Back to the form</)
  const foreign = await site.ask('/ui/nothing', {
    method: 'POST',
    headers: { referer: 'http://evil.example/ui/netboot' },
  })
  assert.not.match(await foreign.text(), 'Back to the form')
})

test('an error that a browser meets is a page in words, with the navigation', async () => {
  await using site = await open()
  for (const path of ['/ui/nothing', '/nothing', `/machines/${macOf(9)}`]) {
    const answer = await site.ask(path, { headers: { accept: 'text/html,*/*;q=0.8' } })
    const page = await answer.text()
    assert.is(answer.status, 404)
    assert.match(page, '<h1>Not found</h1>')
    const sentence = path.startsWith('/machines')
      ? 'No machine'
      : 'There is nothing at this address.'
    assert.match(page, sentence, path)
    assert.match(page, '<header class="side">')
    const section = path.startsWith('/machines') ? 'Machines' : 'Dashboard'
    assert.match(page, `>Go to ${section}</a>`, path)
    for (const href of ['dashboard', 'machines', 'runs', 'events', 'settings']) {
      assert.match(page, `href="/ui/${href}"`, path)
    }
    const program = await site.ask(path)
    assert.match(
      program.headers.get('content-type') ?? '',
      path.startsWith('/ui') ? 'html' : 'json',
    )
  }
  const question = await site.ask('/ui/nothing', { headers: { 'hx-request': 'true' } })
  const dialog = await question.text()
  assert.match(dialog, '<h1 id="dialog-title">Not found</h1>', 'a dialog shows its text alone')
  assert.not.match(dialog, '<header class="side">')
  const wrong = await site.ask('/events?since=never', { headers: { accept: 'text/html' } })
  assert.is(wrong.status, 422)
  assert.match(await wrong.text(), '<h1>Invalid entries</h1>')
})

test('the CSV file names the machines', async () => {
  await using site = await open()
  await site.boxes.boot(1)
  await site.report(1, { phase: 'done' })
  await site.ask(`/machines/${macOf(1)}`, asJson({ name: 'edge-17' }, 'PUT'))
  const [head = '', row = ''] = (await site.read('/runs.csv')).split('\r\n')
  assert.ok(head.endsWith(',name'), head)
  assert.ok(row.endsWith(',edge-17'), row)
  await site.ask(`/machines/${macOf(1)}`, { method: 'DELETE' })
  assert.ok((await site.read('/runs.csv')).endsWith(',\r\n'), 'a deleted machine has no name')
})

test('a run leads on to another flash of its image and disk, and to the runs before it', async () => {
  await using site = await open()
  const { boxes } = site
  const path = `/ui/machines/${macOf(1)}`
  const runPath = (n: number) => `${path}/runs/${runIdOf(n)}`
  await boxes.boot(1)
  await boxes.tellDisks(1)
  const images: readonly { ref: string }[] = await (await site.ask('/images')).json()
  const order = {
    boot_mode: 'flasher-flash-once',
    bty_image_ref: images[0]?.ref,
    target_disk_serial: serialOf(1),
  }
  const disk = { path: '/dev/sda', serial: serialOf(1) }
  for (const n of [1, 2]) {
    await site.ask(`/machines/${macOf(1)}`, asJson({ ...order, boot_mode: 'ipxe-exit' }, 'PUT'))
    await site.ask(`/machines/${macOf(1)}`, asJson(order, 'PUT'))
    await boxes.boot(1)
    await boxes.fetchKernel(1)
    await boxes.plan(1)
    await site.report(n, { phase: 'started', disk })
    assert.not.match(await site.read(runPath(n)), 'Flash again')
    await site.report(n, { phase: 'done', bytes_written: 1, verified: true })
    await boxes.done(1)
  }
  const page = await site.read(runPath(2))
  assert.match(page, `action="${path}/do/flash"`)
  assert.match(page, 'Flash again…')
  assert.match(page, 'Earlier runs of this machine')
  assert.match(page, runPath(1))
  assert.not.match(await site.read(runPath(1)), 'Earlier runs of this machine')

  const events = (await site.read('/ui/events')).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')
  const written = `debian-13-generic-amd64.img.zst to Samsung SSD 980 500GB, ${serialOf(1)}`
  assert.match(events, `${macOf(1)} reported that its flash is done ( ${written}`)
  assert.match(events, `Target disk from none → to Samsung SSD 980 500GB, ${serialOf(1)}`)

  // Another image is assigned since: the button is about that of the run.
  await site.ask(
    `/machines/${macOf(1)}`,
    asJson({ ...order, boot_mode: 'ipxe-exit', bty_image_ref: images[1]?.ref }, 'PUT'),
  )
  const later = await site.read(runPath(2))
  const form =
    /<form class="inline"[^>]*action="\/ui\/machines\/[^/"]*"[\s\S]*?<\/form>/.exec(later)?.[0] ??
    ''
  const fields = new URLSearchParams(
    [...form.matchAll(/name="([^"]*)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [
      name,
      value.replaceAll('&#34;', '"').replaceAll('&quot;', '"').replaceAll('&amp;', '&'),
    ]),
  )
  const asked = await (await site.ask(path, { method: 'POST', body: fields })).text()
  assert.match(asked, 'id="question"')
  const machine = await (await site.ask(`/machines/${macOf(1)}`)).json()
  assert.is(machine.boot_mode, 'ipxe-exit', 'nothing is armed by asking')
  fields.set('confirm', serialOf(1).slice(-4))
  await site.ask(path, { method: 'POST', body: fields })
  const armed = await (await site.ask(`/machines/${macOf(1)}`)).json()
  assert.equal(
    [armed.boot_mode, armed.bty_image_ref, armed.target_disk_serial],
    [order.boot_mode, order.bty_image_ref, order.target_disk_serial],
  )
  assert.not.match(await site.read(runPath(2)), 'Flash again')

  await site.ask(path + '/do/lock', { method: 'POST' })
  assert.not.match(await site.read(runPath(2)), 'Flash again')
})

test.run()
