/** qcow2 images for tests, made by QEMU's own tools, and what QEMU says they hold. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx'
import type { Blocks } from '#engine/image/stream-blocks.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { makeBytes } from '../collect.ts'

const run = $({ quiet: true, verbose: false })

export interface Workshop extends AsyncDisposable {
  readonly folder: string
  /** A new image; `flags` are those of `qemu-img create`. */
  create(size: string, flags?: readonly string[]): Promise<string>
  /** Raw bytes as an image; `flags` are those of `qemu-img convert`. */
  convert(raw: Buffer, flags?: readonly string[]): Promise<string>
  /** Runs qemu-io commands on an image. */
  io(path: string, ...commands: readonly string[]): Promise<void>
  img(...argv: readonly string[]): Promise<void>
  /** What the image holds, by qemu-img. */
  contentOf(path: string): Promise<Buffer>
}

export async function openWorkshop(): Promise<Workshop> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-qcow2-'))
  let count = 0
  const nextPath = (suffix: string) => {
    count += 1
    return join(folder, `${count}.${suffix}`)
  }
  return {
    folder,
    async create(size, flags = []) {
      const path = nextPath('qcow2')
      await run`qemu-img create -q -f qcow2 ${flags} ${path} ${size}`
      return path
    },
    async convert(raw, flags = []) {
      const from = nextPath('img')
      const path = nextPath('qcow2')
      await writeFile(from, raw)
      await run`qemu-img convert -q -f raw -O qcow2 ${flags} ${from} ${path}`
      return path
    },
    async io(path, ...commands) {
      await run`qemu-io -f qcow2 ${commands.flatMap((command) => ['-c', command])} ${path}`
    },
    async img(...argv) {
      await run`qemu-img ${argv}`
    },
    async contentOf(path) {
      const raw = nextPath('img')
      await run`qemu-img convert -q -f qcow2 -O raw ${path} ${raw}`
      return await readFile(raw)
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Noise, text and zeros in stretches of all lengths, the same in every run. */
export function makeContent(bytes: number): Buffer {
  const content = Buffer.alloc(bytes)
  const noise = makeBytes(Math.ceil(bytes / 4))
  for (let at = 0, turn = 0; at < bytes; turn += 1) {
    const length = 512 * (1 + ((turn * 977) % 600))
    if (turn % 3 === 0) noise.copy(content, at, 0, length)
    if (turn % 3 === 1) content.fill(`line ${turn} of a text\n`, at, Math.min(bytes, at + length))
    at += length
  }
  return content
}

/** All that the blocks give, zeros written out; `intoBytes` is what is asked for at a time. */
export async function collectBlocks(blocks: Blocks, intoBytes: number): Promise<Buffer> {
  const parts: Buffer[] = []
  const into = Buffer.alloc(intoBytes)
  for (let piece = await blocks.next(into); piece !== null; piece = await blocks.next(into)) {
    const { kind, bytes } = piece
    parts.push(kind === 'zeros' ? Buffer.alloc(bytes) : Buffer.from(into.subarray(0, bytes)))
    into.fill(0xee)
  }
  return Buffer.concat(parts)
}

/** Bytes in memory as a file would be, or as a web server's (`isFar`). */
export function sourceOf(bytes: Buffer, { isFar = false } = {}): Source {
  return {
    name: 'disk.qcow2',
    fileName: 'disk.qcow2',
    path: isFar ? null : '/disk.qcow2',
    url: isFar ? 'http://example.test/disk.qcow2' : null,
    sizeBytes: bytes.length,
    // Bytes beyond the end are 0 bytes, as in a file.
    readAt: async (into, offset) => bytes.copy(into, 0, Math.min(offset, bytes.length)),
    async *stream(from = 0) {
      yield bytes.subarray(from)
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
