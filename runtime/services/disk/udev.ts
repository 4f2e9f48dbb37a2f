/** Waits for udev, which loads drivers and names what they find. */
import type { Shell } from '../host/shell.ts'

interface SettleOptions {
  /** Seconds at most; absent: 10. */
  readonly seconds?: number
  readonly signal?: AbortSignal
}

/** Until all events so far have been handled; at once where there is no udev. */
export async function settleDevices(
  shell: Shell,
  { seconds = 10, ...options }: SettleOptions = {},
): Promise<void> {
  if (!(await shell.has('udevadm'))) return
  await shell.run(['udevadm', 'settle', `--timeout=${seconds}`], options)
}
