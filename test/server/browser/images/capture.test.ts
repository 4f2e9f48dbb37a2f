/** A capture as people use it: ordered on the machine's page, watched, accepted or rejected at the cache. */
import { setTimeout as wait } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Browser, Page } from 'playwright-core'
import { addAxe, listViolations } from '#test/support/browser/axe.ts'
import {
  chooseAction,
  logIn,
  openBrowser,
  openContext,
  PASSWORD,
  startSite,
} from '#test/support/browser/browser.ts'
import { captureClient, makeCapture, SOURCE } from '#test/support/capture/uploads.ts'
import { makeFolder, startCache } from '#test/support/server/image-cache.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const MACHINE = `/ui/machines/${macOf(1)}`
const NAME = 'wéb-42 (日本語) golden image of the second rack.img.zst'
const SECRET = 'a session secret that both know'

const test = suite('the browser: captures')
let browser: Browser
const image = await makeCapture(100_000)
test.before(async () => {
  browser = await openBrowser()
})
test.after(() => browser.close())

/** Server and cache with one key, as in production. */
async function openLab() {
  const stack = new AsyncDisposableStack()
  const folder = stack.use(await makeFolder())
  const site = stack.use(await startSite({ FLASHER_SERVER_SESSION_SECRET: SECRET }))
  const cache = stack.use(
    await startCache(folder.path, {
      FLASHER_SERVER_SESSION_SECRET: SECRET,
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      FLASHER_SERVER_PUBLIC_URL: site.url,
    }),
  )
  await site.boxes.boot(1)
  await site.boxes.tellDisks(1)
  // The cache's first start ends all sessions of that second and before, those of the server too.
  await wait(1000 - (Date.now() % 1000))
  return { site, cache, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

async function order(page: Page, name: string) {
  const card = page.locator('#capture')
  const folded = page.getByText('Make an image of one of its disks')
  if (await folded.isVisible()) await folded.click()
  await card.getByLabel('New image').fill(name)
  await card.getByLabel('Disk').selectOption(serialOf(1))
  await card.getByRole('button', { name: 'Capture at next boot…' }).click()
}

/** What the machine gets for its plan, as the program that captures. */
async function fetchUpload(url: string) {
  const plan = await fetch(`${url}/pxe/${macOf(1)}/plan?features=first-boot,capture,disk-id`)
  const { mode, upload } = Object(await plan.json())
  assert.is(mode, 'capture')
  return String(upload.token)
}

test('a capture is ordered, cancelled, watched and accepted', async () => {
  await using lab = await openLab()
  const { site, cache } = lab
  await using opened = await openContext(browser, site)
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto(MACHINE)
  const card = page.locator('#capture')
  await order(page, 'x.img')
  await card.getByText('must be a file name that ends in .img.zst').waitFor()
  assert.is(await card.getByLabel('New image').inputValue(), 'x.img')
  await order(page, NAME)
  const question = page.getByRole('dialog')
  await question.getByText('Nothing is written to it.').waitFor()
  assert.equal(await listViolations(page), [])
  await question.getByRole('button', { name: 'Order the capture' }).click()
  await page.getByText('The capture was ordered.').waitFor()
  const now = page.locator('#now')
  await now.getByText('capture ordered', { exact: true }).waitFor()
  await now.getByText('A capture is ordered.').waitFor()
  assert.equal(await listViolations(page), [], 'ordered')
  await now.getByRole('button', { name: 'Cancel the capture' }).click()
  await card.getByText(/The capture of .* was cancelled/).waitFor()
  await order(page, NAME)
  await question.getByRole('button', { name: 'Order the capture' }).click()
  await card.getByText(/is captured as/).waitFor()

  assert.match(await site.boxes.boot(1), '# capture: ')
  const token = await fetchUpload(site.url)
  const run = { run: 'capture-0001', mode: 'capture' }
  await site.boxes.report(1, { ...run, phase: 'started' })
  const half = { bytes_written: 50e9, total_bytes: 100e9, rate: 4e8, eta_seconds: 125 }
  await site.boxes.report(1, { ...run, phase: 'write', ...half })
  // By the live channel, without a reload.
  await page.getByText('is being captured as').waitFor()
  await page.getByText('capturing 50%').first().waitFor()
  assert.equal(await listViolations(page), [], 'running')
  await page.goto(`${MACHINE}/runs/capture-0001`)
  await page.getByText('Capturing').first().waitFor()
  assert.equal(await listViolations(page), [], 'run')

  const machine = captureClient(cache.base, token)
  const begun = await machine.begin(NAME, { ...SOURCE, mac: macOf(1) })
  const id = String(begun.body['id'])
  await machine.send(id, 0, image.file)
  const warnings = ['SSH host keys: /etc/ssh/ssh_host_ed25519_key', '/etc/machine-id']
  assert.is((await machine.finish(id, { ...image.end, warnings })).status, 200)
  await site.boxes.report(1, { ...run, phase: 'done', bytes_written: 100e9, total_bytes: 100e9 })
  await page.goto(MACHINE)
  await page
    .locator('#capture')
    .getByText(/was captured/)
    .waitFor()
  assert.equal(await listViolations(page), [], 'done')
  assert.equal(opened.complaints, [])

  await page.goto(`${cache.base}/ui/dashboard`)
  await page.getByText('waiting for review').waitFor()
  assert.equal(await listViolations(page), [], 'waiting')
  await page.getByRole('link', { name: 'Review' }).click()
  await page.getByText('/etc/machine-id').waitFor()
  assert.equal(await listViolations(page), [], 'review')
  await page.getByLabel('Name in the catalog').fill('../x.img.zst')
  await page.getByRole('button', { name: 'Accept' }).click()
  await page.getByText('Must be a file name that ends in .img.zst').waitFor()
  assert.equal(await listViolations(page), [])
  await page.getByLabel('Name in the catalog').fill('golden.img.zst')
  await page.getByRole('button', { name: 'Accept' }).click()
  await page.getByText('golden.img.zst was accepted.').waitFor()
  const { entries } = Object(await (await fetch(`${cache.base}/catalog`)).json())
  assert.equal(
    [entries[0].name, entries[0].sha256, entries[0].index_sha256],
    ['golden.img.zst', image.end.sha256, image.end.index_sha256],
  )
})

test('a captured image is rejected on its page, without scripts', async () => {
  await using lab = await openLab()
  const { site, cache } = lab
  await using opened = await openContext(browser, site, { javaScriptEnabled: false })
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto(MACHINE)
  await order(page, 'web.img.zst')
  await page.getByRole('button', { name: 'Order the capture' }).click()
  await page.getByText('The capture was ordered.').waitFor()
  const machine = captureClient(cache.base, await fetchUpload(site.url))
  const { body } = await machine.begin('web.img.zst', { ...SOURCE, mac: macOf(1) })
  await machine.send(body['id'], 0, image.file)
  await page.goto(`${cache.base}/ui/dashboard`)
  await page.getByText('uploading', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Review' }).click()
  await page.getByText('once it is complete and verified').waitFor()
  assert.is((await machine.finish(body['id'], image.end)).status, 200)
  await page.reload()
  await page.getByText('Reject…').click()
  await page.getByRole('button', { name: 'Reject and delete' }).click()
  await page.getByText('web.img.zst was rejected and deleted.').waitFor()
  assert.is((await machine.finish(body['id'], image.end)).status, 404)
})

test('machines are captured together, each into an image of its own', async () => {
  await using lab = await openLab()
  const { site } = lab
  await site.boxes.boot(2)
  await using opened = await openContext(browser, site)
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  for (const box of [1, 2]) {
    await site.boxes.tellDisks(box)
    const data = { name: 'Web (日本)', boot_mode: 'ipxe-exit', target_disk_serial: serialOf(box) }
    assert.is((await page.request.put(`/machines/${macOf(box)}`, { data })).status(), 200)
  }
  const question = page.locator('#question')
  const ask = async (name: string) => {
    await question.getByLabel('New images').fill(name)
    await question.getByRole('button', { name: 'Preview' }).click()
  }
  await page.goto('/ui/machines')
  for (const box of [1, 2]) await page.locator(`input[value="${macOf(box)}"]`).check()
  await chooseAction(page, 'Capture…')
  assert.is(await question.getByLabel('New images').inputValue(), '{name}-{mac}.img.zst')
  assert.equal(await listViolations(page), [], 'together')
  await ask('web.img.zst')
  await page.getByText('must contain {name} or {mac}').waitFor()
  assert.is(await question.getByLabel('New images').inputValue(), 'web.img.zst')
  await ask('{name}.img.zst')
  await page.getByText(/Capture 1 machine \(1 skipped: another machine would use/).waitFor()
  assert.equal(await listViolations(page), [], 'same-name')
  await question.getByText('Cancel').click()
  await chooseAction(page, 'Capture…')
  await ask('{name}-{mac}.img.zst')
  await page.getByText('Capture 2 machines').waitFor()
  assert.equal(await listViolations(page), [], 'preview')
  await question.getByRole('button', { name: 'Capture (2)' }).click()
  await page.getByText('Ordered the capture of 2 machines.').waitFor()
  for (const box of [1, 2]) {
    const { capture } = await (await page.request.get(`/machines/${macOf(box)}`)).json()
    const mac = macOf(box).replaceAll(':', '-')
    assert.equal([capture.name, capture.generalize], [`Web-日本-${mac}.img.zst`, true])
  }
})

test.run()
