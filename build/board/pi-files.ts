/** What a Raspberry Pi 4 or 5 reads from its first partition, whatever it starts: firmware and device trees. */
import { glob } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isBoardTree, PI_FIRMWARE } from './firmware.ts'

interface PiSources {
  /** The tree of packages: the kernel's device trees lie in it. */
  readonly tree: string
  /** The files of Debian's boot packages, below one root. */
  readonly packages: string
}

/**
 * Lists files by their paths on the partition. Rejects when the tree has no device tree of such a
 * board.
 */
export async function listPiFiles({
  tree,
  packages,
}: PiSources): Promise<Readonly<Record<string, string>>> {
  const trees = await listTrees(tree)
  return {
    ...Object.fromEntries(trees.map((path) => [basename(path), path])),
    ...Object.fromEntries(
      PI_FIRMWARE.map((name) => [name, join(packages, 'usr/lib/raspi-firmware', name)]),
    ),
  }
}

async function listTrees(tree: string): Promise<readonly string[]> {
  const found: string[] = []
  for await (const path of glob(join(tree, 'usr/lib/modules/*/dtb/broadcom/*.dtb'))) {
    if (isBoardTree(basename(path))) found.push(path)
  }
  if (found.length === 0) throw new Error(`${tree} has no device tree of a Raspberry Pi 4 or 5`)
  return found.toSorted()
}
