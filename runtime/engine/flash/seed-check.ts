/** Reads a seed back from the medium. */
import { notWhatWasWritten } from '../disk/device.ts'
import { readInside } from '../disk/mounted-tree.ts'
import type { MountTools } from '../disk/mounts.ts'
import { mountVolume } from '../disk/root-file-systems.ts'
import type { WrittenSeed } from './seeder.ts'

/** What the kernel remembers of the volume and of the disk is given up first. */
export async function readBack(
  tools: MountTools,
  node: string,
  { volume, subvolume, files }: WrittenSeed,
): Promise<void> {
  for (const cached of [volume.node, node]) {
    await tools.shell.require(['blockdev', '--flushbufs', cached])
  }
  const mounted = await mountVolume(tools, volume, subvolume, 'look')
  if (!mounted.ok) throw notWhatWasWritten(node, `in its first-boot files: ${mounted.refusal}`)
  await using tree = mounted.value
  for (const { path, content } of files) {
    // A medium that does not hold a file may fail to read it.
    const found = await readInside(tree.root, path, content.length).catch(() => null)
    if (found !== content.toString()) throw notWhatWasWritten(node, `in /${path}`)
  }
}
