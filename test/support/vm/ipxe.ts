/** A machine whose network card holds a real iPXE, and which boots from a server on this host. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startQemu, type Qemu } from './qemu.ts'

/** QEMU's user network shows the host to its guests at this address. */
export const HOST_SEEN_BY_GUESTS = '10.0.2.2'

export type Firmware = 'bios' | 'uefi'

const PFLASH = [
  'readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd',
  'snapshot=on,file=/usr/share/OVMF/OVMF_VARS_4M.fd',
]

/**
 * A BIOS and its iPXE need a machine without a graphics card to speak on the serial line; UEFI does so
 * anyway.
 */
export const FIRMWARE: Readonly<Record<Firmware, readonly string[]>> = {
  bios: ['-machine', 'graphics=off'],
  uefi: PFLASH.flatMap((file, unit) => ['-drive', `if=pflash,format=raw,unit=${unit},${file}`]),
}

export interface IpxeOptions {
  readonly firmware: Firmware
  readonly mac: string
  /** What DHCP names as the boot file; the server listens on 127.0.0.1. */
  readonly port: number
  /** `/pxe-bootstrap.ipxe` when absent. */
  readonly path?: string
  /** A disk image that the machine boots when it is sent to its disk. */
  readonly disk?: string
}

/** Needs the packages qemu-system-x86, ipxe-qemu and, for UEFI, ovmf. No root, no real network. */
export function startIpxe(options: IpxeOptions): Promise<Qemu> {
  const { firmware, mac, port, path = '/pxe-bootstrap.ipxe', disk } = options
  const script = `http://${HOST_SEEN_BY_GUESTS}:${port}${path}`
  return startQemu({
    cores: 1,
    megabytes: 512,
    args: [
      ...FIRMWARE[firmware],
      ...planCard(script, mac),
      ...(disk === undefined ? [] : planDisk(disk)),
    ],
  })
}

const planCard = (script: string, mac: string): readonly string[] => [
  '-netdev',
  `user,id=net,bootfile=${script}`,
  '-device',
  `virtio-net-pci,netdev=net,mac=${mac},bootindex=1`,
]

const planDisk = (path: string): readonly string[] => [
  '-drive',
  `if=none,id=disk,format=raw,file=${path}`,
  '-device',
  'ide-hd,drive=disk,bootindex=2',
]

/** What the disk below says when a BIOS boots it. */
export const DISK_SAYS = 'this is the disk'

/** A disk of one sector that says so on the screen and stops. */
export async function makeTalkingDisk(folder: string): Promise<string> {
  const sector = Buffer.alloc(512)
  // xor ax,ax; mov ds,ax; mov si,text; next: lodsb; test al,al; jz end; mov ah,14; int 16; jmp next
  // end: hlt; jmp end
  sector.write('31c08ed8be157cac84c07406b40ecd10ebf5f4ebfd', 'hex')
  sector.write(`\r\n${DISK_SAYS}\r\n\0`, 0x15, 'latin1')
  sector.writeUInt16BE(0x55aa, 510)
  const path = join(folder, 'disk.img')
  await writeFile(path, Buffer.concat([sector, Buffer.alloc(2 ** 20 - 512)]))
  return path
}
