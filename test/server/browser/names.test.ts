/** Long, foreign and hostile names on the pages of a machine and its runs, wide and narrow. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { checkWidth, listViolations } from '#test/support/browser/axe.ts'
import { flashAgain, startSite, type WebSite } from '#test/support/browser/browser.ts'
import { createSiteLab } from '#test/support/browser/site-lab.ts'
import { disksOf, IMAGES, macOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: long, foreign and hostile names')
const LONG_IMAGE = `${'appliance-with-a-name-that-never-ends-'.repeat(5)}v2.img.zst`
const WIDE_IMAGE = `${'映像'.repeat(96)}.img.xz`
const [FIRST] = IMAGES
const images = [LONG_IMAGE, WIDE_IMAGE].map((name, at) => ({
  ...FIRST,
  name,
  src: `https://images.invalid/${at}`,
  resolved_src: `https://images.invalid/${at}`,
}))
const SERIAL = `SERIAL-${'0123456789'.repeat(12)}X`
const MODEL = 'M'.repeat(128)
/** Names by the number of their machine. */
const NAMES: Readonly<Record<number, string>> = {
  1: '編'.repeat(64),
  2: 'خادم قاعدة البيانات رقم ٤ ‎(rack-1)'.replaceAll('\u200e', ''),
  3: 'W'.repeat(64),
  4: `<img src=x onerror=alert(1)>${'\u{1f469}'.repeat(20)}`,
}
const BOXES = Object.keys(NAMES).map(Number)
const LABELS = Array.from({ length: 16 }, (_, at) => `${at}${'l'.repeat(60)}`)
const runOf = (box: number) => `c0ffee00-00${box.toString().padStart(2, '0')}`

const { withPage } = createSiteLab(test, settle, () =>
  startSite({ FLASHER_PXE_RUN_PATIENCE: '1h' }, [...IMAGES, ...images]),
)

/** Box 1 fails, 2 is armed, 3 is done, 4 goes on. */
async function settle({ request }: Page, { boxes }: WebSite): Promise<void> {
  const listed: readonly { name: string; ref: string }[] = await (
    await request.get('/images')
  ).json()
  const disk = { ...disksOf(1)[0], model: MODEL, serial: SERIAL }
  for (const box of BOXES) {
    await boxes.boot(box)
    await boxes.tellDisks(box, [disk, ...disksOf(box).slice(1)])
    const image = box % 2 === 0 ? WIDE_IMAGE : LONG_IMAGE
    const data = {
      name: NAMES[box],
      labels: LABELS,
      boot_mode: 'flasher-flash-once',
      bty_image_ref: listed.find(({ name }) => name === image)?.ref,
      target_disk_serial: SERIAL,
    }
    assert.is((await request.put(`/machines/${macOf(box)}`, { data })).status(), 200)
    if (box === 2) continue
    await boxes.boot(box)
    await boxes.plan(box)
    const run = { run: runOf(box), image: { name: image }, disk }
    await boxes.report(box, { ...run, phase: 'started', mode: 'flash' })
    await boxes.report(box, {
      run: runOf(box),
      phase: 'write',
      total_bytes: 100,
      bytes_written: 40,
    })
  }
  const reason = `cannot write: ${'no-blank-in-this-reason'.repeat(15)}`
  await boxes.report(1, { run: runOf(1), phase: 'failed', reason })
  await boxes.sendLog(1, runOf(1), 'x'.repeat(4000))
  await boxes.fail(1, reason)
  await boxes.report(3, { run: runOf(3), phase: 'done', verified: true })
  await boxes.done(3)
}

/** Nothing is wider than the window, and nothing that is read is cut off. */
async function check(page: Page, what: string): Promise<void> {
  await checkWidth(page, what)
  const cut = await page.evaluate(() =>
    [...document.querySelectorAll('main *, dialog[open] *')]
      .filter((element) => {
        const { overflowX } = getComputedStyle(element)
        return overflowX === 'hidden' && element.scrollWidth > element.clientWidth + 1
      })
      .filter((element) => !element.matches('.spoken, input, progress'))
      .map((element) => element.outerHTML.slice(0, 120)),
  )
  assert.equal(cut, [], `${what}: cut off`)
  assert.equal(await listViolations(page), [], what)
  assert.is(await page.locator('main img').count(), 0, what)
}

/** The disk in full: its model and its serial number. */
async function checkDisk(page: Page, scope: string, what: string): Promise<void> {
  const text = await page.locator(scope).innerText()
  assert.ok(text.includes(MODEL), `${what}: the model`)
  assert.ok(text.replaceAll(/\s/g, '').includes(SERIAL), `${what}: the serial number`)
}

async function checkMachine(page: Page, box: number, what: string): Promise<void> {
  await page.goto(`/ui/machines/${macOf(box)}`)
  await page.locator('#now').waitFor()
  await page.locator('#intent-title').click()
  await check(page, `${what}, box ${box}`)
  await checkDisk(page, '#configuration', `${what}, box ${box}`)
  if (box !== 3) await checkDisk(page, '#now', `${what}, box ${box}, what is lost`)
}

async function checkQuestions(page: Page, what: string): Promise<void> {
  await page.goto(`/ui/machines/${macOf(3)}`)
  await flashAgain(page)
  await page.getByRole('dialog').waitFor()
  await check(page, `${what}, flash`)
  await checkDisk(page, '#question', `${what}, flash`)
  await page.goto(`/ui/machines/${macOf(4)}`)
  await page.getByText('Delete this machine').click()
  await page.getByRole('button', { name: 'Delete machine…' }).click()
  await page.getByRole('dialog').waitFor()
  await check(page, `${what}, delete`)
}

for (const width of [1280, 390]) {
  test(`${width} wide`, () =>
    withPage(
      async (page) => {
        for (const box of BOXES) await checkMachine(page, box, `${width}`)
        await checkQuestions(page, `${width}`)
        for (const box of [1, 3, 4]) {
          await page.goto(`/ui/machines/${macOf(box)}/runs/${runOf(box)}`)
          await check(page, `${width}, run of box ${box}`)
          await checkDisk(page, 'main', `${width}, run of box ${box}`)
        }
      },
      { viewport: { width, height: 844 } },
    ))
}

test('the questions are pages of their own without scripts, and as narrow', () =>
  withPage(
    async (page) => {
      await page.goto(`/ui/machines/${macOf(3)}`)
      await flashAgain(page)
      await checkDisk(page, '#question', 'flash')
      const box = await page.locator('#question').boundingBox()
      assert.ok(box !== null && box.x >= 0 && box.x + box.width <= 390)
    },
    { viewport: { width: 390, height: 844 }, javaScriptEnabled: false },
  ))

test.run()
