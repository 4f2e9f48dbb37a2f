import { createServer } from 'node:http'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createShell } from '#kit/host/shell.ts'
import { listen as listenOn } from '#test/support/http/hostile-server.ts'
import { makeContent } from '#test/support/disk/disk-images.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { listen } from '#test/support/server/server.ts'
import { EXITED } from '#test/support/terminal/tmux.ts'
import { goToQuestion, openTui } from '#test/support/terminal/tui-fixture.ts'
import { createTarget, createWizardFixture } from '#test/support/terminal/wizard-fixture.ts'

const test = suite('flasher-tui flashes')
const MIB = 2 ** 20
const MAC = '52:54:00:12:34:56'
const IMAGE = 'debian-13-amd64.img'
const shell = createShell({ env: process.env })

/** What the disk holds must be the image, byte for byte. */
async function expectFlashed(backing: string, content: Buffer) {
  assert.ok((await readFile(backing)).subarray(0, content.length).equals(content))
}

test('a whole flash from the image folder: what is lost is named, then the disk is ready', async () => {
  await using fixture = await createWizardFixture()
  await using target = await createTarget({ megabytes: 64 })
  const table = 'label: gpt\nsize=16M, type=U, name="EFI system"\ntype=L\n'
  await shell.require(['sfdisk', '--quiet', '--no-reread', target.device], { input: table })
  await shell.require(['partx', '--add', target.device])
  await shell.require(['mkfs.ext4', '-q', '-L', 'old-root', `${target.device}p2`])
  await using terminal = await openTui({ ...fixture, disk: target.device })
  const question = (await goToQuestion(terminal, IMAGE, target.device)).join('\n')
  assert.match(question, /\[ Erase this disk and write the image\? \]/)
  assert.match(question, /Image {3}debian-13-amd64\.img: img, 8\.39 MB/)
  assert.match(question, new RegExp(`Disk {4}${target.device}: loop device, no serial number, 67`))
  assert.match(question, new RegExp(`Everything on ${target.device} will be lost:`))
  assert.match(question, /p1 +16\.8 MB +unknown +EFI system/)
  assert.match(question, /p2 +\S+ MB +ext4 +old-root/)
  // Nothing but y erases a disk.
  await terminal.press('Enter')
  await terminal.waitFor('[Tab] other pane')
  await terminal.press('f')
  await terminal.waitFor('ERASE AND FLASH')
  await terminal.press('y')
  const end = (await terminal.waitFor('[Enter] close')).join('\n')
  assert.match(end, /\[ The disk is ready \]/)
  assert.match(end, /Done\. Wrote 8\.39 MB \(8388608 bytes\) to .* verified\./)
  await terminal.press('Enter')
  await terminal.waitFor('Flash completed.')
  await terminal.press('q')
  await terminal.waitFor(`${EXITED}0`)
  await expectFlashed(target.backing, fixture.content)
})

test('an image of a server is streamed to the disk, and the server is notified', async () => {
  await using server = await createEarlierServer()
  await using open = await listen(server)
  const content = makeContent(6 * MIB)
  await server.putImage('remote #1.img', content)
  await server.request(`/pxe/${MAC}`)
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  const argv = ['--server', open.url, '--mac', MAC]
  await using terminal = await openTui({ ...fixture, disk: target.device, argv, columns: 120 })
  await terminal.waitFor(`[ Images @ ${open.url}/images ]`)
  const question = (await goToQuestion(terminal, 'remote', target.device)).join('\n')
  assert.ok(question.includes(`from ${open.url}/images/remote%20%231.img`), question)
  await terminal.press('y')
  await terminal.waitFor('The server was notified of the flash.')
  await terminal.press('Enter')
  await terminal.waitFor('Flash completed.')
  await terminal.press('q')
  await terminal.waitFor(`${EXITED}0`)
  await expectFlashed(target.backing, content)
  const ask = await server.operator()
  const machine: Record<string, unknown> = await (await ask(`/machines/${MAC}`)).json()
  assert.type(machine['last_flashed_at'], 'string')
})

test('a done signal that is refused stays in the status bar, and is sent again with d', async () => {
  await using server = await createEarlierServer()
  await using open = await listen(server)
  await server.putImage(IMAGE, makeContent(2 * MIB))
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  // Nobody has seen this machine yet: a server does not take its done.
  const argv = ['--server', open.url, '--mac', MAC]
  await using terminal = await openTui({ ...fixture, disk: target.device, argv })
  await goToQuestion(terminal, IMAGE, target.device)
  await terminal.press('y')
  const refused = /Flash done, but POST \/pxe\/52:54:00:12:34:56\/done failed: HTTP\s+404/
  const end = (await terminal.waitFor(refused)).join('\n')
  assert.match(end, /\[ The disk is ready \]/)
  await terminal.press('Enter')
  await terminal.waitFor('[Tab] other pane')
  await terminal.press('Down')
  await terminal.waitFor(refused)
  await server.request(`/pxe/${MAC}`)
  await terminal.press('d')
  await terminal.waitFor('The server was notified of the flash.')
  await terminal.press('q')
  await terminal.waitFor(`${EXITED}0`)
})

