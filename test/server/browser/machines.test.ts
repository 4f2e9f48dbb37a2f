/** The machines list as somebody works with it: what needs a person first, on every window. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { listViolations } from '#test/support/browser/axe.ts'
import { chooseAction, flashAgain, type WebSite } from '#test/support/browser/browser.ts'
import { createSiteLab } from '#test/support/browser/site-lab.ts'
import { disksOf, macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: the machines list')
const MACHINES = 100
/** Their numbers say what becomes of them. */
const [FAILED, CAPTURED, FLASHED] = [42, 43, 44]
const { withPage } = createSiteLab(test, settle)

async function settle({ request }: Page, { boxes }: WebSite): Promise<void> {
  const [image] = await (await request.get('/images')).json()
  for (let box = 1; box <= MACHINES; box += 1) {
    await boxes.boot(box)
    await boxes.tellDisks(box)
    if (box % 10 === 0) continue
    const boot_mode = box % 4 === 0 || box === FAILED ? 'flasher-flash-once' : 'ipxe-exit'
    const data = {
      name: `build-agent-${box}`,
      labels: [`rack-${box % 3}`, `slot-${box}`],
      boot_mode,
      bty_image_ref: image.ref,
      target_disk_serial: serialOf(box),
    }
    assert.is((await request.put(`/machines/${macOf(box)}`, { data })).status(), 200)
  }
  for (const box of [FAILED, FLASHED]) {
    await boxes.boot(box)
    await boxes.plan(box)
  }
  await boxes.report(FAILED, {
    run: 'c0ffee00-0042',
    phase: 'failed',
    reason: 'no route to the image',
  })
  await boxes.fail(FAILED, 'no route to the image')
  const run = { run: 'c0ffee00-0044', image: { name: image.name } }
  const [disk] = disksOf(FLASHED)
  await boxes.report(FLASHED, { ...run, phase: 'started', mode: 'flash', disk })
  await boxes.report(FLASHED, { run: run.run, phase: 'done', verified: true })
  await boxes.done(FLASHED)
  const capture = {
    macs: [macOf(CAPTURED)],
    action: 'capture',
    parameters: { name: 'golden.img.zst', disk_serial: serialOf(CAPTURED) },
  }
  const ordered = await request.post('/machines/bulk', { data: capture })
  assert.is(ordered.status(), 200, await ordered.text())
}

test('what failed comes first, has a chip, and is found by its word', () =>
  withPage(async (page) => {
    await page.goto('/ui/machines')
    const first = page.locator('#rows tr').first()
    await first.getByText('failed', { exact: true }).waitFor()
    const head = page.getByRole('columnheader', { name: /^State/ })
    assert.is(await head.getAttribute('aria-sort'), 'ascending')
    await page.getByRole('link', { name: 'Failed 1' }).click()
    assert.is(await page.locator('#rows tr').count(), 1)
    await page.goto('/ui/machines')
    await page.getByRole('link', { name: /^Needs attention/ }).click()
    await page.waitForURL('**q=state%3Aneeds-attention%2Cfailed**')
    assert.is(await page.locator('#rows tr').count(), 11)
    // The word of deployed links finds the same.
    await page.goto('/ui/machines?q=state:needs-you,failed')
    assert.is(await page.locator('#rows tr').count(), 11)
    // Who chose an order has it.
    await page.goto('/ui/machines?sort=name')
    await page.locator('#rows tr').first().getByText('build-agent-1', { exact: true }).waitFor()
  }))

test('an ordered capture is a state of its own, in the list and as a filter', () =>
  withPage(async (page) => {
    await page.goto('/ui/machines')
    await page.getByRole('link', { name: 'Capture ordered 1' }).click()
    const row = page.locator('#rows tr')
    assert.is(await row.count(), 1)
    await row.getByText('capture ordered', { exact: true }).waitFor()
  }))

