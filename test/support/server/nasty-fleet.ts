/** A fleet whose names, images, disks and labels are long, foreign, hostile or all of them. */
import type { APIRequestContext } from 'playwright-core'
import type { WebSite } from '../browser/browser.ts'
import { disksOf } from './web-machines.ts'

/** What people and machines call things; each breaks a table that is not careful. */
export const NASTY_NAMES = [
  'W'.repeat(60),
  'build-agent-for-the-nightly-integration-tests-of-the-payments-team-07',
  'プロキシサーバー第三号機・東京データセンター北棟',
  'خادم قاعدة البيانات الرئيسي في المركز',
  '👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦 семейный сервер',
  'a\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308 zalgo\u0301\u0302',
  '"><img src=x onerror=alert(1)>',
  'rack 1, slot 4 & <b>bold</b>',
  '= 1+1; DROP TABLE machines;--',
  'n',
] as const

const MODES = [
  'flasher-flash-once',
  'flasher-flash-always',
  'ipxe-exit',
  'flasher-tui',
  'flasher-inventory',
] as const

const SERIALS = [
  'S5GXNX0T1',
  'QEMU_HARDDISK_QM00001-0000-1111-2222-333344445555-666677778888-WWWWWWWWWWWWWWWW-',
  '<b>serial</b>&amp;-',
] as const

const nameOf = (box: number) => `${NASTY_NAMES[box % NASTY_NAMES.length]}`
const macOf = (box: number) =>
  `52:54:00:a2:${Math.floor(box / 256)
    .toString(16)
    .padStart(2, '0')}:${(box % 256).toString(16).padStart(2, '0')}`
const serialOf = (box: number) => `${SERIALS[box % SERIALS.length]}${100_000 + box}`

/** Machines from 1 to `count`, in every mode; one of eleven is only discovered. */
export async function settleNastyFleet(
  { url }: WebSite,
  request: APIRequestContext,
  count: number,
): Promise<void> {
  const images: readonly { readonly ref: string }[] = await (await request.get('/images')).json()
  for (let box = 1; box <= count; box += 1) {
    const pxe = `${url}/pxe/${macOf(box)}`
    await (await fetch(`${pxe}?buildarch=x86_64`)).text()
    await request.post(`${pxe}/inventory`, { data: { disks: nastyDisksOf(box) } })
    if (box % 11 === 0) continue
    const ref = images[box % (images.length - 1)]?.ref ?? null
    await request.put(`/machines/${macOf(box)}`, { data: nastyDataOf(box, ref) })
    if (box % 17 !== 0) continue
    const data = { status: 'failed', reason: `no route to ${nameOf(box)} `.repeat(4) }
    await request.post(`${pxe}/status`, { data })
  }
}

function nastyDisksOf(box: number): readonly object[] {
  const [disk] = disksOf(box)
  const model = box % 4 === 0 ? `${nameOf(box)} SSD ${'9'.repeat(30)}` : disk?.model
  return [{ ...disk, model, serial: serialOf(box) }]
}

const nastyDataOf = (box: number, bty_image_ref: string | null) => ({
  name: box % 5 === 0 ? null : nameOf(box).slice(0, 60),
  labels: box % 3 === 0 ? [`rack-${box % 7}`, nameOf(box).slice(0, 40), 'lab'] : [],
  boot_mode: MODES[box % MODES.length],
  bty_image_ref,
  target_disk_serial: box % 13 === 0 ? null : serialOf(box),
})
