/** Gathers a stretch of bytes that comes in pieces, as one copy, up to a limit. */

const BLOCK = 64 * 1024

/**
 * Creates a buffer for at most `most` bytes. They are copied, block by block: pieces of one byte
 * each would take hundreds of bytes of memory.
 */
export function createGathering(most: number) {
  let blocks: Buffer[] = []
  let [length, used, from] = [0, 0, 0]
  let isOver = false

  function drop() {
    isOver = true
    blocks = []
    length = used = 0
  }

  function add(piece: Uint8Array): void {
    if (isOver) return
    if (length + piece.byteLength > most) return drop()
    let rest = piece
    while (rest.byteLength > 0) {
      let block = blocks.at(-1)
      if (block === undefined || used === block.length) {
        const size = Math.min(BLOCK, most - length, Math.max(length, rest.byteLength, 256))
        block = Buffer.allocUnsafeSlow(size)
        blocks.push(block)
        used = 0
      }
      const part = rest.subarray(0, block.length - used)
      block.set(part, used)
      used += part.byteLength
      length += part.byteLength
      rest = rest.subarray(part.byteLength)
    }
  }

  /** Null: there was more than the limit. */
  function finish(): Buffer | null {
    return isOver ? null : Buffer.concat(blocks, length)
  }

  return {
    add,
    finish,
    /** What is wanted begins at this place of the piece that is being looked at. */
    begin(at: number) {
      from = at
    },
    /** The piece is over, and what is wanted is not. */
    interrupt(piece: Uint8Array) {
      add(piece.subarray(from))
      from = 0
    },
    end(piece: Uint8Array, before: number): Buffer | null {
      add(piece.subarray(from, before))
      return finish()
    },
    /** No more is wanted of it. */
    drop,
    held: () => length,
  }
}
