import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { addAxe, listViolations } from '#test/support/browser/axe.ts'
import { logIn, openContext } from '#test/support/browser/browser.ts'
import { createSharedSite } from '#test/support/browser/shared.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: runs')
const shared = createSharedSite(test)

type Fields = Parameters<typeof bodyOf>[0]

async function report(box: number, fields: Fields): Promise<void> {
  const answer = await fetch(`${shared.site.url}/pxe/${macOf(box)}/progress`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(bodyOf({ run: runIdOf(box), ...fields })),
  })
  assert.is(answer.status, 204)
}
const barOf = (box: number) => `#b-${macOf(box).replaceAll(':', '-')}`

const IMAGE = {
  name: 'debian-13.img.zst',
  sha256: 'a1b2c3d4e5f6'.padEnd(64, '0'),
  format: 'img.zst',
}
const diskOf = (box: number) => ({
  path: '/dev/sda',
  model: 'Samsung SSD 980',
  serial: serialOf(box),
})

/** Until it is so, and how long that took. */
async function time(page: Page, selector: string, text: string): Promise<number> {
  const began = performance.now()
  await page.locator(selector, { hasText: text }).waitFor()
  return performance.now() - began
}

const checkAxe = async (page: Page) => assert.equal(await listViolations(page), [])

test('a bar moves on table, page, dashboard and wall soon after the post', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(1)
  await report(1, { phase: 'started', image: IMAGE, disk: diskOf(1) })
  let percent = 10
  for (const path of [
    '/ui/machines',
    `/ui/machines/${macOf(1)}`,
    '/ui/dashboard',
    '/ui/machines?view=wall',
    '/ui/runs',
    `/ui/machines/${macOf(1)}/runs/${runIdOf(1)}`,
  ]) {
    await page.goto(path)
    await page.locator(barOf(1)).waitFor()
    const figures = { total_bytes: 100_000_000, rate: 5_000_000, eta_seconds: 12 }
    await report(1, { bytes_written: percent * 1_000_000, ...figures })
    await time(page, barOf(1), `writing ${percent}%`)
    percent += 5
    await report(1, { bytes_written: percent * 1_000_000, ...figures })
    const took = await time(page, barOf(1), `writing ${percent}%`)
    // Well below a second on a free machine; without the live channel it would never come.
    assert.ok(took < 8000, `${path}: ${took} ms`)
    await page.locator(barOf(1), { hasText: '5.00 MB/s, 0:12 left' }).waitFor()
    await checkAxe(page)
    percent += 5
  }
  await page.goto('/ui/machines')
  await report(1, { phase: 'done', bytes_written: 100_000_000, verified: true })
  await page.locator(barOf(1)).waitFor({ state: 'detached' })
  assert.equal(opened.complaints, [])
})

test('a list shows image and disk of a run that goes on, and reasons whole; a log is at its end, wrapped', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(20)
  await report(20, { phase: 'started', image: IMAGE, disk: diskOf(20) })
  await report(20, { bytes_written: 40, total_bytes: 100 })
  await page.goto('/ui/runs?state=running')
  const row = page.locator('#rows tr').first()
  await row.locator('.image').getByText('debian').waitFor()
  await row.locator('.disk').getByText('Samsung SSD 980').waitFor()
  await row.locator(barOf(20)).waitFor()
  const reason = `cannot write to /dev/sda: ${'the cable is loose, '.repeat(15)}at last`
  await report(20, { phase: 'failed', reason })
  const log = Array.from({ length: 400 }, (_, at) => `${at} ${'x'.repeat(300)}`).join('\n')
  await fetch(`${shared.site.url}/pxe/${macOf(20)}/log?run=${runIdOf(20)}`, {
    method: 'POST',
    body: log,
  })
  await page.goto('/ui/runs?state=failed')
  const shown = page.locator('#rows .reason').first()
  assert.is(await shown.innerText(), reason)
  assert.ok(await shown.evaluate((each) => each.scrollHeight <= each.clientHeight + 1))
  await page.goto(`/ui/machines/${macOf(20)}/runs/${runIdOf(20)}`)
  const pre = page.locator('#log pre')
  assert.ok(await pre.evaluate((each) => each.scrollWidth <= each.clientWidth + 1))
  const end = await pre.locator('code').evaluate((each) => each.getBoundingClientRect().bottom)
  const bottom = await pre.evaluate((each) => each.getBoundingClientRect().bottom)
  assert.ok(Math.abs(end - bottom) < 20, `${end} ${bottom}`)
  assert.equal(opened.complaints, [])
})

