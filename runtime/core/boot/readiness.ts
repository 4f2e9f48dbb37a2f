/** Lists what network boot and flashing require, and which of it is set up (dashboard). */
import { renderSize } from '../foundation/size.ts'
import type { TftpState } from './tftp.ts'

/** `missing`: nothing works without; `attention`: it may bite; `ready`: nothing to do. */
type ReadinessState = 'ready' | 'attention' | 'missing'

export interface ReadinessRow {
  readonly id: 'netboot' | 'catalog' | 'tftp' | 'password' | 'disk'
  readonly state: ReadinessState
  readonly ok: boolean
  readonly title: string
  /** What is true, in a sentence, and what to do where there is something. */
  readonly text: string
  /** The page where it is put right. */
  readonly href: string
}

export interface ReadinessFacts {
  /** The sets that scripts name. */
  readonly sets: readonly { readonly arch: string; readonly version: string | null }[]
  /** Why no release can be fetched; null: one can. */
  readonly fetchObstacle: string | null
  readonly catalog: {
    readonly images: number
    readonly error: string | null
    /** A cache service is set. */
    readonly isSet: boolean
  }
  readonly tftp: TftpState
  readonly hasPassword: boolean
  /** Null: it could not be read. */
  readonly disk: { readonly freeBytes: number; readonly isLow: boolean } | null
}

/** Every row, in the order in which they are best put right. */
export const listReadiness = (facts: ReadinessFacts): readonly ReadinessRow[] => [
  judgePassword(facts),
  judgeNetboot(facts),
  judgeTftp(facts),
  judgeCatalog(facts),
  judgeDisk(facts),
]

function judgeNetboot({ sets, fetchObstacle }: ReadinessFacts): ReadinessRow {
  const about = { id: 'netboot', title: 'Live system', href: '/ui/netboot' } as const
  if (sets.length > 0) {
    const words = sets.map(({ arch, version }) => `${version ?? 'an uploaded version'} (${arch})`)
    return row(about, 'ready', `Machines boot ${words.join(' and ')}.`)
  }
  const way = fetchObstacle === null ? 'Fetch a release.' : 'Upload one, or set a release site.'
  return row(
    about,
    'missing',
    `No live system installed. Machines can only boot their own disks. ${way}`,
  )
}

function judgeCatalog({ catalog }: ReadinessFacts): ReadinessRow {
  const about = { id: 'catalog', title: 'Images', href: '/ui/settings#ramboot' } as const
  const { images, error, isSet } = catalog
  if (!isSet) return row(about, 'missing', 'No cache service configured, so there are no images.')
  const trouble = error === null ? '' : ` The cache service is unavailable: ${error}.`
  if (images === 0) return row(about, 'missing', `The catalog is empty.${trouble}`)
  const count = images === 1 ? '1 image' : `${images} images`
  return row(about, error === null ? 'ready' : 'attention', `${count} in the catalog.${trouble}`)
}

function judgeTftp({ tftp }: ReadinessFacts): ReadinessRow {
  const about = { id: 'tftp', title: 'TFTP daemon', href: '/ui/netboot#tftp' } as const
  const text = [tftp.text, tftp.hint].filter(Boolean).join(' ')
  if (tftp.isReady) return row(about, 'ready', text)
  return row(about, tftp.isActive ? 'attention' : 'missing', text)
}

const judgePassword = ({ hasPassword }: ReadinessFacts): ReadinessRow =>
  row(
    { id: 'password', title: 'Administrator password', href: '/ui/account' },
    hasPassword ? 'ready' : 'missing',
    hasPassword ? 'Set.' : 'Not set: nobody can log in. Run flasher-web password.',
  )

function judgeDisk({ disk }: ReadinessFacts): ReadinessRow {
  const about = { id: 'disk', title: 'Disk space', href: '/ui/settings' } as const
  if (disk === null) return row(about, 'attention', 'Free space unknown.')
  const free = `${renderSize(disk.freeBytes)} free.`
  if (!disk.isLow) return row(about, 'ready', free)
  return row(about, 'attention', `Only ${free} Free up space on the server's disk.`)
}

const row = (
  about: Pick<ReadinessRow, 'id' | 'title' | 'href'>,
  state: ReadinessState,
  text: string,
): ReadinessRow => ({ ...about, state, ok: state === 'ready', text })
