/** The firmware files that a kernel module names. */

const MARK = Buffer.from('firmware=')

/** Lists names below `lib/firmware`, as the `.modinfo` section of the module's file has them. */
export function listFirmware(module: Buffer): readonly string[] {
  const found: string[] = []
  for (let at = module.indexOf(MARK); at !== -1; at = module.indexOf(MARK, at + 1)) {
    const isStart = at === 0 || module[at - 1] === 0
    const end = module.indexOf(0, at)
    if (!isStart || end === -1) continue
    const name = module.toString('utf8', at + MARK.length, end)
    // A name must stay below the firmware folder.
    if (/^[\w.+/-]+$/.test(name) && !name.split('/').includes('..')) found.push(name)
  }
  return found
}

/** In the order in which the kernel tries them: uncompressed first. */
export const FIRMWARE_SUFFIXES = ['', '.zst', '.xz'] as const
