/** A fleet in every state that there is, for pictures of the pages. */
import type { APIRequestContext } from 'playwright-core'
import type { WebSite } from './browser.ts'
import { macOf, serialOf } from './web-boxes.ts'

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

export async function settleFleet({ boxes }: WebSite, request: APIRequestContext): Promise<void> {
  const images: readonly Listed[] = await (await request.get('/images')).json()
  const refOf = (start: string) => images.find(({ name }) => name.startsWith(start))?.ref ?? null
  for (let box = 1; box <= BOXES; box += 1) {
    await boxes.boot(box)
    await boxes.tellDisks(box)
    if (DISCOVERED.includes(box)) continue
    const data = {
      labels: box % 4 === 0 ? [`bench-${box}`] : [`rack-${box % 2}`, `slot-${box}`],
      boot_mode: modeOf(box),
      bty_image_ref: refOf(
        box % 3 === 0 ? 'fedora' : box % 2 === 0 ? 'ubuntu' : 'debian-13-generic-amd64',
      ),
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
  for (const box of FLASHED) await boxes.done(box)
  await boxes.fail(FAILED, 'write error at 3.2 GB: Input/output error')
  await request.post(`/ui/machines/${macOf(LOCKED)}/do/lock`)
  await request.post('/workers/backups', { data: {} })
}

function modeOf(box: number): string {
  if (box === 8) return 'flasher-flash-always'
  if (box === 12) return 'flasher-tui'
  return box % 7 === 0 ? 'ipxe-exit' : 'flasher-flash-once'
}
