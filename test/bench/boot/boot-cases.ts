/** The boots that are measured, each to the wizard's prompt, and those that end before it for want of memory. */
import { startArmMachine } from '#test/support/vm/arm64-machine.ts'
import { startNetboot } from '#test/support/vm/netboot.ts'
import { startUsbMachine, type Firmware } from '#test/support/vm/usb-machine.ts'
import { makeUsbStick } from '#test/support/vm/usb-stick.ts'
import { weighKernel, type Artifacts } from './boot-artifacts.ts'
import { PEER_WORDS } from './boot-peer.ts'
import { BALLOON, PATIENCE, watchBoot, type Watched } from './boot-watch.ts'

export interface Booted extends Watched {
  /** Over the network: kernel, initrd and root. */
  readonly fetchedBytes: number
}

export const HANDED_OVER: RegExp = /flasher: handing over to the live system/
/** The last that systemd says of it in dracut's initrd before it goes there. */
const SYSROOT = /Mounted .*\/sysroot/
/** Two cores, as the least of machines has; tests make do with one (see `startQemu`). */
const args = ['-smp', '2', ...BALLOON]

export async function bootOurs({ trio }: Artifacts, megabytes: number): Promise<Booted> {
  await using boot = await startNetboot(trio, { megabytes, isAlone: true, args })
  const watched = await watchBoot(boot.machine, HANDED_OVER)
  return { ...watched, fetchedBytes: weighKernel(trio) + boot.countSent() }
}

export async function bootPeer({ peer }: Artifacts, megabytes: number): Promise<Booted> {
  const options = { megabytes, isAlone: true, append: PEER_WORDS, args }
  await using boot = await startNetboot(peer, options)
  const watched = await watchBoot(boot.machine, SYSROOT)
  return { ...watched, fetchedBytes: weighKernel(peer) + boot.countSent() }
}

/** A fresh stick: its images partition grows first. */
export async function bootStick(
  iso: string,
  firmware: Firmware,
  megabytes: number,
): Promise<Booted> {
  await using stick = await makeUsbStick({ iso, gigabytes: 2 })
  const medium = { stick: stick.path }
  await using machine = await startUsbMachine({ firmware, medium, megabytes, args })
  return { ...(await watchBoot(machine, HANDED_OVER)), fetchedBytes: 0 }
}

/** `image`: of the stick for boards, unpacked. */
export async function bootBoard(image: string, megabytes: number): Promise<Booted> {
  await using stick = await makeUsbStick({ iso: image, gigabytes: 2 })
  const options = { firmware: 'uefi', stick: stick.path, megabytes, args } as const
  await using machine = await startArmMachine(options)
  return { ...(await watchBoot(machine, HANDED_OVER)), fetchedBytes: 0 }
}

/** Gives the reason that the machine names; throws where its kernel panics. */
export async function bootPoor({ trio }: Artifacts, megabytes: number): Promise<string> {
  await using boot = await startNetboot(trio, { megabytes })
  const said = await boot.machine.waitFor(/flasher: FAILED: .*\n|panic/, PATIENCE)
  const reason = /FAILED: (.*\S)/.exec(said)?.[1]
  if (reason === undefined) throw new Error(`${megabytes} MiB of memory: the kernel panics`)
  return reason
}
