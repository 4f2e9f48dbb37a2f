/** The privileged helper: a real dnsmasq answers a real machine's question, and nothing else gets through. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readBlocks } from '#test/support/docs.ts'
import { createDnsmasqHost, HOST_ADDRESS } from '#test/support/net/dnsmasq-host.ts'
import {
  DROP_IN,
  PASSWORD_DROP_IN,
  PXE_PORT,
  startPxeServer,
  SUDOERS,
} from '#test/support/net/pxe-server.ts'

const test = suite('flasher-web-activate-pxe')
const BIOS = 0
const UEFI = 7
const HTTP = 16
const HTTP_ARM = 19

test('a machine is offered this server and its file, and nothing once it is deactivated', async () => {
  await using host = await createDnsmasqHost()
  const done = await host.help('activate', 'lan0', '192.168.98.0/24', '8123')
  assert.equal(done, {
    exitCode: 0,
    stdout: 'PXE is active on lan0, 192.168.98.0/24\n',
    stderr: '',
  })
  assert.is((await stat(host.active)).mode & 0o777, 0o644)

  const offer = {
    yours: '0.0.0.0',
    next: HOST_ADDRESS,
    by: HOST_ADDRESS,
    vendor: 'PXEClient',
  }
  for (const arch of [BIOS, UEFI]) {
    assert.equal(await host.ask(arch, 'ipxe'), {
      ...offer,
      file: `http://${HOST_ADDRESS}:8123/pxe-bootstrap.ipxe`,
    })
  }
  assert.equal(await host.ask(UEFI, 'firmware'), { ...offer, file: 'ipxe.efi' })
  assert.equal(await host.ask(BIOS, 'firmware'), { ...offer, file: 'undionly.kpxe' })

  const http = { ...offer, vendor: 'HTTPClient' }
  const boot = `http://${HOST_ADDRESS}:8123/boot`
  assert.equal(await host.ask(HTTP, 'http'), { ...http, file: `${boot}/ipxe.efi` })
  assert.equal(await host.ask(HTTP_ARM, 'http'), { ...http, file: `${boot}/ipxe-arm64.efi` })

  assert.equal(await host.help('deactivate'), {
    exitCode: 0,
    stdout: 'PXE is no longer active\n',
    stderr: '',
  })
  assert.equal(await readdir(host.conf), ['flasher-pxe.conf'])
  assert.is(await host.ask(BIOS, 'ipxe'), null)
  assert.is((await host.help('deactivate')).stdout, 'PXE was not active\n')
  assert.is(await host.countRestarts(), 2)
})

test('whatever is not an interface, its subnet and a port changes nothing', async () => {
  await using host = await createDnsmasqHost()
  for (const args of [
    ['lan1', '192.168.98.0', '8080'],
    ['lo', '127.0.0.0/8', '8080'],
    ['-lan0', '192.168.98.0', '8080'],
    ['lan0\ndhcp-script=/bin/sh', '192.168.98.0', '8080'],
    ['lan0;reboot', '192.168.98.0', '8080'],
    ['lan0', '192.168.97.0', '8080'],
    ['lan0', '192.168.98.0/16', '8080'],
    ['lan0', '192.168.98.0/24\n', '8080'],
    ['lan0', '192.168.098.0', '8080'],
    ['lan0', '192.168.98.0', '0'],
    ['lan0', '192.168.98.0', '65536'],
    ['lan0', '192.168.98.0', '80,80'],
    ['lan0', '192.168.98.0'],
    ['lan0', '192.168.98.0', '80', 'more'],
  ]) {
    const { exitCode, stdout } = await host.help('activate', ...args)
    assert.equal([exitCode, stdout], [2, ''], JSON.stringify(args))
  }
  assert.equal(await readdir(host.conf), ['flasher-pxe.conf'])
  assert.is(await host.countRestarts(), 0)
})

test('what dnsmasq refuses is put back as it was, before and after the restart', async () => {
  await using host = await createDnsmasqHost()
  assert.is((await host.help('activate', 'lan0', '192.168.98.7', '8080')).exitCode, 0)
  const before = await readFile(host.active, 'utf8')

  await writeFile(join(host.folder, 'fail-once'), '')
  const failed = await host.help('activate', 'lan0', '192.168.98.0', '9090')
  assert.is(failed.exitCode, 1)
  assert.match(failed.stderr, 'dnsmasq did not start: Job for dnsmasq.service failed.')
  assert.match(failed.stderr, 'it runs again with that')
  assert.is(await readFile(host.active, 'utf8'), before)
  const offered = JSON.stringify(await host.ask(BIOS, 'ipxe'))
  assert.match(offered, `http://${HOST_ADDRESS}:8080/pxe-bootstrap.ipxe`)
  assert.is(await host.countRestarts(), 3)

  await writeFile(join(host.conf, 'other.conf'), 'no-such-keyword\n')
  const refused = await host.help('activate', 'lan0', '192.168.98.0', '9090')
  assert.is(refused.exitCode, 1)
  assert.match(refused.stderr, 'dnsmasq refuses its configuration')
  assert.is(await readFile(host.active, 'utf8'), before)
  const kept = await host.help('deactivate')
  assert.is(kept.exitCode, 1)
  assert.is(await readFile(host.active, 'utf8'), before)
  assert.is(await host.countRestarts(), 3)
})

const ANALYSE = '/usr/bin/systemd-analyze'

test('sudo takes the documented line', () => {
  const { status, stderr } = spawnSync('visudo', ['-c', '-f', '-'], {
    input: SUDOERS,
    encoding: 'utf8',
  })
  assert.is(status, 0, stderr)
  assert.is(SUDOERS.trim().split('\n').length, 1)
})

if (existsSync(ANALYSE)) {
  test('systemd finds nothing wrong with the drop-ins', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'flasher-drop-in-'))
    try {
      const [unit = ''] = readBlocks('server.md', 'ini')
      const here = unit
        .replace('/usr/local/bin/flasher-web', process.execPath)
        .replaceAll(/^(User|Group)=flasher$/gm, '$1=daemon')
      await mkdir(join(dir, 'flasher-web.service.d'))
      await writeFile(join(dir, 'flasher-web.service'), here)
      await writeFile(join(dir, 'flasher-web.service.d/earlier.conf'), PASSWORD_DROP_IN)
      await writeFile(join(dir, 'flasher-web.service.d/pxe.conf'), DROP_IN)
      const { status, stderr } = spawnSync(ANALYSE, ['verify', join(dir, 'flasher-web.service')], {
        encoding: 'utf8',
      })
      assert.is(stderr, '')
      assert.is(status, 0)
    } finally {
      await rm(dir, { recursive: true })
    }
  })
}

test('nothing of the unit sets NoNewPrivileges again, as systemd does by itself', () => {
  const [unit = ''] = readBlocks('server.md', 'ini')
  const changed = new Set(namesOf(PASSWORD_DROP_IN))
  assert.match(PASSWORD_DROP_IN, /^NoNewPrivileges=no$/m)
  // systemd.exec(5), "NoNewPrivileges": these override it.
  const setting =
    /^(DynamicUser|LockPersonality|MemoryDenyWriteExecute|PrivateDevices|ProtectClock|ProtectHostname|ProtectKernel\w+|Restrict(AddressFamilies|Namespaces|Realtime|SUIDSGID)|SystemCall\w+|NoNewPrivileges)$/
  assert.equal(
    namesOf(unit).filter((name) => setting.test(name) && !changed.has(name)),
    [],
  )
})

test('the drop-in for sudo adds to the one for the password, and takes nothing back', () => {
  assert.match(DROP_IN, '/etc/dnsmasq.d')
  assert.equal(namesOf(DROP_IN), ['ReadWritePaths', 'CapabilityBoundingSet'])
})

/** Lists the names of the settings in a unit. */
const namesOf = (text: string) =>
  text.split('\n').flatMap((line) => /^(\w+)=/.exec(line)?.[1] ?? [])

