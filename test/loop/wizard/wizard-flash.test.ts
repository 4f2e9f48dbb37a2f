import { createServer } from 'node:http'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { EXITED } from '#test/support/terminal/tmux.ts'
import { createShell } from '#kit/host/shell.ts'
import {
  createTarget,
  createWizardFixture,
  goToConfirm,
  numberOf,
  type WizardFixture,
} from '#test/support/terminal/wizard-fixture.ts'

const test = suite('wizard flashes')
const MIB = 2 ** 20
const shell = createShell({ env: process.env })

/** Sends a slice of the image four times a second. */
async function startSlowServer(content: Buffer) {
  const server = createServer(async (request, answer) => {
    const range = /^bytes=(\d+)-/.exec(request.headers.range ?? '')
    const from = Number(range?.[1] ?? 0)
    answer.writeHead(range === null ? 200 : 206, {
      'accept-ranges': 'bytes',
      'content-length': content.length - from,
      ...(range === null
        ? {}
        : { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` }),
    })
    if (request.method === 'HEAD') return void answer.end()
    for (let at = from; at < content.length && !answer.destroyed; at += MIB) {
      answer.write(content.subarray(at, at + MIB))
      await pause(250)
    }
    answer.end()
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  // oxlint-disable-next-line no-unsafe-type-assertion
  const address = server.address()
  const { port }: Pick<AddressInfo, 'port'> =
    typeof address === 'object' && address !== null ? address : { port: 0 }
  return {
    url: `http://127.0.0.1:${port}/slow.img`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

async function writeCatalog(fixture: WizardFixture, url: string): Promise<string> {
  const path = join(fixture.folder, 'catalog.toml')
  await writeFile(path, `version = 1\n[[images]]\nname = "slow.img"\nsrc = "${url}"\n`)
  return path
}

test('Ctrl-C cancels a flash, says what that leaves, and goes back to the disks', async () => {
  await using fixture = await createWizardFixture({})
  await using target = await createTarget({ megabytes: 64 })
  await writeFile(target.device, Buffer.alloc(MIB, 'old content'))
  await using server = await startSlowServer(makeDiskImage(48 * MIB))
  const catalog = await writeCatalog(fixture, server.url)
  await using terminal = await fixture.open({ argv: ['--catalog', catalog] })
  await goToConfirm(terminal, 'slow.img', target.device)
  await terminal.press('y')
  const screen = await terminal.waitFor(/^ write +\d+% .* MB\/s .*left$/m)
  assert.ok(screen.includes(`slow.img -> ${target.device}`), screen.join('\n'))
  await terminal.waitFor('writing, waiting for the network')
  await terminal.press('?')
  await terminal.waitFor(/^Ctrl-C +cancels the flash$/m)
  await terminal.press('y')
  await terminal.waitFor(/^ write +\d+% .* MB\/s .*left$/m)
  // Whatever is typed meanwhile counts for nothing, but is not shown either.
  await terminal.press('x', 'Enter')
  await terminal.resize(100, 30)
  await terminal.waitFor(/^Flash 4 of 4 {20,}.*> \[Flash\]$/m)
  await terminal.press('C-c')
  const after = await terminal.waitFor('? What next?')
  const text = after.join('\n')
  assert.ok(text.includes('Cancelled.'), text)
  assert.match(text, /has no partition table and cannot boot/)
  assert.equal((await readFile(target.backing)).subarray(0, MIB), Buffer.alloc(MIB))
  await terminal.press('Enter')
  await terminal.waitFor('> Disk:')
  await terminal.press('q', 'Enter')
  await terminal.waitFor(`${EXITED}0`)
})

test('a flash that fails says why and what that leaves', async () => {
  await using fixture = await createWizardFixture()
  const image = join(fixture.imageRoot, 'debian-13-amd64.img')
  const wrong = createHash('sha256').update('something else').digest('hex')
  await writeFile(`${image}.sha256`, `${wrong}  debian-13-amd64.img\n`)
  await using target = await createTarget()
  await using terminal = await fixture.open()
  const question = await goToConfirm(terminal, 'debian-13-amd64.img', target.device)
  assert.ok(question.some((line) => line.includes(`SHA-256 ${wrong.slice(0, 12)}`)))
  await terminal.press('y')
  const screen = await terminal.waitFor('? What next?')
  const text = screen.join(' ').replaceAll(/ +/g, ' ')
  assert.match(text, /✖ The flash failed: /)
  assert.match(text, /is not the expected image/)
  assert.match(text, /has no partition table and cannot boot/)
  await terminal.press('b', 'Enter')
  await terminal.waitFor('> Disk:')
})

test('what is no image is rejected before anything is written, Enter goes back', async () => {
  await using fixture = await createWizardFixture({ 'not-really.img.zst': 'plain text' })
  await using target = await createTarget()
  await using terminal = await fixture.open()
  const text = (await goToConfirm(terminal, 'not-really.img.zst', target.device)).join('\n')
  assert.match(
    text,
    /✖ Rejected:\n {2}.*not-really\.img\.zst is named\s+\.img\.zst but\s+does not hold/,
  )
  assert.not.match(text, /\[y\]/)
  await terminal.press('y', 'Enter')
  await terminal.waitFor('Unrecognised choice "y"; type b or q.')
  await terminal.press('Enter')
  await terminal.waitFor('> Disk:')
})

test('a disk that became another one between the choice and the flash is not written', async () => {
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  await using terminal = await fixture.open()
  await goToConfirm(terminal, 'debian-13-amd64.img', target.device)
  await writeFile(target.backing, Buffer.alloc(16 * MIB))
  await shell.require(['losetup', '--set-capacity', target.device])
  await terminal.press('y')
  const text = (await terminal.waitFor('? What next?')).join(' ').replaceAll(/ +/g, ' ')
  assert.match(text, /is another disk now than the one that was chosen/)
  assert.match(text, /Nothing was written\./)
})

test('the digest beside an image is checked, and the end says that it was right', async () => {
  await using fixture = await createWizardFixture()
  const digest = createHash('sha256').update(fixture.content).digest('hex')
  await writeFile(join(fixture.imageRoot, 'debian-13-amd64.img.sha256'), digest)
  await using target = await createTarget()
  await using terminal = await fixture.open()
  await goToConfirm(terminal, 'debian-13-amd64.img', target.device)
  await terminal.press('y')
  const text = (await terminal.waitFor('? What next?')).join(' ').replaceAll(/ +/g, ' ')
  assert.match(text, /The checksum of the image matches\./)
})

test('the end says what became of the boot entry that was asked for', async () => {
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  // No partition table is in this image: no firmware is asked, whatever this host has.
  await using terminal = await fixture.open({ env: { FLASHER_REGISTER_UEFI_BOOT: '1' } })
  await goToConfirm(terminal, 'debian-13-amd64.img', target.device)
  await terminal.press('y')
  const text = (await terminal.waitFor('? What next?')).join(' ').replaceAll(/ +/g, ' ')
  assert.match(
    text,
    new RegExp(`Done\\..*UEFI: no one-shot boot of ${target.device}: .*(UEFI|table)`),
  )
  await terminal.press('q', 'Enter')
  await terminal.waitFor(`${EXITED}0`)
})

test('five keys, from the first screen to the flash', async () => {
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  await using terminal = await fixture.open()
  await terminal.waitFor('> Image:')
  await terminal.press('1', 'Enter')
  const disks = await terminal.waitFor(new RegExp(`${target.device} [^]*> Disk:`))
  await terminal.press(numberOf(disks, target.device), 'Enter')
  await terminal.waitFor('ERASE AND FLASH')
  await terminal.press('y')
  await terminal.waitFor('? What next?')
})
test('on a machine that was booted to be flashed, a restart is what Enter stands for', async () => {
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  await using terminal = await fixture.open({ env: { FLASHER_LIVE: '1' } })
  await goToConfirm(terminal, 'debian-13-amd64.img', target.device)
  await terminal.press('y')
  const text = (await terminal.waitFor('? What next?')).join('\n')
  assert.match(text, /^❯ \[r\] reboot\n {2}\[b\] another disk, same image\n {2}\[q\] quit$/m)
  await terminal.press('no', 'Enter')
  await terminal.waitFor(`${EXITED}0`)
})
test.run()
