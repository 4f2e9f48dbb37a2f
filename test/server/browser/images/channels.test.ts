/** Channels as people use them: made, chosen for a machine and for many, moved, removed; also without scripts. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { addAxe, checkLooks } from '#test/support/browser/axe.ts'
import { logIn, openContext, startSite } from '#test/support/browser/browser.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'
import { disksOf, IMAGES, macOf, serialOf } from '#test/support/server/web-machines.ts'
import { asJson } from '#test/support/server/server.ts'

const PATH = '/ui/channels'
const MACHINE = `/ui/machines/${macOf(1)}`

const test = suite('the browser: channels')
const shared = createSharedBrowser(test)

const names = IMAGES.map(({ name }) => String(name)).filter((name) => /\.img/.test(name))

async function make(page: Page, name: string, image: string) {
  await page.goto(PATH)
  await page.getByLabel('Name', { exact: true }).fill(name)
  await page.getByLabel('Image', { exact: true }).selectOption({ label: image })
  await page.getByLabel('Note').fill('what the lab runs')
  await page.getByRole('button', { name: 'Create channel' }).click()
  await page.getByText(`The channel ${name} points to ${image}.`).waitFor()
}

async function move(page: Page, name: string, image: string) {
  await page.goto(PATH)
  await page.locator(`#channel-${name}`).getByRole('link', { name: 'Change' }).click()
  await page.getByLabel('Image', { exact: true }).selectOption({ label: image })
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText(`The channel ${name} points to ${image}.`).waitFor()
}

for (const javaScriptEnabled of [true, false]) {
  test(`a channel is made, chosen, moved and removed${javaScriptEnabled ? '' : ' without scripts'}`, async () => {
    await using site = await startSite()
    const [old = '', next = ''] = names
    await fetch(`${site.url}/pxe/${macOf(1)}`)
    await fetch(`${site.url}/pxe/${macOf(1)}/inventory`, asJson({ disks: disksOf(1) }))
    await using opened = await openContext(shared.browser, site, { javaScriptEnabled })
    if (javaScriptEnabled) await addAxe(opened.context)
    const page = await opened.context.newPage()
    await logIn(page)
    await make(page, 'stable', old)
    // A name that is taken comes back at its field, as it was typed.
    await page.getByLabel('Name', { exact: true }).fill('stable')
    await page.getByLabel('Image', { exact: true }).selectOption({ label: next })
    await page.getByRole('button', { name: 'Create channel' }).click()
    await page.getByText('There is already a channel stable').first().waitFor()
    assert.is(await page.getByLabel('Name', { exact: true }).inputValue(), 'stable')

    await page.goto(MACHINE)
    await page.getByRole('radio', { name: /^stable → / }).check()
    await page.getByRole('radio', { name: /^Samsung SSD 980/ }).check()
    await page.getByRole('radio', { name: /^Flash once/ }).check()
    await page.getByRole('button', { name: 'Review and arm…' }).click()
    await page.getByText(old).first().waitFor()
    await page.getByRole('textbox', { name: /Type the last 4/ }).fill(serialOf(1).slice(-4))
    await page.getByRole('button', { name: 'Arm this machine' }).click()
    await page.getByRole('button', { name: 'Disarm' }).first().waitFor()

    await move(page, 'stable', next)
    await page.locator('#channel-stable').getByText('1 machine', { exact: true }).waitFor()
    await page.getByRole('link', { name: '1 has another image' }).click()
    await page.getByText(macOf(1)).first().waitFor()
    await page.goto(MACHINE)
    // The machine keeps what it was armed with, and says that the channel went on.
    await page.locator('#intent-title').click()
    await page.getByText('The channel stable pointed to it when').waitFor()
    const chosen = page.locator('input[name=bty_image_ref]:checked')
    assert.match(await chosen.inputValue(), /^stable@[0-9a-f]{64}$/)

    // A channel with which a machine is armed is not removed.
    await page.goto(PATH)
    await page.locator('#channel-stable').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('button', { name: 'Remove channel' }).click()
    await page.getByText('1 machine is armed with it').waitFor()
    await page.goto(MACHINE)
    await page.getByRole('button', { name: 'Disarm' }).first().click()
    await page.getByText('Disarmed').first().waitFor()
    await page.goto(PATH)
    if (javaScriptEnabled) await checkLooks(page, PATH)
    await page.locator('#channel-stable').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Remove the channel stable?').waitFor()
    await page.getByRole('button', { name: 'Remove channel' }).click()
    await page.getByText('The channel stable was removed.').waitFor()
    assert.equal(opened.complaints, [])
  })
}

test.run()