test('the page activates and deactivates, by sudo and within the sandbox', async () => {
  await using host = await createDnsmasqHost()
  await using server = await startPxeServer(host)
  const { post } = server
  const offered = await post('')
  assert.match(offered, 'lan0 (192.168.98.0/24)')
  assert.not.match(offered, 'Deactivate PXE')

  const active = await post('/ui/settings/pxe-activate', { interface: 'lan0', subnet: '' })
  assert.match(active, /^303 /)
  assert.match(active, 'Deactivate PXE')
  assert.match(await readFile(host.active, 'utf8'), `interface=lan0\ndhcp-range=192.168.98.0,proxy`)
  const answer = JSON.stringify(await host.ask(0, 'ipxe'))
  assert.match(answer, `http://${HOST_ADDRESS}:${PXE_PORT}/pxe-bootstrap.ipxe`)

  const signed = { interface: 'lan0', subnet: '', secure_boot: '1' }
  assert.match(await post('/ui/settings/pxe-activate', signed), /name="secure_boot"[^>]* checked/)
  assert.match(await readFile(host.active, 'utf8'), ',"flasher",shimx64.efi,')

  for (const [form, reason] of [
    [{ interface: 'lan1', subnet: '' }, 'no interface of that name'],
    [{ interface: 'lan0', subnet: '10.0.0.0/8' }, 'no address in that subnet'],
    [{ interface: 'lan0', subnet: '10.0.0.0;x' }, 'must be written as'],
    [{}, 'no interface of that name'],
  ] as const) {
    const page = await post('/ui/settings/pxe-activate', form)
    assert.match(page, 'PXE was not activated: ')
    assert.match(page, reason)
  }

  await writeFile(join(host.folder, 'fail-once'), '')
  const failed = await post('/ui/settings/pxe-deactivate')
  assert.match(
    failed,
    'PXE is still active: dnsmasq did not start: Job for dnsmasq.service failed.',
  )
  assert.match(failed, 'Deactivate PXE')

  assert.not.match(await post('/ui/settings/pxe-deactivate'), 'Deactivate PXE')
  assert.is(existsSync(host.active), false)
})

test.run()
