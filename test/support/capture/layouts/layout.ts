/** A disk that was set to be captured, planned from a seed: its tables, the types of its partitions, what lies in them, and what was left behind. */
import { createRandom } from '#test/support/collect.ts'

export const CONTENTS = ['ext4', 'fat16', 'fat32', 'ntfs', 'exfat', 'btrfs', 'xfs', 'swap'] as const
export type Content = (typeof CONTENTS)[number]

/** Beside an ordinary table: what makes another one of it, or another way to what is there. */
const TWISTS = [
  'another-mbr',
  'protective-alone',
  'backup-of-another',
  'no-primary',
  'damaged',
  'optical-disc',
] as const

/** What lies in a partition behind its file system. */
const BEHIND = ['nothing', 'little', 'zeros', 'noise', 'hashes', 'another'] as const

/** Types by the words of the plan: a GUID, and the number in an MBR. */
export const TYPES = {
  linux: ['0FC63DAF-8483-4772-8E79-3D69D8477DE4', '83'],
  windows: ['EBD0A0A2-B9E5-4433-87C0-68B6B72699C7', '7'],
  efi: ['C12A7328-F81F-11D2-BA4B-00A0C93EC93B', 'ef'],
  root: ['4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709', '83'],
  swap: ['0657FD6D-A4AB-43C4-84E5-0933C84B4F4F', '82'],
  lvm: ['E6D6D379-F507-44C2-A23C-238F2A3DF928', '8e'],
  raid: ['A19D880F-05FC-4D3B-A006-743F0F84911E', 'fd'],
  dynamic: ['AF9B60A0-1431-4F62-BC68-3311714A69AD', '42'],
  /** In an MBR it is written afterwards: sfdisk makes no such entry. */
  empty: ['FE3A2A5D-4F32-41A7-B725-ACCC3285A309', 'da'],
  verity: ['2C7357ED-EBD2-46D9-AEC1-23D437EC2BF5', 'da'],
  extended: ['FE3A2A5D-4F32-41A7-B725-ACCC3285A309', '5'],
} as const
export type PartType = keyof typeof TYPES

export interface PartPlan {
  /** `noise`: nobody knows what; `hashes`: of dm-verity, for the partition before it; `raw-hashes`: the same without a superblock. */
  readonly content: Content | 'noise' | 'zeros' | 'hashes' | 'raw-hashes'
  readonly type: PartType
  readonly behind: (typeof BEHIND)[number]
  /** Sectors that the partition is shorter than its file system. */
  readonly cut: number
  /** MiB before it. */
  readonly gap: number
}

export interface Layout {
  readonly seed: number
  readonly table: 'gpt' | 'dos' | 'none'
  readonly twist: (typeof TWISTS)[number] | null
  readonly parts: readonly PartPlan[]
}

const ORDINARY = ['linux', 'windows', 'efi', 'root'] as const
const OTHERS = ['lvm', 'raid', 'dynamic', 'empty', 'extended', 'swap', 'verity'] as const

export function planLayout(seed: number): Layout {
  const random = createRandom(seed)
  const oneOf = <Item>(items: readonly Item[]): Item =>
    items[Math.floor(random() * items.length)] ?? raise()
  const chance = (share: number) => random() < share
  const table = oneOf(['gpt', 'gpt', 'dos', 'dos', 'none'] as const)

  function planPart(): readonly PartPlan[] {
    const content = chance(0.1) ? oneOf(['noise', 'zeros'] as const) : oneOf(CONTENTS)
    const type = chance(0.25) ? oneOf(OTHERS) : content === 'swap' ? 'swap' : oneOf(ORDINARY)
    const what = chance(0.3) ? oneOf(BEHIND) : 'nothing'
    const drawn = chance(0.06) ? oneOf([8, 2048, 8192]) : 0
    // What is no file system has no end that a partition could cut off.
    const cut = content === 'noise' || content === 'zeros' ? 0 : drawn
    const behind = cut > 0 ? 'nothing' : what
    const part: PartPlan = { content, type, behind, cut, gap: oneOf([1, 1, 3, 20]) }
    if (!chance(0.15)) return [part]
    const hashes = oneOf(['hashes', 'raw-hashes'] as const)
    const hashType = oneOf(['verity', 'linux'] as const)
    return [
      part,
      { content: hashes, type: hashType, behind: 'nothing', cut: 0, gap: oneOf([1, 3]) },
    ]
  }

  const count = table === 'none' ? 1 : oneOf([1, 2, 2, 3])
  const planned = Array.from({ length: count }, planPart).flat()
  const parts = (table === 'none' ? planned.slice(0, 1) : planned.slice(0, 4)).map(
    (part, at, all): PartPlan =>
      // An MBR has one extended partition at most.
      part.type === 'extended' && all.findIndex(({ type }) => type === 'extended') < at
        ? { ...part, type: 'lvm' }
        : part,
  )
  return { seed, table, twist: table !== 'none' && chance(0.2) ? oneOf(TWISTS) : null, parts }
}

const raise = (): never => {
  throw new Error('nothing to choose from')
}

export const renderLayout = ({ seed, table, twist, parts }: Layout): string =>
  [
    `${seed}: ${table}${twist === null ? '' : ` with ${twist}`}`,
    ...parts.map(({ content, type, behind, cut }) =>
      [
        content,
        `as ${type}`,
        behind === 'nothing' ? [] : `${behind} behind it`,
        cut > 0 ? 'cut' : [],
      ]
        .flat()
        .join(' '),
    ),
  ].join(', ')

/** Whether the table is the only way to what is there. */
export const isClear = ({ table, twist, parts }: Layout): boolean =>
  twist === null && (table === 'none' || parts.every(({ type }) => type !== 'dynamic'))

/** Whether free blocks of the part `at` are free: it is one file system, where one may be, alone and complete. */
export function mayBeFreed(layout: Layout, at: number): boolean {
  const { table, parts } = layout
  const { content, type, behind, cut } = parts[at] ?? raise()
  // Nobody reads swap space by its hashes.
  const isHashed = content !== 'swap' && parts[at + 1]?.content.endsWith('hashes') === true
  const right: readonly PartType[] = content === 'swap' ? ['swap'] : ORDINARY
  const isOrdinary = table === 'none' || right.includes(type)
  const isAlone = ['nothing', 'little', 'zeros'].includes(behind) && cut === 0
  return isClear(layout) && isOrdinary && isAlone && !isHashed
}
