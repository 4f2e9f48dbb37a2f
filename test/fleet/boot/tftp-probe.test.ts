import { createSocket } from 'node:dgram'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createTftpProbe } from '#fleet/boot/tftp-probe.ts'

const test = suite('the TFTP daemon, asked')

/** Answers each request from a port of its own, as daemons do. */
async function startDaemon(answer: Buffer | null) {
  const socket = createSocket('udp4')
  const asked: string[] = []
  const said: string[] = []
  socket.on('message', (bytes, from) => {
    asked.push(bytes.toString('latin1'))
    if (answer === null) return
    const transfer = createSocket('udp4')
    transfer.on('message', (last) => {
      said.push(last.toString('latin1'))
      transfer.close()
    })
    transfer.unref()
    transfer.send(answer, from.port, from.address)
  })
  await new Promise<void>((resolve) => {
    socket.bind(0, '127.0.0.1', resolve)
  })
  return {
    port: socket.address().port,
    asked,
    said,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => {
        socket.close(resolve)
      })
    },
  }
}

const ask = (port: number, waitMs = 5000) =>
  createTftpProbe({ host: () => '127.0.0.1', port, waitMs }).inspect()

test('a daemon that has the file', async () => {
  await using daemon = await startDaemon(Buffer.from('\0\x03\0\x01MZ', 'latin1'))
  const state = await ask(daemon.port)
  assert.equal([state.isActive, state.isReady, state.hint], [true, true, null])
  assert.equal(daemon.asked, [
    '\0\x01shimx64.efi\0octet\0',
    '\0\x01grubx64.efi\0octet\0',
    '\0\x01grub/grub.cfg\0octet\0',
  ])
  assert.match(state.text, 'serves shimx64.efi, grubx64.efi, grub/grub.cfg')
  while (daemon.said.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.ok(daemon.said[0]?.startsWith('\0\x05'), 'the transfer is ended')
})

test('a daemon without it, and one with a grudge', async () => {
  await using without = await startDaemon(Buffer.from('\0\x05\0\x01File not found\0', 'latin1'))
  const missing = await ask(without.port)
  assert.equal([missing.isActive, missing.isReady], [true, false])
  assert.match(missing.text, /no shimx64\.efi or ipxe\.efi/)
  await using grim = await startDaemon(Buffer.from('\0\x05\0\x02<b>\x1b[1mno\0', 'latin1'))
  const refusing = await ask(grim.port)
  assert.is(refusing.isReady, false)
  assert.match(refusing.text, /answers with an error: <b>/)
  assert.not.ok(refusing.text.includes('\x1b'))
})

test('nobody there, somebody silent, and no such host', async () => {
  const gone = await startDaemon(null)
  await gone[Symbol.asyncDispose]()
  assert.match((await ask(gone.port)).text, /Nothing listens/)
  await using silent = await startDaemon(null)
  assert.match((await ask(silent.port, 300)).text, /no TFTP answer within 0.3 s/)
  await using babbling = await startDaemon(Buffer.from('hello'))
  assert.match((await ask(babbling.port, 300)).text, /no TFTP answer/)
  const nowhere = createTftpProbe({ host: () => 'no-such-host.invalid', port: 1 })
  assert.match((await nowhere.inspect()).text, /cannot be reached/)
})

test('pages never wait: they get what was found last, and a look begins', async () => {
  await using daemon = await startDaemon(Buffer.from('\0\x03\0\x01MZ', 'latin1'))
  let changes = 0
  const { port } = daemon
  const probe = createTftpProbe({ host: () => '127.0.0.1', port, changed: () => (changes += 1) })
  assert.match(probe.state().text, /is being checked/)
  await probe.inspect()
  assert.match(probe.state().text, /serves/)
  probe.state()
  assert.is(daemon.asked.length, 3)
  assert.is(changes, 1)
})

test.run()
