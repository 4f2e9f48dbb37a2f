/** The pages that pictures are taken of, and what is done on each before. */
import type { Page } from 'playwright-core'
import { chooseAction } from './browser.ts'
import { SIGNING_KEY } from '../notify/notify-lab.ts'
import { startReceiver } from '../notify/receivers.ts'
import { macOf } from '../server/web-machines.ts'

export interface Picture {
  readonly name: string
  readonly path: string
  /** What happens on the page before the picture is taken. */
  readonly prepare?: (page: Page) => Promise<void>
}

const [DONE, FAILED, ARMED, DISCOVERED, LONG, RUNNING] = [1, 3, 4, 5, 6, 10].map(
  (box) => `/ui/machines/${macOf(box)}`,
)

const openQuestion = (button: string) => async (page: Page) => {
  await page.getByRole('button', { name: button }).click()
  await page.getByRole('dialog').waitFor()
}

/** Pictures of a server with a fleet in every state. */
export const FLEET: readonly Picture[] = [
  { name: 'dashboard', path: '/ui/dashboard' },
  { name: 'machines', path: '/ui/machines' },
  { name: 'machines-none', path: '/ui/machines?q=stat:failed+nothing' },
  {
    name: 'machines-bulk',
    path: '/ui/machines?q=state:done',
    async prepare(page) {
      await page.getByLabel('Select all on this page').check()
      await chooseAction(page, 'Arm…')
      await page.getByRole('dialog').waitFor()
    },
  },
  { name: 'machines-wall', path: '/ui/machines?view=wall' },
  { name: 'machine', path: `${ARMED}` },
  {
    name: 'machine-script',
    path: `${ARMED}`,
    prepare: (page) => page.getByRole('heading', { name: 'Details' }).click(),
  },
  { name: 'machine-discovered', path: `${DISCOVERED}` },
  {
    name: 'machine-steps',
    path: `${DISCOVERED}`,
    async prepare(page) {
      await page.getByRole('radio', { name: /^debian-13-generic-amd64/ }).check()
      await page.getByRole('radio', { name: /^Samsung/ }).check()
      await page.locator('#intent').evaluate((card) => card.scrollIntoView())
    },
  },
  {
    name: 'machine-confirm',
    path: `${ARMED}`,
    async prepare(page) {
      await page.locator('#intent-title').click()
      await page.getByRole('radio', { name: /^debian-13-generic-amd64/ }).check()
      await openQuestion('Review and arm…')(page)
    },
  },
  { name: 'machine-long', path: `${LONG}` },
  { name: 'machine-running', path: `${RUNNING}` },
  { name: 'machine-failed', path: `${FAILED}` },
  { name: 'machine-done', path: `${DONE}` },
  {
    name: 'machine-delete',
    path: `${DONE}`,
    async prepare(page) {
      await page.getByText('Delete this machine').click()
      await openQuestion('Delete machine…')(page)
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
  { name: 'netboot', path: '/ui/netboot' },
  { name: 'backups', path: '/ui/backups' },
  { name: 'events', path: '/ui/events' },
  { name: 'settings', path: '/ui/settings' },
  {
    name: 'settings-dhcp',
    path: '/ui/dhcp',
    async prepare(page) {
      const card = page.locator('#recipes')
      await card.locator('summary').first().click()
      await card.evaluate((element) => element.scrollIntoView())
    },
  },
  { name: 'account', path: '/ui/account' },
  { name: 'notification', path: '/ui/notifications/add/webhook', prepare: addReceiver },
  { name: 'error', path: '/ui/machines/52:54:00:00:00:99' },
]

/** A receiver that takes what it gets, with two rules and a test that arrived. */
async function addReceiver(page: Page): Promise<void> {
  await using receiver = await startReceiver()
  await page.getByLabel('Name').fill('on-call')
  await page.getByLabel('Address').fill(`${receiver.url}/lab-alerts`)
  await page.getByLabel('Signing secret').fill(SIGNING_KEY)
  await page.getByRole('button', { name: 'Add receiver' }).click()
  await page.getByRole('button', { name: 'Send a test' }).click()
  await page.getByText('was delivered.').waitFor()
  await page.getByRole('link', { name: 'Add a rule' }).click()
  for (const name of ['Flash failed', 'Failed to boot']) await page.getByLabel(name).check()
  await page.getByLabel('Only machines that match').fill('label:rack-3')
  await page.getByLabel('Only actions of this person').fill('anna')
  await page.getByRole('button', { name: 'Save rule' }).click()
  await page.getByText('was saved').waitFor()
}

/** Pictures of a server and a cache where nobody has done anything yet. */
export const FIRST_RUN: readonly Picture[] = [
  { name: 'first-run', path: '/ui/dashboard' },
  { name: 'first-run-machines', path: '/ui/machines' },
  { name: 'first-run-images', path: '/ui/cache' },
  { name: 'first-run-netboot', path: '/ui/netboot' },
]

/** Pictures of a cache with images. */
export const IMAGES: readonly Picture[] = [
  {
    name: 'images',
    path: '/ui/cache',
    async prepare(page) {
      await page.locator('.badge.done').nth(3).waitFor()
      await page.locator('.badge.failed').waitFor()
    },
  },
  {
    name: 'images-remove',
    path: '/ui/cache',
    prepare: (page) => page.getByRole('link', { name: 'Remove' }).first().click(),
  },
]

interface Size {
  readonly suffix: string
  readonly width: number
  readonly height: number
  readonly scale?: number
  readonly scheme: 'light' | 'dark'
  /** The pictures of this size that the documents use. */
  readonly kept: readonly string[]
}

/** A window of 1280 pixels at 200 % has 640 of its own. */
export const SIZES: readonly Size[] = [
  {
    suffix: '',
    width: 1280,
    height: 800,
    scheme: 'light',
    kept: ['machines', 'machine-steps', 'runs', 'settings', 'notification', 'first-run', 'images'],
  },
  {
    suffix: '-dark',
    width: 1280,
    height: 800,
    scheme: 'dark',
    kept: [],
  },
  { suffix: '-wide', width: 1920, height: 1080, scheme: 'light', kept: [] },
  {
    suffix: '-narrow',
    width: 390,
    height: 844,
    scheme: 'light',
    kept: [],
  },
  { suffix: '-narrow-dark', width: 390, height: 844, scheme: 'dark', kept: [] },
  { suffix: '-zoom', width: 640, height: 400, scale: 2, scheme: 'light', kept: [] },
]
