/**
 * `pnpm docs:pictures [NAME…]`: the pages as they are, with a fleet in every state, into docs/pictures.
 * `pnpm docs:pictures --all FOLDER [NAME…]`: every page, whole, in every size, to look at.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { $ } from 'zx'
import { makeDiskImage, makeNoise } from '../disk/disk-images.ts'
import { logIn, openBrowser, openContext, startSite } from './browser.ts'
import { openImages, openLab, startFreshLab, type FreshLab } from './fresh-lab.ts'
import { FIRST_RUN, FLEET, IMAGES, SIZES, type Picture } from './pictures.ts'
import { shrinkPng } from '../vm/png.ts'
import { settleFleet } from '../server/web-fleet.ts'
import { JAPANESE_IMAGE, LONG_IMAGE, NAMED_IMAGES } from '../server/web-names.ts'

const run = $({ quiet: true })
const MAX_BYTES = 150_000
const { values, positionals } = parseArgs({
  options: { all: { type: 'string' } },
  allowPositionals: true,
})
const FOLDER = values.all ?? fileURLToPath(new URL('../../../docs/pictures/', import.meta.url))

const isWanted = (name: string, suffix: string, kept: readonly string[]) =>
  (values.all !== undefined || kept.includes(name)) &&
  (positionals.length === 0 || positionals.includes(`${name}${suffix}`))

/** How a disk becomes a file of each name's format. */
const PACK: readonly (readonly [RegExp, (raw: string, to: string) => Promise<unknown>])[] = [
  [/\.zst$/, (raw, to) => run`zstd -q -1 ${raw} -o ${to}`],
  [/\.xz$/, (raw, to) => run`xz -0 --stdout ${raw} > ${to}`],
  [/\.qcow2$/, (raw, to) => run`qemu-img convert -O qcow2 ${raw} ${to}`],
]

await mkdir(FOLDER, { recursive: true })
const browser = await openBrowser()
try {
  await takeFleet(browser)
  await takeFirstRun(browser)
} finally {
  await browser.close()
}

async function takeFleet(shown: Browser): Promise<void> {
  await using site = await startSite(
    { FLASHER_PXE_RUN_PATIENCE: '1h', FLASHER_NOTIFY_NETWORKS: '127.0.0.0/8' },
    NAMED_IMAGES,
  )
  await using opened = await openContext(shown, site)
  const page = await opened.context.newPage()
  await page.goto('/ui/login')
  if (positionals.length === 0 || positionals.includes('login')) await save(page, 'login')
  await logIn(page)
  await settleFleet(site, page.request)
  await takeAll(shown, site, FLEET)
}

async function takeFirstRun(shown: Browser): Promise<void> {
  await using lab = await startFreshLab()
  await takeAll(shown, lab, FIRST_RUN)
  await putImages(shown, lab)
  await takeAll(shown, lab, IMAGES)
}

/** Images of that many bytes; the last one cannot be downloaded. */
async function putImages(shown: Browser, lab: FreshLab): Promise<void> {
  for (const [name, bytes] of [
    ['debian-13-generic-amd64.img.zst', 41_200_000],
    ['fedora-43-server.qcow2', 12_800_000],
    [JAPANESE_IMAGE, 2_400_000],
    [LONG_IMAGE, 68_700_000],
  ] as const) {
    const raw = join(tmpdir(), `flasher-picture-${process.pid}`)
    await writeFile(raw, Buffer.concat([makeDiskImage(1 << 20), makeNoise(bytes)]))
    const pack = PACK.find(([pattern]) => pattern.test(name))?.[1]
    // It appears whole, as files do that people move there.
    await pack?.(raw, `${raw}.packed`)
    await rename(`${raw}.packed`, join(lab.folder, name))
    await rm(raw)
  }
  await using opened = await openLab(shown, lab)
  await openImages(opened.page, lab)
  // Nobody listens there.
  await opened.page.getByLabel('URL').fill('http://127.0.0.1:9/images/alpine-3.24.img.xz')
  await opened.page.getByRole('button', { name: 'Add and download' }).click()
  await opened.page.locator('.badge.failed').waitFor()
}

async function takeAll(
  shown: Browser,
  site: Readonly<{ url: string }>,
  pictures: readonly Picture[],
): Promise<void> {
  for (const { suffix, width, height, scale, scheme, kept } of SIZES) {
    const wanted = pictures.filter(({ name }) => isWanted(name, suffix, kept))
    if (wanted.length === 0) continue
    await using opened = await openContext(shown, site, {
      viewport: { width, height },
      deviceScaleFactor: scale ?? 1,
      colorScheme: scheme,
    })
    opened.context.setDefaultTimeout(20_000)
    const page = await opened.context.newPage()
    await logIn(page)
    for (const { name, path, prepare } of wanted) {
      await page.goto(path)
      await prepare?.(page)
      await save(page, `${name}${suffix}`)
    }
  }
}

async function save(page: Page, name: string): Promise<void> {
  const isWhole = values.all !== undefined
  const taken = await page.screenshot({ animations: 'disabled', fullPage: isWhole })
  const bytes = isWhole ? taken : shrinkPng(taken)
  if (!isWhole && bytes.length > MAX_BYTES) throw new Error(`${name}.png has ${bytes.length} bytes`)
  await writeFile(join(FOLDER, `${name}.png`), bytes)
  console.log(`${name}.png ${Math.round(bytes.length / 1000)} kB`)
}
