/** Fills the proxy's TFTP folder: from the server, else from what this host has. */
import { constants } from 'node:fs'
import { chmod, open } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder, removeName, replaceFile } from '#kit/host/folders.ts'
import { PROXY_FILES } from './rules/wish.ts'

/** Boot loaders have some MiB. */
const MAX_FILE_BYTES = 32 * 2 ** 20
const FETCH_MS = 15_000

/** Names of the files that are there then. Null: the server does not answer, or has trouble. */
export async function fillTftpFolder(
  folder: string,
  base: string,
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  await makeFolder(folder, 0o755)
  // Whatever our umask: dnsmasq runs as nobody.
  await chmod(folder, 0o755)
  const present: string[] = []
  for (const { name, path, local } of PROXY_FILES) {
    const fetched = await fetchFile(`${base}${path}`, signal)
    if (fetched === null) return null
    const bytes = fetched === 'absent' ? await readFirst(local) : fetched
    const place = join(folder, name)
    if (bytes === null) await removeName(place)
    else {
      await replaceFile(place, bytes, 0o644)
      await chmod(place, 0o644)
      present.push(name)
    }
  }
  return present
}

/** Null: no answer, or not now. Redirects lead to other servers, which are not asked. */
async function fetchFile(url: string, signal: AbortSignal): Promise<Buffer | 'absent' | null> {
  const limits = AbortSignal.any([signal, AbortSignal.timeout(FETCH_MS)])
  try {
    const answer = await fetch(url, { signal: limits, redirect: 'manual' })
    if (!answer.ok || answer.body === null) {
      await answer.body?.cancel()
      return answer.status === 404 ? 'absent' : null
    }
    const parts: Uint8Array[] = []
    let length = 0
    for await (const part of answer.body) {
      length += part.length
      if (length > MAX_FILE_BYTES) return 'absent'
      parts.push(part)
    }
    return Buffer.concat(parts)
  } catch {
    return null
  }
}

async function readFirst(paths: readonly string[]): Promise<Buffer | null> {
  for (const path of paths) {
    const bytes = await readBounded(path, MAX_FILE_BYTES).catch(() => null)
    if (bytes !== null && bytes.length > 0) return bytes
  }
  return null
}

/** A regular file that is no link; rejects with Node's error. Null: something else, or too large. */
export async function readBounded(path: string, most: number): Promise<Buffer | null> {
  // O_NONBLOCK: a pipe that somebody put there keeps nobody waiting.
  await using handle = await open(
    path,
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  )
  const facts = await handle.stat()
  if (!facts.isFile() || facts.size > most) return null
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(facts.size), 0, facts.size, 0)
  return buffer.subarray(0, bytesRead)
}
