/** A flashed disk boots once through BootNext; the boot order of a real UEFI firmware stays as it was. */
import { copyFile, mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { $ } from 'zx'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { startGuest } from '#test/support/vm/guest.ts'
import { startQemu } from '#test/support/vm/qemu.ts'

const test = suite('BootNext')
const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const quiet = $({ quiet: true, verbose: false })
/** Seconds, ten times what a free machine needs. */
const PATIENCE = 240

/** A disk with nothing but a boot loader, which says who it is and switches the machine off. */
async function makeDisk(folder: string, name: string): Promise<string> {
  const [config, loader, part, disk] = ['cfg', 'efi', 'esp', 'img'].map((end) =>
    join(folder, `${name}.${end}`),
  )
  if (config === undefined || loader === undefined || part === undefined || disk === undefined) {
    throw new Error('no names')
  }
  const words = `serial --unit=0 --speed=115200\nterminal_output serial\necho "this is the ${name} disk"\nsleep 1\nhalt\n`
  await writeFile(config, words)
  const modules = 'serial terminal echo sleep halt'
  await quiet`grub-mkstandalone -O x86_64-efi --locales= --fonts= --themes= --install-modules=${modules} --modules=${modules} -o ${loader} boot/grub/grub.cfg=${config}`
  await writeFile(part, '')
  await truncate(part, 30 * 2 ** 20)
  await quiet`mformat -i ${part} ::`
  await quiet`mmd -i ${part} ::/EFI ::/EFI/BOOT`
  await quiet`mcopy -i ${part} ${loader} ::/EFI/BOOT/BOOTX64.EFI`
  await writeFile(disk, '')
  await truncate(disk, 40 * 2 ** 20)
  await $({
    quiet: true,
    input: 'label: gpt\nstart=2048,size=61440,type=uefi\n',
  })`sfdisk --quiet ${disk}`
  await quiet`dd if=${part} of=${disk} bs=1M seek=1 conv=notrunc status=none`
  return disk
}

/** What our program runs in the guest is not part of it: the tool of this host, with its libraries. */
async function shareTool(folder: string): Promise<string> {
  const share = join(folder, 'tools')
  await mkdir(share)
  await copyFile('/usr/bin/efibootmgr', join(share, 'efibootmgr.bin'))
  const { stdout } = await quiet`ldd /usr/bin/efibootmgr`
  for (const [, path = ''] of stdout.matchAll(/=> (\/\S*libefi\S+)/g)) {
    await quiet`cp -L ${path} ${share}`
  }
  const script = '#!/bin/sh\nLD_LIBRARY_PATH=/mnt/tools exec /mnt/tools/efibootmgr.bin "$@"\n'
  await writeFile(join(share, 'efibootmgr'), script, { mode: 0o755 })
  return share
}

const planFirmware = (vars: string): readonly string[] => [
  '-drive',
  'if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd',
  '-drive',
  `if=pflash,format=raw,unit=1,file=${vars}`,
]

/** Which disk the firmware boots by itself. */
async function bootAlone(vars: string, disks: readonly string[]): Promise<string> {
  const drives = disks.flatMap((disk, n) => [
    '-drive',
    `if=none,id=disk${n},format=raw,file=${disk}`,
    '-device',
    `virtio-blk-pci,drive=disk${n}`,
  ])
  await using machine = await startQemu({ args: [...planFirmware(vars), ...drives] })
  const text = await machine.waitFor(/this is the \w+ disk/, PATIENCE)
  await machine.ended
  return /this is the (\w+) disk/.exec(text)?.[1] ?? ''
}

const SayingSchema = z.object({
  said: z.array(z.object({ ok: z.boolean(), value: z.string().optional() })),
})

/** Flashes the disk, then asks for its one boot twice, as two flashes would. */
const SCRIPT = `
set -e
export PATH=/mnt/tools:$PATH
mount -t efivarfs efivarfs /sys/firmware/efi/efivars
disk=$(lsblk --nodeps --noheadings --paths -o NAME,SERIAL | awk '$2 == "TARGET" { print $1 }')
node runtime/bin/flasher.mjs flash --image /mnt/images/flashed.img --target $disk --yes >&2
efibootmgr >/tmp/before
node --input-type=module >/tmp/said -e "
  import { createNvram } from '/mnt/checkout/runtime/engine/disk/nvram.ts'
  import { createShell } from '/mnt/checkout/runtime/kit/host/shell.ts'
  const nvram = createNvram({ shell: createShell({ env: process.env }), arch: process.arch })
  const disk = { node: process.argv[1], sectorBytes: 512 }
  console.log(JSON.stringify({ said: [await nvram.bootOnce(disk), await nvram.bootOnce(disk)] }))
" $disk
efibootmgr >/tmp/after
sync
grep '^BootOrder' /tmp/before
grep '^BootOrder' /tmp/after
grep -c 'flasher flashed' /tmp/after
cat /tmp/said
`

run('once, and only once; the boot order stays', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-uefi-'))
  try {
    const vars = join(folder, 'vars.fd')
    await copyFile('/usr/share/OVMF/OVMF_VARS_4M.fd', vars)
    const images = join(folder, 'images')
    await mkdir(images)
    const own = await makeDisk(folder, 'own')
    const flashed = join(folder, 'target')
    await quiet`mv ${await makeDisk(images, 'flashed')} ${images}/flashed.img.tmp`
    await quiet`mv ${images}/flashed.img.tmp ${images}/flashed.img`
    const shares = { images, tools: await shareTool(folder) }
    {
      await using guest = await startGuest({
        disks: [{ name: 'target', bus: 'virtio', megabytes: 64, serial: 'TARGET' }],
        shares,
        // Two processors under UEFI stop each other's clocks in emulation.
        args: [...planFirmware(vars), '-smp', '1'],
      })
      const [before, after, count, ...said] = (await guest.require(SCRIPT)).trim().split('\n')
      assert.match(before ?? '', /^BootOrder: [0-9A-F]{4}/)
      assert.is(after, before)
      assert.is(count, '1')
      const told = SayingSchema.parse(JSON.parse(said.join('')))
      for (const { ok, value } of told.said) {
        assert.ok(ok)
        assert.match(
          value ?? '',
          /^the firmware boots it once, on the next boot \(Boot[0-9A-F]{4}\)$/,
        )
      }
      await copyFile(guest.fileOf('target'), flashed)
    }
    // The machine's own disk comes first by itself: only the firmware's memory says otherwise.
    assert.is(await bootAlone(vars, [own, flashed]), 'flashed')
    assert.is(await bootAlone(vars, [own, flashed]), 'own')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test.run()
