/** Waits for udev, which loads drivers and names what they find. */
import type { Shell } from '#kit/host/shell.ts'

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