/** Lists one image; sends it at once, or a slice of it four times a second. */
async function startOldServer(name: string, content: Buffer, isSlow: boolean) {
  const server = createServer(async (request, answer) => {
    if (request.url === '/images') {
      answer.setHeader('content-type', 'application/json')
      answer.end(JSON.stringify([{ name, size_bytes: content.length }, 'nonsense', {}]))
      return
    }
    // As the deployed servers do: no HEAD on images.
    if (request.method === 'HEAD') {
      answer.writeHead(405).end()
      return
    }
    answer.writeHead(200, { 'content-length': content.length })
    for (let at = 0; at < content.length && !answer.destroyed; at += MIB) {
      answer.write(content.subarray(at, at + MIB))
      if (isSlow) await pause(250)
    }
    answer.end()
  })
  const port = await listenOn(server)
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

/** The text of a dialog without its frame, in one line. */
const textOf = (screen: readonly string[]) =>
  screen
    .join(' ')
    .replaceAll(/[│─┌┐└┘]/g, ' ')
    .replaceAll(/ +/g, ' ')

test('a server that knows no HEAD is flashed from as well', async () => {
  const content = makeContent(4 * MIB)
  await using server = await startOldServer('old.img', content, false)
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  const argv = ['--server', server.url]
  await using terminal = await openTui({ ...fixture, disk: target.device, argv })
  await goToQuestion(terminal, 'old.img', target.device)
  await terminal.press('y')
  await terminal.waitFor('[ The disk is ready ]')
  await expectFlashed(target.backing, content)
})

test('cancelling asks first, and says what is on the disk then; a resize changes nothing', async () => {
  const content = makeContent(48 * MIB)
  await using server = await startOldServer('slow.img', content, true)
  await using fixture = await createWizardFixture()
  await using target = await createTarget({ megabytes: 64 })
  await writeFile(target.device, Buffer.alloc(MIB, 'old content'))
  const argv = ['--server', server.url]
  await using terminal = await openTui({ ...fixture, disk: target.device, argv })
  await goToQuestion(terminal, 'slow.img', target.device)
  await terminal.press('y')
  await terminal.waitFor(/write +\d+% .* MB\/s/)
  await terminal.resize(100, 30)
  await terminal.waitFor(/\[ Flashing \]─{70}/)
  await terminal.press('C-c')
  await terminal.waitFor('Cancel the flash?')
  await terminal.press('n')
  await terminal.waitFor('[c] cancel')
  await terminal.press('c')
  await terminal.waitFor('[y] cancel flash  [n] continue')
  await terminal.press('y')
  const end = textOf(await terminal.waitFor('[Enter] close'))
  assert.match(end, /\[ Cancelled \]/)
  assert.match(end, /has no partition table and cannot boot/)
  assert.equal((await readFile(target.backing)).subarray(0, MIB), Buffer.alloc(MIB))
  await terminal.press('Enter')
  await terminal.waitFor('[Tab] other pane')
  await terminal.press('q')
  await terminal.waitFor(`${EXITED}0`)
})

test('what is no image is rejected before anything is written', async () => {
  await using fixture = await createWizardFixture({ 'not-really.img.zst': 'plain text' })
  await using target = await createTarget()
  await using terminal = await openTui({ ...fixture, disk: target.device })
  const text = textOf(await goToQuestion(terminal, 'not-really', target.device))
  assert.match(text, /\[ This cannot be flashed \]/)
  assert.match(text, /is named \.img\.zst but does not hold/)
  assert.not.match(text, /\[y\]/)
  await terminal.press('y', 'Escape')
  await terminal.waitFor('[Tab] other pane')
})

test('on a terminal that cannot redraw it asks line by line', async () => {
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  const env = { TERM: 'dumb' }
  await using terminal = await openTui({ ...fixture, disk: target.device, env, rows: 60 })
  await terminal.waitFor(/1 +debian-13-amd64\.img[^]*> Image:/)
  await terminal.press('1', 'Enter')
  const disks = await terminal.waitFor('> Disk:')
  const row = disks.find((line) => line.includes(`${target.device} `)) ?? ''
  await terminal.press(/\d+/.exec(row)?.[0] ?? '', 'Enter')
  await terminal.waitFor(/will be lost:[^]*> Flash:/)
  await terminal.press('y', 'Enter')
  await terminal.waitFor(/Done\. Wrote 8\.39 MB .* verified\./)
  await terminal.press('q', 'Enter')
  await terminal.waitFor(`${EXITED}0`)
  await expectFlashed(target.backing, fixture.content)
  assert.ok((await readFile(join(fixture.imageRoot, IMAGE))).equals(fixture.content))
})

test.run()
