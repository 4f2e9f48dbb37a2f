/** The stick that the page fills: started with Secure Boot enforced up to the wizard, beside the ISO, and never a target. */
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempDisposableSync,
  openSync,
  readdirSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openBrowser } from '#test/support/browser/browser.ts'
import { openStickPage, saveStick, serveStickPage } from '#test/support/browser/stick-page.ts'
import { findBuildObstacle, openIso, openStickFiles } from '#test/support/vm/built-images.ts'
import { LOCKED_DOWN } from '#test/support/vm/secure-firmware.ts'
import { startUsbMachine } from '#test/support/vm/usb-machine.ts'
import { makeUsbStick } from '#test/support/vm/usb-stick.ts'

const SECTOR = 512
const MIB = 2048
const FIRST_SECTOR = MIB

/** Writes the file `path` of so many MiB. Needs the packages fdisk and mtools. */
function makeFatStick(path: string, megabytes: number, folder: string): void {
  const sectors = megabytes * MIB - FIRST_SECTOR
  runQuiet('truncate', ['--size', `${megabytes}M`, path])
  // One partition of the type that Windows gives to FAT32.
  runQuiet('sfdisk', ['--quiet', path], `label: dos\nstart=${FIRST_SECTOR}, type=c\n`)
  const at = `${path}@@${FIRST_SECTOR * SECTOR}`
  const shape = ['-T', String(sectors), '-h', '64', '-s', '32']
  runQuiet('mformat', ['-i', at, '-F', '-v', 'STICK', ...shape, '::'])
  const names = readdirSync(folder).map((name) => join(folder, name))
  runQuiet('mcopy', ['-Q', '-s', '-i', at, ...names, '::/'])
}

const runQuiet = (tool: string, args: readonly string[], input = '') =>
  execFileSync(tool, args, { encoding: 'utf8', input })

const test = suite('stick as files')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300
const tiny = { name: 'tiny.img', content: Buffer.alloc(2 ** 20, 7) }

/** Has Chromium fill a folder by the page, with an image, and returns the stick that a person would hold. */
async function fillStick(folder: string): Promise<string> {
  const { zip, page: file } = await openStickFiles()
  const [image, saved, stick] = [tiny.name, 'saved', 'stick'].map((name) => join(folder, name))
  if (image === undefined || saved === undefined || stick === undefined) throw new Error('no names')
  writeFileSync(image, tiny.content)
  mkdirSync(saved)
  await using site = await serveStickPage(file, saved)
  const browser = await openBrowser()
  try {
    const context = await browser.newContext()
    const page = await openStickPage(context, site)
    await page.getByLabel('flasher.zip of').setInputFiles(zip)
    await page.getByLabel('Disk images').setInputFiles(image)
    await page.getByRole('button', { name: 'Choose the stick and copy' }).click()
    const done = page.locator('#outcome:not(:empty)')
    await done.waitFor({ timeout: PATIENCE * 1000 })
    assert.match(await done.innerText(), /^Done: .* all read back and equal/)
    await saveStick(context, site)
  } finally {
    await browser.close()
  }
  makeFatStick(stick, 512, saved)
  return stick
}

function makeDisk(path: string): string {
  const file = openSync(path, 'w')
  ftruncateSync(file, 2 ** 26)
  closeSync(file)
  return path
}

/** Starts the stick, with Secure Boot enforced; resolves to the seconds up to the wizard's list of images. */
async function start(stick: string, disk: string, look: (said: string) => void = () => undefined) {
  const began = performance.now()
  await using machine = await startUsbMachine({
    firmware: 'secure',
    medium: { stick },
    disk,
  })
  const kernel = await machine.waitFor(/flasher: boot system/, PATIENCE)
  assert.match(kernel, LOCKED_DOWN)
  const boot = await machine.waitFor(/Images in: \/var\/lib\/flasher\/images/, PATIENCE)
  await machine.waitFor(/tiny\.img/, PATIENCE)
  const seconds = (performance.now() - began) / 1000
  look(boot)
  machine.send('1\r')
  // The row of the stick begins with a -, so that it cannot be chosen.
  const listed = await machine.waitFor(/\d {2}\/dev\/nvme0n1/, PATIENCE)
  assert.match(listed, /- 1 {2}\/dev\/sda .*\(this system runs from it\)/)
  return seconds
}

run('Secure Boot, its digest, its image, and not its own target; beside the ISO', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-usb-files-'))
  const disk = makeDisk(join(folder.path, 'disk'))
  const seconds = await start(await fillStick(folder.path), disk, (said) => {
    assert.match(said, /the system is on \/dev\/sda1 \(vfat\)/)
    assert.match(said, 'digest verified')
    assert.match(said, /images: those on \/dev\/sda1 are offered/)
  })
  await using stick = await makeUsbStick({ iso: await openIso(), gigabytes: 1, files: [tiny] })
  const ofIso = await start(stick.path, disk)
  console.log(`to the wizard: files ${seconds.toFixed(1)} s, ISO ${ofIso.toFixed(1)} s`)
})

test.run()
