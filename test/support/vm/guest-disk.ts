/** Disks of a guest: a file of the host, seen through a controller of one kind or another. */

export interface GuestDisk {
  /** Names the disk towards the host: its file, and the device that a test may pull out. */
  readonly name: string
  readonly bus: 'virtio' | 'nvme' | 'scsi' | 'usb' | 'sata'
  readonly megabytes: number
  /** None when absent; NVMe cannot be without. */
  readonly serial?: string
  /** 512 when absent. */
  readonly sectorBytes?: 512 | 4096
  /** Writes are no faster than this; no limit when absent. */
  readonly bytesPerSecond?: number
}

/** Where each kind hangs. PCI devices get a port of their own, from which they can be pulled. */
const DEVICES: Readonly<Record<GuestDisk['bus'], (name: string) => string>> = {
  virtio: (name) => `virtio-blk-pci,bus=port-${name}`,
  nvme: (name) => `nvme,bus=port-${name}`,
  scsi: () => 'scsi-hd,bus=scsi.0',
  usb: () => 'usb-storage,bus=usb.0',
  sata: () => 'ide-hd',
}

const isOnPort = ({ bus }: GuestDisk) => bus === 'virtio' || bus === 'nvme'

/** QEMU's arguments for the disks, whose files lie in `folder` under their names. */
export function planDisks(disks: readonly GuestDisk[], folder: string): readonly string[] {
  const controllers = ['virtio-scsi-pci,id=scsi', 'qemu-xhci,id=usb']
  const ports = disks
    .filter(isOnPort)
    .map(({ name }, n) => `pcie-root-port,id=port-${name},chassis=${n + 1}`)
  const each = disks.map((disk) =>
    [DEVICES[disk.bus](disk.name), ...planProperties(disk)].join(','),
  )
  return [
    ...disks.flatMap((disk) => ['-drive', planDrive(disk, folder)]),
    ...[...controllers, ...ports, ...each].flatMap((device) => ['-device', device]),
  ]
}

const planDrive = ({ name, bytesPerSecond = 0 }: GuestDisk, folder: string) =>
  `if=none,format=raw,id=drive-${name},file=${folder}/${name},throttling.bps-write=${bytesPerSecond}`

const planProperties = ({ name, serial, sectorBytes }: GuestDisk): readonly string[] => [
  `id=${name}`,
  `drive=drive-${name}`,
  ...(serial === undefined ? [] : [`serial=${serial}`]),
  ...(sectorBytes === undefined
    ? []
    : [`logical_block_size=${sectorBytes}`, `physical_block_size=${sectorBytes}`]),
]
