import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { IMAGES, SECTIONS } from '#kit/web/ui/rules/sections.ts'
import { checkLooks } from '#test/support/browser/axe.ts'
import { logIn, type WebSite } from '#test/support/browser/browser.ts'
import { createSiteLab } from '#test/support/browser/site-lab.ts'
import { NASTY_NAMES, settleNastyFleet } from '#test/support/server/nasty-fleet.ts'
import { disksOf, macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: access for all, no stray requests, hostile texts')
const { open, withPage } = createSiteLab(test, async (page, site) => {
  await settleNastyFleet(site, page.request, 34)
  for (const box of [1, 2]) {
    await site.boxes.boot(box)
    await site.boxes.tellDisks(box)
  }
  await failRun(page, site)
})

const RUN = 'c0ffee00-0002'

/** Reports a failed run of machine 2, which has a name and a disk that no line holds. */
async function failRun({ request }: Page, { boxes }: WebSite): Promise<void> {
  const [image] = await (await request.get('/images')).json()
  const data = {
    name: NASTY_NAMES[1],
    labels: ['l'.repeat(64)],
    boot_mode: 'flasher-flash-once',
    bty_image_ref: image.ref,
    target_disk_serial: serialOf(2),
  }
  await request.put(`/machines/${macOf(2)}`, { data })
  await boxes.boot(2)
  await boxes.plan(2)
  const disk = { ...disksOf(2)[0], model: 'M'.repeat(128) }
  const reason = `no route to ${NASTY_NAMES[0]}`
  await boxes.report(2, { run: RUN, phase: 'started', mode: 'flash', disk })
  await boxes.report(2, { run: RUN, phase: 'failed', reason })
  await boxes.sendLog(2, RUN, 'x'.repeat(4000))
  await boxes.fail(2, reason)
}

/** All sections and tabs but the images, which are on the cache (first-run-looks.test.ts), and what they lead to. */
const PAGES = [
  ...SECTIONS.flatMap(({ tabs, ...section }) => tabs ?? [section])
    .map(({ href }) => href)
    .filter((href) => href !== IMAGES),
  '/ui/machines?view=wall',
  '/ui/machines?q=stat:failed+rack',
  '/ui/machines?columns=state.name.next.image.disk.labels.ip.arch.flashed.discovered.seen',
  `/ui/machines/${macOf(1)}`,
  `/ui/machines/${macOf(2)}`,
  `/ui/machines/${macOf(2)}/runs/${RUN}`,
  '/ui/runs?state=failed',
  '/ui/events?kind=machine.discovered&from=2026-01-02&to=2026-01-01',
  '/ui/settings?q=flash',
  '/ui/settings?q=nothing',
  '/ui/find?q=a',
  '/ui/keys',
  `/ui/machines/${macOf(2)}/timeline`,
  '/ui/machines/labels',
  '/docs/api',
  '/ui/no-such-page',
]

/** What is folded away is looked at too; the menus of lists lie over the page. */
async function checkPage(page: Page, path: string): Promise<void> {
  await page.goto(path)
  await page.evaluate(() =>
    document.querySelectorAll('details:not(.menu)').forEach((each) => {
      each.setAttribute('open', '')
    }),
  )
  await checkLooks(page, path)
}

test('no page scrolls sideways, wide or narrow, and axe finds nothing, light or dark', async () => {
  // Colours that change take no time.
  await using opened = await open({ reducedMotion: 'reduce' })
  const page = await opened.context.newPage()
  await checkPage(page, '/ui/login')
  await logIn(page)
  for (const path of PAGES) await checkPage(page, path)
  assert.equal(
    opened.complaints.filter((each) => !each.includes('404')),
    [],
  )
})

test('whatever a box says stays text', () =>
  withPage(async (page, site) => {
    const evil = '"><img src=x onerror=alert(1)><script>alert(2)</script>\u202e${7*7}'
    await site.boxes.boot(9)
    const [first, ...others] = disksOf(9)
    await site.boxes.tellDisks(9, [
      { ...first, model: evil.slice(0, 120), serial: evil.slice(0, 60), vendor: evil.slice(0, 60) },
      ...others,
    ])
    await site.boxes.fail(9, evil)
    let dialogs = 0
    page.on('dialog', (dialog) => {
      dialogs += 1
      void dialog.dismiss()
    })
    for (const path of [...PAGES.slice(0, 3), `/ui/machines/${macOf(9)}`, '/ui/events']) {
      await page.goto(path)
      assert.is(await page.locator('img').count(), 0, path)
      assert.is(await page.locator('main script').count(), 0, path)
    }
    await page.goto(`/ui/machines?q=${encodeURIComponent(evil)}&error=${encodeURIComponent(evil)}`)
    assert.is(await page.locator('main img').count(), 0)
    assert.is(await page.getByRole('searchbox', { name: 'Search machines' }).inputValue(), evil)
    assert.is(dialogs, 0)
  }))

test.run()
