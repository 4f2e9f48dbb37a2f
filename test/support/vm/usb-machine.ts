/** A machine that starts from our ISO: as a stick or a disc, by a BIOS or by UEFI. */
import { startQemu, type Qemu } from './qemu.ts'

/** How the firmware comes to the boot loader; `secure` refuses all that Microsoft's keys did not sign. */
export type Firmware = 'bios' | 'uefi' | 'secure'

export interface UsbMachineOptions {
  readonly firmware: Firmware
  /** The file of a stick, which is written to and is `stick` for the monitor; or an ISO as a disc. */
  readonly medium: { readonly stick: string } | { readonly disc: string }
  readonly megabytes?: number
  /** Raw image of an NVMe disk, serial `FLASHER0001`. */
  readonly disk?: string
  /** Arguments that are added to those of QEMU. */
  readonly args?: readonly string[]
}

const flash = (code: string, vars: string): readonly string[] =>
  [`readonly=on,file=/usr/share/OVMF/${code}`, `snapshot=on,file=/usr/share/OVMF/${vars}`].flatMap(
    (file, unit) => ['-drive', `if=pflash,format=raw,unit=${unit},${file}`],
  )

export const FIRMWARE_ARGS: Readonly<Record<Firmware, readonly string[]>> = {
  bios: [],
  uefi: flash('OVMF_CODE_4M.fd', 'OVMF_VARS_4M.fd'),
  secure: [
    '-machine',
    'smm=on',
    '-global',
    'driver=cfi.pflash01,property=secure,value=on',
    ...flash('OVMF_CODE_4M.ms.fd', 'OVMF_VARS_4M.ms.fd'),
  ],
}

/** Needs the packages qemu-system-x86 and, for UEFI, ovmf. */
export const startUsbMachine = (options: UsbMachineOptions): Promise<Qemu> =>
  startQemu({
    megabytes: options.megabytes ?? 1024,
    args: [
      ...FIRMWARE_ARGS[options.firmware],
      ...COMMON,
      ...planMedium(options.medium),
      ...(options.disk === undefined ? [] : planDisk(options.disk)),
      ...(options.args ?? []),
    ],
  })

/** The screen is a small one: 100 columns, 30 rows. */
const COMMON = [
  ['-vga', 'std', '-global', 'VGA.xres=800', '-global', 'VGA.yres=480'],
  ['-device', 'virtio-rng-pci', '-device', 'qemu-xhci'],
].flat()

const planMedium = (medium: UsbMachineOptions['medium']): readonly string[] =>
  'stick' in medium
    ? [
        '-drive',
        `if=none,id=medium,format=raw,file=${medium.stick}`,
        '-device',
        'usb-storage,id=stick,drive=medium,removable=on,bootindex=0',
      ]
    : [
        '-drive',
        `if=none,id=medium,format=raw,readonly=on,media=cdrom,file=${medium.disc}`,
        '-device',
        'ide-cd,drive=medium,bootindex=0',
      ]

const planDisk = (path: string): readonly string[] => [
  '-drive',
  `if=none,id=disk,format=raw,file=${path}`,
  '-device',
  'nvme,drive=disk,serial=FLASHER0001',
]
