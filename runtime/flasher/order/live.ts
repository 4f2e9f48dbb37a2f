/** What each console of the live system starts when a server of this line booted the machine. */
import { CONSOLE_PATHS } from '#fleet/boot/rules/live-boot.ts'
import { readKernelArguments, serveConsole } from '#flasher/live-system/live-console.ts'
import {
  isForPerson,
  parseKernelOrder,
  renderGuestArgs,
  type KernelOrder,
} from './rules/kernel-order.ts'
import type { EarlierConsole } from './order.ts'

/** Whether a server of this line booted this machine. */
export const readIsOrdered = async (): Promise<boolean> =>
  parseKernelOrder(await readKernelArguments(CONSOLE_PATHS.kernelArguments)) !== null

/** The exit code; 0 tells the service manager that nothing is left to do. */
export const serveEarlierConsole = (console: EarlierConsole): Promise<number> =>
  serveConsole(console, (kernelArguments) => {
    const order = parseKernelOrder(kernelArguments)
    const guestArgs = order === null ? [] : renderGuestArgs(order)
    return {
      drive: order === null || isForPerson(order) ? null : () => drive(order, console),
      guest: () => console.tui(guestArgs, { reason: null }),
    }
  })

async function drive(order: KernelOrder, console: EarlierConsole): Promise<number> {
  const { carryOut } = await import('./order.ts')
  return await carryOut(order, console)
}
