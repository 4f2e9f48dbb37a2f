/** What a partition is for, as the type in its table says: file systems are looked for only where one may be. */
import { isExtendedType, renderGuid } from '#engine/disk/rules/tables/partitions.ts'
import { isBootLoaderType } from '#engine/disk/rules/tables/gpt.ts'

/** `data`: one file system. `disk`: all of a disk without a table. */
export type AreaRole = 'disk' | 'data' | 'swap' | 'boot-loader' | 'extended' | 'other'

/** Linux, FAT, NTFS and exFAT, also hidden; Windows recovery, EFI system, extended boot. */
const DOS_DATA: readonly number[] = [
  0x83, 0x01, 0x04, 0x06, 0x07, 0x0b, 0x0c, 0x0e, 0x11, 0x14, 0x16, 0x17, 0x1b, 0x1c, 0x1e, 0x27,
  0xea, 0xef,
]
const DOS_SWAP = 0x82
/** Holds all volumes of a Windows dynamic disk. */
export const DYNAMIC_TYPE = 0x42

export function roleOfDosType(type: number): AreaRole {
  if (isExtendedType(type)) return 'extended'
  if (type === DOS_SWAP) return 'swap'
  return DOS_DATA.includes(type) ? 'data' : 'other'
}

const SWAP = '0657fd6d-a4ab-43c4-84e5-0933c84b4f4f'

/** Windows' table of dynamic volumes, and those volumes. */
const DYNAMIC: readonly string[] = [
  '5808c8aa-7e8f-42e0-85d2-e1e90434cfb3',
  'af9b60a0-1431-4f62-bc68-3311714a69ad',
]

/**
 * EFI system, extended boot, Microsoft basic data, Windows recovery; Linux data, /home, /srv, /var,
 * /var/tmp, a person's home, Flatcar's root; Linux root, then /usr, of x86, x86-64, ARM, ARM-64,
 * RISC-V-64, PPC64LE, S390X and LoongArch-64.
 */
const DATA: readonly string[] = `
c12a7328-f81f-11d2-ba4b-00a0c93ec93b bc13c2ff-59e6-4262-a352-b275fd6f7172
ebd0a0a2-b9e5-4433-87c0-68b6b72699c7 de94bba4-06d1-4d40-a16a-bfd50179d6ac
0fc63daf-8483-4772-8e79-3d69d8477de4 933ac7e1-2eb4-4f13-b844-0e14e2aef915
3b8f8425-20e0-4f3b-907f-1a25a76f98e8 4d21b016-b534-45c2-a9fb-5c16e091fd2d
7ec6f557-3bc5-4aca-b293-16ef5df639d1 773f91ef-66d4-49b5-bd83-d683bf40ad16
3884dd41-8582-4404-b9a8-e9b84f2df50e 44479540-f297-41b2-9af7-d131d5f0458a
4f68bce3-e8cd-4db1-96e7-fbcaf984b709 69dad710-2ce4-4e3c-b16c-21a1d49abed3
b921b045-1df0-41c3-af44-4c6f280d3fae 72ec70a6-cf74-40e6-bd49-4bda08e8f224
c31c45e6-3f39-412e-80fb-4809c4980599 5eead9a9-fe09-4a1e-a1d7-520d00531306
77055800-792c-4f94-b39a-98c91b762bb6 75250d76-8cc6-458e-bd66-bd47cc81a812
8484680c-9521-48c6-9c11-b0720656f69e 7d0359a3-02b3-4f0a-865c-654403e70625
b0e01050-ee5f-4390-949a-9101b17104e9 beaec34b-8442-439b-a40b-984381ed097d
15bb03af-77e7-4d4a-b12b-c0d084f7491c 8a4f5770-50aa-4ed3-874a-99b710db6fea
e611c702-575c-4cbe-9a46-434fa0bf7e3f
`.split(/\s/)

/** `stored`: the type in hexadecimal, as the table stores it. */
export function roleOfGuid(stored: string): AreaRole {
  const type = renderGuid(stored)
  if (type === SWAP) return 'swap'
  if (isBootLoaderType(stored)) return 'boot-loader'
  return DATA.includes(type) ? 'data' : 'other'
}

export const isDynamicGuid = (stored: string): boolean => DYNAMIC.includes(renderGuid(stored))
