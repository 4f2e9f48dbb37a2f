/** Disks that are plugged into a running machine, healthy or not, as commands for QEMU's monitor. */
import { statSync } from 'node:fs'
import { PORTS } from './snapshot-machine.ts'

/** QEMU counts by the numbers of Linux. */
const EIO = 5

export interface PluggedDisk {
  /** Names the disk towards the host: its file, and the device that a test may pull out. */
  readonly name: string
  readonly bus: 'virtio' | 'nvme' | 'usb'
  /** 512 when absent. */
  readonly sectorBytes?: 512 | 4096
  /** None when absent; NVMe cannot be without. */
  readonly serial?: string
  /** Writes are no faster than this; no limit when absent. */
  readonly bytesPerSecond?: number
  /** Writes fail with an I/O error: all of them, or those that touch this 512-byte sector. */
  readonly failsAt?: 'everywhere' | number
  /** Reads that touch this 512-byte sector fail. */
  readonly readsFailAt?: number
  /** `write-protected`: it can be read alone; `counterfeit`: it takes everything, and keeps nothing. */
  readonly is?: 'write-protected' | 'counterfeit'
}

export interface MonitorCommand {
  readonly command: string
  readonly parameters: Readonly<Record<string, unknown>>
}

/** `path`: the raw file; `port`: the number of the PCIe port, from 1. */
export function planPlug(disk: PluggedDisk, path: string, port: number): readonly MonitorCommand[] {
  if (port > PORTS) throw new Error(`there are only ${PORTS} ports for disks`)
  return [
    ...planThrottle(disk),
    { command: 'blockdev-add', parameters: planNode(disk, path) },
    { command: 'device_add', parameters: planDevice(disk, port) },
  ]
}

const groupOf = ({ name }: PluggedDisk) => `group-${name}`

function planThrottle(disk: PluggedDisk): readonly MonitorCommand[] {
  if (disk.bytesPerSecond === undefined) return []
  const limits = { 'bps-write': disk.bytesPerSecond }
  const parameters = { 'qom-type': 'throttle-group', id: groupOf(disk), limits }
  return [{ command: 'object-add', parameters }]
}

function planNode(disk: PluggedDisk, path: string) {
  const raw = { driver: 'raw', file: planFile(disk, path) }
  const name = { 'node-name': `node-${disk.name}` }
  if (disk.is === 'write-protected') return { ...raw, ...name, 'read-only': true }
  if (disk.bytesPerSecond === undefined) return { ...raw, ...name }
  return { driver: 'throttle', 'throttle-group': groupOf(disk), file: raw, ...name }
}

/** The errors are those of the host's own reads and writes: the guest's controller reports them. */
function planFile({ failsAt, readsFailAt, is }: PluggedDisk, path: string) {
  if (is === 'counterfeit') {
    return { driver: 'null-co', size: statSync(path).size, 'read-zeroes': true }
  }
  const file = { driver: 'file', filename: path }
  const errors = [...planErrors('write', failsAt), ...planErrors('read', readsFailAt)]
  return errors.length === 0 ? file : { driver: 'blkdebug', image: file, 'inject-error': errors }
}

function planErrors(iotype: 'read' | 'write', at: PluggedDisk['failsAt']) {
  if (at === undefined) return []
  const where = at === 'everywhere' ? {} : { sector: at }
  return [{ event: 'none', iotype, errno: EIO, ...where }]
}

const DRIVERS: Readonly<Record<PluggedDisk['bus'], string>> = {
  virtio: 'virtio-blk-pci',
  nvme: 'nvme',
  usb: 'usb-storage',
}

const planDevice = ({ name, bus, serial, sectorBytes }: PluggedDisk, port: number) => ({
  driver: DRIVERS[bus],
  id: name,
  drive: `node-${name}`,
  bus: bus === 'usb' ? 'usb.0' : `port-${port}`,
  ...(serial === undefined ? {} : { serial }),
  ...(sectorBytes === undefined
    ? {}
    : { logical_block_size: sectorBytes, physical_block_size: sectorBytes }),
})
