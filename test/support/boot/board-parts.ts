/** Stand-ins of what images for boards are made of: files of the right names and places, each with its name as content. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { UEFI_LOADERS } from '#build/board/firmware.ts'
import { PI_BOARDS } from './pi-boot.ts'

/** In `folder`: Debian's boot packages below `packages`, the tree of packages below `tree`, and the rest. */
export function makeBoardParts(folder: string): void {
  const put = (path: string, content = path) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  for (const path of Object.values(UEFI_LOADERS)) put(`packages/${path}`)
  for (const name of ['start4.elf', 'fixup4.dat', 'start.elf']) {
    put(`packages/usr/lib/raspi-firmware/${name}`)
  }
  const trees = [...PI_BOARDS.pi4, ...PI_BOARDS.pi5, 'bcm2837-rpi-3-b.dtb']
  for (const name of trees) put(`tree/usr/lib/modules/1.2.3-arm64/dtb/broadcom/${name}`)
  for (const name of ['kernel', 'initrd', 'squashfs', 'uboot']) put(name)
}