test('a machine that boots its disk is called so, not ready', () =>
  withPage(async (page) => {
    await page.goto(`/ui/machines?q=${macOf(1)}`)
    await page.locator('#rows tr').first().getByText('boots its disk', { exact: true }).waitFor()
    assert.is(await page.locator('#rows').getByText('ready', { exact: true }).count(), 0)
  }))

test('a label leads to the machines that share it', () =>
  withPage(async (page) => {
    await page.goto('/ui/machines?sort=name')
    await page.locator('#rows').getByRole('link', { name: 'rack-1', exact: true }).first().click()
    await page.waitForURL('**q=label%3A%22rack-1%22')
    assert.is(await page.locator('#rows tr').count(), 30)
  }))

test('Flash again is offered where something was flashed; what failed is tried again', () =>
  withPage(async (page) => {
    await page.goto(`/ui/machines/${macOf(FLASHED)}`)
    assert.is(await page.locator('#now button').count(), 0)
    await flashAgain(page)
    await page.getByRole('dialog').waitFor()
    await page.goto(`/ui/machines/${macOf(FAILED)}`)
    await page.locator('#now').getByRole('button', { name: 'Try again…', exact: true }).waitFor()
    // Why it failed is said once, and nothing else there flashes it.
    assert.is(await page.getByText('no route').filter({ visible: true }).count(), 1)
    assert.is(await page.getByRole('radio', { name: /^Flash once/ }).isVisible(), false)
  }))

for (const [width, height] of [
  [1280, 800],
  [640, 400],
  [390, 844],
] as const) {
  test(`the buttons of a question about 100 machines are in sight at ${width} by ${height}`, () =>
    withPage(
      async (page) => {
        await page.goto('/ui/machines')
        await page.getByLabel('Select all on this page').check()
        await chooseAction(page, 'Arm…')
        const dialog = page.getByRole('dialog')
        await dialog.getByRole('heading', { name: /^Skipped/ }).waitFor()
        const isInSight = () =>
          dialog.evaluate((element) => {
            const row = element.querySelector('form > .row')?.getBoundingClientRect()
            const { bottom } = element.getBoundingClientRect()
            return row !== undefined && row.bottom <= Math.min(bottom, innerHeight)
          })
        assert.ok(await isInSight())
        await dialog.evaluate((element) => element.scrollTo(0, element.scrollHeight))
        assert.ok(await isInSight())
        // Each reason is there once, however many machines it holds back.
        assert.is(await dialog.getByText(/^Its network boot flashes nothing/).count(), 1)
        await dialog
          .getByText(/^and \d+ more$/)
          .first()
          .click()
        await dialog.getByRole('link', { name: 'build-agent-99', exact: true }).waitFor()
        assert.equal(await listViolations(page), [])
      },
      { viewport: { width, height } },
    ))
}

test('what no machine takes changes nothing, makes no batch, and says why', () =>
  withPage(async (page) => {
    const before = await (await page.request.get('/batches')).json()
    const macs = [1, 2, 3].map((box) => `macs=${encodeURIComponent(macOf(box))}`)
    await page.goto('/ui/machines')
    const shown = await page.evaluate(
      async (body) => {
        const headers = { 'content-type': 'application/x-www-form-urlencoded' }
        const answer = await fetch('/ui/machines/bulk', { method: 'POST', headers, body })
        return await answer.text()
      },
      `action=flash&sure=&${macs.join('&')}`,
    )
    assert.match(shown, 'Nothing was changed: all 3 machines were skipped. No batch was made.')
    assert.match(shown, 'Its network boot flashes nothing')
    assert.not.match(shown, 'Follow this batch')
    assert.equal(await (await page.request.get('/batches')).json(), before)
  }))

test('the wall of a phone and of a small window is no wider than they are', () =>
  withPage(async (page) => {
    for (const width of [390, 640, 920, 1280]) {
      await page.setViewportSize({ width, height: 844 })
      await page.goto('/ui/machines?view=wall')
      const wide = await page.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(wide <= width, `${wide} at ${width}`)
    }
  }))

test.run()
