/** The files by which machines know each other or themselves, and debugfs's words about them. */

interface IdentityFolder {
  /** From the root of the file system, or of a partition mounted at /var. */
  readonly folder: string
  readonly names: RegExp
}

const SYSTEM: readonly IdentityFolder[] = [
  { folder: '/etc', names: /^machine-id$/ },
  { folder: '/etc/ssh', names: /^ssh_host_[a-z0-9]+_key(\.pub)?$/ },
]

/** Below /var, which may be a partition of its own. */
const VARIABLE: readonly IdentityFolder[] = [
  { folder: '/lib/systemd', names: /^random-seed$/ },
  { folder: '/lib/dhcp', names: /^dhclient[\w.-]*\.leases?$/ },
  { folder: '/lib/dhcpcd', names: /^(duid|secret|[\w.-]+\.lease6?)$/ },
  { folder: '/lib/NetworkManager', names: /^(secret_key|[\w.-]+\.lease)$/ },
]

export const IDENTITY_FOLDERS: readonly IdentityFolder[] = [
  ...SYSTEM,
  ...VARIABLE.map(({ folder, names }) => ({ folder: `/var${folder}`, names })),
  ...VARIABLE,
]

export interface FoundFile {
  readonly inode: number
  readonly path: string
}

const REGULAR = 0o10

/** debugfs exits with 0 for most of what it cannot read. */
interface FolderListing {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** Every folder has an entry of itself. */
const ITSELF = /^\/\d+\/\d{6}\/\d+\/\d+\/\.\/\d*\/\s*$/m
const ABSENT = /: File not found by ext2_lookup\s*$/m

/**
 * debugfs's `ls -p`: `/inode/mode/uid/gid/name/size/` in each line. Only files with content. Null:
 * the folder could not be read.
 */
export function parseListing(
  { exitCode, stdout, stderr }: FolderListing,
  { folder, names }: IdentityFolder,
): readonly FoundFile[] | null {
  if (exitCode !== 0 || (!ITSELF.test(stdout) && !ABSENT.test(stderr))) return null
  return stdout.split('\n').flatMap((line) => {
    const found = /^\/(\d{1,10})\/(\d{6})\/\d+\/\d+\/([^/]{1,255})\/(\d+)\/$/.exec(line.trim())
    const [, inode = '', mode = '', name = '', size = ''] = found ?? []
    const isFile = Number.parseInt(mode.slice(0, 2), 8) === REGULAR
    if (!isFile || Number(size) === 0 || !names.test(name)) return []
    return [{ inode: Number(inode), path: `${folder}/${name}` }]
  })
}

/** debugfs's `imap`. Null: it printed something else. */
export function parseInodeRange(
  text: string,
  { blockBytes, inodeBytes }: { readonly blockBytes: number; readonly inodeBytes: number },
): { readonly offset: number; readonly bytes: number } | null {
  const found = /located at block (\d{1,15}), offset 0x([0-9a-fA-F]{1,8})\b/.exec(text)
  if (found === null) return null
  const [, block = '', within = ''] = found
  return { offset: Number(block) * blockBytes + Number.parseInt(within, 16), bytes: inodeBytes }
}

/** They hold no system with such files. */
const WITHOUT_IDENTITY = ['vfat', 'exfat']

/** Null: it can be generalized, or need not. `whole`: why its used blocks are unknown. */
export function decideGeneralizing(type: string | null, whole: string | null): string | null {
  if (type === null) return 'there is a partition whose contents are not known'
  if (WITHOUT_IDENTITY.includes(type)) return null
  return /^(ext[234]|swap)$/.test(type)
    ? whole
    : `only ext4 can be, and there is a partition with ${type}`
}
