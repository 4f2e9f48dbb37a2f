/** The machine whose booted live system is kept: the same devices when it is made and when it is continued. */
import { FIRMWARE } from '../ipxe.ts'
import { SECURE_FIRMWARE } from '../secure-firmware.ts'

/** How it came to the live system; `secure`: UEFI that enforces Secure Boot with Microsoft's keys. */
export const SNAPSHOT_FIRMWARES = ['bios', 'uefi', 'secure'] as const
export type SnapshotFirmware = (typeof SNAPSHOT_FIRMWARES)[number]

export const MEGABYTES = 1024
/** PCIe ports, into each of which a disk can be plugged: `port-1` and so on. */
export const PORTS = 6
/** The disk on the AHCI controller, which can't be plugged in: the guest looks for it when a test wants it. */
export const SATA = { name: 'sata', serial: 'SATA0001', megabytes: 1024 } as const

export interface MachineFiles {
  /** The value of QEMU's `-netdev`, with the id `net`. */
  readonly netdev: string
  /** The file that is the machine's memory. */
  readonly memory: string
  /** Whether what the machine writes to its memory reaches that file. */
  readonly isKept: boolean
  /** The socket of the line to the agent; absent: the machine has no second serial line. */
  readonly agent?: string
  /** The raw file of the SATA disk; absent: one that is empty. */
  readonly sata?: string | undefined
}

interface FirmwareOptions {
  readonly args: readonly string[]
  /** Words that are added to those of the network card. */
  readonly card: string
}

const OF_FIRMWARE: Readonly<Record<SnapshotFirmware, FirmwareOptions>> = {
  bios: { args: [], card: '' },
  uefi: { args: FIRMWARE.uefi, card: ',romfile=' },
  secure: { args: SECURE_FIRMWARE, card: ',romfile=' },
}

/**
 * QEMU's arguments. The generation tells the guest's kernel that it was continued, so that each test
 * has random numbers of its own.
 */
export function planMachine(
  firmware: SnapshotFirmware,
  mac: string,
  { netdev, memory, isKept, agent, sata }: MachineFiles,
): readonly string[] {
  const { args, card } = OF_FIRMWARE[firmware]
  const share = isKept ? 'on' : 'off'
  const empty = `driver=null-co,size=${SATA.megabytes}M,read-zeroes=on`
  const disk = sata === undefined ? empty : `format=raw,file=${sata}`
  const ports = Array.from(
    { length: PORTS },
    (_, n) => `pcie-root-port,id=port-${n + 1},chassis=${n + 1},slot=${n + 1}`,
  )
  const devices = [
    `virtio-net-pci,netdev=net,mac=${mac},bootindex=1${card}`,
    'virtio-rng-pci',
    'vmgenid,guid=auto',
    'qemu-xhci,id=usb',
    ...ports,
    `ide-hd,bus=ide.0,drive=drive-${SATA.name},id=${SATA.name},serial=${SATA.serial}`,
  ]
  return [
    args,
    // Consoles are switched on a screen alone: the agent is started from the second one.
    ['-vga', 'std'],
    ['-machine', 'memory-backend=memory'],
    [
      '-object',
      `memory-backend-file,id=memory,size=${MEGABYTES}M,mem-path=${memory},share=${share}`,
    ],
    ...(agent === undefined ? [] : planAgent(agent)),
    ['-netdev', netdev],
    ['-drive', `if=none,id=drive-${SATA.name},${disk}`],
    ...devices.map((device) => ['-device', device]),
  ].flat()
}

const planAgent = (path: string) => [
  ['-chardev', `socket,id=agent,path=${path},server=on,wait=off`],
  ['-serial', 'chardev:agent'],
]
