/** A fleet in every state that there is, for pictures of the pages. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { APIRequestContext } from 'playwright-core'
import type { WebSite } from '../browser/browser.ts'
import { disksOf, macOf, serialOf } from './web-machines.ts'
import { LONG_MODEL, NAMES } from './web-names.ts'

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

export async function settleFleet({ boxes }: WebSite, request: APIRequestContext): Promise<void> {
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
