/** A folder of the cache as the release before left it when it was killed: the layout is written here, not read from our code. */
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SOURCE, type CapturedImage } from '../capture/uploads.ts'

export const UPLOAD = 'a'.repeat(32)
export const WHOLE_UPLOAD = 'b'.repeat(32)
export const CAPTURE = 'c'.repeat(32)
export const ANNOUNCED_CAPTURE = 'd'.repeat(32)
export const WAITING_CAPTURE = 'e'.repeat(32)

/** What has come of each unfinished one. */
export const CAME = 1_000_000
const NOW = '2026-11-20T10:00:00.000Z'

export const sha256Of = (bytes: string | Uint8Array): string =>
  createHash('sha256').update(bytes).digest('hex')

interface BeforeOptions {
  readonly image: CapturedImage
  /** The token of the capture that is unfinished. */
  readonly token: string
  /** The address of a download. */
  readonly src: string
}

/** `folder`: that of the cache. */
export async function leaveBehind(folder: string, { image, token, src }: BeforeOptions) {
  const data = join(folder, '.cache')
  for (const name of ['records', 'uploads', 'captures', 'parts', 'blobs'])
    await mkdir(join(data, name), { recursive: true, mode: 0o700 })
  const { file, end } = image
  const record = (name: string, content: object) =>
    writeFile(join(data, 'records', `${name}.json`), JSON.stringify(content), { mode: 0o600 })

  async function upload(id: string, name: string, came: number) {
    const isWhole = came === file.length
    // The bytes behind those that were safe are what a power cut leaves.
    const rest = isWhole ? Buffer.alloc(0) : Buffer.alloc(5000)
    await writeFile(join(data, 'uploads', id), Buffer.concat([file.subarray(0, came), rest]))
    await record(`upload+${id}`, {
      name,
      sizeBytes: file.length,
      sha256: end.sha256,
      version: '1',
      touchedAt: NOW,
      durableBytes: came,
      isWhole,
      verified: null,
    })
  }

  async function capture(
    id: string,
    name: string,
    more: { readonly came: number; readonly order: string },
    news: object,
  ) {
    await writeFile(join(data, 'captures', id), file.subarray(0, more.came))
    await record(`capture+${id}`, {
      name,
      source: { ...SOURCE, generalized: false },
      order: more.order,
      issuedAt: 1_000,
      tokenDigest: sha256Of(token),
      durableBytes: more.came,
      announced: null,
      end: null,
      isDecoded: false,
      createdAt: NOW,
      touchedAt: NOW,
      ...news,
    })
  }

  await upload(UPLOAD, 'upload.img.zst', CAME)
  await upload(WHOLE_UPLOAD, 'whole.img.zst', file.length)
  await capture(CAPTURE, 'capture.img.zst', { came: CAME, order: 'order-1' }, {})
  const all = { came: file.length, order: 'order-2' }
  await capture(ANNOUNCED_CAPTURE, 'announced.img.zst', all, {
    announced: { ...end, warnings: [] },
  })
  await capture(
    WAITING_CAPTURE,
    'waiting.img.zst',
    { ...all, order: 'order-3' },
    {
      end: { ...end, warnings: ['SSH host keys'] },
      isDecoded: true,
    },
  )
  await record('order+order-0', { usedAt: 1_000 })
  await record('quiet-uploads', [[UPLOAD, 3_600_000]])
  await record('quiet-captures', [[CAPTURE, 3_600_000]])

  const key = sha256Of(src)
  await writeFile(
    join(data, 'parts', `${key}.part`),
    Buffer.concat([file.subarray(0, CAME), Buffer.alloc(5000)]),
  )
  await record(`part+${key}`, {
    version: '"one"',
    sizeBytes: file.length,
    durableBytes: CAME,
    sha256: null,
    bootId: '00000000-0000-0000-0000-000000000000',
    isWanted: true,
  })
  const entry = { name: 'download.img.zst', src, resolved_src: null, sha256: end.sha256 }
  await record('entries', { version: 1, entries: [{ ...entry, credentials: null }] })
  // Leftovers of a crash: an upload and a download of which nothing is remembered.
  await writeFile(join(data, 'uploads', 'f'.repeat(32)), 'x')
  await writeFile(join(data, 'parts', `${'f'.repeat(64)}.part`), 'x')
}
