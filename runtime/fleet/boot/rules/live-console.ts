/** Paths by which the consoles of a live system agree who drives it, and show what is done. */
import { LIVE_PATHS } from '../../../../appliance/contract.ts'

export type ConsolePaths = Readonly<Record<keyof typeof CONSOLE_PATHS, string>>

export const CONSOLE_PATHS = {
  kernelArguments: '/proc/cmdline',
  /** Leads to the terminal of our own standard input. */
  terminal: '/proc/self/fd/0',
  kmsg: '/dev/kmsg',
  console: '/dev/console',
  /** Where the console that drives writes what it does. */
  status: LIVE_PATHS.status,
  /** The name by which consoles agree who drives; it is no file. */
  lock: '/run/flasher/driver',
  /** Counts the tries of this boot, so that a program that died is tried again, but not for ever. */
  driven: '/run/flasher/driven',
}
