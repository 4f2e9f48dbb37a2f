/** Reads the boot ID of the kernel: data written during the same boot may still be in memory only. */
import { readFile } from 'node:fs/promises'

/** Null where the kernel does not say. */
export async function readBootId(): Promise<string | null> {
  const text = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  return /^[0-9a-f-]{36}\s*$/.test(text) ? text.trim() : null
}
