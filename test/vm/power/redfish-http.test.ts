/** One call over Redfish: a machine that is off boots over HTTP from an address that only its BMC told it, is flashed, and its first boot is proved. */
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { callFlash, introduce, ONE_CALL, packImage } from '#test/support/power/one-call.ts'
import { powerMachine } from '#test/support/power/powered-machine.ts'
import { startRedfish } from '#test/support/power/redfish-fake.ts'
import { LAB_SERVER } from '#test/support/server/lab.ts'
import { findBuildObstacle, openIpxe } from '#test/support/vm/built-images.ts'
import { openCloudImage } from '#test/support/vm/cloud-image.ts'
import { openMachine, startBootLab } from '#test/support/vm/pxe-flash.ts'

const EMPTY = '/usr/share/OVMF/OVMF_VARS_4M.fd'

/** The first one lies behind the header of the volume (0x48) and that of the store (28 bytes). */
const FIRST_VARIABLE = 0x64
/** EFI_GLOBAL_VARIABLE. */
const GLOBAL = Buffer.from('61dfe48bca93d211aa0d00e098032b8c', 'hex')
/** Non-volatile, for boot services and at run time. */
const ATTRIBUTES = 7
const ADDED = 0x3f
const OPTION = 0x42

/** Renders the content of OVMF's second flash: `url` is booted next, once; null: what OVMF boots anyway. Needs ovmf. */
async function renderFirmwareVariables(url: string | null): Promise<Buffer> {
  const flash = await readFile(EMPTY)
  if (url === null) return flash
  const next = Buffer.alloc(2)
  next.writeUInt16LE(OPTION)
  const option = renderVariable(`Boot${OPTION.toString(16).padStart(4, '0')}`, renderOption(url))
  Buffer.concat([option, renderVariable('BootNext', next)]).copy(flash, FIRST_VARIABLE)
  return flash
}

/** An EFI_LOAD_OPTION with the short form of an address: any network card may fetch it. */
function renderOption(url: string): Buffer {
  const node = Buffer.concat([Buffer.from([3, 24, 0, 0]), Buffer.from(url, 'latin1')])
  node.writeUInt16LE(node.length, 2)
  const path = Buffer.concat([node, Buffer.from([0x7f, 0xff, 4, 0])])
  const head = Buffer.alloc(6)
  head.writeUInt32LE(1, 0)
  head.writeUInt16LE(path.length, 4)
  return Buffer.concat([head, renderName('BMC'), path])
}

/** An AUTHENTICATED_VARIABLE_HEADER, the name and the data, filled up to four bytes. */
function renderVariable(name: string, data: Buffer): Buffer {
  const header = Buffer.alloc(60)
  header.writeUInt16LE(0x55aa, 0)
  header.writeUInt8(ADDED, 2)
  header.writeUInt32LE(ATTRIBUTES, 4)
  const text = renderName(name)
  header.writeUInt32LE(text.length, 36)
  header.writeUInt32LE(data.length, 40)
  GLOBAL.copy(header, 44)
  const bytes = Buffer.concat([header, text, data])
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3, 0xff)])
}

const renderName = (text: string) => Buffer.from(`${text}\0`, 'utf16le')

const test = suite('one call over Redfish')
const obstacle = findBuildObstacle() ?? findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const HTTP_BOOT = `${LAB_SERVER}/boot/ipxe.efi`

run('off, one call, Redfish, HTTP Boot without DHCP, flashed, booted', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-one-call-'))
  const image = await packImage(await openCloudImage(), join(folder.path, 'cloud.img.zst'))
  const ipxe = await openIpxe()
  await using lab = await startBootLab({ ipxe, images: [image], env: ONE_CALL, hasPlainDhcp: true })
  await using bmc = await startRedfish(null, await lab.namespace.listenWithin())
  // As real ones are: it says so before it is so.
  Object.assign(bmc.lies, { lagMs: 2000, earlyReadings: 1, lostBoots: 1, wantsEtag: true })
  const pxe = await openMachine(lab, basename(image))
  await introduce(lab, { way: 'redfish', address: bmc.address, http_boot: HTTP_BOOT }, [
    basename(image),
  ])

  /** The boot device counts for one boot, and the disk comes first in all others. */
  const start = async () => {
    const { BootSourceOverrideTarget: target, HttpBootUri: uri } = bmc.state.boot
    const url = target === 'UefiHttp' ? String(uri) : null
    bmc.state.boot = { ...bmc.state.boot, BootSourceOverrideTarget: 'None' }
    const variables = join(lab.folder, 'variables')
    await writeFile(variables, await renderFirmwareVariables(url))
    return pxe.start('uefi-http', { isDiskFirst: true, variables })
  }
  await using machine = powerMachine({ isOn: () => bmc.state.isOn, start })
  const call = callFlash(lab, '--power', '--image', basename(image))
  const proved = await Promise.race([machine.broken, call])
  assert.equal([proved.code, proved.outcome, proved.proof?.how], [0, 'booted', 'call'], lab.said())
  assert.is(proved.proof?.contacts, 0)
  assert.is(machine.boots(), 2)
  assert.is(bmc.sessions(), 0)
})

test.run()
