/** A machine that goes on where its kept live system stopped: in another network, at another time, with other disks. */
import { join } from 'node:path'
import type { Namespace } from '../../http/namespace.ts'
import { LAB_MAC } from '../../server/lab.ts'
import { openGuestSession } from '../guest-session.ts'
import { startQemu, type Qemu } from '../qemu.ts'
import { loadState } from './migration.ts'
import { planPlug, type PluggedDisk } from './plugged-disk.ts'
import { MEGABYTES, planMachine, type SnapshotFirmware } from './snapshot-machine.ts'
import { openSnapshot } from './snapshots.ts'

/** Seconds for a script in the guest. */
const PATIENCE = 240

export interface ContinuedOptions {
  readonly firmware: SnapshotFirmware
  readonly namespace: Namespace
  /** Where the line to the agent is put. */
  readonly folder: string
  /** The raw file of the SATA disk, which the guest finds by `findSata`. */
  readonly sata?: string
}

export interface ContinuedMachine extends Qemu {
  /** Runs a bash script as root in the live system; an exit code other than 0 is an Error. */
  require(script: string): Promise<string>
  /** Puts a disk into the running machine, and waits until the guest has it. `path`: its raw file. */
  plug(disk: PluggedDisk, path: string): Promise<void>
  /** Takes it away from under the guest. */
  pull(disk: string): Promise<void>
  /** Has the guest look at its AHCI controller, which it has not done so far. */
  findSata(): Promise<void>
  /** Cuts the network cable, or mends it. */
  setCable(isWhole: boolean): Promise<void>
}

let continued = 0

export async function continueMachine(options: ContinuedOptions): Promise<ContinuedMachine> {
  const { firmware, namespace, folder, sata } = options
  const snapshot = await openSnapshot(firmware)
  await using undo = new AsyncDisposableStack()
  continued += 1
  const agent = join(folder, `agent-${continued}`)
  const netdev = namespace.netdevs[0]
  const files = { netdev, memory: snapshot.memory, isKept: false, agent, sata }
  const args = [...planMachine(firmware, LAB_MAC, files), '-incoming', 'defer']
  const machine = undo.use(
    await startQemu({ namespace: namespace.name, megabytes: MEGABYTES, args }),
  )
  const { monitor } = machine
  await loadState(monitor, snapshot.state)
  const session = await openGuestSession(agent, machine.ended)
  await monitor.execute('cont')
  const require = async (script: string) => {
    const { exitCode, stdout, stderr } = await session.run(script, PATIENCE)
    if (exitCode === 0) return stdout
    const log = machine.keepLog()
    throw new Error(
      `exit code ${exitCode} in the live system of: ${script}\n${stdout}${stderr}\nthe serial log is ${log}`,
    )
  }
  await require(renderArrival())
  let ports = 0
  const held = undo.move()
  return {
    ...machine,
    require,
    async plug(disk, path) {
      const before = await require(COUNT_DISKS)
      if (disk.bus !== 'usb') ports += 1
      for (const { command, parameters } of planPlug(disk, path, ports)) {
        await monitor.execute(command, parameters)
      }
      await require(
        `until [ "$(${COUNT_DISKS})" -gt ${before.trim()} ]; do sleep 0.1; done; udevadm settle`,
      )
    },
    async pull(disk) {
      await monitor.execute('device_del', { id: disk })
    },
    findSata: async () => void (await require(FIND_SATA)),
    async setCable(isWhole) {
      await monitor.execute('set_link', { name: 'net', up: isWhole })
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const COUNT_DISKS = 'lsblk --nodeps --noheadings --include 8,252,253,254,259 | wc -l'

const FIND_SATA = `
for host in /sys/class/scsi_host/host*; do echo '- - -' >$host/scan; done
until [ -b /dev/sda ]; do sleep 0.1; done
udevadm settle
`

/** Since the machine stopped, time went by, and the addresses of the network's cards are others. */
const renderArrival = () => `
date --utc --set @${Math.floor(Date.now() / 1000)} >/dev/null
for card in /sys/class/net/e*; do ip neigh flush dev \${card##*/}; done
busybox chvt 1
`