const plain = (iso: string) => iso.slice(0, 19).replace('T', ' ')

test('exact times are in the zone of the browser, with UTC on hover', async () => {
  await using opened = await openContext(shared.browser, shared.site, { timezoneId: 'Asia/Tokyo' })
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(21)
  await report(21, { phase: 'started', image: IMAGE, disk: diskOf(21) })
  await report(21, { phase: 'done', bytes_written: 1 })
  await page.goto(`/ui/machines/${macOf(21)}/runs/${runIdOf(21)}`)
  const exact = page.locator('time.exact', { hasText: 'Asia/Tokyo' }).first()
  await exact.waitFor()
  const at = new Date((await exact.getAttribute('datetime')) ?? '')
  const inTokyo = new Date(at.getTime() + 9 * 3_600_000).toISOString()
  assert.is(await exact.innerText(), `${plain(inTokyo)} Asia/Tokyo`)
  assert.is(await exact.getAttribute('title'), `${plain(at.toISOString())} UTC`)
  await page.goto('/ui/runs')
  const ago = page.locator('#rows time').first()
  await page.waitForFunction(() => document.querySelector('#rows time[title*="Asia/Tokyo"]'))
  assert.match((await ago.getAttribute('title')) ?? '', /Asia\/Tokyo\n.* UTC$/)
  assert.equal(opened.complaints, [])
})

test('a failed run: its reason, its steps, its log; nothing of it is markup', async () => {
  const hostile = '<img src=x onerror=alert(1)>'
  await using opened = await openContext(shared.browser, shared.site)
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(2)
  const disk = { path: '/dev/sda', model: hostile, serial: `"'>${hostile}` }
  await report(2, { phase: 'started', image: { name: hostile }, disk, bottleneck: hostile })
  await report(2, { bytes_written: 5, total_bytes: 10 })
  await page.goto(`/ui/machines/${macOf(2)}`)
  await page.locator(barOf(2)).waitFor()
  await report(2, { phase: 'failed', reason: `no more ${hostile}` })
  const log = `first line\n${hostile}\n\u001B[31mred\u001B[0m \u202E`
  await fetch(`${shared.site.url}/pxe/${macOf(2)}/log?run=${runIdOf(2)}`, {
    method: 'POST',
    body: log,
  })
  await page.goto(`/ui/machines/${macOf(2)}/runs/${runIdOf(2)}`)
  await page.getByText('Failed to write').waitFor()
  await page.getByText(`no more ${hostile}`).first().waitFor()
  await page.locator('pre', { hasText: '\\x1b[31mred' }).waitFor()
  await checkAxe(page)
  for (const path of ['/ui/runs?state=failed', '/ui/dashboard', `/ui/machines/${macOf(2)}`]) {
    await page.goto(path)
    await page.getByText(hostile).first().waitFor()
    assert.is(await page.locator('img').count(), 0, path)
    await checkAxe(page)
  }
  assert.equal(opened.complaints, [])
})

