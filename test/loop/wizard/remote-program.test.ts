/** The real program, in a real terminal and without any, driven by a real server: nobody presses a key. */
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { startFileServer } from '#test/support/http/file-server.ts'
import { FLASHER, runFlasher } from '#test/support/terminal/flasher.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { entryOf, MAC, openServer } from '#test/support/terminal/remote-fixture.ts'
import { openTerminal } from '#test/support/terminal/tmux.ts'
import { readDisk } from '#test/support/disk/writer.ts'

const test = suite('server-driven program')
const run = process.getuid?.() === 0 ? test : test.skip

const IMAGE = makeDiskImage(12 * 2 ** 20)
const PLACES = '/dev/disk/by-path'

/** An image on a web server, a disk with a place of its own, and a restart that only says so. */
async function openWizardContext() {
  await using undo = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'flasher-remote-'))
  undo.defer(() => rm(folder, { recursive: true, force: true }))
  const loop = undo.use(await createLoop({ megabytes: 32 }))
  const place = `flasher-test-${process.pid}`
  await mkdir(PLACES, { recursive: true })
  await symlink(loop.device, join(PLACES, place))
  undo.defer(() => rm(join(PLACES, place)))
  const path = join(folder, 'debian-13-amd64.img')
  await writeFile(path, IMAGE)
  const images = undo.use(await startFileServer([path]))
  const bin = join(folder, 'bin')
  await mkdir(bin)
  const restart = `#!/bin/sh\necho "$0 $*" >>${join(folder, 'restarts')}\n`
  for (const name of ['systemctl', 'reboot']) {
    await writeFile(join(bin, name), restart, { mode: 0o755 })
  }
  const server = undo.use(
    await openServer([
      entryOf(`${images.origin}/debian-13-amd64.img`, { sizeBytes: IMAGE.length }),
    ]),
  )
  const held = undo.move()
  const argv = ['--server', server.url, '--mac', MAC]
  const settings = {
    FLASHER_OFFER_LOOP: '1',
    FLASHER_IMAGE_ROOT: folder,
    PATH: `${bin}:${process.env['PATH'] ?? ''}`,
  }
  return {
    server,
    loop,
    target: { bty_image_ref: 'a'.repeat(64), target_disk_serial: `path:${place}` },
    /** As many bytes, but no disk image. */
    spoil: () =>
      writeFile(
        path,
        Buffer.concat([gzipSync(IMAGE), Buffer.alloc(IMAGE.length)]).subarray(0, IMAGE.length),
      ),
    restarts: () => readFile(join(folder, 'restarts'), 'utf8').catch(() => ''),
    open: (
      env: Readonly<Record<string, string>> = {},
      through: readonly string[] = [],
      more: readonly string[] = [],
    ) =>
      openTerminal([...through, process.execPath, FLASHER, ...argv, ...more], {
        columns: 100,
        env: { ...settings, ...env },
      }),
    /** Without a terminal: nothing on standard input, and pipes for what is said. */
    run: () => runFlasher(argv, { env: settings }),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

run('a flash from the plan to the restart', async () => {
  await using fixture = await openWizardContext()
  await fixture.server.arm({ boot_mode: 'flasher-flash-once', ...fixture.target })
  await using terminal = await fixture.open()
  const screen = await terminal.waitFor('exit code 0')
  assert.match(screen.join('\n'), /Rebooting/)
  assert.match(await fixture.restarts(), /systemctl reboot\n$/)
  assert.ok((await readDisk(fixture.loop.device, 0, IMAGE.length)).equals(IMAGE))
  const machine = await fixture.server.machines.find(MAC)
  assert.is.not(machine?.last_flashed_at, null)
  assert.is.not(machine?.cycle.finished_at, null)
})

run('a failure needs no key: the server hears of it, the wizard shows why', async () => {
  await using fixture = await openWizardContext()
  await fixture.server.arm({ boot_mode: 'flasher-flash-once', ...fixture.target })
  await fixture.spoil()
  await using terminal = await fixture.open()
  const screen = await terminal.waitFor(/The flash that the server requested failed/)
  const text = screen.join('\n')
  assert.match(text, /Image 2 of 4/)
  assert.ok(text.includes(`Catalog:   ${fixture.server.url}/catalog.toml`))
  assert.is(await fixture.restarts(), '')
  assert.is.not((await fixture.server.machines.find(MAC))?.cycle.failure, null)
})

run(
  'a server that does not hear of the end: the machine waits, and says for how long',
  async () => {
    await using fixture = await openWizardContext()
    await fixture.server.arm({ boot_mode: 'flasher-flash-always', ...fixture.target })
    await using terminal = await fixture.open()
    await terminal.waitFor(/writing|written|read back|\d+%/)
    await fixture.server.close()
    const screen = await terminal.waitFor(/trying again, for (9|10):\d\d more/)
    assert.is(await fixture.restarts(), '')
    assert.match(screen.join('\n'), /Ctrl-C stops waiting/)
    await terminal.press('C-c')
    const wizard = await terminal.waitFor(/Image 2 of 4/)
    assert.match(wizard.join('\n'), /The disk is flashed, but the server could not be notified/)
    assert.is(await fixture.restarts(), '')
  },
)

run('--catalog counts for nothing where the server decides', async () => {
  await using fixture = await openWizardContext()
  await fixture.server.arm({ boot_mode: 'flasher-tui' })
  await using terminal = await fixture.open({}, [], ['--catalog', '/nowhere.toml'])
  const screen = await terminal.waitFor('> Image:')
  const text = screen.join('\n')
  assert.ok(text.includes(`Catalog:   ${fixture.server.url}/catalog.toml`), text)
  assert.not.match(text, /nowhere/)
})

run('nothing to do: a word, and the end', async () => {
  await using fixture = await openWizardContext()
  await fixture.server.arm({ boot_mode: 'ipxe-exit' })
  await using terminal = await fixture.open()
  const screen = await terminal.waitFor('exit code 0')
  assert.match(screen.join('\n'), /continues with its own disk/)
  assert.is(await fixture.restarts(), '')
})

run('without a terminal: a flash in plain lines, to the restart', async () => {
  await using fixture = await openWizardContext()
  await fixture.server.arm({ boot_mode: 'flasher-flash-once', ...fixture.target })
  const { code, stdout, stderr } = await fixture.run()
  assert.is(stderr, '')
  assert.is(code, 0)
  assert.not.ok(stdout.includes('\u001b'))
  assert.match(stdout, /^Flashing .+ to .+, as the server requested\.\n(.+\n)+\[started\]/m)
  assert.match(stdout, /\nRebooting…\n$/)
  assert.match(await fixture.restarts(), /systemctl reboot\n$/)
  assert.ok((await readDisk(fixture.loop.device, 0, IMAGE.length)).equals(IMAGE))
  assert.is.not((await fixture.server.machines.find(MAC))?.cycle.finished_at, null)
})

run('without a terminal: what would end in the wizard is said, and is a failure', async () => {
  await using fixture = await openWizardContext()
  await fixture.server.arm({ boot_mode: 'flasher-tui' })
  const asked = await fixture.run()
  assert.is(asked.code, 1)
  assert.match(asked.stderr, /^flasher: .+\n  The wizard requires a terminal\.\n$/)

  await fixture.server.arm({ boot_mode: 'flasher-flash-once', ...fixture.target })
  await fixture.spoil()
  const failed = await fixture.run()
  assert.is(failed.code, 1)
  assert.match(failed.stderr, /^flasher: The flash that the server requested failed: /)
  assert.is(await fixture.restarts(), '')
  assert.is.not((await fixture.server.machines.find(MAC))?.cycle.failure, null)
})

run('a screen without a keyboard: the reason stands below what was drawn', async () => {
  await using fixture = await openWizardContext()
  await fixture.server.arm({ boot_mode: 'flasher-flash-once', ...fixture.target })
  await fixture.spoil()
  await using terminal = await fixture.open({}, ['sh', '-c', 'exec "$0" "$@" </dev/null'])
  const screen = await terminal.waitFor('exit code 1')
  const said = screen.findIndex((line) =>
    line.startsWith('flasher: The flash that the server requested'),
  )
  assert.ok(said > 0, screen.join('\n'))
  // The way to the machine's page is drawn as soon as it is loaded, which may be after the end.
  assert.match(screen[said - 1] ?? '', /^(Ctrl-C .*\.|On a phone: .*|)$/, screen.join('\n'))
  assert.match(screen.slice(said).join('\n'), /requires a terminal\.\n+exit code 1/)
})

run('without a terminal: nothing to do is no failure', async () => {
  await using fixture = await openWizardContext()
  await fixture.server.arm({ boot_mode: 'ipxe-exit' })
  const { code, stdout, stderr } = await fixture.run()
  assert.equal({ code, stderr }, { code: 0, stderr: '' })
  assert.match(stdout, /continues with its own disk/)
})

test.run()
