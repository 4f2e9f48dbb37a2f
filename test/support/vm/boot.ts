/** Boots a disk on its own, as a machine would, up to the login prompt on its serial line. */
import { startQemu } from './qemu.ts'

/** Seconds, ten times what a free machine needs: other work may have the processors. */
const PATIENCE = 240

const UEFI = [
  'readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd',
  'snapshot=on,file=/usr/share/OVMF/OVMF_VARS_4M.fd',
]

const FIRMWARE: Readonly<Record<'bios' | 'uefi', readonly string[]>> = {
  bios: [],
  uefi: UEFI.flatMap((file, unit) => ['-drive', `if=pflash,format=raw,unit=${unit},${file}`]),
}

/** How the machine sees its disk. */
const BUS = {
  virtio: ['-device', 'virtio-blk-pci,drive=disk'],
  nvme: ['-device', 'nvme,drive=disk,serial=flasher-test'],
  sata: ['-device', 'ide-hd,drive=disk'],
  usb: ['-device', 'qemu-xhci', '-device', 'usb-storage,drive=disk'],
} as const satisfies Record<string, readonly string[]>

export interface BootOptions {
  /** A BIOS when absent; `uefi` needs the package ovmf. */
  readonly firmware?: keyof typeof FIRMWARE
  /** virtio when absent. */
  readonly bus?: keyof typeof BUS
}

/**
 * Returns all that the serial line said up to `login:`, or rejects with its end and the path of
 * the whole. `disk`: an image file or a block device; what the machine writes is thrown away.
 */
export async function bootToLogin(
  disk: string,
  { firmware = 'bios', bus = 'virtio' }: BootOptions = {},
): Promise<string> {
  const drive = `if=none,id=disk,format=raw,snapshot=on,file=${disk.replaceAll(',', ',,')}`
  const args = [...FIRMWARE[firmware], '-drive', drive, ...BUS[bus]]
  await using machine = await startQemu({ args })
  return await machine.waitFor(/login: /, PATIENCE)
}
