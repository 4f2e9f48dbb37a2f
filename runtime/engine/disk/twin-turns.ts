/** Volumes of the same btrfs take turns: the kernel tells them apart by their UUID alone. */

interface Turn extends PromiseWithResolvers<void> {
  readonly node: string
  mounts: number
}

const turns = new Map<string, Turn>()

/** As one image may be on several disks. Returns what ends the turn. */
export async function takeTurn(uuid: string, node: string): Promise<() => void> {
  let turn = turns.get(uuid)
  while (turn !== undefined && turn.node !== node) {
    await turn.promise
    turn = turns.get(uuid)
  }
  const own = turn ?? { node, mounts: 0, ...Promise.withResolvers<void>() }
  turns.set(uuid, own)
  own.mounts += 1
  return () => {
    own.mounts -= 1
    if (own.mounts > 0) return
    turns.delete(uuid)
    own.resolve()
  }
}
