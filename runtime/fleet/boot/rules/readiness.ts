/** Lists what network boot and flashing require, and which of it is set up (dashboard). */
import { renderSize } from '#kit/foundation/size.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import type { TftpState } from './tftp.ts'

const t = PAGES.dashboard.setup.rows

/** `missing`: nothing works without it; `unknown`: no proof yet. */
type ReadinessState = 'ready' | 'attention' | 'missing' | 'unknown'

export interface ReadinessRow {
  readonly id: 'catalog' | 'netboot' | 'dhcp' | 'tftp' | 'disk'
  readonly state: ReadinessState
  readonly ok: boolean
  readonly title: string
  readonly text: string
  readonly why: string
  readonly href: string
  readonly action: string
}

export interface ReadinessFacts {
  readonly sets: readonly { readonly arch: string; readonly version: string | null }[]
  readonly catalog: {
    readonly images: number
    readonly error: string | null
    readonly isSet: boolean
  }
  readonly hasContact: boolean
  readonly tftp: TftpState
  /** Null: unreadable. */
  readonly disk: { readonly freeBytes: number; readonly isLow: boolean } | null
}

export const listReadiness = (facts: ReadinessFacts): readonly ReadinessRow[] => [
  judgeCatalog(facts),
  judgeNetboot(facts),
  judgeDhcp(facts),
  judgeTftp(facts),
  judgeDisk(facts),
]

function judgeCatalog({ catalog }: ReadinessFacts): ReadinessRow {
  const { title, why, texts, actions } = t.catalog
  const about = { id: 'catalog', title, why, href: '/ui/cache#add', action: actions.add } as const
  const { images, error, isSet } = catalog
  if (!isSet) return row({ ...about, action: actions.connect }, 'missing', texts.unset)
  const unavailable = { ...about, href: '/ui/cache', action: actions.check }
  if (images === 0 && error === null) return row(about, 'missing', texts.none)
  if (images === 0) return row(unavailable, 'missing', texts.unavailable)
  return error === null
    ? row(about, 'ready', fillCount(texts.ready, images))
    : row(unavailable, 'attention', fillCount(texts.stale, images))
}

function judgeNetboot({ sets }: ReadinessFacts): ReadinessRow {
  const { title, why, action, texts } = t.netboot
  const about = { id: 'netboot', title, why, action, href: '/ui/netboot#install' } as const
  if (sets.length === 0) return row(about, 'missing', texts.none)
  const [first = '', second] = sets.map(({ arch, version }) =>
    fill(texts.system, { version: version ?? texts.unnamed, arch }),
  )
  const text =
    second === undefined ? fill(texts.single, { first }) : fill(texts.both, { first, second })
  return row(about, 'ready', text)
}

/** The DHCP server is not ours; only a machine's contact proves it. */
function judgeDhcp({ hasContact }: ReadinessFacts): ReadinessRow {
  const { title, why, action, texts } = t.dhcp
  const about = { id: 'dhcp', title, why, action, href: '/ui/dhcp' } as const
  return hasContact ? row(about, 'ready', texts.ready) : row(about, 'unknown', texts.unknown)
}

function judgeTftp({ tftp }: ReadinessFacts): ReadinessRow {
  const about = { id: 'tftp', ...t.tftp, href: '/ui/netboot#tftp' } as const
  const { text } = tftp
  if (tftp.isReady) return row(about, 'ready', text)
  if (!tftp.isChecked) return row(about, 'unknown', text)
  return row(about, tftp.isActive ? 'attention' : 'missing', text)
}

function judgeDisk({ disk }: ReadinessFacts): ReadinessRow {
  const { title, why, action, texts } = t.disk
  const about = { id: 'disk', title, why, action, href: '/ui/settings#storage' } as const
  if (disk === null) return row(about, 'attention', texts.unknown)
  const size = renderSize(disk.freeBytes)
  return disk.isLow
    ? row(about, 'attention', fill(texts.low, { size }))
    : row(about, 'ready', fill(texts.ready, { size }))
}

const row = (
  about: Pick<ReadinessRow, 'id' | 'title' | 'why' | 'href' | 'action'>,
  state: ReadinessState,
  text: string,
): ReadinessRow => ({ ...about, state, ok: state === 'ready', text })
