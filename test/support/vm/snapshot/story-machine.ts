/** The machine of a story: disks are plugged into it and pulled out, its cable is cut, and scripts run in its live system. */
import { readFileSync } from 'node:fs'
import type { Qemu } from '../qemu.ts'
import { planPlug, type PluggedDisk } from './plugged-disk.ts'

export interface StoryMachine extends Qemu {
  /** Runs a bash script as root in the live system; an exit code other than 0 is an Error. */
  require(script: string): Promise<string>
  /** Puts a disk into the machine, and waits until a guest that runs has it. `path`: its raw file. */
  plug(disk: PluggedDisk, path: string): Promise<void>
  /** Takes it away from under the guest. */
  pull(disk: string): Promise<void>
  /** Has the guest look at its AHCI controller, which it has not done so far. */
  findSata(): Promise<void>
  /** Cuts the network cable, or mends it. */
  setCable(isWhole: boolean): Promise<void>
  /** Processor time that QEMU has taken so far, in seconds; of one that has ended, as of the last call. */
  readProcessorSeconds(): number
}

type RunScript = StoryMachine['require']

/** `require` runs scripts in the guest; null: it does not run yet, and finds its disks when it starts. */
export function createStoryMachine(machine: Qemu, require: RunScript | null): StoryMachine {
  const { monitor } = machine
  let ports = 0
  let seconds = 0
  const plan = async (disk: PluggedDisk, path: string) => {
    if (disk.bus !== 'usb') ports += 1
    for (const { command, parameters } of planPlug(disk, path, ports)) {
      await monitor.execute(command, parameters)
    }
  }
  return {
    ...machine,
    require: require ?? (() => Promise.reject(new Error('this live system has no agent'))),
    async plug(disk, path) {
      if (require === null) return await plan(disk, path)
      const before = await require(COUNT_DISKS)
      await plan(disk, path)
      await require(
        `until [ "$(${COUNT_DISKS})" -gt ${before.trim()} ]; do sleep 0.1; done; udevadm settle`,
      )
    },
    async pull(disk) {
      await monitor.execute('device_del', { id: disk })
    },
    findSata: async () => void (await require?.(FIND_SATA)),
    async setCable(isWhole) {
      await monitor.execute('set_link', { name: 'net', up: isWhole })
    },
    readProcessorSeconds() {
      seconds = readProcessorSeconds(machine.pid) ?? seconds
      return seconds
    },
  }
}

const COUNT_DISKS = 'lsblk --nodeps --noheadings --include 8,252,253,254,259 | wc -l'

const FIND_SATA = `
for host in /sys/class/scsi_host/host*; do echo '- - -' >$host/scan; done
until [ -b /dev/sda ]; do sleep 0.1; done
udevadm settle
`

/** `utime` and `stime` are the twelfth and thirteenth word behind the name, in hundredths of a second. Null: it has ended. */
function readProcessorSeconds(pid: number): number | null {
  const words = readStat(pid).split(') ').at(-1)?.split(' ') ?? []
  const [user, system] = [Number(words[11]), Number(words[12])]
  return user + system > 0 ? (user + system) / 100 : null
}

function readStat(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return ''
  }
}
