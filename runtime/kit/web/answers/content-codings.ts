/** Compresses bytes with brotli or gzip, whole or as a stream. */
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import type { Coding } from './rules/content-coding.ts'

/** For what is made for one response: a page of 100 kB takes 2 ms, on a thread of its own. */
const QUICK = { br: 5, gzip: 6 } as const
const BEST = { br: 11, gzip: 9 } as const

const runBrotli = promisify(brotliCompress)
const runGzip = promisify(gzip)

/** At no compressor's defaults: brotli's takes a second for a page. */
const brotliOptions = (quality: number, sizeHint = 0) => ({
  params: {
    [constants.BROTLI_PARAM_QUALITY]: quality,
    [constants.BROTLI_PARAM_SIZE_HINT]: sizeHint,
  },
})

/** Compresses bytes in one piece; `best` takes much longer and is for what is kept. */
export const compress = (
  bytes: Uint8Array,
  coding: Coding,
  effort: 'quick' | 'best' = 'quick',
): Promise<Uint8Array<ArrayBuffer>> => {
  const level = (effort === 'best' ? BEST : QUICK)[coding]
  return coding === 'br'
    ? runBrotli(bytes, brotliOptions(level, bytes.byteLength))
    : runGzip(bytes, { level })
}

/** Compresses part by part; who stops reading ends what is compressed, too. */
export async function* compressParts(
  parts: AsyncIterable<Uint8Array>,
  coding: Coding,
): AsyncGenerator<Uint8Array> {
  const zip =
    coding === 'br'
      ? createBrotliCompress(brotliOptions(QUICK.br))
      : createGzip({ level: QUICK.gzip })
  // A failure reaches whoever reads the other end.
  pipeline(parts, zip).catch(() => {})
  yield* zip
}
