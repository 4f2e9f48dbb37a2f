/** The firmware files that a kernel module names. */

const MARK = Buffer.from('firmware=')

/** Names below `lib/firmware`, as the `.modinfo` section of the module's file has them. */
export function listFirmware(module: Buffer): readonly string[] {
  const found: string[] = []
  for (let at = module.indexOf(MARK); at !== -1; at = module.indexOf(MARK, at + 1)) {
    const isStart = at === 0 || module[at - 1] === 0
    const end = module.indexOf(0, at)
    if (!isStart || end === -1) continue
    const name = module.toString('utf8', at + MARK.length, end)
    // Modules name files of a folder; what leaves it is no name of one.
    if (/^[\w.+/-]+$/.test(name) && !name.split('/').includes('..')) found.push(name)
  }
  return found
}

/** As the kernel looks for a file: as it is, then compressed. */
export const FIRMWARE_SUFFIXES = ['', '.zst', '.xz'] as const
