/** Parses the kernel's tables of mounts and swap in /proc, line by line. */

/** One line of /proc/PID/mountinfo. */
export interface Mount {
  readonly id: number
  /** `major:minor` of the file system; of no device for btrfs, overlay, tmpfs and network ones. */
  readonly dev: string
  /** Where in its mount namespace. */
  readonly point: string
  readonly fstype: string
  /** Often a device node; whatever the mounter called it. */
  readonly source: string
  /** The file system's own options, each `key` or `key=value`. */
  readonly options: readonly string[]
}

/**
 * Reads a mountinfo table; lines of another shape are left out. Only blanks and newlines part it:
 * the kernel escapes these, while other white space stands in mount points as it is.
 */
export function parseMountinfo(text: string): readonly Mount[] {
  return text.split('\n').flatMap((line) => {
    const fields = line.split(' ')
    const dash = fields.indexOf('-', 6)
    const [id = '', , dev = '', , point = ''] = fields
    if (dash < 0 || !/^\d{1,10}$/.test(id) || !/^\d{1,10}:\d{1,10}$/.test(dev)) return []
    const [fstype = '', source = '', ...options] = fields.slice(dash + 1)
    return {
      id: Number(id),
      dev,
      point: unescapeOctal(point),
      fstype: unescapeOctal(fstype),
      source: unescapeOctal(source),
      options: options.join(' ').split(',').map(unescapeOctal),
    }
  })
}

/** The devices (not files) of /proc/swaps, by path. */
export function parseSwaps(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const [path = '', type] = line.split(/[ \t]+/)
    return type === 'partition' ? [unescapeOctal(path).replace(/ \(deleted\)$/, '')] : []
  })
}

/** The mount that a path of this table's namespace lies in: the longest point, the last on a tie. */
export function findMount(mounts: readonly Mount[], path: string): Mount | null {
  return mounts.reduce<Mount | null>((best, mount) => {
    const covers = mount.point === '/' || path === mount.point || path.startsWith(`${mount.point}/`)
    return covers && mount.point.length >= (best?.point.length ?? 0) ? mount : best
  }, null)
}

/** The folders that an overlay is made of: lower ones, the upper one, the work folder. */
export function parseOverlayFolders({ fstype, options }: Mount): readonly string[] {
  if (fstype !== 'overlay') return []
  return options.flatMap((option) => {
    const [, key, value = ''] =
      /^(lowerdir\+?|datadir\+|upperdir|workdir)=(.*)$/s.exec(option) ?? []
    if (key === undefined) return []
    const folders = key === 'lowerdir' ? value.split(/(?<!\\):+/) : [value]
    return folders.map((folder) => folder.replaceAll(/\\(.)/gs, '$1')).filter(Boolean)
  })
}

/** Blank, tab, newline, comma, backslash and more come as `\040`; bytes, so together perhaps UTF-8. */
const unescapeOctal = (text: string) =>
  text.replaceAll(/(?:\\[0-3][0-7]{2})+/g, (run) =>
    Buffer.from(
      run
        .split('\\')
        .slice(1)
        .map((digits) => Number.parseInt(digits, 8)),
    ).toString('utf8'),
  )
