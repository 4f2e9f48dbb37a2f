/** A machine for arm64 with UEFI, which starts from a stick. */
import { startQemu, type Qemu } from './qemu.ts'

/** How the firmware comes to the boot loader; `secure` refuses all that Microsoft's keys did not sign. */
export type ArmFirmware = 'uefi' | 'secure'

export interface ArmMachineOptions {
  readonly firmware: ArmFirmware
  /** The file of a stick, which is written to. */
  readonly stick: string
  readonly megabytes?: number
  /** Raw image of an NVMe disk, serial `FLASHER0001`. */
  readonly disk?: string
  /** Raw image of an SD card, of 2^n bytes. */
  readonly card?: string
  /** Arguments that are added to those of QEMU. */
  readonly args?: readonly string[]
}

const planFlash = (code: string, vars: string): readonly string[] =>
  [
    `readonly=on,file=/usr/share/AAVMF/${code}`,
    `snapshot=on,file=/usr/share/AAVMF/${vars}`,
  ].flatMap((file, unit) => ['-drive', `if=pflash,format=raw,unit=${unit},${file}`])

export const ARM_FIRMWARE: Readonly<Record<ArmFirmware, readonly string[]>> = {
  uefi: planFlash('AAVMF_CODE.fd', 'AAVMF_VARS.fd'),
  secure: planFlash('AAVMF_CODE.ms.fd', 'AAVMF_VARS.ms.fd'),
}

/** Needs the packages qemu-system-arm and qemu-efi-aarch64. */
export const startArmMachine = (options: ArmMachineOptions): Promise<Qemu> =>
  startQemu({
    processor: 'aarch64',
    megabytes: options.megabytes ?? 1024,
    args: [
      ...ARM_FIRMWARE[options.firmware],
      ...planStick(options.stick),
      ...(options.disk === undefined ? [] : planDisk(options.disk)),
      ...(options.card === undefined ? [] : planCard(options.card)),
      ...(options.args ?? []),
    ],
  })

const planStick = (path: string): readonly string[] => [
  ...['virtio-rng-pci', 'qemu-xhci'].flatMap((device) => ['-device', device]),
  '-drive',
  `if=none,id=medium,format=raw,file=${path}`,
  '-device',
  'usb-storage,id=stick,drive=medium,removable=on,bootindex=0',
]

const planDisk = (path: string): readonly string[] => [
  '-drive',
  `if=none,id=disk,format=raw,file=${path}`,
  '-device',
  'nvme,drive=disk,serial=FLASHER0001',
]

const planCard = (path: string): readonly string[] => [
  '-device',
  'sdhci-pci',
  '-drive',
  `if=none,id=card,format=raw,file=${path}`,
  '-device',
  'sd-card,drive=card',
]
