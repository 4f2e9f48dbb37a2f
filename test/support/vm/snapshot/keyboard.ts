/** Types on the keyboard of a virtual machine. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Monitor } from '../qemu-monitor.ts'

/** By their names in QEMU, where these are not themselves. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  ' ': ['spc'],
  '\n': ['ret'],
  '.': ['dot'],
  '/': ['slash'],
  '-': ['minus'],
  ';': ['semicolon'],
  '<': ['shift', 'comma'],
  '>': ['shift', 'dot'],
  '@': ['shift', '2'],
  '&': ['shift', '7'],
  '|': ['shift', 'backslash'],
}

/** Milliseconds between two keys, so that a busy machine reads each of them. */
const PAUSE_MS = 150

/** Presses keys together, by QEMU's names of them: `['alt', 'f2']`. */
export async function press(monitor: Monitor, keys: readonly string[]): Promise<void> {
  await monitor.execute('send-key', { keys: keys.map((data) => ({ type: 'qcode', data })) })
}

/** Types a text of letters, digits and the signs above, as on an American keyboard. */
export async function type(monitor: Monitor, text: string): Promise<void> {
  for (const key of text) {
    const isCapital = /[A-Z]/.test(key)
    await press(monitor, KEYS[key] ?? [...(isCapital ? ['shift'] : []), key.toLowerCase()])
    await sleep(PAUSE_MS)
  }
}
