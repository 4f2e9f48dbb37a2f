/** A machine that goes on where its kept live system stopped, in another network and at another time; or begins at its firmware. */
import { join } from 'node:path'
import type { Namespace } from '#test/support/http/namespace.ts'
import { LAB_MAC } from '#test/support/server/lab.ts'
import { openGuestSession } from '../guest-session.ts'
import { startQemu } from '../qemu.ts'
import { loadState } from './migration.ts'
import { MEGABYTES, planMachine, type SnapshotFirmware } from './snapshot-machine.ts'
import { openSnapshot } from './snapshots.ts'
import { createStoryMachine, type StoryMachine } from './story-machine.ts'

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

let started = 0

export async function continueMachine(options: ContinuedOptions): Promise<StoryMachine> {
  const { firmware, namespace, folder, sata } = options
  const snapshot = await openSnapshot(firmware)
  await using undo = new AsyncDisposableStack()
  started += 1
  const agent = join(folder, `agent-${started}`)
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
  undo.move()
  return createStoryMachine(machine, require)
}

/** The same machine from its firmware on. It is stopped before its first instruction, until `cont`. */
export async function powerOnMachine(options: ContinuedOptions): Promise<StoryMachine> {
  const { firmware, namespace, folder, sata } = options
  started += 1
  const memory = join(folder, `memory-${started}`)
  const files = { netdev: namespace.netdevs[0], memory, isKept: false, sata }
  const args = [...planMachine(firmware, LAB_MAC, files), '-S']
  const machine = await startQemu({ namespace: namespace.name, megabytes: MEGABYTES, args })
  return createStoryMachine(machine, null)
}

/** Since the machine stopped, time went by, and the addresses of the network's cards are others. */
const renderArrival = () => `
date --utc --set @${Math.floor(Date.now() / 1000)} >/dev/null
for card in /sys/class/net/e*; do ip neigh flush dev \${card##*/}; done
busybox chvt 1
`
