/** Lists what network boot and flashing require, and which of it is set up (dashboard). */
import { renderSize } from '../foundation/size.ts'
import type { TftpState } from './tftp.ts'

/** `missing`: nothing works without; `attention`: look at it; `unknown`: nothing proves it yet. */
type ReadinessState = 'ready' | 'attention' | 'missing' | 'unknown'

export interface ReadinessRow {
  readonly id: 'catalog' | 'netboot' | 'dhcp' | 'tftp' | 'disk'
  readonly state: ReadinessState
  readonly ok: boolean
  readonly title: string
  /** What is true, in a sentence. */
  readonly text: string
  /** Why it matters, in a sentence. */
  readonly why: string
  /** The page where it is set up, and the words on the button that leads there. */
  readonly href: string
  readonly action: string
}

export interface ReadinessFacts {
  /** The sets that scripts name. */
  readonly sets: readonly { readonly arch: string; readonly version: string | null }[]
  readonly catalog: {
    readonly images: number
    readonly error: string | null
    /** A cache service is set. */
    readonly isSet: boolean
  }
  /** A machine has asked this server what to boot. */
  readonly hasContact: boolean
  readonly tftp: TftpState
  /** Null: it could not be read. */
  readonly disk: { readonly freeBytes: number; readonly isLow: boolean } | null
}

/** Every row, in the order in which they are best set up. */
export const listReadiness = (facts: ReadinessFacts): readonly ReadinessRow[] => [
  judgeCatalog(facts),
  judgeNetboot(facts),
  judgeDhcp(facts),
  judgeTftp(facts),
  judgeDisk(facts),
]

function judgeCatalog({ catalog }: ReadinessFacts): ReadinessRow {
  const about = {
    id: 'catalog',
    title: 'Images',
    why: 'Machines are flashed with images from the cache.',
    href: '/ui/cache#add',
    action: 'Add an image',
  } as const
  const { images, error, isSet } = catalog
  if (!isSet) {
    return row(
      { ...about, action: 'Connect a cache' },
      'missing',
      'No cache service is configured, so there are no images.',
    )
  }
  const unavailable = { ...about, href: '/ui/cache', action: 'Check the cache' }
  const count = images === 1 ? '1 image' : `${images} images`
  if (images === 0 && error === null) return row(about, 'missing', 'There are no images yet.')
  if (images === 0) return row(unavailable, 'missing', 'The cache service is unavailable.')
  return error === null
    ? row(about, 'ready', `${count} in the catalog.`)
    : row(unavailable, 'attention', `${count} known, but the cache service is unavailable.`)
}

function judgeNetboot({ sets }: ReadinessFacts): ReadinessRow {
  const about = {
    id: 'netboot',
    title: 'Live system',
    why: 'Machines boot it from the network to be flashed. Without it they can only boot their own disks.',
    href: '/ui/netboot#install',
    action: 'Install a live system',
  } as const
  if (sets.length === 0) return row(about, 'missing', 'No live system is installed.')
  const words = sets.map(({ arch, version }) => `${version ?? 'an uploaded version'} (${arch})`)
  return row(about, 'ready', `Machines boot ${words.join(' and ')}.`)
}

/** The DHCP server is another's; that a machine found its way here is the only proof. */
function judgeDhcp({ hasContact }: ReadinessFacts): ReadinessRow {
  const about = {
    id: 'dhcp',
    title: 'DHCP',
    why: 'Your DHCP server must tell machines to boot from this server.',
    href: '/ui/settings#dhcp-pxe',
    action: 'Set up DHCP',
  } as const
  return hasContact
    ? row(about, 'ready', 'Machines find this server.')
    : row(about, 'unknown', 'No machine has booted from this server yet.')
}

function judgeTftp({ tftp }: ReadinessFacts): ReadinessRow {
  const about = {
    id: 'tftp',
    title: 'TFTP daemon',
    why: 'BIOS machines and most UEFI firmware load their first file by TFTP. UEFI HTTP Boot needs none.',
    href: '/ui/netboot#tftp',
    action: 'Set up TFTP',
  } as const
  const { text } = tftp
  if (tftp.isReady) return row(about, 'ready', text)
  if (!tftp.isChecked) return row(about, 'unknown', text)
  return row(about, tftp.isActive ? 'attention' : 'missing', text)
}

function judgeDisk({ disk }: ReadinessFacts): ReadinessRow {
  const about = {
    id: 'disk',
    title: 'Disk space',
    why: 'The server stops accepting changes when its disk is full.',
    href: '/ui/settings#storage',
    action: 'Check storage',
  } as const
  if (disk === null) return row(about, 'attention', 'Free space unknown.')
  const free = `${renderSize(disk.freeBytes)} free.`
  return disk.isLow
    ? row(about, 'attention', `Only ${free} Free up space on the server's disk.`)
    : row(about, 'ready', free)
}

const row = (
  about: Pick<ReadinessRow, 'id' | 'title' | 'why' | 'href' | 'action'>,
  state: ReadinessState,
  text: string,
): ReadinessRow => ({ ...about, state, ok: state === 'ready', text })
