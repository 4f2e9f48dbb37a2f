/** Other media are plugged in: GRUB starts the one that it came from. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempDisposableSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import { findBuildObstacle, openIso } from '#test/support/vm/built-images.ts'
import { startUsbMachine, type UsbMachineOptions } from '#test/support/vm/usb-machine.ts'
import { makeUsbStick } from '#test/support/vm/usb-stick.ts'

const test = suite('ISO beside other media')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 240
const OTHER_MENU = [
  'serial --unit=0 --speed=115200',
  'terminal_output serial',
  'echo This is the other medium.',
  'sleep 60',
].join('\n')

/** Makes a medium as GRUB knows the installers of Debian and others; it has a menu of its own. */
function makeOther(folder: string): string {
  const tree = join(folder, 'tree')
  const texts = {
    '.disk/info': 'Another system',
    'boot/grub/grub.cfg': OTHER_MENU,
    'boot/grub/x86_64-efi/grub.cfg': OTHER_MENU,
  }
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), `${text}\n`)
  }
  const iso = join(folder, 'other.iso')
  execFileSync('xorriso', ['-as', 'mkisofs', '-quiet', '-r', '-o', iso, tree], { stdio: 'pipe' })
  // A BIOS reads no disk that is smaller than a cylinder.
  truncateSync(iso, 2 ** 26)
  return iso
}

/** As a disk, which firmware and GRUB come across before a stick or a disc. */
const planOther = (iso: string) => [
  '-drive',
  `if=none,id=other,format=raw,snapshot=on,file=${iso}`,
  '-device',
  'ide-hd,drive=other,bus=ide.3',
]

async function startBeside(options: UsbMachineOptions): Promise<void> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-beside-'))
  await using machine = await startUsbMachine({
    ...options,
    args: planOther(makeOther(folder.path)),
  })
  const said = await machine.waitFor(/This is the other medium|flasher: boot system/, PATIENCE)
  if (!said.endsWith('boot system')) throw new Error(`see ${machine.keepLog()}`)
}

run('a disc, BIOS', async () => {
  await startBeside({ firmware: 'bios', medium: { disc: await openIso() } })
})

run('a stick, UEFI', async () => {
  await using stick = await makeUsbStick({ iso: await openIso(), gigabytes: 1 })
  await startBeside({ firmware: 'uefi', medium: { stick: stick.path } })
})

test.run()
