/** A token in a file that only its owner can read; it authorizes changes to the service beside it. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { replaceFile } from '#kit/host/atomic-file.ts'

export async function readLocalToken(path: string): Promise<string | null> {
  const text = await readFile(path, 'latin1').catch(() => '')
  return /^[\w-]{32,100}\s*$/.test(text) ? text.trim() : null
}

/** Makes a token (mode 0600) if there is none. Rejects if the file cannot be written. */
export async function ensureLocalToken(path: string): Promise<string> {
  const found = await readLocalToken(path)
  if (found !== null) return found
  const token = randomBytes(32).toString('base64url')
  await replaceFile(path, `${token}\n`, 0o600)
  return token
}

/** Compares in constant time; an empty secret matches nothing. */
export function isOneOf(given: string, secrets: readonly string[]): boolean {
  const wanted = digest(given)
  const hits = secrets.filter((each) => each.trim() !== '' && timingSafeEqual(digest(each), wanted))
  return hits.length > 0
}

const digest = (text: string) => createHash('sha256').update(text).digest()
