/** Volumes of the same btrfs take turns: the kernel tells them apart by their UUID alone. */

interface Turn {
  readonly node: string
  mounts: number
  readonly ended: Promise<void>
  readonly end: () => void
}

const turns = new Map<string, Turn>()

/**
 * Waits until this process has no other volume with this UUID mounted, as when one image was flashed
 * to several disks. Returns what ends the turn.
 */
export async function takeTurn(uuid: string, node: string): Promise<() => void> {
  let turn = turns.get(uuid)
  while (turn !== undefined && turn.node !== node) {
    await turn.ended
    turn = turns.get(uuid)
  }
  const own = turn ?? beginTurn(uuid, node)
  own.mounts += 1
  return () => {
    own.mounts -= 1
    if (own.mounts > 0) return
    turns.delete(uuid)
    own.end()
  }
}

function beginTurn(uuid: string, node: string): Turn {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const turn = { node, mounts: 0, ended, end }
  turns.set(uuid, turn)
  return turn
}