test('the history is found by words, and taken along', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(4)
  await report(4, { phase: 'started', image: IMAGE, disk: diskOf(4) })
  await report(4, { phase: 'done', bytes_written: 1, verified: true })
  await page.getByRole('link', { name: 'Runs', exact: true }).click()
  await page.getByLabel('Search runs').fill(serialOf(4))
  await page.getByRole('button', { name: 'Search' }).click()
  await page.locator('.runs tbody tr').waitFor()
  assert.is(await page.locator('.runs tbody tr').count(), 1)
  const saving = page.waitForEvent('download')
  await page.getByText('Download', { exact: true }).click()
  await page.getByRole('link', { name: 'As CSV' }).click()
  assert.is((await saving).suggestedFilename(), 'runs.csv')
  await page.locator('.runs').getByRole('link', { name: 'done' }).click()
  await page.getByText('Wrote').waitFor()
  assert.equal(opened.complaints, [])
})

test('the page of a machine says what was flashed to which disk', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  const { boxes } = shared.site
  await boxes.boot(5)
  await boxes.tellDisks(5)
  const [image]: readonly { ref: string }[] = await (await page.request.get('/images')).json()
  const data = {
    boot_mode: 'flasher-flash-once',
    bty_image_ref: image?.ref,
    target_disk_serial: serialOf(5),
  }
  await page.request.put(`/machines/${macOf(5)}`, { data })
  await boxes.boot(5)
  await boxes.fetchKernel(5)
  await boxes.plan(5)
  await report(5, { phase: 'started', image: IMAGE, disk: diskOf(5) })
  await report(5, { phase: 'done', bytes_written: 1, verified: true })
  await boxes.done(5)
  await page.goto(`/ui/machines/${macOf(5)}`)
  const sentence = `Flashed debian-13.img.zst to Samsung SSD 980, ${serialOf(5)}, /dev/sda, verified`
  await page.getByText(sentence).waitFor()
  await checkAxe(page)
  assert.equal(opened.complaints, [])
})

test('selected runs are removed after a question, and one that is running cannot be', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  for (const box of [11, 12, 13]) {
    await shared.site.boxes.boot(box)
    await report(box, { phase: 'started', image: { name: 'removed.img' }, disk: diskOf(box) })
    if (box !== 13) await report(box, { phase: 'done', bytes_written: 1 })
  }
  await page.goto('/ui/runs?q=removed')
  const boxes = page.locator('#rows .pick input')
  assert.is(await boxes.count(), 3)
  assert.is(await page.locator('#rows .pick input:disabled').count(), 1)
  await page.getByLabel('Select all on this page').check()
  await page.getByText('2 selected').waitFor()
  await page.getByRole('button', { name: 'Remove…' }).click()
  await page.getByRole('dialog').getByText('Remove 2 runs?').waitFor()
  await checkAxe(page)
  await page.getByRole('link', { name: 'Cancel' }).click()
  assert.is(await boxes.count(), 3)
  await page.getByRole('button', { name: 'Remove…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove 2 runs' }).click()
  await page.getByText('2 runs were removed.').waitFor()
  assert.is(await boxes.count(), 1)
  assert.ok(page.url().includes('q=removed'), 'the search stays')
  await report(13, { phase: 'failed', reason: 'enough' })
  await page.goto(`/ui/machines/${macOf(13)}/runs/${runIdOf(13)}`)
  await page.getByRole('button', { name: 'Remove…' }).click()
  await page.getByRole('button', { name: 'Remove run' }).click()
  await page.getByText('1 run was removed.').waitFor()
  await page.goto('/ui/events?q=run_deleted')
  await page.getByText('was removed from the history').first().waitFor()
  assert.is(await page.getByText('was removed from the history').count(), 3)
  assert.equal(opened.complaints, [])
})

test('without scripts, too', async () => {
  await using opened = await openContext(shared.browser, shared.site, { javaScriptEnabled: false })
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(14)
  await report(14, { phase: 'started', image: { name: 'unscripted.img' }, disk: diskOf(14) })
  await report(14, { phase: 'done', bytes_written: 1 })
  await page.goto('/ui/runs?q=unscripted')
  await page.locator('#rows .pick input').check()
  await page.getByRole('button', { name: 'Remove…' }).click()
  await page.getByRole('button', { name: 'Remove run' }).click()
  await page.getByText('1 run was removed.').waitFor()
  assert.equal(opened.complaints, [])
})

test.run()
