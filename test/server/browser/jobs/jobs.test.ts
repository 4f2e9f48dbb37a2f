/**
 * What people come for, from the dashboard, in clicks. Each press of the mouse counts, as does each
 * file that is chosen; keys that text is typed with do not.
 */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Browser, Locator, Page } from 'playwright-core'
import { openBrowser, PASSWORD } from '../../../support/browser/browser.ts'
import { startFreshLab, type FreshLab } from '../../../support/browser/fresh-lab.ts'
import { makeBytes } from '../../../support/collect.ts'
import { REPOSITORY, startReleaseSite } from '../../../support/http/release-site.ts'
import { createBoxes, disksOf, macOf, serialOf } from '../../../support/server/web-machines.ts'

const test = suite('the browser: jobs, counted in clicks')
const parts = new AsyncDisposableStack()
let page: Page
let boxes: ReturnType<typeof createBoxes>
let lab: FreshLab
let clicks = 0
/** The rack is the boxes from the second one. */
const RACK = Array.from({ length: 97 }, (_, at) => at + 2)

test.before(async () => {
  const releases = parts.use(await startReleaseSite({ redirects: true }))
  lab = parts.use(
    await startFreshLab({
      FLASHER_RELEASES_BASE_URL: releases.origin,
      FLASHER_BOOT_RELEASE_REPO: REPOSITORY,
    }),
  )
  const browser: Browser = parts.adopt(await openBrowser(), (each) => each.close())
  page = await browser.newPage({ baseURL: lab.url, viewport: { width: 1280, height: 800 } })
  page.setDefaultTimeout(30_000)
  boxes = createBoxes(lab.url)
})
test.before.each(() => {
  clicks = 0
})
test.after(() => parts.disposeAsync())

const click = async (target: Locator) => {
  await target.click()
  clicks += 1
}
const link = (name: string | RegExp, within: Page | Locator = page) =>
  within.getByRole('link', { name, exact: true })
const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })

/** Types into the field that the page has given the focus, and never elsewhere. */
async function type(text: string): Promise<void> {
  await page.locator('input:focus').waitFor()
  await page.keyboard.type(text)
}

/** Types into the search of the list, which a key leads to. */
async function search(text: string): Promise<void> {
  await page.keyboard.press('/')
  await type(text)
  await page.keyboard.press('Enter')
  await page.getByLabel(`all ${RACK.length} matching`).waitFor({ state: 'attached' })
}

/** Selects what the search found and opens the question of an action. */
async function choose(action: string): Promise<void> {
  await click(page.getByLabel('Select all on this page'))
  await click(page.getByText('Actions', { exact: true }))
  await click(button(action))
}

test('a fresh install until a machine is armed: at most 12', async () => {
  await page.goto('/')
  await type(PASSWORD)
  await page.keyboard.press('Enter')

  await click(link('Add an image'))
  await page.getByLabel('Image file').setInputFiles({
    name: 'debian-13.img.zst',
    mimeType: '',
    buffer: makeBytes(100_000),
  })
  clicks += 1
  await click(button('Upload'))
  await page.getByRole('row', { name: /ready debian-13/ }).waitFor()
  await click(link('Back to the dashboard'))

  await click(link('Install a live system', page.locator('#readiness')))
  await click(button('Fetch release'))
  await page.locator('#artifacts').getByText('active').waitFor()
  // What the operator's DHCP server brings about.
  await boxes.boot(1)
  await boxes.tellDisks(1)

  await click(link('Machines'))
  await click(link(macOf(1)))
  await click(page.getByText('debian-13.img.zst').first())
  await click(page.getByText('Samsung SSD 980 500GB').first())
  await click(button('Review and arm…'))
  await page.locator('dialog input:focus').waitFor()
  await type(serialOf(1).slice(-4))
  await click(button('Arm this machine'))
  await page.getByText('Armed. Boot the machine').waitFor()
  assert.is((await boxes.plan(1)).target_disk_serial, serialOf(1))
  assert.is(clicks, 12)
})

