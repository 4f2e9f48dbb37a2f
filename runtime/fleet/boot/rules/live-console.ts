/** Paths by which the consoles of a live system agree who drives it, and show what is done. */
import { LIVE_PATHS } from '#appliance/contract.ts'

export type ConsolePaths = Readonly<Record<keyof typeof CONSOLE_PATHS, string>>

export const CONSOLE_PATHS = {
  kernelArguments: '/proc/cmdline',
  terminal: '/proc/self/fd/0',
  kmsg: '/dev/kmsg',
  console: '/dev/console',
  /** The driving console writes what it does here. */
  status: LIVE_PATHS.status,
  /** Consoles agree by this name who drives; it is no file. */
  lock: '/run/flasher/driver',
  /** Counts the tries of this boot: a program that died is tried again, but not for ever. */
  driven: '/run/flasher/driven',
}
