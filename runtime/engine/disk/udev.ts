/** Waits for udev, which loads drivers and names what they find. */
import type { Shell } from '#kit/host/shell.ts'
import { setTimeout as pause } from 'node:timers/promises'

const START_COLDPLUG = ['systemctl', 'start', 'systemd-udev-trigger.service']

interface SettleOptions {
  /** Seconds at most; absent: 10. */
  readonly seconds?: number
  readonly signal?: AbortSignal
}

/**
 * After a boot: first waits until udev knows the devices of before, then as `settleDevices`; at
 * most `seconds` each.
 */
export async function settleFirstDevices(
  shell: Shell,
  options: SettleOptions & Required<Pick<SettleOptions, 'seconds'>>,
): Promise<void> {
  const { seconds, ...rest } = options
  // systemd has begun that already: systemctl waits until it is done.
  if (await shell.has('systemctl'))
    await shell.run(START_COLDPLUG, { ...rest, timeout: seconds * 1000 }).catch(() => null)
  await settleDevices(shell, options)
}

/** Waits for udev's events so far, at most `seconds`; returns at once without udev. */
export async function settleDevices(
  shell: Shell,
  { seconds = 10, ...options }: SettleOptions = {},
): Promise<void> {
  if (!(await shell.has('udevadm'))) return
  await shell.run(['udevadm', 'settle', `--timeout=${seconds}`], options)
}

/** udev may hold a disk for a moment that was closed after writing. */
const TRIES = 5
const PAUSE_MS = 200

/** Best effort: a disk that cannot be re-read shows its partitions after the next start. */
export async function rereadPartitions(shell: Shell, node: string): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { exitCode, stderr } = await shell.run(['blockdev', '--rereadpt', node])
    // The kernel never reads some disks (loop devices): no use in waiting.
    if (exitCode === 0 || !stderr.includes('busy')) break
    await pause(PAUSE_MS)
  }
  // For kernels that do not read tables by themselves.
  await shell.run(['partx', '--update', node])
  await settleDevices(shell)
}