async function putIntoRack(box: number): Promise<void> {
  await boxes.boot(box)
  await boxes.tellDisks(box)
  const data = {
    labels: ['rack-03', `slot-${box}`],
    boot_mode: 'ipxe-exit',
    target_disk_serial: serialOf(box),
  }
  assert.is((await page.request.put(`/machines/${macOf(box)}`, { data })).status(), 200)
}

test('the image of a rack: 5', async () => {
  await Promise.all(RACK.map(putIntoRack))
  await page.goto('/ui/dashboard')
  await page.keyboard.type('gm')
  await page.waitForURL('**/ui/machines')
  await search('label:rack-03')
  await choose('Assign image…')
  await click(page.getByRole('dialog').getByText('debian-13.img.zst'))
  await click(button(`Assign image (${RACK.length})`))
  await page.getByText(`Assigned the image to ${RACK.length} machines.`).waitFor()
  assert.is(clicks, 5)
})

test('97 machines are armed again: at most 5', async () => {
  for (const body of [
    { action: 'mode', parameters: { boot_mode: 'flasher-flash-once' } },
    { action: 'disarm', parameters: {} },
  ]) {
    const data = { ...body, q: 'label:rack-03' }
    assert.is((await page.request.post('/machines/bulk', { data })).status(), 200)
  }
  await page.goto('/ui/dashboard')
  await page.keyboard.type('gm')
  await page.waitForURL('**/ui/machines')
  await search('label:rack-03')
  await choose('Arm…')
  await page.getByText('97 disks will be erased and flashed').waitFor()
  await page.locator('dialog input:focus').waitFor()
  await type('97')
  await click(button('Arm (97)'))
  await page.getByText('Armed 97 machines.').waitFor()
  assert.is(clicks, 4)
})

test('they are disarmed: 2', async () => {
  await page.goto('/ui/dashboard')
  await click(link('debian-13.img.zst to rack-03'))
  await click(button('Disarm the rest (97)'))
  await page.getByText('97 machines disarmed.').waitFor()
  assert.is(clicks, 2)
  for (const box of RACK.slice(0, 5)) assert.is.not((await boxes.plan(box)).mode, 'flash')
})

const REASON = 'write error at 3.2 GB: Input/output error'

test('why one failed: 1', async () => {
  const run = 'c0ffee00-0001'
  const [disk] = disksOf(1)
  await boxes.report(1, { run, phase: 'started', mode: 'flash', disk })
  await boxes.report(1, { run, phase: 'failed', reason: REASON })
  await boxes.sendLog(1, run, 'nvme0n1: I/O error, sector 6250000\n')
  await boxes.fail(1, REASON)
  await page.goto('/ui/dashboard')
  await click(link('Show the run'))
  await page.getByText(REASON).first().waitFor()
  await page.getByText('I/O error, sector 6250000').waitFor()
  assert.is(clicks, 1)
})

test('who erased what last week: 2', async () => {
  await page.goto('/ui/dashboard')
  await click(link(/^Events/))
  await click(link('Erased last week'))
  const row = page.locator('.event', { hasText: macOf(1) })
  await row.getByText(/flash debian-13\.img\.zst to Samsung SSD 980 500GB/).waitFor()
  await row.getByText('armed by the operator').waitFor()
  assert.is(clicks, 2)
})

/** Goes on to a field with the key for that, and types into it. */
async function typeInto(label: string, text: string): Promise<void> {
  const field = page.getByLabel(label, { exact: true }).first()
  const hasFocus = () => field.evaluate((each) => each === document.activeElement)
  for (let tabs = 0; tabs < 20 && !(await hasFocus()); tabs += 1) await page.keyboard.press('Tab')
  assert.ok(await hasFocus(), label)
  await page.keyboard.type(text)
}

test('a template with a user and a key, without an error: 3', async () => {
  await page.goto('/ui/dashboard')
  await click(link('First boot'))
  await click(page.getByLabel('Name', { exact: true }))
  await page.keyboard.type('web')
  await typeInto('User name', 'ada')
  await typeInto('SSH keys', 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB ada@example')
  await click(button('Create template'))
  await page.waitForURL('**/ui/first-boot/web?saved=1')
  assert.is(clicks, 3)
})

test.run()
