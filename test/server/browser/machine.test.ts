/** The page of one machine: what it says after a flash, many disks, and its questions. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { portOf } from '#server/current/machines/machine-page.ts'
import { listViolations } from '#test/support/browser/axe.ts'
import { flashAgain, type WebSite } from '#test/support/browser/browser.ts'
import { createSiteLab } from '#test/support/browser/site-lab.ts'
import { disksOf, macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: a machine')
const { withPage } = createSiteLab(test, settle)

const DISKS = Array.from({ length: 26 }, (_, at) => ({
  ...disksOf(2)[1],
  path: `/dev/sd${String.fromCodePoint(97 + at)}`,
  serial: `ZC1${70_000 + at}`,
  wwn: `0x5000c500a1b2${(0x1000 + at).toString(16)}`,
  by_path: `/dev/disk/by-path/pci-0000:02:00.0-sas-exp0x500304801e-phy${at}-lun-0`,
}))

/** Machine 1 was flashed, machine 2 has many disks, machine 3 has one. */
async function settle({ request }: Page, { boxes }: WebSite): Promise<void> {
  const [image] = await (await request.get('/images')).json()
  for (const [box, disks] of [
    [1, disksOf(1)],
    [2, DISKS],
    [3, disksOf(3).slice(0, 1)],
  ] as const) {
    await boxes.boot(box)
    await boxes.tellDisks(box, disks)
  }
  const data = {
    name: 'build-agent-1',
    boot_mode: 'flasher-flash-once',
    bty_image_ref: image.ref,
    target_disk_serial: serialOf(1),
  }
  await request.put(`/machines/${macOf(1)}`, { data })
  await boxes.boot(1)
  await boxes.plan(1)
  await boxes.done(1)
}

test('after a flash nothing says that the disk will be erased', () =>
  withPage(async (page) => {
    await page.goto(`/ui/machines/${macOf(1)}`)
    await page.getByText('Flash again…').click()
    const selected = page.locator('.modes .option:has(:checked)')
    await selected.getByText('It boots its own disk.').waitFor()
    assert.not.match(await selected.innerText(), /erase/i)
  }))

test('the only disk of a machine counts as selected once it is', () =>
  withPage(async (page) => {
    await page.goto(`/ui/machines/${macOf(3)}`)
    const flashOnce = page.getByRole('radio', { name: /^Flash once/ })
    await page.getByRole('radio', { name: /^fedora/ }).check()
    assert.is(await flashOnce.isChecked(), false)
    await page.getByRole('radio', { name: /^Samsung/ }).check()
    assert.is(await flashOnce.isChecked(), true)
  }))

test('26 disks are filtered by serial number, WWN and port, and say where they are', () =>
  withPage(async (page) => {
    await page.goto(`/ui/machines/${macOf(2)}`)
    const cards = page.locator('.disks .option:visible')
    assert.is(await cards.count(), DISKS.length)
    const find = page.getByRole('searchbox', { name: /^Find a disk/ })
    for (const words of ['zc170007', '0x5000c500a1b21007', 'phy7-lun']) {
      await find.fill(words)
      await cards.filter({ hasText: 'ZC170007' }).waitFor()
      // The card that is selected stays.
      assert.is(await cards.filter({ hasText: 'ZC1' }).count(), 1, words)
    }
    // A search edits nothing.
    assert.is(await page.locator('#configuration[data-dirty]').count(), 0)
    await page.getByRole('radio', { name: /ZC170007/ }).check()
    const text = await cards.filter({ hasText: 'ZC170007' }).innerText()
    for (const part of ['port 7', 'WWN 0x5000c500a1b21007', '/dev/sdh']) assert.match(text, part)
    assert.equal(await listViolations(page), [])
  }))

for (const [width, height] of [
  [1280, 800],
  [640, 400],
  [390, 844],
] as const) {
  test(`Save is in sight beside 26 disks, and hides no focus, at ${width} by ${height}`, () =>
    withPage(
      async (page) => {
        await page.goto(`/ui/machines/${macOf(2)}`)
        const radio = page.getByRole('radio', { name: /ZC170025/ })
        await radio.check()
        await page.keyboard.press('Tab')
        for (const each of [radio, page.locator(':focus')]) {
          await each.focus()
          const [bar, box] = [
            await page.locator('.save-bar').boundingBox(),
            await each.boundingBox(),
          ]
          assert.ok(bar !== null && box !== null)
          assert.ok(bar.y + bar.height <= height + 1 && box.y + box.height <= bar.y + 1, `${box.y}`)
        }
      },
      { viewport: { width, height } },
    ))
}

test('ports are read from the path of a disk, where it has one', () => {
  assert.is(portOf({ by_path: 'pci-0000:00:1f.2-ata-3' }), '3')
  assert.is(portOf({ by_path: 'pci-0000:02:00.0-sas-exp0x5-phy7-lun-0' }), '7')
  assert.is(portOf({ by_path: 'pci-0000:01:00.0-nvme-1' }), null)
  assert.is(portOf({ by_path: null }), null)
})

test('the form names its machine beside its button', () =>
  withPage(async (page) => {
    await page.goto(`/ui/machines/${macOf(1)}`)
    await page.getByText('Flash again…').click()
    await page.getByRole('radio', { name: /^fedora/ }).check()
    const bar = page.locator('.save-bar')
    await bar.getByText('build-agent-1').waitFor()
    const box = await bar.boundingBox()
    assert.ok(box !== null && box.y + box.height <= 801, JSON.stringify(box))
  }))

test('a question begins at its beginning at 200 %, with the focus in its field, and keeps a wrong entry', () =>
  withPage(
    async (page) => {
      await page.goto(`/ui/machines/${macOf(1)}`)
      await flashAgain(page)
      const dialog = page.getByRole('dialog')
      await dialog.waitFor()
      const field = dialog.getByRole('textbox')
      assert.ok(await field.evaluate((each) => each === document.activeElement))
      assert.is(await dialog.evaluate((each) => each.scrollTop), 0)
      assert.ok(await dialog.getByRole('heading').isVisible())
      await page.keyboard.type('nope')
      await page.keyboard.press('Enter')
      await dialog.getByText('These are not the last characters').waitFor()
      assert.is(await dialog.getByRole('textbox').inputValue(), 'nope')
      assert.equal(await listViolations(page), [])
      // The button looks as if it did nothing before the right characters are there.
      const look = () =>
        dialog.locator('.danger').evaluate((each) => getComputedStyle(each).backgroundColor)
      const before = await look()
      await dialog.getByRole('textbox').fill(serialOf(1).slice(-4).toLowerCase())
      await page.waitForFunction(
        (shown) =>
          getComputedStyle(document.querySelector('dialog .danger') as Element).backgroundColor !==
          shown,
        before,
      )
      // Cancel stands before what is done.
      const buttons = await dialog.locator('.row > *').allInnerTexts()
      assert.equal(buttons, ['Cancel', 'Arm this machine'])
    },
    { viewport: { width: 640, height: 400 } },
  ))

test.run()
