import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideFamily, listNeeds, type DemoHost } from '#build/demo/needs.ts'

const GIB = 2 ** 30
const HOST: DemoHost = {
  family: 'debian',
  isRoot: false,
  qemu: '10.0.2',
  hasRom: true,
  hasWindow: true,
  freeBytes: 6.5 * GIB,
}
const advices = (host: Partial<DemoHost>, window = false) =>
  listNeeds({ ...HOST, ...host }, window).flatMap(({ advice }) => advice ?? [])
const texts = (host: Partial<DemoHost>, window = false) =>
  listNeeds({ ...HOST, ...host }, window).map(({ text }) => text)

const test = suite('what the demo requires')

test('a host that has everything gets no advice', () => {
  assert.equal(listNeeds(HOST, true), [
    { isMet: true, text: 'QEMU 10.0.2 with a network boot ROM', advice: null },
    { isMet: true, text: '6.5 GiB of memory free', advice: null },
  ])
})

test('without QEMU: the command of this system, with the ROM', () => {
  const rows = [
    ['debian', 'sudo apt-get install --no-install-recommends qemu-system-x86 ipxe-qemu'],
    ['fedora', 'sudo dnf install qemu-system-x86-core ipxe-roms-qemu'],
    ['arch', 'sudo pacman -S qemu-system-x86 qemu-common'],
    ['suse', 'sudo zypper install qemu-x86 qemu-ipxe'],
    ['macos', 'brew install qemu'],
  ] as const
  for (const [family, command] of rows) {
    assert.equal(advices({ family, qemu: null, hasRom: false }), [command])
  }
  assert.match(advices({ family: null, qemu: null })[0] ?? '', 'efi-virtio.rom')
})

test('root needs no sudo, and what is there is not installed again', () => {
  assert.equal(advices({ isRoot: true, hasRom: false }), [
    'apt-get install --no-install-recommends ipxe-qemu',
  ])
  assert.equal(texts({ hasRom: false })[0], 'QEMU 10.0.2 has no network boot ROM')
})

test('a window is asked for only where it is wanted', () => {
  assert.equal(advices({ hasWindow: false }), [])
  assert.equal(advices({ hasWindow: false }, true), [
    'sudo apt-get install --no-install-recommends qemu-system-gui, or leave out --window',
  ])
  assert.match(advices({ qemu: null, hasWindow: false }, true)[0] ?? '', / qemu-system-gui$/)
})

test('too little memory is said in figures', () => {
  assert.equal(texts({ freeBytes: 1.5 * GIB })[1], '1.5 GiB of memory free, 2.0 GiB required')
  assert.equal(advices({ freeBytes: 1.5 * GIB }), ['close other programs'])
})

test('systems are known by their os-release', () => {
  const rows = [
    ['linux', 'PRETTY_NAME="Debian 12"\nID=debian\n', 'debian'],
    ['linux', 'ID=linuxmint\nID_LIKE="ubuntu debian"\n', 'debian'],
    ['linux', 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', 'fedora'],
    ['linux', 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', 'suse'],
    ['linux', 'ID=manjaro\nID_LIKE=arch\n', 'arch'],
    ['linux', 'ID=alpine\n', null],
    ['linux', '', null],
    ['darwin', '', 'macos'],
  ] as const
  for (const [platform, text, family] of rows) assert.is(decideFamily(platform, text), family)
})

test.run()
