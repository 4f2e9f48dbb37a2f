import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { DiskOffer } from '#flasher/text/rules/disk-offer.ts'
import { orderFor } from '#flasher/order/rules/flash-choice.ts'
import {
  decideInvocation,
  findTarget,
  parseKernelOrder,
  provisioningFor,
  renderGuestArgs,
  type LiveInvocation,
  type KernelOrder,
} from '#flasher/order/rules/kernel-order.ts'
import { parsePlan } from '#flasher/order/rules/plan.ts'

const test = suite("the kernel's arguments as an order")
const MAC = '52:54:00:12:34:56'
const SERVER = 'http://10.0.0.1:8080'
const URL = `${SERVER}/images/debian%20%231.img.zst`
const BOOT = `boot=live components flasher.server=${SERVER} flasher.mac=${MAC}`
const FLASH = `${BOOT} flasher.image_url=${URL}`

function offer(path: string, refusal: string | null = null, removable = false): DiskOffer {
  const identity = { serial: 'S5GX', wwn: null, sizeBytes: 500e9, diskseq: null }
  const zeros = { loop: null, writeZeroesMaxBytes: 0, discardMaxBytes: 0 }
  const device: SurveyedDisk['device'] = {
    node: path,
    type: 'disk',
    sectorBytes: 512,
    readonly: false,
    vendor: 'ATA',
    model: 'SSD',
    tran: 'sata',
    identity,
    zeros,
    uses: [],
  }
  return { disk: { path, removable, device, parts: [] }, refusal }
}

function orderOf(line: string): KernelOrder {
  const order = parseKernelOrder(line)
  if (order === null) throw new Error(`${line} is none of this line`)
  return order
}

const decide = (line: string, disks: readonly DiskOffer[] = [offer('/dev/sda')]) =>
  decideInvocation(orderOf(line), { disks, hasCijoe: true })

const argvOf = (invocation: LiveInvocation) => invocation.kind === 'tui' && invocation.argv

test('a boot of the current line, or of a stick, is none of ours', () => {
  for (const line of ['', 'quiet', BOOT, `${BOOT} flasher.mode=automatic`]) {
    assert.is(parseKernelOrder(line), null, line)
  }
})

test('interactive: the panes, with server and MAC address, whatever else there is', () => {
  const asked = { reason: null, refusal: null }
  const tui = { kind: 'tui', argv: ['--server', SERVER, '--mac', MAC], ...asked }
  assert.equal(decide(`${BOOT} flasher.mode=interactive`), tui)
  assert.equal(decide(`${FLASH} flasher.mode=interactive`, []), tui)
  assert.equal(decide('flasher.mode=interactive flasher.mac=nonsense'), { ...tui, argv: [] })
})

test('flash: the image is streamed to the only suitable disk', () => {
  const flash = ['flash', URL, 'debian #1.img.zst', '/dev/sda', 'none', []]
  for (const more of ['', ' flasher.provisioning=none', ' flasher.provisioning=cijoe-online']) {
    const invocation = decide(`${FLASH}${more}`)
    if (invocation.kind !== 'flash') throw new Error(invocation.reason ?? '')
    const { image, disk } = invocation.choice
    const { kind, provisioning, fetched } = invocation
    assert.equal([kind, image.location, image.name, disk, provisioning, fetched], flash)
  }
})

const filesOf = (mode: string) => {
  const invocation = decide(`${FLASH} flasher.provisioning=${mode} flasher.token=abc`)
  if (invocation.kind !== 'flash') throw new Error(invocation.reason ?? '')
  return invocation.fetched
}

test('files of the provisioning are fetched from the server, only one of them must be there', () => {
  const base = `${SERVER}/pxe/${MAC}/provision`
  assert.equal(filesOf('cloud-init'), [
    { file: 'user-data', url: `${base}/user-data`, isRequired: true },
    { file: 'meta-data', url: `${base}/meta-data`, isRequired: false },
  ])
  assert.equal(filesOf('cijoe'), [
    { file: 'cijoe-workflow', url: `${base}/cijoe-workflow`, isRequired: true },
    { file: 'cijoe-config', url: `${base}/cijoe-config`, isRequired: false },
  ])
})

