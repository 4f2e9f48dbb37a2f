/** Reads whether firmware started this machine with Secure Boot on, from the variable that UEFI keeps. */
import { readFile } from 'node:fs/promises'

const VARIABLE = '/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c'
/** Linux puts four bytes of attributes before the value. */
const VALUE_AT = 4

/** Null: a BIOS, or unreadable. */
export async function readSecureBoot(path = VARIABLE): Promise<boolean | null> {
  const content = await readFile(path).catch(() => null)
  const value = content?.[VALUE_AT]
  return value === undefined ? null : value === 1
}
