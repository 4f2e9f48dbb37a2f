/** Pictures of pages made small: the same PNG with a palette, since pages have few colours. */
import { crc32, deflateSync, inflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')
const MAX_COLOURS = 256

/** Takes 8-bit RGB or RGBA without interlace, as browsers write it; transparency is dropped. */
export function shrinkPng(png: Buffer): Buffer {
  const { width, height, channels, bytes } = decode(png)
  const pixels = new Uint32Array(width * height)
  for (let at = 0; at < pixels.length; at += 1) pixels[at] = bytes.readUIntBE(at * channels, 3)
  const { palette, indexOf } = choosePalette(pixels)
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      rows[y * (width + 1) + 1 + x] = indexOf(pixels[y * width + x] ?? 0)
    }
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 3, 0, 0, 0], 8)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** All colours where there are few; else the commonest, and for each other one the nearest of them. */
function choosePalette(pixels: Uint32Array) {
  const counts = new Map<number, number>()
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1)
  const kept = [...counts]
    .toSorted((a, b) => b[1] - a[1])
    .slice(0, MAX_COLOURS)
    .map(([colour]) => colour)
  const indices = new Map(kept.map((colour, at) => [colour, at]))
  const palette = Buffer.alloc(kept.length * 3)
  for (const [at, colour] of kept.entries()) palette.writeUIntBE(colour, at * 3, 3)
  return {
    palette,
    indexOf(colour: number): number {
      const known = indices.get(colour)
      if (known !== undefined) return known
      const nearest = findNearest(kept, colour)
      indices.set(colour, nearest)
      return nearest
    },
  }
}

function findNearest(kept: readonly number[], colour: number): number {
  let [best, least] = [0, Infinity]
  for (const [at, other] of kept.entries()) {
    const far = distance(colour, other)
    if (far < least) [best, least] = [at, far]
  }
  return best
}

const distance = (a: number, b: number): number =>
  [16, 8, 0].reduce((sum, shift) => sum + (((a >> shift) & 255) - ((b >> shift) & 255)) ** 2, 0)

function decode(png: Buffer) {
  const [width, height, type] = [png.readUInt32BE(16), png.readUInt32BE(20), png[25]]
  const channels = type === 6 ? 4 : 3
  const parts: Buffer[] = []
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') {
      parts.push(png.subarray(at + 8, at + 8 + length))
    }
    at += length + 12
  }
  const raw = inflateSync(Buffer.concat(parts))
  return { width, height, channels, bytes: unfilter(raw, width * channels, height, channels) }
}

/** Each row says how it was filtered: by the byte to the left, above, or both. */
function unfilter(raw: Buffer, stride: number, height: number, channels: number): Buffer {
  // A row and a pixel of nothing stand before the first ones.
  const [line, first] = [stride + channels, stride + 2 * channels]
  const padded = Buffer.alloc(line * (height + 1))
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)] ?? 0
    for (let x = 0; x < stride; x += 1) {
      const at = first + y * line + x
      const [left, up, corner] = [at - channels, at - line, at - line - channels].map((from) =>
        Number(padded[from]),
      )
      const guess = guessOf(filter, left ?? 0, up ?? 0, corner ?? 0)
      padded[at] = (Number(raw[y * (stride + 1) + 1 + x]) + guess) & 255
    }
  }
  return Buffer.concat(
    Array.from({ length: height }, (_, y) =>
      padded.subarray(first + y * line, first + y * line + stride),
    ),
  )
}

const guessOf = (filter: number, left: number, up: number, corner: number): number =>
  [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
  if (a <= b && a <= c) return left
  return b <= c ? up : corner
}

function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}