test('the disk rule: exactly one that can be written and is not removable', () => {
  const system = offer('/dev/sdb', 'this system runs from it')
  const stick = offer('/dev/sdc', null, true)
  assert.equal(findTarget([system, offer('/dev/sda'), stick]), { ok: true, value: '/dev/sda' })
  assert.equal(findTarget([]), { ok: false, refusal: 'This machine has no disk.' })
  assert.equal(findTarget([system, stick]), {
    ok: false,
    refusal:
      'No disk can be flashed automatically: /dev/sdb (this system runs from it); /dev/sdc (removable).',
  })
  const words = 'ATA SSD, serial S5GX, 500 GB, sata'
  assert.equal(findTarget([offer('/dev/sda'), offer('/dev/sdd')]), {
    ok: false,
    refusal: `2 disks can be flashed. Choose one: /dev/sda (${words}); /dev/sdd (${words}).`,
  })
})

test('a flash is the image alone, read back; the arguments say nothing of a digest or of growing', () => {
  const invocation = decide(FLASH)
  if (invocation.kind !== 'flash') throw new Error(invocation.reason ?? '')
  const { image, format, targets, options, firstBoot } = orderFor([invocation.choice])
  assert.equal([image, format, firstBoot], [URL, null, null])
  assert.equal(targets, [{ path: '/dev/sda', chosen: null }])
  const { verify, sha256, grow, delta, indexSha256 } = options
  assert.equal([verify, sha256, grow, delta, indexSha256], ['data', null, false, false, null])
})

test('what follows the write has the files that were fetched', () => {
  assert.equal(provisioningFor('none', new Map()), { mode: 'none' })
  assert.equal(provisioningFor('cloud-init', new Map([['user-data', '/tmp/x/user-data']])), {
    mode: 'cloud-init',
    userData: '/tmp/x/user-data',
    metaData: null,
  })
  const files = new Map([
    ['cijoe-workflow', '/w'],
    ['cijoe-config', '/c'],
  ])
  const workflow = { mode: 'cijoe', workflow: '/w', config: '/c' }
  assert.equal(provisioningFor('cijoe', files), workflow)
})

test('the kernel arguments become the same order as a plan of the same flash', () => {
  const { ordered } = orderOf(`${FLASH} flasher.token=abc`)
  if (!ordered.ok || ordered.value.mode !== 'flash') throw new Error('no flash')
  const { provisioning, disk, ...flash } = ordered.value
  const document = { mode: 'flash', image: URL, target_disk_serial: 'S5GX', name: flash.name }
  const plan = parsePlan(document)
  assert.equal(plan, { ok: true, value: { ...flash, disk: 'S5GX' } })
  assert.equal([provisioning, disk], ['none', null])
})

test('what is not known leads to the panes, with the reason', () => {
  const rows = [
    [`flasher.mac=${MAC} flasher.image_url=${URL}`, /^flasher\.server names no server/],
    [`flasher.server=${SERVER} flasher.image_url=${URL}`, /^flasher\.mac names no MAC/],
    [`${FLASH} flasher.provisioning=magic`, /^flasher\.provisioning=magic is unknown/],
    [`${BOOT} flasher.image_url=/etc/shadow`, /^flasher\.image_url names no image of a server/],
    [`${BOOT} flasher.image_url=--yes`, /^flasher\.image_url names no image of a server/],
  ] as const
  for (const [line, reason] of rows) {
    const invocation = decide(line)
    assert.is(invocation.kind, 'tui')
    if (invocation.kind === 'tui') assert.match(invocation.reason ?? '', reason)
  }
})

test('a machine that a person flashes without its provisioning never reports that it is done', () => {
  const disks = [offer('/dev/sda'), offer('/dev/sdb')]
  const plain = decide(FLASH, disks)
  assert.equal(argvOf(plain), ['--server', SERVER, '--mac', MAC])
  const seeded = decide(`${FLASH} flasher.provisioning=cloud-init`, disks)
  assert.equal(argvOf(seeded), ['--server', SERVER])
  if (seeded.kind === 'tui') assert.match(seeded.reason ?? '', /the server is not notified/)
})

test('cijoe needs a live system that has it', () => {
  const order = orderOf(`${FLASH} flasher.provisioning=cijoe`)
  const invocation = decideInvocation(order, { disks: [offer('/dev/sda')], hasCijoe: false })
  assert.equal(argvOf(invocation), ['--server', SERVER])
  if (invocation.kind === 'tui')
    assert.match(invocation.reason ?? '', /^This live system has no cijoe/)
})

test('a person at another console never reports that the order is done', () => {
  assert.equal(renderGuestArgs(orderOf(FLASH)), ['--server', SERVER])
  const asked = orderOf(`${BOOT} flasher.mode=interactive`)
  assert.equal(renderGuestArgs(asked), ['--server', SERVER, '--mac', MAC])
})

test.run()
