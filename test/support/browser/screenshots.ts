/** `pnpm docs:pictures [NAME…]`: the pages as they are, with a fleet in every state, into docs/pictures. */
import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { logIn, openBrowser, openContext, startSite } from './browser.ts'
import { shrinkPng } from '../vm/png.ts'
import { macOf } from '../server/web-machines.ts'
import { settleFleet } from '../server/web-fleet.ts'

const FOLDER = fileURLToPath(new URL('../../../docs/pictures/', import.meta.url))
const MAX_BYTES = 150_000
/** None: all. */
const WANTED = process.argv.slice(2)
const isWanted = (name: string) => WANTED.length === 0 || WANTED.includes(name)

const ARMED = macOf(4)
const RUNNING = macOf(10)

interface Picture {
  readonly name: string
  readonly path: string
  /** Before it is taken. */
  readonly prepare?: (page: Page) => Promise<void>
}

const PICTURES: readonly Picture[] = [
  { name: 'dashboard', path: '/ui/dashboard' },
  { name: 'machines', path: '/ui/machines' },
  {
    name: 'machines-bulk',
    path: '/ui/machines?q=state:done',
    async prepare(page) {
      await page.getByLabel('Select all on this page').check()
      await page.getByRole('button', { name: 'Preview' }).click()
      await page.getByRole('dialog').waitFor()
    },
  },
  { name: 'machines-wall', path: '/ui/machines?view=wall' },
  { name: 'machine', path: `/ui/machines/${ARMED}` },
  {
    name: 'machine-script',
    path: `/ui/machines/${ARMED}`,
    prepare: (page) => page.getByText('Reason and boot script').click(),
  },
  {
    name: 'machine-confirm',
    path: `/ui/machines/${ARMED}`,
    async prepare(page) {
      await page.getByRole('radio', { name: /^debian-13-generic-amd64/ }).check()
      await page.getByRole('button', { name: 'Review and arm…' }).click()
      await page.getByRole('dialog').waitFor()
    },
  },
  { name: 'runs', path: '/ui/runs' },
  {
    name: 'run-failed',
    path: '/ui/runs?state=failed',
    async prepare(page) {
      await page.locator('.runs').getByRole('link', { name: 'failed' }).first().click()
      await page.getByText('Failed to write').waitFor()
    },
  },
  { name: 'machine-running', path: `/ui/machines/${RUNNING}` },
  { name: 'netboot', path: '/ui/netboot' },
  { name: 'backups', path: '/ui/backups' },
  { name: 'events', path: '/ui/events' },
  { name: 'settings', path: '/ui/settings' },
  {
    name: 'settings-dhcp',
    path: '/ui/settings',
    async prepare(page) {
      const card = page.locator('#dhcp-pxe')
      await card.locator('summary').first().click()
      await card.scrollIntoViewIfNeeded()
      await card.evaluate((element) => element.scrollIntoView())
    },
  },
  { name: 'account', path: '/ui/account' },
]

const SIZES = [
  { suffix: '', width: 1280, height: 800, scheme: 'light', only: null },
  {
    suffix: '-dark',
    width: 1280,
    height: 800,
    scheme: 'dark',
    only: ['machines', 'machine', 'dashboard'],
  },
  { suffix: '-wide', width: 1920, height: 1080, scheme: 'light', only: ['machines'] },
  {
    suffix: '-narrow',
    width: 390,
    height: 844,
    scheme: 'light',
    only: ['machines', 'machine', 'dashboard'],
  },
] as const

await mkdir(FOLDER, { recursive: true })
const browser = await openBrowser()
try {
  await using site = await startSite({ FLASHER_PXE_RUN_PATIENCE: '1h' })
  let isSettled = false
  for (const { suffix, width, height, scheme, only } of SIZES) {
    await using opened = await openContext(browser, site, {
      viewport: { width, height },
      colorScheme: scheme,
    })
    const page = await opened.context.newPage()
    if (!isSettled) {
      await page.goto('/ui/login')
      if (isWanted('login')) await save(page, 'login')
    }
    await logIn(page)
    if (!isSettled) await settleFleet(site, page.request)
    isSettled = true
    for (const { name, path, prepare } of PICTURES) {
      if (only !== null && !only.some((each) => each === name)) continue
      if (!isWanted(`${name}${suffix}`)) continue
      await page.goto(path)
      await prepare?.(page)
      await save(page, `${name}${suffix}`)
    }
  }
} finally {
  await browser.close()
}

async function save(page: Page, name: string): Promise<void> {
  const bytes = shrinkPng(await page.screenshot({ animations: 'disabled' }))
  if (bytes.length > MAX_BYTES) throw new Error(`${name}.png has ${bytes.length} bytes`)
  await writeFile(`${FOLDER}${name}.png`, bytes)
  console.log(`${name}.png ${Math.round(bytes.length / 1000)} kB`)
}
