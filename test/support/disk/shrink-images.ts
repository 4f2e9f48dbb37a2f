/** Images of disks with several real file systems that were lived in, in the layouts of the field. */
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx'
import { makeNoise } from './disk-images.ts'

const run = $({ quiet: true })
const MIB = 1 << 20

export interface MadePart {
  readonly number: number
  readonly megabytes: number
  readonly type: string
  /** Fills the partition, a file of its own; absent: it stays empty. */
  readonly make?: (file: string) => Promise<unknown>
  readonly more?: string
}

export interface MadeDisk {
  readonly label: 'gpt' | 'dos'
  readonly parts: readonly MadePart[]
  /** Of nothing, behind the last one; for the backup of the table. */
  readonly behind?: number
}

/** Partitions lie in the order given, from 1 MiB on; their files stay in the folder. */
export async function makeDisk(folder: string, { label, parts, behind = 2 }: MadeDisk) {
  const path = join(folder, 'disk.img')
  await writeFile(path, '')
  const used = parts.reduce((sum, { megabytes }) => sum + megabytes, 1)
  await truncate(path, (used + behind) * MIB)
  let start = 1
  const lines = [`label: ${label}`]
  for (const { number, megabytes, type, more = '' } of parts) {
    lines.push(`${number} : start=${start * 2048}, size=${megabytes * 2048}, type=${type}${more}`)
    start += megabytes
  }
  await run({ input: `${lines.join('\n')}\n` })`sfdisk --quiet --no-reread --no-tell-kernel ${path}`
  start = 1
  for (const { number, megabytes, make } of parts) {
    if (make !== undefined) {
      const file = join(folder, `made-${number}`)
      await writeFile(file, '')
      await truncate(file, megabytes * MIB)
      await make(file)
      await run`dd if=${file} of=${path} bs=1M seek=${start} conv=notrunc,sparse status=none`
    }
    start += megabytes
  }
  return path
}

export const LINUX = '0FC63DAF-8483-4772-8E79-3D69D8477DE4'
export const ESP = 'C12A7328-F81F-11D2-BA4B-00A0C93EC93B'
export const BIOS_BOOT = '21686148-6449-6E6F-744E-656564454649'
export const SWAP = '0657FD6D-A4AB-43C4-84E5-0933C84B4F4F'
export const BASIC = 'EBD0A0A2-B9E5-4433-87C0-68B6B72699C7'
export const RECOVERY = 'DE94BBA4-06D1-4D40-A16A-BFD50179D6AC'
export const RESERVED = 'E3C9E316-0B5C-4DB8-817D-F92DF00215AE'

/**
 * Files of all kinds: hard and symbolic links, devices, holes, attributes, ACLs, and what deleted ones
 * left behind. `flags`: of mke2fs.
 */
export async function makeLivedExt(file: string, flags: readonly string[] = [], seed = 1) {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-lived-'))
  try {
    const tree = join(folder, 'tree')
    await mkdir(join(tree, 'etc', 'deep'), { recursive: true })
    for (let index = 0; index < 120; index += 1) {
      const name = join(tree, index % 2 === 0 ? 'etc' : 'etc/deep', `file ${index}`)
      await writeFile(name, makeNoise(((index * 7919 * seed) % 60_000) + 1, index + seed))
    }
    await writeFile(join(tree, 'big'), makeNoise(3 * MIB, seed))
    await run`cd ${tree} && ln 'etc/deep/file 1' hard && ln -s etc/deep soft && ln -s ${'x'.repeat(200)} long && mkfifo pipe && mknod null c 1 3 && truncate -s 40M holes && echo end >> holes && chmod 4751 big && chown 1234:70000 hard`
    await run`mke2fs -q -F -t ext4 ${flags} -d ${tree} ${file}`
    const acl = join(folder, 'acl')
    // Version 2; user rw, user 1000 r, group r, mask r, others none.
    await writeFile(acl, Buffer.from(ACL, 'hex'))
    const value = join(folder, 'value')
    await writeFile(value, makeNoise(900, seed))
    const commands = [
      ...Array.from({ length: 20 }, (_, index) => `rm "/etc/file ${index * 4}"`),
      'ea_set "/etc/file 2" user.note short',
      `ea_set -f ${value} "/etc/file 6" user.large`,
      `ea_set -f ${acl} "/etc/file 10" system.posix_acl_access`,
      'ea_set /etc/deep security.selinux system_u:object_r:etc_t:s0',
      'set_inode_field /hard mtime 20010203040506',
      'set_inode_field /hard mtime_extra 0x1234567',
    ]
    await run({ input: `${commands.join('\n')}\n` })`debugfs -w -f - ${file}`
    // The counts of what was removed.
    await run({ nothrow: true })`e2fsck -f -y ${file}`
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Folders all over the file system, as a kernel spreads them. `at`: a folder to be made and mounted on. */
export async function makeSpreadExt(file: string, at: string, flags: readonly string[] = []) {
  await run`mke2fs -q -F -t ext4 -G 1 ${flags} ${file}`
  await mkdir(at, { recursive: true })
  await run`mount -o loop ${file} ${at}`
  try {
    for (let index = 0; index < 40; index += 1) {
      const folder = join(at, `folder ${index}`)
      await mkdir(join(folder, 'deep'), { recursive: true })
      for (const name of ['one', 'two', 'deep/three']) {
        await writeFile(join(folder, name), makeNoise(((index * 7919) % 90_000) + 1, index))
      }
      await run`cd ${folder} && ln one hard && ln -s deep soft && mknod null c 1 3`
      if (index % 3 === 0) await rm(join(folder, 'two'))
    }
    // Not where files have no extents.
    await run({ nothrow: true })`fallocate -l 3M ${join(at, 'unwritten')}`
    const many = join(at, 'many')
    await mkdir(many)
    for (let index = 0; index < 1500; index += 1) {
      await writeFile(join(many, `a long name of a file ${index}`), '')
    }
  } finally {
    await run`umount ${at}`
  }
}

const ACL =
  '02000000' +
  '01000600ffffffff' +
  '02000400e8030000' +
  '04000400ffffffff' +
  '10000400ffffffff' +
  '20000000ffffffff'

/** Folders, streams, holes and deleted files, by a mount of ntfs-3g. */
export async function makeLivedNtfs(file: string, seed = 1) {
  await run`mkntfs --quiet --force --fast --partition-start 2048 --heads 255 --sectors-per-track 63 --label lived ${file}`
  const folder = await mkdtemp(join(tmpdir(), 'flasher-lived-'))
  try {
    await run`ntfs-3g -o streams_interface=windows ${file} ${folder}`
    try {
      await mkdir(join(folder, 'Users', 'deep'), { recursive: true })
      for (let index = 0; index < 80; index += 1) {
        const name = join(folder, index % 2 === 0 ? 'Users' : 'Users/deep', `file ${index}`)
        await writeFile(name, makeNoise(((index * 7919 * seed) % 60_000) + 1, index + seed))
      }
      await writeFile(join(folder, 'big'), makeNoise(3 * MIB, seed))
      await writeFile(join(folder, 'big:stream'), makeNoise(70_000, seed + 1))
      await writeFile(join(folder, 'Users', 'file 2:note'), 'short')
      await run`cd ${folder} && ln big hard && truncate -s 8M holes && echo end >> holes`
      for (let index = 0; index < 80; index += 8) await rm(join(folder, 'Users', `file ${index}`))
      // What lies far back has to move.
      await writeFile(join(folder, 'late'), makeNoise(2 * MIB, seed + 2))
    } finally {
      await run`umount ${folder}`
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
