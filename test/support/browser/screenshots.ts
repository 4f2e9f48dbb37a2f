/**
 * `pnpm docs:pictures [NAME…]`: the pages as they are, with a fleet in every state, into docs/pictures.
 * `pnpm docs:pictures --all FOLDER [NAME…]`: every page, whole, in every size, to look at.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { APIRequestContext, Browser, Page } from 'playwright-core'
import { $ } from 'zx'
import { makeDiskImage, makeNoise } from '../disk/disk-images.ts'
import { disksOf, macOf, serialOf } from '../server/web-machines.ts'
import { JAPANESE_IMAGE, LONG_IMAGE, LONG_MODEL, NAMED_IMAGES, NAMES } from '../server/web-names.ts'
import { shrinkPng } from '../vm/png.ts'
import { logIn, openBrowser, openContext, startSite, type WebSite } from './browser.ts'
import { type FreshLab, openImages, openLab, startFreshLab } from './fresh-lab.ts'
import { FIRST_RUN, FLEET, IMAGES, type Picture, SIZES } from './pictures.ts'

interface Listed {
  readonly name: string
  readonly ref: string
}

const BOXES = 22
/** Their number says what becomes of them. */
const FLASHED = [1, 2, 9, 13, 17]
const RUNNING = [10, 15]
const FAILED = 3
const LOCKED = 16
const DISCOVERED = [5, 11]
const GONE = 20
/** Its disk has the longest model. */
const LONG_DISK = 6
/** Image by machine, where it is not an ordinary one: the longest, a foreign one. */
const IMAGE_STARTS: Readonly<Record<number, string>> = { 4: 'company-workstation', 9: '工場' }

async function settleFleet({ boxes }: WebSite, request: APIRequestContext): Promise<void> {
  const images: readonly Listed[] = await (await request.get('/images')).json()
  const refOf = (start: string) => images.find(({ name }) => name.startsWith(start))?.ref ?? null
  for (let box = 1; box <= BOXES; box += 1) {
    await boxes.boot(box)
    await boxes.tellDisks(box, namedDisksOf(box))
    if (DISCOVERED.includes(box)) continue
    const data = {
      name: NAMES[box] ?? null,
      labels: box % 4 === 0 ? [`bench-${box}`] : [`rack-${box % 2}`, `slot-${box}`],
      boot_mode: modeOf(box),
      bty_image_ref: refOf(IMAGE_STARTS[box] ?? startOf(box)),
      target_disk_serial: box === GONE ? 'WD-WX12A80F4LAT' : serialOf(box),
    }
    await request.put(`/machines/${macOf(box)}`, { data })
  }
  const start = async (box: number) => {
    await boxes.boot(box)
    await boxes.fetchKernel(box)
    await boxes.plan(box)
  }
  for (const box of [...FLASHED, ...RUNNING, FAILED]) await start(box)
  for (const box of [...FLASHED, ...RUNNING, FAILED]) await beginRun(boxes, box)
  await sleep(WRITING_MS)
  for (const box of FLASHED) await finishRun(boxes, box)
  await failRun(boxes, FAILED)
  await request.post(`/ui/machines/${macOf(LOCKED)}/do/lock`)
  await request.post('/workers/backups', { data: {} })
}

const startOf = (box: number) =>
  box % 3 === 0 ? 'fedora' : box % 2 === 0 ? 'ubuntu' : 'debian-13-generic-amd64'

const namedDisksOf = (box: number) => {
  const [first, ...others] = disksOf(box)
  return [{ ...first, ...(box === LONG_DISK ? { model: LONG_MODEL } : {}) }, ...others]
}

type Boxes = WebSite['boxes']

const WRITING_MS = 2400
/** In all, and written so far by those that go on. */
const BYTES = 4_294_967_296
const WRITTEN: Readonly<Record<number, number>> = { 10: 0.41, 15: 0.87 }
const runOf = (box: number) => `c0ffee00-00${box.toString().padStart(2, '0')}`

async function beginRun(boxes: Boxes, box: number): Promise<void> {
  const run = runOf(box)
  const [disk] = disksOf(box)
  await boxes.report(box, { run, phase: 'started', mode: 'flash', disk })
  const bytes_written = Math.round(BYTES * (WRITTEN[box] ?? 0.02))
  const pace = { rate: 412_000_000 - box * 3_000_000, eta_seconds: box }
  const counts = {
    bytes_read: Math.floor(bytes_written / 8),
    bytes_written,
    total_bytes: BYTES,
    ...pace,
  }
  await boxes.report(box, { run, phase: 'write', bottleneck: 'disk', ...counts })
}

async function finishRun(boxes: Boxes, box: number): Promise<void> {
  const run = runOf(box)
  const counts = { bytes_read: BYTES / 8, bytes_written: BYTES, total_bytes: BYTES }
  await boxes.report(box, { run, phase: 'verify', ...counts, bytes_written: 0 })
  await sleep(250)
  await boxes.report(box, { run, phase: 'done', verified: true, ...counts })
  await boxes.done(box)
}

const LOG = `flasher 1.4.0, server http://10.0.0.2:8080
write  74%  3.20 of 4.29 GB  376 MB/s
[  412.114] nvme0n1: I/O error, dev nvme0n1, sector 6250000 op 0x1:(WRITE)
[  412.115] Buffer I/O error on dev nvme0n1, logical block 781250, lost async page write
write error at 3.2 GB: Input/output error
`

async function failRun(boxes: Boxes, box: number): Promise<void> {
  const run = runOf(box)
  const reason = 'write error at 3.2 GB: Input/output error'
  const counts = { bytes_read: 390_451_572, bytes_written: 3_200_000_000, total_bytes: BYTES }
  await boxes.report(box, { run, phase: 'failed', reason, ...counts })
  await boxes.sendLog(box, run, LOG)
  await boxes.fail(box, reason)
}

function modeOf(box: number): string {
  if (box === 8) return 'flasher-flash-always'
  if (box === 12) return 'flasher-tui'
  return box % 7 === 0 ? 'ipxe-exit' : 'flasher-flash-once'
}

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
  if (isWanted('login', '', [])) await save(page, 'login')
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
