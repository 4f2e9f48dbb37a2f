/** The privileged helper: a real dnsmasq answers a real machine's question, and nothing else gets through. */
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDnsmasqHost, HOST_ADDRESS } from '#test/support/net/dnsmasq-host.ts'

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

test.run()
