/** The media of a release as people's own tools write them: decoded sizes and digests, and `.xz` beside `.zst`. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Writable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { boardImage, LIVE_USB, serverImage, usbIso } from '#appliance/assets.ts'
import { renderImagerList, type ListedImage } from '#appliance/imager-list.ts'
import type { HashedFile } from './manifest.ts'

interface Medium {
  readonly file: string
  readonly name: string
  readonly description: string
  readonly arch: string
}

/** The media of both lines, in the order in which they are listed. */
const listMedia = (version: string): readonly Medium[] => [
  {
    file: usbIso('x86_64', version),
    name: `Flasher ${version}, stick for PCs`,
    description: 'Starts the wizard, which writes an image to a disk of the PC',
    arch: 'x86_64',
  },
  {
    file: LIVE_USB,
    name: `Flasher ${version}, stick for PCs`,
    description: 'Starts the program with two panes, which writes an image to a disk of the PC',
    arch: 'x86_64',
  },
  {
    file: boardImage(version),
    name: `Flasher ${version}, card for Raspberry Pi 4 and 5`,
    description: 'Starts the wizard, which writes an image to a disk of the board',
    arch: 'arm64',
  },
  {
    file: serverImage('x86_64'),
    name: `Flasher ${version}, server for PCs`,
    description: 'Keeps machines and images, and boots and flashes machines over the network',
    arch: 'x86_64',
  },
  {
    file: serverImage('arm64'),
    name: `Flasher ${version}, server for Raspberry Pi 4 and 5`,
    description: 'Keeps machines and images, and boots and flashes machines over the network',
    arch: 'arm64',
  },
]

/** A medium's content once it is decoded. */
interface DecodedMedium {
  readonly bytes: number
  /** SHA-256 in hexadecimal. */
  readonly digest: string
}

/** What `.zst` is called as `.xz`; null: it is not one. */
export const xzOf = (file: string): string | null =>
  file.endsWith('.img.zst') ? file.replace(/\.zst$/, '.xz') : null

/**
 * Decodes every medium among the files of the folder, and writes `.img.xz` beside each `.img.zst`:
 * many programs read no zstd. The bytes are the same for every number of processors.
 *
 * @returns the contents by file name; the file and its `.xz` have the same.
 * @throws {Error} A medium cannot be decoded, or `xz` is missing.
 */
export async function decodeMedia(
  folder: string,
  version: string,
  files: readonly HashedFile[],
): Promise<ReadonlyMap<string, DecodedMedium>> {
  const decoded = new Map<string, DecodedMedium>()
  for (const { file } of listMedia(version)) {
    if (!files.some(({ name }) => name === file)) continue
    const xz = xzOf(file)
    const content = await decode(join(folder, file), xz === null ? null : join(folder, xz))
    decoded.set(file, content)
    if (xz !== null) decoded.set(xz, content)
  }
  return decoded
}

async function decode(path: string, xz: string | null): Promise<DecodedMedium> {
  const hash = createHash('sha256')
  let bytes = 0
  const count = new PassThrough()
  count.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    hash.update(chunk)
  })
  const packer = xz === null ? null : packTo(xz)
  const sink = packer?.stdin ?? new Writable({ write: (_chunk, _encoding, done) => done() })
  try {
    await pipeline(createReadStream(path), decoderOf(path), count, sink)
  } catch (thrown) {
    throw new Error(`${path} cannot be decoded`, { cause: thrown })
  }
  await packer?.ended
  return { bytes, digest: hash.digest('hex') }
}

function decoderOf(path: string): Transform {
  if (path.endsWith('.zst')) return createZstdDecompress()
  return path.endsWith('.gz') ? createGunzip() : new PassThrough()
}

function packTo(path: string) {
  // Two threads are enough for blocks of the same bounds with any number of them.
  const child = spawn('xz', ['--compress', '--stdout', '--threads=2', '-6'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const written = pipeline(child.stdout, createWriteStream(path))
  const ended = Promise.all([once(child, 'close'), written]).then(([[code]]) => {
    if (code !== 0) throw new Error(`xz ended with ${code}`)
  })
  ended.catch(() => undefined)
  return { stdin: child.stdin, ended }
}

interface ListOptions {
  readonly version: string
  /** Seconds since 1970. */
  readonly epoch: number
  /** The address below which the files will be published. */
  readonly url: string
  readonly files: readonly HashedFile[]
  readonly decoded: ReadonlyMap<string, DecodedMedium>
}

/** Renders `imager.json`: an older Raspberry Pi Imager reads `.xz`, but not every `.zst`. */
export function renderImagerFile({ version, epoch, url, files, decoded }: ListOptions): string {
  const base = url.replace(/\/*$/, '/')
  const images = listMedia(version).flatMap(({ file, ...medium }): readonly ListedImage[] => {
    const name = xzOf(file) ?? file
    const found = files.find((one) => one.name === name)
    const content = decoded.get(name)
    if (found === undefined || content === undefined) return []
    return [
      {
        ...medium,
        url: `${base}${encodeURIComponent(name)}`,
        rawSizeBytes: content.bytes,
        rawSha256: content.digest,
        sizeBytes: found.bytes,
        releaseDate: new Date(epoch * 1000).toISOString().slice(0, 10),
        initFormat: 'none',
      },
    ]
  })
  return `${JSON.stringify(renderImagerList(images, ICON), null, 2)}\n`
}

/** The Imager draws it beside each name; a picture of ours would be one more file to publish. */
const ICON = 'icons/use_custom.png'
